/* The cables, from what each interface hears. */
#pragma once

#include "daemon/lib/cabling/cabling.h"

struct wiring {
    const struct cabling_input *input; /* in the order of names (sorted.h) */
    uint32_t interfaces;               /* of all hosts */
    uint32_t *first;         /* by host, and one more: the number of its first interface */
    struct cabling_end *end; /* by that number */
    uint32_t *cable_at;      /* by that number; CABLING_NONE: no cable is known */
    bool *shared; /* by that number: the interfaces of more than two hosts hear each other here */
    uint32_t *
        instead; /* by that number: the interface of the same host that has the cable, as both are functions of one
                        * port; CABLING_NONE: there is none */
    struct cabling_cable *cable; /* one-way cables have the state, all others are kept */
    uint32_t cables;
};

/* Interfaces that hear each other, directly or through others, are one segment. A segment of two is a cable, even if
 * both are of one host. A larger segment of two hosts is a cable as well, between ports that have several functions: one
 * interface of each host gets it. A segment of more hosts is a switch. Excluded interfaces count as if they heard nobody, and nobody
 * heard them. Returns 0, or -1 with *e and nothing to free. */
int wiring_make(struct wiring *w, const struct cabling_input *input, struct error *e);
void wiring_free(struct wiring *w);

static inline uint32_t wiring_number(const struct wiring *w, struct cabling_end end)
{
    return w->first[end.host] + end.interface;
}

static inline const struct cabling_interface *wiring_interface(const struct wiring *w,
                                                               uint32_t number)
{
    return &w->input->host[w->end[number].host].interface[w->end[number].interface];
}

/* Whether a cable of the network may be plugged in here. */
static inline bool wiring_usable(const struct wiring *w, uint32_t number)
{
    return !wiring_interface(w, number)->excluded && !w->shared[number] &&
           w->instead[number] == CABLING_NONE;
}
