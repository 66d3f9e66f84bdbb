/* Virtual time: schedules events, and runs them in order. */
#include <stdlib.h>

#include "tests/sim/internal.h"

void sim_schedule(struct sim *sim, uint64_t delay, const char *what,
                  void (*run)(struct sim *sim, void *object, uint64_t number), void *object,
                  uint64_t number)
{
    events_add(
        &sim->events,
        (struct event){
            .at = sim->now + delay, .what = what, .run = run, .object = object, .number = number});
}

static void mix(uint64_t *trace, uint64_t value)
{
    *trace = (*trace ^ value) * UINT64_C(1099511628211);
    *trace ^= *trace >> 29;
}

bool sim_step(struct sim *sim)
{
    struct event e;

    if (!events_next(&sim->events, &e))
        return false;
    if (e.at > sim->now)
        sim->wakes_now = 0;
    sim->now = e.at;
    mix(&sim->trace, e.at);
    mix(&sim->trace, (uint64_t)(unsigned char)e.what[0] << 8 | (unsigned char)e.what[1]);
    mix(&sim->trace, e.number);
    e.run(sim, e.object, e.number);
    if (sim->watch != NULL) {
        if (sim->watch(sim, sim->watch_context))
            sim->watch = NULL;
        sim->touched = 0;
    }
    return true;
}

static void on_time_over(struct sim *sim, void *object, uint64_t number)
{
    *(bool *)object = true;
}

bool sim_run(struct sim *sim, uint64_t most, bool (*until)(struct sim *sim, void *context),
             void *context)
{
    bool over = false, reached;

    sim_schedule(sim, most, "over", on_time_over, &over, 0);
    reached = until(sim, context);
    while (!reached && !over && sim_step(sim))
        reached = until(sim, context);
    /* No event may write to `over` later. */
    for (size_t i = 0; i < sim->events.count; i++)
        if (sim->events.heap[i].object == &over) {
            static bool ignored;
            sim->events.heap[i].object = &ignored;
        }
    return reached;
}

static bool never(struct sim *sim, void *context)
{
    return false;
}

void sim_pass(struct sim *sim, uint64_t time)
{
    (void)sim_run(sim, time, never, NULL);
}

struct call {
    void (*call)(struct sim *sim, void *context);
    void *context;
};

static void on_call(struct sim *sim, void *object, uint64_t number)
{
    struct call call = *(struct call *)object;

    free(object);
    if (!sim->ending)
        call.call(sim, call.context);
}

void sim_at(struct sim *sim, uint64_t at, void (*call)(struct sim *sim, void *context),
            void *context)
{
    struct call *c = sim_alloc(sizeof *c);

    *c = (struct call){call, context};
    sim_schedule(sim, at > sim->now ? at - sim->now : 0, "call", on_call, c, 0);
}

void sim_watch(struct sim *sim, bool (*watch)(struct sim *sim, void *context), void *context)
{
    sim->watch = watch;
    sim->touched = sim->torus.nodes < 64 ? (UINT64_C(1) << sim->torus.nodes) - 1 : UINT64_MAX;
    sim->watch_context = context;
}

uint64_t sim_touched(const struct sim *sim)
{
    return sim->touched;
}
