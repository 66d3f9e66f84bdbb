/* Brings setups to hosts, and their answers back: to this host, or to others by ssh or over
 * the links. */
#pragma once

#include <jansson.h>

#include "client/cli/cluster/setup.h"
#include "daemon/lib/base/secrets.h"

enum deliver_method { DELIVER_HERE, DELIVER_SSH, DELIVER_LINKS };

/* A host, and its answer. */
struct delivery {
    const struct host *host;
    char *setup; /* the JSON, which contains keys */
    size_t length;
    json_t *reply;      /* what 'torusctl --json init --receive' has printed; NULL if it failed */
    struct error error; /* if `reply` is NULL */
};

struct deliver_options {
    enum deliver_method method;
    const char *ssh;    /* program to run instead of ssh; NULL: ssh */
    const char *socket; /* of the discovery process, for DELIVER_LINKS; NULL: the default */
    const char *root;   /* a folder with an image of a host, for DELIVER_HERE; NULL: this host */
};

/* Delivers the setups, to several hosts at a time, and sets `reply` or `error` of each. `apply`: the hosts apply them;
 * otherwise they only compute what would change. `secrets` are cluster keys that the hosts may have: over the links, a
 * host accepts only a setup that is authenticated with one of them. Frees replies of an earlier delivery. Returns the
 * number of hosts that failed. */
uint32_t deliver(struct delivery *list, uint32_t count, bool apply, const struct deliver_options *o,
                 const struct secrets *secrets);

/* Frees the setups, whose bytes are overwritten, and the replies. */
void deliver_free(struct delivery *list, uint32_t count);
