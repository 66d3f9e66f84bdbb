/* Virtual time: events in a fixed order, and the only source of randomness. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim;

/* `what` names the kind of event in traces. An event owns its object until it runs. */
struct event {
    uint64_t at, order;
    const char *what;
    void (*run)(struct sim *sim, void *object, uint64_t number);
    void *object;
    uint64_t number;
};

struct events {
    struct event *heap;
    size_t count, capacity;
    uint64_t order;
};

void events_add(struct events *events, struct event event);
/* The next event: the earliest, and the one added first if several have this time. Returns false if there is none. */
bool events_next(struct events *events, struct event *event);
void events_free(struct events *events);

struct chance {
    uint64_t state;
};

/* One of many streams of random numbers of a seed. The streams are independent. */
struct chance chance_stream(uint64_t seed, uint64_t stream, uint64_t index);
uint64_t chance_word(struct chance *c);
/* 0 .. below - 1 */
uint64_t chance_below(struct chance *c, uint64_t below);
/* From `least` to `most`, both at least 1. All powers of two are equally likely. */
uint64_t chance_magnitude(struct chance *c, uint64_t least, uint64_t most);
