/* The reports that a host has, one for each host, and which hosts can be reached by cables that both ends
 * have confirmed. Only reports of reachable hosts are passed on; unreachable hosts are dropped after a while,
 * and so are hosts that have not renewed their report. */
#pragma once

#include "daemon/lib/discovery/report.h"
#include "daemon/lib/discovery/signing.h"

#define DATABASE_HOSTS_MOST 1024u
#define DATABASE_NO_HOST UINT32_MAX

struct host_entry {
    struct report *report;
    uint8_t *packed; /* the report as its host has signed it: a packed Signed */
    size_t packed_size;
    uint8_t key[PUBLIC_KEY_SIZE];
    bool has_key_id;
    uint8_t key_id[KEY_ID_SIZE]; /* of the cluster key that the host claims */
    enum trust trust;
    uint64_t received_at;
    uint64_t lost_at; /* since when the host is unreachable */
    bool reachable;
    uint32_t distance;      /* cables from this host, if reachable */
    struct heard gate;      /* the neighbour of this host on the way there, if distance > 0 */
    char gate_by[IFNAMSIZ]; /* this host's interface on that way */
};

struct database {
    struct host_id own;
    struct host_entry **host; /* sorted by id */
    uint32_t hosts;
    bool stale;          /* reachability and digest must be computed again */
    uint64_t digest;     /* of all reachable reports */
    uint64_t changed_at; /* when a host or cable changed last */
    uint64_t picture;    /* digest of hosts and cables without sequence numbers */
};

void database_init(struct database *d, const struct host_id *own);
void database_free(struct database *d);

/* Returns the entry of a host, or NULL if the host is not known. */
struct host_entry *database_find(const struct database *d, const struct host_id *host);

/* What to do with a report, before its signature is checked. */
enum report_use {
    REPORT_OLD, /* this host has it, or a newer one */
    REPORT_NEW,
    REPORT_REFUSED, /* there are too many hosts */
};

/* Decides about a report by its header. */
enum report_use database_judge(const struct database *d, const struct host_id *host,
                               uint64_t sequence, enum trust trust);

/* Stores a report whose signature has been checked; takes `report` and `packed` in any case. Returns 0, or
 * -1 if there is no memory or no room: then both are freed. */
int database_store(struct database *d, struct report *report, uint8_t *packed, size_t packed_size,
                   const Discovery__Signed *signed_report, enum trust trust, uint64_t now);

/* Computes reachability, distances, gates and the digest again, if anything has changed. Returns whether the
 * picture of hosts and cables has changed. */
bool database_refresh(struct database *d, uint64_t now);

/* Drops hosts that have been unreachable or silent for too long. Returns when to call it again. */
uint64_t database_expire(struct database *d, uint64_t now);

/* Decides again which hosts have proved the cluster key, after it has been changed. */
void database_trust_again(struct database *d, const struct secrets *secrets);
