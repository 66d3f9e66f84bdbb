#include "daemon/cabling/wiring.h"

#include <stdlib.h>

/* Segments while they are found: each interface leads to another one of its segment, the last one to itself. */
static uint32_t segment_of(uint32_t *parent, uint32_t number)
{
    while (parent[number] != number) {
        parent[number] = parent[parent[number]];
        number = parent[number];
    }
    return number;
}

static bool hears(const struct wiring *w, uint32_t here, uint32_t there)
{
    const struct cabling_interface *i = wiring_interface(w, here);

    for (uint32_t k = 0; k < i->heard_count; k++)
        if (wiring_number(w, i->heard[k]) == there)
            return true;
    return false;
}

static void join_segments(const struct wiring *w, uint32_t *parent)
{
    for (uint32_t n = 0; n < w->interfaces; n++)
        parent[n] = n;
    for (uint32_t n = 0; n < w->interfaces; n++) {
        const struct cabling_interface *i = wiring_interface(w, n);
        for (uint32_t k = 0; k < i->heard_count && !i->excluded; k++) {
            uint32_t there = wiring_number(w, i->heard[k]);
            if (!wiring_interface(w, there)->excluded)
                parent[segment_of(parent, there)] = segment_of(parent, n);
        }
    }
}

static void add_cable(struct wiring *w, uint32_t a, uint32_t b)
{
    bool a_hears = hears(w, a, b), b_hears = hears(w, b, a);
    struct cabling_cable *c = &w->cable[w->cables];
    bool turn = a_hears && !b_hears; /* the first end of a one-way cable is the one that is heard */

    c->end[0] = w->end[turn ? b : a];
    c->end[1] = w->end[turn ? a : b];
    c->state = a_hears && b_hears ? CABLING_CABLE_KEPT : CABLING_CABLE_ONE_WAY;
    w->cable_at[a] = w->cable_at[b] = w->cables++;
}

static void find_cables(struct wiring *w, uint32_t *parent, uint32_t *members, uint32_t *first)
{
    for (uint32_t n = 0; n < w->interfaces; n++) {
        members[segment_of(parent, n)]++;
        first[n] = CABLING_NONE;
    }
    for (uint32_t n = 0; n < w->interfaces; n++) {
        uint32_t segment = segment_of(parent, n);
        w->shared[n] = members[segment] > 2;
        if (members[segment] != 2)
            continue;
        if (first[segment] == CABLING_NONE)
            first[segment] = n;
        else
            add_cable(w, first[segment], n);
    }
}

static void number_interfaces(struct wiring *w)
{
    uint32_t number = 0;

    for (uint32_t h = 0; h < w->input->hosts; h++) {
        w->first[h] = number;
        for (uint32_t i = 0; i < w->input->host[h].interfaces; i++) {
            w->cable_at[number] = CABLING_NONE;
            w->end[number++] = (struct cabling_end){h, i};
        }
    }
    w->first[w->input->hosts] = number;
}

int wiring_make(struct wiring *w, const struct cabling_input *input, struct error *e)
{
    uint32_t *parent, *members, *first;
    size_t room;
    int result = 0;

    *w = (struct wiring){.input = input};
    for (uint32_t h = 0; h < input->hosts; h++)
        w->interfaces += input->host[h].interfaces;
    room = (size_t)w->interfaces + 1;
    w->first = calloc((size_t)input->hosts + 1, sizeof *w->first);
    w->end = calloc(room, sizeof *w->end);
    w->cable_at = calloc(room, sizeof *w->cable_at);
    w->shared = calloc(room, sizeof *w->shared);
    w->cable = calloc(room, sizeof *w->cable);
    parent = calloc(room, sizeof *parent);
    members = calloc(room, sizeof *members);
    first = calloc(room, sizeof *first);
    if (w->first == NULL || w->end == NULL || w->cable_at == NULL || w->shared == NULL ||
        w->cable == NULL || parent == NULL || members == NULL || first == NULL) {
        wiring_free(w);
        result = error_set(e, ERROR_MEMORY, "no memory for %zu interfaces", room);
    } else {
        number_interfaces(w);
        join_segments(w, parent);
        find_cables(w, parent, members, first);
    }
    free(parent);
    free(members);
    free(first);
    return result;
}

void wiring_free(struct wiring *w)
{
    free(w->first);
    free(w->end);
    free(w->cable_at);
    free(w->shared);
    free(w->cable);
}
