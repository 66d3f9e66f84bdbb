/* The rounds of an engine that are under way: at most engine_setup.window of them, the oldest of which is
 * engine.rounds_finished. Numbers of rounds are never used twice. A round that ends makes room for a later
 * one, which uses the same slot and the memory that the engine keeps there. */
#pragma once

#include "daemon/torusd/engine/engine.h"

/* The first member of the rounds of every engine. */
struct window_round {
    uint64_t number;
    uint64_t left;      /* pieces or chunks that are not done, as the engine counts them */
    uint64_t delivered; /* blocks from others */
    bool open;          /* it is under way */
    bool admitted;
};

struct round_window {
    struct engine *engine;
    void *slots; /* by number modulo the window */
    size_t size; /* bytes of a slot */
};

/* Makes slots of `size` bytes, all zero. The engine is borrowed; its setup must be complete. Returns 0, or
 * -1 if there is no memory; then there is nothing to free. */
int round_window_init(struct round_window *w, struct engine *engine, size_t size);
/* Frees the slots. The engine has freed what the slots own. */
void round_window_free(struct round_window *w);

/* Returns the slot of a round; another round may still use it. */
static inline void *round_window_slot(const struct round_window *w, uint64_t number)
{
    return (char *)w->slots + number % w->engine->set.window * w->size;
}

/* Returns the round, or NULL if it is not under way. */
static inline void *round_window_find(const struct round_window *w, uint64_t number)
{
    struct window_round *r = round_window_slot(w, number);

    return r->open && r->number == number ? r : NULL;
}

/* Returns the oldest round under way from this number on, or NULL if there is none. */
static inline void *round_window_next(const struct round_window *w, uint64_t number)
{
    const uint64_t end = w->engine->rounds_finished + w->engine->set.window;
    void *r = NULL;

    while (r == NULL && number < end)
        r = round_window_find(w, number++);
    return r;
}

/* Finds the number of the round that a frame names (modulo ENGINE_ROUND_MASK + 1). Returns 0, or -1 with
 * *e: the round is not in the window. */
int round_window_number(const struct round_window *w, uint32_t named, uint64_t *number,
                        struct error *e);

/* Ends the oldest round if it is complete: it was admitted, nothing of it is left to do, and the sink has
 * written everything. Returns whether it did. */
bool round_window_end(const struct round_window *w);
