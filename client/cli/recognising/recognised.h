/* The network that the discovered cables make (daemon/lib/cabling/cabling.h). */
#pragma once

#include <jansson.h>

#include "client/cli/discovering/discovered.h"
#include "daemon/lib/cabling/cabling.h"

struct cluster;

struct recognised {
    const struct discovered *discovered;
    struct cabling_input input;
    struct cabling_result result;
    const char **expected; /* names of the hosts by rank, from the cluster file; NULL: not known */
    const char *exclude;
    uint32_t *host_of; /* index in discovered->host[] of each host of the input */
};

struct recognise_options {
    const struct torus *wanted;    /* the dimensions that the cables should make; NULL: find them */
    const struct cluster *cluster; /* the ranks and ports that they should have; NULL: find them */
    bool any_port;                 /* only the ranks of `cluster` count */
    const char *
        exclude; /* names of interfaces that are not part of the network, separated by commas; NULL: none */
};

/* Recognises the network of the reachable hosts. *d and *o must outlive the result. Returns 0 with *r, which
 * the caller gives to recognised_free(); or -1 with *e and nothing to free. */
int recognise(struct recognised *r, const struct discovered *d, const struct recognise_options *o,
              struct error *e);
void recognised_free(struct recognised *r);

/* Returns the index in hosts[] of the cluster file of the host discovered->host[host]: the one that has its id,
 * otherwise its name; -1: none. */
int64_t recognised_section(const struct discovered *d, const struct cluster *c, uint32_t host);

/* Why an interface of a discovered host has no cable of the network, although it hears others: "" if it may have
 * one. */
const char *recognised_left_out(const struct recognised *r, uint32_t host, uint32_t interface);

/* Adds "finding", "network", "dims", "nodes" ([{"rank", "host", "ports"}]), "moves", "shared" and "twins" to a JSON
 * object. Returns 0, or another value if there is no memory. */
int recognised_to_json(const struct recognised *r, json_t *object);

/* If the cables make a network of other dimensions than `t`, writes a sentence with both, and recognises this network
 * (`other`, which the caller gives to recognised_free()). Returns 1; 0 if they do not, with the text "" and nothing to
 * free; or -1 with *e. */
int recognised_other_dims(const struct recognised *r, const struct torus *t, char *text,
                          size_t size, struct recognised *other, struct error *e);

/* Compares a cluster file with the recognised network. Returns a JSON array with a sentence for each host, interface or
 * id that differs, or for the dimensions, which names both values; NULL if memory is short. The array is empty if the
 * cables make no network, because the moves then say why. */
json_t *recognised_differences(const struct recognised *r, const struct cluster *c);

/* Writes a new cluster file of the network. Returns 0, or -1 with *e: it has no ranks, or the file cannot be
 * written. */
int recognised_write_cluster(const struct recognised *r, const char *path, struct error *e);

/* Returns the lines of the section of the host that has a rank, to be freed; `ranked`: with its rank. NULL: there is no
 * memory. */
char *recognised_lines(const struct recognised *r, uint32_t rank, bool ranked);

/* Checks that a host may have a section with its name. Returns 0, or -1 with *e, which begins with the path. */
int recognised_check_name(const char *name, const char *path, struct error *e);
