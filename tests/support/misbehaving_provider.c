/*
 * A locality provider that does what none should, and some things that one may. What, is the first word of its configuration; the second
 * is a file to which it adds a line for each thing that happens to it. What is wrong with its description is decided when it is compiled.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define _POSIX_C_SOURCE 200809L
#include "pointsman_locality.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef ABI_VERSION
#define ABI_VERSION POINTSMAN_LOCALITY_ABI_VERSION
#endif
#ifndef SIZE
#define SIZE sizeof(struct pointsman_locality_provider)
#endif
#ifndef FLAGS
#define FLAGS POINTSMAN_LOCALITY_SHOWS_TABLE
#endif
#ifndef NAME
#define NAME "misbehaving"
#endif
#ifndef DESTROY
#define DESTROY destroy
#endif
#ifndef DESCRIPTION
#define DESCRIPTION &provider
#endif

#define KEPT 64

static const struct pointsman_locality_host *host;
static char mode[32];
static char journal[512];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pointsman_locality_lease kept[KEPT];
static size_t kept_count;
static pthread_t thread;
static int has_thread;

static int is(const char *wanted) {
    return strcmp(mode, wanted) == 0;
}

static void note(const char *format, ...) {
    FILE *file = journal[0] == '\0' ? NULL : fopen(journal, "a");
    va_list arguments;
    if (file == NULL) {
        return;
    }
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fputc('\n', file);
    fclose(file);
}

static void pause_ms(long milliseconds) {
    struct timespec time;
    time.tv_sec = milliseconds / 1000;
    time.tv_nsec = milliseconds % 1000 * 1000000;
    nanosleep(&time, NULL);
}

__attribute__((destructor)) static void unloaded(void) {
    note("unloaded");
}

/* The zone is the letter that the host's name begins with; the daemon is in zone n. */
static int32_t answer(pointsman_locality_lease lease) {
    struct pointsman_locality_location location;
    struct pointsman_locality_subject subject;
    subject.struct_size = sizeof subject;
    if (host->subject(lease, &subject) != POINTSMAN_LOCALITY_OK) {
        return -1;
    }
    memset(&location, 0, sizeof location);
    location.struct_size = sizeof location;
    strcpy(location.region, "eu-north-1");
    location.zone[0] = subject.kind == POINTSMAN_LOCALITY_OWN ? 'n' : subject.host[0];
    return host->answer(lease, &location);
}

static void keep(const pointsman_locality_lease *leases, size_t count) {
    size_t i;
    pthread_mutex_lock(&lock);
    for (i = 0; i < count && kept_count < KEPT; i++) {
        kept[kept_count++] = leases[i];
    }
    pthread_mutex_unlock(&lock);
}

static void answer_kept(void) {
    int32_t code = POINTSMAN_LOCALITY_OK;
    pthread_mutex_lock(&lock);
    while (kept_count > 0) {
        code = answer(kept[--kept_count]);
    }
    pthread_mutex_unlock(&lock);
    note("answered from a thread: %d", (int)code);
}

static void *answer_later(void *nothing) {
    pause_ms(300);
    answer_kept();
    return nothing;
}

static void start_thread(void) {
    has_thread = !has_thread && pthread_create(&thread, NULL, answer_later, NULL) == 0;
}

static void *create(const struct pointsman_locality_host *given, const char *config, char *error, size_t error_size) {
    host = given;
    sscanf(config, "%31s %511s", mode, journal);
    if (is("refuse")) {
        snprintf(error, error_size, "it is not its day");
        return NULL;
    }
    if (is("refuse-mutely")) {
        return NULL;
    }
    if (is("refuse-at-length")) {
        memset(error, 'x', error_size);
        return NULL;
    }
    if (is("hang-in-create")) {
        pause_ms(3600000);
    }
    note("create");
    return mode;
}

static void request(void *instance, const pointsman_locality_lease *leases, size_t count) {
    size_t i;
    (void)instance;
    note("request");
    if (is("hang-in-request")) {
        pause_ms(3600000);
    }
    if (is("slow")) {
        pause_ms(300);
        note("slow, but here");
    }
    if (is("later")) {
        keep(leases, count);
        start_thread();
        return;
    }
    if (is("keep") || is("at-the-end") || is("late-thread")) {
        keep(leases, count);
        return;
    }
    for (i = 0; i < count; i++) {
        if (is("twice")) {
            int32_t first = answer(leases[i]);
            int32_t second = host->release(leases[i]);
            note("twice: %d %d %d %d", (int)first, (int)second, (int)host->fail(leases[i], 1), (int)host->answer(i, NULL));
        } else if (is("no-region")) {
            struct pointsman_locality_location location;
            memset(&location, 0, sizeof location);
            location.struct_size = sizeof location;
            note("no Region: %d", (int)host->answer(leases[i], &location));
        } else {
            answer(leases[i]);
        }
    }
    host->log(POINTSMAN_LOCALITY_LOG_INFO, "asked\nand answered");
}

static void shut_down(void *instance) {
    (void)instance;
    note("shut_down");
    if (is("hang-in-shut-down")) {
        pause_ms(3600000);
    }
    if (is("at-the-end")) {
        answer_kept();
    }
    if (is("late-thread")) {
        start_thread();
    }
}

static void destroy(void *instance) {
    (void)instance;
    if (has_thread) {
        pthread_join(thread, NULL);
    }
    note("destroy");
    if (is("hang-in-destroy")) {
        pause_ms(3600000);
    }
}

static const struct pointsman_locality_provider provider = {
    ABI_VERSION, (uint32_t)(SIZE), FLAGS, NAME, create, request, shut_down, DESTROY,
};

#ifndef NO_ENTRY
const struct pointsman_locality_provider *pointsman_locality_provider(void) {
    (void)provider;
    (void)destroy;
    return DESCRIPTION;
}
#else
const struct pointsman_locality_provider *somebody_else(void);
const struct pointsman_locality_provider *somebody_else(void) {
    return &provider;
}
#endif
