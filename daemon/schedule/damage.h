/* The links and nodes of a torus that are out of order. A node is, if all of its links are. */
#ifndef TORUSD_SCHEDULE_DAMAGE_H
#define TORUSD_SCHEDULE_DAMAGE_H

#include "daemon/schedule/torus.h"

struct damage {
    struct torus torus;
    uint32_t *dead; /* by node: bits of the ports whose link is out of order */
    bool *gone;     /* by node */
};

/* Sets *d to no damage. The caller frees *d with damage_free(). Returns 0, or -1 with *e (no
 * memory) and nothing to free. */
int damage_init(struct damage *d, const struct torus *t, struct error *e);
void damage_free(struct damage *d);
int damage_copy(struct damage *d, const struct damage *from, struct error *e);
bool damage_equal(const struct damage *a, const struct damage *b);

/* Adds the link at this port, which must have one, at both of its ends. */
void damage_add_link(struct damage *d, uint32_t rank, unsigned port);
void damage_add_node(struct damage *d, uint32_t rank);

/* Reads "3:+0,7": the link at port +0 of node 3, and node 7. Returns 0 with *d, which the caller
 * frees with damage_free(), or -1 with *e (ERROR_USAGE: what is wrong with the text; no memory). */
int damage_parse(struct damage *d, const struct torus *t, const char *text, struct error *e);

/* Writes the text that damage_parse() reads, with links at their + ends; "" if nothing is out of
 * order. A text for which `size` is not enough ends in "...". Returns text. */
char *damage_format(const struct damage *d, char *text, size_t size);

/* Writes the links for people, without those of nodes that are gone: "link 3:+0, link 7:+1".
 * Otherwise as damage_format(). */
char *damage_describe_links(const struct damage *d, char *text, size_t size);
/* Writes links and nodes for people: "link 3:+0, node 7". Otherwise as damage_format(). */
char *damage_describe(const struct damage *d, char *text, size_t size);

bool damage_is_none(const struct damage *d);
/* Whether the link at this port, if there is one, is in order. */
static inline bool damage_has_link(const struct damage *d, uint32_t rank, unsigned port)
{
    return torus_neighbour(&d->torus, rank, port) != TORUS_NO_NODE &&
           (d->dead[rank] & 1u << port) == 0;
}

/* Checks that all nodes that are not gone can reach each other. Returns 0; or -1 with *e, which
 * names nodes that cannot (ERROR_LINK), or without memory. */
int damage_is_connected(const struct damage *d, struct error *e);

#endif
