/*
 * A locality provider for pointsman in C, to copy from. Its configuration is a list of places, which it answers from at once:
 *
 *     cc -std=c99 -shared -fPIC -Iinclude -o provider.so examples/locality-provider-c/provider.c
 *     pointsman --locality-provider library:./provider.so \
 *         --locality-config self=eu-north-1/eu-north-1a,db-1.c1yqcg0ie39o.eu-north-1.rds.amazonaws.com=eu-north-1/eu-north-1b
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#include "pointsman_locality.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct place {
    char host[POINTSMAN_LOCALITY_HOST_NAME];
    struct pointsman_locality_location location;
};

struct instance {
    const struct pointsman_locality_host *host;
    size_t count;
    struct place places[];
};

/* Copies length bytes and a NUL. Returns 0 if they do not fit. */
static int copy(char *to, size_t size, const char *from, size_t length) {
    if (length >= size) {
        return 0;
    }
    memcpy(to, from, length);
    to[length] = '\0';
    return 1;
}

/* Reads HOST=REGION/ZONE. Returns 0 if it is something else. */
static int parse(struct place *place, const char *entry, size_t length) {
    const char *end = entry + length;
    const char *region = memchr(entry, '=', length);
    const char *zone = region == NULL ? NULL : memchr(region, '/', (size_t)(end - region));
    if (zone == NULL || region == entry || zone == region + 1) {
        return 0;
    }
    memset(place, 0, sizeof *place);
    place->location.struct_size = sizeof place->location;
    return copy(place->host, sizeof place->host, entry, (size_t)(region - entry)) &&
           copy(place->location.region, sizeof place->location.region, region + 1, (size_t)(zone - region - 1)) &&
           copy(place->location.zone, sizeof place->location.zone, zone + 1, (size_t)(end - zone - 1));
}

static void *create(const struct pointsman_locality_host *host, const char *config, char *error, size_t error_size) {
    size_t count = 1;
    struct instance *instance;
    const char *at;
    if (host->abi_version != POINTSMAN_LOCALITY_ABI_VERSION || host->struct_size < sizeof *host) {
        snprintf(error, error_size, "the daemon's ABI version is %u", (unsigned)host->abi_version);
        return NULL;
    }
    for (at = config; *at != '\0'; at++) {
        count += *at == ',';
    }
    instance = malloc(sizeof *instance + count * sizeof instance->places[0]);
    if (instance == NULL) {
        snprintf(error, error_size, "no memory");
        return NULL;
    }
    instance->host = host;
    for (instance->count = 0, at = config; instance->count < count; instance->count++) {
        size_t length = strcspn(at, ",");
        if (!parse(&instance->places[instance->count], at, length)) {
            snprintf(error, error_size, "place %zu is not HOST=REGION/ZONE", instance->count + 1);
            free(instance);
            return NULL;
        }
        at += length + 1;
    }
    return instance;
}

static void request(void *pointer, const pointsman_locality_lease *leases, size_t count) {
    const struct instance *instance = pointer;
    size_t i, j;
    for (i = 0; i < count; i++) {
        struct pointsman_locality_subject subject;
        const char *name;
        subject.struct_size = sizeof subject;
        if (instance->host->subject(leases[i], &subject) != POINTSMAN_LOCALITY_OK) {
            instance->host->release(leases[i]);
            continue;
        }
        name = subject.kind == POINTSMAN_LOCALITY_OWN ? "self" : subject.host;
        for (j = 0; j < instance->count && strcmp(instance->places[j].host, name) != 0; j++) {
        }
        if (j < instance->count) {
            instance->host->answer(leases[i], &instance->places[j].location);
        } else {
            instance->host->fail(leases[i], POINTSMAN_LOCALITY_NOT_FOUND);
        }
    }
}

/* All is answered within request, and no thread runs. */
static void shut_down(void *pointer) {
    (void)pointer;
}

static void destroy(void *pointer) {
    free(pointer);
}

static const struct pointsman_locality_provider provider = {
    POINTSMAN_LOCALITY_ABI_VERSION,
    sizeof(struct pointsman_locality_provider),
    POINTSMAN_LOCALITY_SHOWS_TABLE,
    "example in C",
    create,
    request,
    shut_down,
    destroy,
};

const struct pointsman_locality_provider *pointsman_locality_provider(void) {
    return &provider;
}
