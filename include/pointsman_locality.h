/*
 * A locality provider for pointsman: a shared object that tells in which Availability Zone servers are.
 * docs/locality-provider.md says how to write one; examples/ has one in Rust and one in C.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef POINTSMAN_LOCALITY_H
#define POINTSMAN_LOCALITY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when something below changes its meaning. What is only added makes structures longer, as their struct_size says. */
#define POINTSMAN_LOCALITY_ABI_VERSION 1u

/* Sizes of texts in bytes, with the NUL at their end. Texts are UTF-8 without control characters. */
#define POINTSMAN_LOCALITY_TEXT 64
#define POINTSMAN_LOCALITY_HOST_NAME 256
#define POINTSMAN_LOCALITY_PROVIDER_NAME 32
/* The daemon logs no more than this of a text; what follows is cut off. */
#define POINTSMAN_LOCALITY_LOG_TEXT 512

/*
 * The right, and the duty, to tell once where one subject is: a number that means nothing but to the daemon. It is never 0, and never
 * given twice. Each is returned by exactly one of answer, fail and release, from any thread, also after shut_down has been called.
 */
typedef uint64_t pointsman_locality_lease;

/* What a subject is. */
#define POINTSMAN_LOCALITY_OWN 1u      /* where the daemon runs; host is empty */
#define POINTSMAN_LOCALITY_ENDPOINT 2u /* where an endpoint of RDS or Aurora is */

struct pointsman_locality_subject {
    uint32_t struct_size; /* set by you: sizeof(struct pointsman_locality_subject) */
    uint32_t kind;
    char host[POINTSMAN_LOCALITY_HOST_NAME]; /* in lower case, without the final dot */
};

/* A place. Empty texts stand for what is not known; the Region must be. */
struct pointsman_locality_location {
    uint32_t struct_size;                  /* set by you: sizeof(struct pointsman_locality_location) */
    char region[POINTSMAN_LOCALITY_TEXT];  /* eu-north-1 */
    char zone[POINTSMAN_LOCALITY_TEXT];    /* eu-north-1a: a name, which means another zone in another account */
    char zone_id[POINTSMAN_LOCALITY_TEXT]; /* eun1-az1: the same in all accounts */
    char account[POINTSMAN_LOCALITY_TEXT]; /* twelve digits */
};

/* Why a place is not known. */
#define POINTSMAN_LOCALITY_NOT_FOUND 1u
#define POINTSMAN_LOCALITY_ACCESS_DENIED 2u
#define POINTSMAN_LOCALITY_THROTTLED 3u
#define POINTSMAN_LOCALITY_TIMEOUT 4u
#define POINTSMAN_LOCALITY_INVALID_ANSWER 5u
#define POINTSMAN_LOCALITY_PROVIDER_ERROR 6u

/* Severities of lines in the log. */
#define POINTSMAN_LOCALITY_LOG_ERROR 1u
#define POINTSMAN_LOCALITY_LOG_WARN 2u
#define POINTSMAN_LOCALITY_LOG_INFO 3u

/* What the daemon's functions return. */
#define POINTSMAN_LOCALITY_OK 0
/* No such lease is out: it has been returned already, or never was given. Nothing has happened. */
#define POINTSMAN_LOCALITY_UNKNOWN_LEASE 1
/* The daemon ends and takes no answer. The lease is returned all the same. */
#define POINTSMAN_LOCALITY_CLOSED 2
/* An argument makes no sense. The lease, if answer or fail was given one, is returned, and its subject has an invalid_answer. */
#define POINTSMAN_LOCALITY_INVALID 3
/* The daemon has failed at it, and logged where. */
#define POINTSMAN_LOCALITY_INTERNAL 4

/*
 * What the daemon offers. It stays where it is until the process ends, and its functions may be called by any thread at any time, also by
 * the thread that is in one of the provider's functions. They wait for nothing but short locks, and keep none of their arguments.
 */
struct pointsman_locality_host {
    uint32_t abi_version;
    uint32_t struct_size;
    /* Tells what a lease is about. The lease stays out. */
    int32_t (*subject)(pointsman_locality_lease lease, struct pointsman_locality_subject *subject);
    /* Tells where the subject is, and returns the lease. */
    int32_t (*answer)(pointsman_locality_lease lease, const struct pointsman_locality_location *location);
    /* Tells why it is not known where the subject is, and returns the lease. */
    int32_t (*fail)(pointsman_locality_lease lease, uint32_t category);
    /* Returns the lease without a word, which counts as a provider_error. */
    int32_t (*release)(pointsman_locality_lease lease);
    /* Writes a line to the daemon's log. The text ends with a NUL. It must not contain credentials. */
    int32_t (*log)(uint32_t severity, const char *text);
};

/* Flags of a provider. */
#define POINTSMAN_LOCALITY_SHOWS_TABLE 1u /* the daemon is to have the table stats_mysql_aws_locality */

/*
 * What a provider offers. The daemon calls its functions one at a time, in this order: create once, request as often as there is something
 * to ask, shut_down once, destroy once. It does so from different threads. None may throw or unwind.
 */
struct pointsman_locality_provider {
    uint32_t abi_version; /* POINTSMAN_LOCALITY_ABI_VERSION */
    uint32_t struct_size; /* sizeof(struct pointsman_locality_provider) */
    uint32_t flags;
    char name[POINTSMAN_LOCALITY_PROVIDER_NAME]; /* for the log; not empty */
    /*
     * Makes the provider ready. config is what --locality-config says, empty by default, and is valid until create returns. Returns
     * anything but NULL, which the other functions are given; or NULL, with a text for the operator in error, which has error_size bytes
     * and holds an empty text before. Nothing else is called then, and nothing of the provider may still run. Within 10 seconds.
     */
    void *(*create)(const struct pointsman_locality_host *host, const char *config, char *error, size_t error_size);
    /* Takes leases. The array is valid until request returns, which it does soon: long work is for a thread of the provider's own. */
    void (*request)(void *instance, const pointsman_locality_lease *leases, size_t count);
    /* Has the provider give up what it has not answered yet, and return every lease. Within 5 seconds, and the leases 5 seconds later. */
    void (*shut_down)(void *instance);
    /* Ends every thread of the provider's and frees the instance. The shared object is unloaded after that. Within 5 seconds. */
    void (*destroy)(void *instance);
};

/* The one symbol that a shared object exports. What it returns stays where it is for as long as the object is loaded. */
const struct pointsman_locality_provider *pointsman_locality_provider(void);

#ifdef __cplusplus
}
#endif

#endif
