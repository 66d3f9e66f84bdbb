/* The links of a network whose hosts have places, and the cables that make them. */
#pragma once

#include "daemon/lib/cabling/wiring.h"

/* A link that is wanted. end[0] is the one that dials. */
struct wanted_link {
    uint32_t rank[2];
    unsigned port[2];
    struct cabling_end end
        [2]; /* host CABLING_NONE: it is missing; interface CABLING_NONE: any, or not chosen yet */
    uint32_t cable; /* that makes it now; CABLING_NONE: it has to be made */
};

struct links {
    const struct wiring *wiring;
    struct wanted_link *link;
    uint32_t links;
    uint32_t missing_hosts;
    uint32_t *missing, missings; /* links between two hosts that no cable makes */
    uint32_t *extra, extras;     /* cables that make no link */
};

/* Matches cables with links. host_at has a host for each rank; a number that is no host stands for a missing host. Where
 * an interface should have a port (cabling.h), the link gets that interface only. Returns 0, or -1 with *e and nothing
 * to free. */
int links_make(struct links *l, const struct wiring *w, const struct torus *t,
               const uint32_t *host_at, struct error *e);
void links_free(struct links *l);

/* Whether a plug, if it is in `have`, is where `want` allows it to be. */
static inline bool links_end_fits(struct cabling_end want, struct cabling_end have)
{
    return want.host == have.host &&
           (want.interface == CABLING_NONE || want.interface == have.interface);
}
