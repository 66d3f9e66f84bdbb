#include "tests/sim/trace_save.h"

#include <stdlib.h>

#include "client/cli/tracing/trace_file.h"
#include "client/libtorus/requests/results.h"
#include "daemon/torusd/control/trace_answer.h"

/* The answers of all nodes to a survey of traces, without a daemon that encodes and a client that decodes them. */
struct answers {
    Control__Trace **message; /* by rank, as are these */
    struct torus_trace *trace;
    struct torus_node_answer *answer;
    const struct torus_node_answer **list;
};

static void *all_of(uint32_t count, size_t size)
{
    void *array = calloc(count, size);

    if (array == NULL)
        abort();
    return array;
}

static void answer(struct answers *a, struct sim *sim, uint32_t rank)
{
    const struct trace *t =
        sim_alive(sim, rank) ? exchanges_last_trace(sim_exchanges(sim, rank)) : NULL;
    struct torus_error failed;

    a->answer[rank] = (struct torus_node_answer){.rank = rank, .host = "", .facts = ""};
    a->list[rank] = &a->answer[rank];
    if (t == NULL)
        return;
    a->message[rank] = trace_answer_make(t, sim_router(sim, rank), SIZE_MAX);
    if (a->message[rank] == NULL)
        abort();
    /* The texts are constants of the daemon, and have nothing that must be made printable. */
    if (trace_from(a->message[rank], &a->trace[rank], &failed) != 0)
        sim_violated(sim, "traces", "node %u: %s", rank, failed.text);
    a->answer[rank].trace = &a->trace[rank];
}

int sim_trace_save(struct sim *sim, const char *path, json_t *run, struct error *e)
{
    const uint32_t nodes = sim_torus(sim)->nodes;
    struct collected_traces c = {.nodes = {.torus = *sim_torus(sim), .initiator = 0}};
    struct answers a = {.message = all_of(nodes, sizeof *a.message),
                        .trace = all_of(nodes, sizeof *a.trace),
                        .answer = all_of(nodes, sizeof *a.answer),
                        .list = all_of(nodes, sizeof *a.list)};

    for (uint32_t rank = 0; rank < nodes; rank++)
        answer(&a, sim, rank);
    const struct torus_survey survey = {.count = nodes, .nodes = a.list};
    int r = collected_traces_take(&c, &survey, NULL, e);
    if (r == 0)
        r = trace_file_save(&c, path, run, e);
    collected_traces_free(&c);
    for (uint32_t rank = 0; rank < nodes; rank++)
        trace_answer_free(a.message[rank]);
    free(a.message);
    free(a.trace);
    free(a.answer);
    free(a.list);
    return r;
}
