#include "client/cli/tracing/collected_traces.h"

#include <stdlib.h>
#include <string.h>

#include "proto/elapsed.h"

#define WAIT_MS 10000u

/* Finds by how much each node's clock is ahead of the asked one: each further node over the link that adds the least
 * error. */
static void align(struct collected_traces *c)
{
    const uint32_t nodes = c->nodes.torus.nodes;

    if (c->node[c->nodes.asker].trace == NULL)
        return;
    c->node[c->nodes.asker].aligned = true;
    for (;;) {
        uint32_t best = TORUS_NO_NODE;
        int64_t ahead = 0;
        uint64_t error = UINT64_MAX;
        for (uint32_t from = 0; from < nodes; from++) {
            const struct torus_trace *t = c->node[from].trace;
            for (uint32_t port = 0; c->node[from].aligned && t != NULL && port < t->ports; port++) {
                uint32_t to = t->neighbour[port];
                uint64_t sum = c->node[from].error_ns + t->clock_error_ns[port];
                if (t->clock_error_ns[port] == 0 || to >= nodes || c->node[to].aligned ||
                    sum >= error)
                    continue;
                best = to;
                ahead = (int64_t)((uint64_t)c->node[from].ahead_ns +
                                  (uint64_t)t->clock_ahead_ns[port]); /* may be anything */
                error = sum;
            }
        }
        if (best == TORUS_NO_NODE)
            return;
        c->node[best].aligned = true;
        c->node[best].ahead_ns = ahead;
        c->node[best].error_ns = error;
        c->error_ns = error > c->error_ns ? error : c->error_ns;
    }
}

/* A time of a node's clock on the clock of the asked node. */
static uint64_t here(const struct collected_trace *n, uint64_t node_ns)
{
    return n->ahead_ns > 0 ? elapsed((uint64_t)n->ahead_ns, node_ns)
                           : node_ns + (uint64_t)-n->ahead_ns;
}

static void find_span(struct collected_traces *c)
{
    c->began_ns = UINT64_MAX;
    for (uint32_t rank = 0; rank < c->nodes.torus.nodes; rank++) {
        const struct collected_trace *n = &c->node[rank];
        if (n->trace == NULL || !n->aligned)
            continue;
        uint64_t began = here(n, n->trace->began_ns), ended = here(n, n->trace->ended_ns);
        c->began_ns = began < c->began_ns ? began : c->began_ns;
        c->ended_ns = ended > c->ended_ns ? ended : c->ended_ns;
    }
}

static int nothing(const char *id, struct error *e)
{
    return error_set(
        e, ERROR_REFUSED,
        id != NULL
            ? "this node has no trace of %.60s: too many runs are traced at once, or another one "
              "has been traced since"
            : "nothing has been traced at this node since torusd began: run 'torusctl exchange "
              "--trace FILE', or a program with TORUS_TRACE=1%s",
        id != NULL ? id : "");
}

int collected_traces_take(struct collected_traces *c, const struct torus_survey *answers,
                          const char *id, struct error *e)
{
    const uint32_t nodes = c->nodes.torus.nodes;

    c->node = calloc(nodes, sizeof *c->node);
    if (c->node == NULL || answers->count != nodes)
        return error_set(e, ERROR_MEMORY, "out of memory for the trace");
    const struct torus_trace *own = answers->nodes[c->nodes.asker]->trace;
    if (own == NULL || (id != NULL && strcmp(own->id, id) != 0))
        return nothing(id, e);
    c->id = own->id;
    for (uint32_t rank = 0; rank < nodes; rank++) {
        const struct torus_trace *t = answers->nodes[rank]->trace;
        if (t == NULL || strcmp(t->id, c->id) != 0 || t->ports != torus_ports(&c->nodes.torus))
            continue;
        c->node[rank].trace = t;
        c->traced++;
    }
    align(c);
    find_span(c);
    return 0;
}

int collected_traces_ask(struct cli *cli, const char *id, struct collected_traces *c)
{
    struct torus_error failed;
    struct error e;

    *c = (struct collected_traces){.survey = NULL};
    int code = all_nodes_ask(cli, &c->nodes);
    if (code != EXIT_DONE)
        return code;
    if (torus_client_survey(cli->client, TORUS_SURVEY_TRACE, WAIT_MS, &c->survey, &failed) != 0)
        return cli_fail_client(cli, &failed);
    return collected_traces_take(c, c->survey, id, &e) == 0 ? EXIT_DONE : cli_fail(cli, &e);
}

void collected_traces_free(struct collected_traces *c)
{
    free(c->node);
    torus_survey_free(c->survey);
    all_nodes_free(&c->nodes);
}

double collected_traces_time(const struct collected_traces *c, uint32_t rank, uint64_t node_ns)
{
    const struct collected_trace *n = &c->node[rank];

    /* Without a comparison of clocks, the node's trace is taken to begin with the run. */
    if (!n->aligned)
        return (double)elapsed(n->trace->began_ns, node_ns);
    return (double)(int64_t)(here(n, node_ns) - c->began_ns);
}
