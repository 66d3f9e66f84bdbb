/* The links of a network whose hosts have places, and the cables that make them. */
#pragma once

#include "daemon/lib/cabling/network.h"

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

/* Matches cables with links. host_at has a host for each rank; a number that is not a host stands for a missing host.
 * Where an interface should have a port (cabling.h), the link gets that interface only. Returns 0, or -1 with *e and
 * nothing to free. */
int links_make(struct links *l, const struct wiring *w, const struct torus *t,
               const uint32_t *host_at, struct error *e);
void links_free(struct links *l);

/* Whether a plug, if it is in `have`, is where `want` allows it to be. */
static inline bool links_end_fits(struct cabling_end want, struct cabling_end have)
{
    return want.host == have.host &&
           (want.interface == CABLING_NONE || want.interface == have.interface);
}

/* The fewest changes that turn the cables that are left over into the links that are missing. */

#define CHANGES_MOST 8u /* links that are missing, and cables that are left over */

enum change_kind { CHANGE_MOVE, CHANGE_SWAP, CHANGE_ADD, CHANGE_REMOVE };

struct change {
    enum change_kind kind;
    /* CHANGE_MOVE: end `stays` of the cable stays, and becomes end `as` of the link. CHANGE_SWAP: end `stays` of each
     * cable stays, the other end comes to where the other cable's was; then each cable makes its link, if it has one
     * (CABLING_NONE: a later change moves it again). */
    uint32_t cable[2], link[2];
    unsigned stays[2], as[2];
};

/* Later changes find the cables as earlier ones leave them; swaps come before all others. */
struct changes {
    struct change change[2 * CHANGES_MOST];
    uint32_t count;
};

/* Returns the number of changes, and writes them, if it is at most `limit`; UINT32_MAX if there are more. */
uint32_t changes_find(struct changes *c, const struct links *l, uint32_t limit);

/* The moves (cabling.h) that make the changes: which interfaces the plugs go to, and in which order. */

struct replug {
    struct cabling_move *move;
    uint32_t moves;
};

/* Chooses an interface for each end of each link (wanted_link.end), and lists the moves. If a host is missing, its
 * links get interfaces at its neighbours. Returns 0, or -1 with *e and nothing to free. */
int replug_make(struct replug *r, struct links *l, const struct changes *c, struct error *e);
