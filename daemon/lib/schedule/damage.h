/* What the links of a torus can carry: which links and nodes are down, and which channels (a
 * link in one direction) are slower than the fastest ones. If a node is down, all of its links
 * are, too. */
#pragma once

#include "daemon/lib/schedule/torus.h"

/* The rate of the fastest channels. All rates are relative to it. */
#define DAMAGE_FULL_RATE 1000u

struct damage {
    struct torus torus;
    uint32_t *dead; /* by node: bits of the ports whose links are down */
    bool *gone;     /* by node: the node is down */
    uint16_t *rate; /* by node * ports + port: 1 to DAMAGE_FULL_RATE; NULL: all have that */
    /* The full rate in kbit/s, for people; 0: not known. It makes no difference between damages. */
    uint32_t full_kbit;
};

/* Sets *d to no damage. Returns 0 with *d, which the caller frees with damage_free(), or -1 with *e
 * (no memory) and nothing to free. */
int damage_init(struct damage *d, const struct torus *t, struct error *e);
/* Frees what *d holds, and empties *d. */
void damage_free(struct damage *d);
/* Sets *d to a copy, as damage_init() does; *d need not be initialised. */
int damage_copy(struct damage *d, const struct damage *from, struct error *e);
/* Whether both are the same damage to the same torus. */
bool damage_equal(const struct damage *a, const struct damage *b);

/* Adds the link at this port to the damage, at both of its ends. The port must have a link. */
void damage_add_link(struct damage *d, uint32_t rank, unsigned port);
/* Adds a node and all of its links to the damage. */
void damage_add_node(struct damage *d, uint32_t rank);

/* Sets the rate, 1 to DAMAGE_FULL_RATE, of the channel that leaves a node by a port, which must have a
 * link. Returns 0, or -1 with *e: no memory. */
int damage_set_rate(struct damage *d, uint32_t rank, unsigned port, uint16_t rate, struct error *e);
/* Gives all channels the full rate, which is not known then. */
void damage_clear_rates(struct damage *d);
/* The rate of a channel, whether or not its link is up. */
static inline uint16_t damage_rate(const struct damage *d, uint32_t rank, unsigned port)
{
    return d->rate == NULL ? DAMAGE_FULL_RATE
                           : d->rate[(size_t)rank * torus_ports(&d->torus) + port];
}

/* Stores rates relative to the fastest channels, 1 to DAMAGE_FULL_RATE. kbit: what each channel can carry; 0: not known,
 * which counts as full. Returns whether any is slower than the others; also false if memory is short, and all are full. */
bool damage_relative_rates(const uint32_t *kbit, size_t channels, uint16_t *rates);
/* The rate that counts as full among these, in kbit/s; 0: none of them is known, or memory is short. */
uint32_t damage_full_rate(const uint32_t *kbit, size_t channels);
/* The lower rate of the two channels of a link. */
static inline uint16_t damage_link_rate(const struct damage *d, uint32_t rank, unsigned port)
{
    const uint16_t there = damage_rate(d, rank, port);
    const uint16_t back = damage_rate(d, torus_neighbour(&d->torus, rank, port),
                                      torus_port_opposite(&d->torus, port));

    return there < back ? there : back;
}
/* The lowest rate of all channels of links that are up. */
uint16_t damage_slowest(const struct damage *d);
/* Gives both channels of each link the lower rate of the two. */
void damage_level_links(struct damage *d);

/* Reads "6:-1=0.4,7:+0=0.125": the rates of the channels that leave node 6 by port -1, and node 7 by port
 * +0, as parts of the full rate, rounded to three decimal places; "*:+0=0.5" is port +0 of all nodes. With `both`, sets
 * the other direction of each link, too. Returns 0, or -1 with *e: the text is wrong (ERROR_USAGE), no memory; then some rates may
 * be set. */
int damage_parse_rates(struct damage *d, const char *text, bool both, struct error *e);
/* Writes the text that damage_parse_rates() reads without `both`; "" if all channels have the full rate.
 * Otherwise as damage_format(). */
char *damage_format_rates(const struct damage *d, char *text, size_t size);

/* Reads "3:+0,7": the link at port +0 of node 3, and node 7. Returns 0 with *d, which the caller
 * frees with damage_free(), or -1 with *e and nothing to free: the text is wrong (ERROR_USAGE), no
 * memory. */
int damage_parse(struct damage *d, const struct torus *t, const char *text, struct error *e);

/* Writes the text that damage_parse() reads, naming links at their + ends; "" if nothing is out of
 * order. Ends in "..." if `size` bytes are not enough. Returns `text`. */
char *damage_format(const struct damage *d, char *text, size_t size);

/* Writes the links for people, except those of nodes that are down: "link 3:+0, link 7:+1".
 * Otherwise as damage_format(). */
char *damage_describe_links(const struct damage *d, char *text, size_t size);
/* Writes links and nodes for people: "link 3:+0, node 7". Otherwise as damage_format(). */
char *damage_describe(const struct damage *d, char *text, size_t size);

/* Whether nothing is out of order, whatever the rates are. */
bool damage_is_whole(const struct damage *d);
/* Whether nothing is out of order, and all channels have the full rate. */
bool damage_is_none(const struct damage *d);
/* Whether the port has a link, and it is up. */
static inline bool damage_has_link(const struct damage *d, uint32_t rank, unsigned port)
{
    return torus_neighbour(&d->torus, rank, port) != TORUS_NO_NODE &&
           (d->dead[rank] & 1u << port) == 0;
}

/* Returns 0 if all nodes that are up can reach each other; otherwise -1 with *e: ERROR_LINK,
 * which names nodes that cannot be reached, or no memory. */
int damage_is_connected(const struct damage *d, struct error *e);
