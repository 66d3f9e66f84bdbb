/* The fewest changes that turn the cables that are left over into the links that are missing. */
#pragma once

#include "daemon/lib/cabling/links.h"

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
