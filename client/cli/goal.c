#include "client/cli/goal.h"

#include <inttypes.h>

#include "daemon/schedule/plan.h"

/* What a node has printed. */
struct node {
    FILE *out;
    const struct torus *torus;
    const struct algorithm *algorithm;
    const struct plan *plan;
    uint64_t block_bytes;
    uint32_t label;  /* of the next line */
    uint32_t behind; /* what ended the step before; 0: this is the first */
};

/* The first segments are as long as any, the last ones may be shorter (exchange/cut.h). */
static uint64_t segment_bytes(const struct node *n, uint32_t segment)
{
    uint64_t stride = (n->block_bytes + n->algorithm->segments - 1) / n->algorithm->segments;
    uint64_t begin = segment * stride;

    if (begin >= n->block_bytes)
        return 0;
    return n->block_bytes - begin < stride ? n->block_bytes - begin : stride;
}

static void print_message(struct node *n, const struct plan_message *m, bool sends)
{
    unsigned dim = torus_port_dim(m->port), port = sends ? m->port : torus_port_opposite(m->port);
    uint32_t peer =
        torus_walk(n->torus, n->plan->rank, dim, torus_port_direction(m->port), m->hops);
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < m->blocks; i++)
        bytes += segment_bytes(n, n->plan->block[m->first + i].segment);
    /* No two messages of a step between the same nodes leave by the same port. */
    (void)fprintf(n->out, "l%" PRIu32 ": %s %" PRIu64 "b %s %" PRIu32 " tag %" PRIu32 " nic %u\n",
                  n->label, sends ? "send" : "recv", bytes, sends ? "to" : "from", peer,
                  m->step * TORUS_MAX_PORTS + port, (unsigned)m->port);
    if (n->behind != 0)
        (void)fprintf(n->out, "l%" PRIu32 " requires l%" PRIu32 "\n", n->label, n->behind);
    n->label++;
}

/* Waits for all lines from `first` on. */
static void print_end_of_step(struct node *n, uint32_t first)
{
    if (n->label == first)
        return;
    (void)fprintf(n->out, "l%" PRIu32 ": calc 0\n", n->label);
    for (uint32_t i = first; i < n->label; i++)
        (void)fprintf(n->out, "l%" PRIu32 " requires l%" PRIu32 "\n", n->label, i);
    n->behind = n->label++;
}

static void print_node(struct node *n)
{
    const struct plan *p = n->plan;
    uint32_t send = 0, arrival = 0;

    (void)fprintf(n->out, "\nrank %" PRIu32 " {\n", p->rank);
    for (uint32_t step = 0; step < p->steps; step++) {
        uint32_t first = n->label;
        for (; send < p->sends && p->send[send].step == step; send++)
            print_message(n, &p->send[send], true);
        for (; arrival < p->arrivals && p->arrival[arrival].step == step; arrival++)
            if (p->arrival[arrival].left == 0)
                print_message(n, &p->arrival[arrival], false);
        print_end_of_step(n, first);
    }
    (void)fputs("}\n", n->out);
}

int goal_print(FILE *out, const struct torus *t, const struct algorithm *a, uint64_t block_bytes,
               struct error *e)
{
    (void)fprintf(out, "num_ranks %" PRIu32 "\n", t->nodes);
    for (uint32_t rank = 0; rank < t->nodes && !ferror(out); rank++) {
        struct plan plan;
        if (plan_build(&plan, t, a, rank, e) != 0)
            return -1;
        struct node node = {out, t, a, &plan, block_bytes, 1, 0};
        print_node(&node);
        plan_free(&plan);
    }
    return 0;
}
