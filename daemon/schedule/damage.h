/* What of a torus is out of order: links, and nodes, of which all links are. */
#ifndef TORUSD_SCHEDULE_DAMAGE_H
#define TORUSD_SCHEDULE_DAMAGE_H

#include "daemon/schedule/torus.h"

struct damage {
    struct torus torus;
    uint32_t *dead; /* by node: ports (bits) that have a link, which is out of order */
    bool *gone;     /* by node */
};

/* Nothing is out of order. Owned by the caller afterwards, freed with damage_free(). Returns 0, or -1
 * with *e (no memory) and nothing to free. */
int damage_init(struct damage *d, const struct torus *t, struct error *e);
void damage_free(struct damage *d);
int damage_copy(struct damage *d, const struct damage *from, struct error *e);
bool damage_equal(const struct damage *a, const struct damage *b);

/* The link at this port, which must have one; at both of its ends. */
void damage_add_link(struct damage *d, uint32_t rank, unsigned port);
void damage_add_node(struct damage *d, uint32_t rank);

/* Reads "3:+0,7": the link at port +0 of node 3, and node 7. Returns 0 with *d as from damage_init(),
 * or -1 with *e (ERROR_USAGE: what is wrong with the text; no memory). */
int damage_parse(struct damage *d, const struct torus *t, const char *text, struct error *e);

/* The same text, links at their + ends: "3:+0,7"; "" if nothing is out of order. Ends in "..." where
 * `size` is not enough for all. Returns text. */
char *damage_format(const struct damage *d, char *text, size_t size);

/* The links alone, without those of nodes that are gone, for people, cut off in the same way: "link 3:+0,
 * link 7:+1". */
char *damage_describe_links(const struct damage *d, char *text, size_t size);
/* The nodes, too: "link 3:+0, node 7". */
char *damage_describe(const struct damage *d, char *text, size_t size);

bool damage_is_none(const struct damage *d);
/* Whether the link at this port, if there is one, is in order. */
static inline bool damage_has_link(const struct damage *d, uint32_t rank, unsigned port)
{
    return torus_neighbour(&d->torus, rank, port) != TORUS_NO_NODE &&
           (d->dead[rank] & 1u << port) == 0;
}

/* Whether every node that is not gone can reach every other. Returns 0; or -1 with *e: which cannot
 * (ERROR_LINK), no memory. */
int damage_is_connected(const struct damage *d, struct error *e);

#endif
