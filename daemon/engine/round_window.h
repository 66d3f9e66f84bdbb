/* The rounds of an engine that are under way: at most engine_setup.window of them, of which the oldest
 * is engine.rounds_finished. Rounds are counted through; one that ends makes room for a later one,
 * which uses its slot, and what the engine keeps there, again. */
#ifndef TORUSD_ENGINE_ROUND_WINDOW_H
#define TORUSD_ENGINE_ROUND_WINDOW_H

#include "daemon/engine/engine.h"

/* What an engine's rounds begin with. */
struct window_round {
    uint64_t number;
    uint64_t left;      /* what of it has not been done: pieces or chunks, as the engine counts */
    uint64_t delivered; /* blocks from others */
    bool open;          /* it is under way */
    bool admitted;
};

struct round_window {
    struct engine *engine;
    void *slots; /* by number modulo the window */
    size_t size; /* bytes of a slot */
};

/* Slots of `size` bytes, all zero. The engine is borrowed; its setup must be complete. Returns 0, or -1 if
 * there is no memory and nothing to free. */
int round_window_init(struct round_window *w, struct engine *engine, size_t size);
/* What the slots own is the engine's to free. */
void round_window_free(struct round_window *w);

/* Where the round is or will be; perhaps another one is still there. */
static inline void *round_window_slot(const struct round_window *w, uint64_t number)
{
    return (char *)w->slots + number % w->engine->set.window * w->size;
}

/* The round, or NULL if it is not under way. */
static inline void *round_window_find(const struct round_window *w, uint64_t number)
{
    struct window_round *r = round_window_slot(w, number);

    return r->open && r->number == number ? r : NULL;
}

/* The oldest round under way from this number on, or NULL if there is none. */
static inline void *round_window_next(const struct round_window *w, uint64_t number)
{
    const uint64_t end = w->engine->rounds_finished + w->engine->set.window;
    void *r = NULL;

    while (r == NULL && number < end)
        r = round_window_find(w, number++);
    return r;
}

/* The number of the round that a frame names. Returns 0, or -1 with *e: it is none of the window. */
int round_window_number(const struct round_window *w, uint32_t named, uint64_t *number,
                        struct error *e);

/* Ends the oldest round if it is over: it was admitted, nothing of it is left, and the sink has taken all.
 * Returns whether it did. */
bool round_window_end(const struct round_window *w);

#endif
