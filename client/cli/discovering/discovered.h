/* All hosts that a discovery process knows. */
#pragma once

#include <jansson.h>

#include "daemon/lib/discovery/report.h"
#include "daemon/lib/discovery/signing.h"

struct discovered_host {
    struct report *report;       /* with id, name, interfaces and neighbours */
    char name[REPORT_NAME_SIZE]; /* as the host calls itself; others may have the same */
    char id[HOST_ID_TEXT_SIZE];
    enum trust trust;           /* as the asked host sees it */
    char key[KEY_ID_TEXT_SIZE]; /* id of its cluster key; "": none */
    bool self;                  /* the asked host */
    bool reachable;             /* by cables that both ends confirm */
    uint32_t distance;          /* cables between it and the asked host, if reachable */
};

/* Hosts are sorted by name; all names are different. */
struct discovered {
    struct discovered_host *host;
    uint32_t hosts;
    char key[KEY_ID_TEXT_SIZE]; /* id of the cluster key of the asked host; "": none */
    char setup_socket[108];     /* of torusd-setup there, as the discovery process says; "": none */
    uint64_t digest;            /* changes with every host or cable */
    uint32_t quiet_ms;          /* how long nothing has changed */
};

/* A cable, or one direction of it: interface b of host b hears interface a of host a. */
struct discovered_cable {
    uint32_t host_a, interface_a, host_b, interface_b;
    bool mutual; /* both ends hear each other; then it is listed once */
};

/* Sorts the hosts, and gives hosts with the same name different names (with a part of the id). Returns 0, or
 * -1 if there is no memory. */
int discovered_finish(struct discovered *d);
void discovered_free(struct discovered *d);

/* Finds a host by its id; UINT32_MAX: it is not known. */
uint32_t discovered_find(const struct discovered *d, const struct host_id *host);
/* Finds an interface of a host by its name; UINT32_MAX: there is none. */
uint32_t discovered_interface(const struct discovered_host *host, const char *name);

/* Whether the id of a host needs nobody's confirmation, although it decides which host gets the key: it is the asked
 * host, or has proved the cluster key. */
bool discovered_is_certain(const struct discovered_host *h);

/* Lists the cables between known hosts. Returns their number with *cables, which the caller frees; *cables is
 * NULL if there is no memory. */
size_t discovered_cables(const struct discovered *d, struct discovered_cable **cables);

/* --- as JSON --- */

#define DISCOVERED_FILE_MOST (16u << 20) /* bytes of a file */

/* Returns the array of hosts, or NULL if there is no memory. */
json_t *discovered_to_json(const struct discovered *d);

/* Reads the output of 'torusctl discover --json' from a file. Only names and neighbours of the hosts are
 * necessary. Returns 0 with *d, or -1 with *e, which names the file. */
int discovered_read(struct discovered *d, const char *path, struct error *e);
