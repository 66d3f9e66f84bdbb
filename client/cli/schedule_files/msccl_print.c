#include <inttypes.h>
#include <stdlib.h>

#include "client/cli/schedule_files/msccl.h"
#include "daemon/lib/schedule/file/imported.h"

#define NONE UINT32_MAX
#define TRANSFERS_MOST (1u << 26) /* 4 GiB of memory, 14 GB of XML */

/* A segment on a leg: one send and one receive. */
struct transfer {
    uint32_t from, to, step, source, destination, segment;
    uint32_t before;       /* index of the transfer to `from`; NONE: `from` is the source */
    uint32_t slot;         /* in the scratch buffer of `to`; NONE: `to` is the destination */
    uint32_t group, place; /* its group, and its index in the group */
    uint16_t port, hops;
    bool sent_on; /* `to` relays it */
};

/* All transfers from one node to another through a port: a thread block at each end. */
struct group {
    uint32_t first, count; /* in printer.order[] */
    uint32_t send_block, receive_block;
};

/* A thread block: one end of a group. */
struct end {
    uint32_t group;
    bool sends;
};

struct printer {
    FILE *out;
    const struct torus *torus;
    const struct algorithm *algorithm;
    struct transfer *transfer;
    size_t transfers, room;
    struct transfer **order; /* sorted by group, step and block */
    struct group *group;
    uint32_t groups;
    uint32_t *slots;  /* by node: number of slots of its scratch buffer */
    uint32_t *blocks; /* by node: number of its thread blocks */
    struct end *end;  /* thread blocks of all nodes, by node */
    size_t *first;    /* by node: index of its first thread block in end[] */
};

static int no_memory(const struct printer *p, struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for the transfers of %s", p->algorithm->name);
}

static int too_many(const struct printer *p, struct error *e)
{
    return error_set(
        e, ERROR_REFUSED,
        "%s has more than %u legs on this torus: too many for a file in MSCCL's format",
        p->algorithm->name, TRANSFERS_MOST);
}

static int add(struct printer *p, const struct transfer *one, struct error *e)
{
    if (p->transfers == p->room) {
        size_t room = p->room == 0 ? 1024 : 2 * p->room;
        if (room > TRANSFERS_MOST)
            return too_many(p, e);
        struct transfer *more = reallocarray(p->transfer, room, sizeof *more);
        if (more == NULL)
            return no_memory(p, e);
        p->transfer = more;
        p->room = room;
    }
    p->transfer[p->transfers++] = *one;
    return 0;
}

static int add_route(struct printer *p, uint32_t source, uint32_t destination, uint32_t segment,
                     struct leg *leg, struct error *e)
{
    uint32_t legs = algorithm_route(p->algorithm, p->torus, source, destination, segment, leg);
    uint32_t here = source, before = NONE;

    for (uint32_t i = 0; i < legs; i++) {
        bool last = i + 1 == legs;
        uint32_t end = torus_walk(p->torus, here, leg[i].dim, leg[i].direction, leg[i].hops);
        const struct transfer one = {
            .from = here,
            .to = end,
            .step = leg[i].step,
            .source = source,
            .destination = destination,
            .segment = segment,
            .before = before,
            .slot = last ? NONE : p->slots[end]++,
            .port = (uint16_t)torus_port(p->torus, leg[i].dim, leg[i].direction),
            .hops = leg[i].hops,
            .sent_on = !last,
        };
        before = (uint32_t)p->transfers;
        if (add(p, &one, e) != 0)
            return -1;
        here = end;
    }
    return 0;
}

static int add_routes(struct printer *p, struct error *e)
{
    uint32_t nodes = p->torus->nodes;
    struct leg *leg = calloc((size_t)algorithm_max_legs(p->algorithm, p->torus) + 1, sizeof *leg);
    int rc = leg == NULL ? no_memory(p, e) : 0;

    for (uint32_t source = 0; source < nodes && rc == 0; source++)
        for (uint32_t destination = 0; destination < nodes && rc == 0; destination++)
            for (uint32_t k = 0; k < p->algorithm->segments && rc == 0; k++)
                if (source != destination)
                    rc = add_route(p, source, destination, k, leg, e);
    free(leg);
    return rc;
}

static int compare(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int compare_connections(const struct transfer *x, const struct transfer *y)
{
    int by = compare(x->from, y->from);

    by = by != 0 ? by : compare(x->port, y->port);
    return by != 0 ? by : compare(x->hops, y->hops);
}

static int compare_transfers(const void *a, const void *b)
{
    const struct transfer *x = *(struct transfer *const *)a, *y = *(struct transfer *const *)b;
    int by = compare_connections(x, y);

    by = by != 0 ? by : compare(x->step, y->step);
    by = by != 0 ? by : compare(x->source, y->source);
    by = by != 0 ? by : compare(x->destination, y->destination);
    return by != 0 ? by : compare(x->segment, y->segment);
}

/* Sorts the transfers, and numbers groups and thread blocks. */
static int arrange(struct printer *p, struct error *e)
{
    p->order =
        calloc(p->transfers + 1, sizeof *p->order); /* not 0 bytes: NULL means out of memory */
    p->group = calloc(p->transfers + 1, sizeof *p->group);
    if (p->order == NULL || p->group == NULL)
        return no_memory(p, e);
    for (size_t i = 0; i < p->transfers; i++)
        p->order[i] = &p->transfer[i];
    qsort(p->order, p->transfers, sizeof *p->order, compare_transfers);
    for (uint32_t i = 0; i < p->transfers; i++) {
        struct transfer *one = p->order[i];
        if (i == 0 || compare_connections(p->order[i - 1], one) != 0)
            p->group[p->groups++] = (struct group){
                .first = i,
                .send_block = p->blocks[one->from]++,
                .receive_block = p->blocks[one->to]++,
            };
        one->group = p->groups - 1;
        one->place = p->group[one->group].count++;
    }
    return 0;
}

/* Finds the thread blocks of each node. */
static int find_ends(struct printer *p, struct error *e)
{
    uint32_t nodes = p->torus->nodes;

    p->first = calloc(nodes, sizeof *p->first);
    p->end = calloc(2 * (size_t)p->groups + 1, sizeof *p->end);
    if (p->first == NULL || p->end == NULL)
        return no_memory(p, e);
    for (uint32_t node = 1; node < nodes; node++)
        p->first[node] = p->first[node - 1] + p->blocks[node - 1];
    for (uint32_t i = 0; i < p->groups; i++) {
        const struct group *g = &p->group[i];
        const struct transfer *one = p->order[g->first];
        p->end[p->first[one->from] + g->send_block] = (struct end){i, true};
        p->end[p->first[one->to] + g->receive_block] = (struct end){i, false};
    }
    return 0;
}

static void print_step(const struct printer *p, const struct transfer *x, bool sends)
{
    uint32_t segments = p->algorithm->segments;
    const struct transfer *before = x->before != NONE ? &p->transfer[x->before] : NULL;

    (void)fprintf(p->out, "      <step s=\"%" PRIu32 "\" type=\"%s\"", x->place, sends ? "s" : "r");
    if (before == NULL)
        (void)fprintf(p->out, " srcbuf=\"i\" srcoff=\"%" PRIu32 "\"",
                      x->destination * segments + x->segment);
    else
        (void)fprintf(p->out, " srcbuf=\"s\" srcoff=\"%" PRIu32 "\"", before->slot);
    if (x->slot == NONE)
        (void)fprintf(p->out, " dstbuf=\"o\" dstoff=\"%" PRIu32 "\"",
                      x->source * segments + x->segment);
    else
        (void)fprintf(p->out, " dstbuf=\"s\" dstoff=\"%" PRIu32 "\"", x->slot);
    if (sends && before != NULL)
        (void)fprintf(p->out, " cnt=\"1\" depid=\"%" PRIu32 "\" deps=\"%" PRIu32 "\"",
                      p->group[before->group].receive_block, before->place);
    else
        (void)fputs(" cnt=\"1\" depid=\"-1\" deps=\"-1\"", p->out);
    (void)fprintf(p->out, " hasdep=\"%d\"", !sends && x->sent_on);
    if (sends)
        (void)fprintf(p->out, " step=\"%" PRIu32 "\"", x->step);
    (void)fputs("/>\n", p->out);
}

static void print_thread_block(const struct printer *p, const struct group *g, bool sends)
{
    const struct transfer *first = p->order[g->first];

    (void)fprintf(p->out, "    <tb id=\"%" PRIu32 "\"", sends ? g->send_block : g->receive_block);
    if (sends)
        (void)fprintf(p->out, " send=\"%" PRIu32 "\" recv=\"-1\"", first->to);
    else
        (void)fprintf(p->out, " send=\"-1\" recv=\"%" PRIu32 "\"", first->from);
    (void)fprintf(p->out, " chan=\"%u\">\n", (unsigned)first->port);
    for (uint32_t i = 0; i < g->count; i++)
        print_step(p, p->order[g->first + i], sends);
    (void)fputs("    </tb>\n", p->out);
}

/* Prints the thread block that copies a node's own block from its input to its output. */
static void print_own_block(const struct printer *p, uint32_t node)
{
    uint32_t segments = p->algorithm->segments, at = node * segments;

    (void)fprintf(p->out,
                  "    <tb id=\"%" PRIu32 "\" send=\"-1\" recv=\"-1\" chan=\"0\">\n"
                  "      <step s=\"0\" type=\"cpy\" srcbuf=\"i\" srcoff=\"%" PRIu32
                  "\" dstbuf=\"o\" dstoff=\"%" PRIu32 "\" cnt=\"%" PRIu32
                  "\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>\n"
                  "    </tb>\n",
                  p->blocks[node], at, at, segments);
}

static void print_node(const struct printer *p, uint32_t node)
{
    uint32_t chunks = p->torus->nodes * p->algorithm->segments;

    (void)fprintf(p->out,
                  "  <gpu id=\"%" PRIu32 "\" i_chunks=\"%" PRIu32 "\" o_chunks=\"%" PRIu32
                  "\" s_chunks=\"%" PRIu32 "\">\n",
                  node, chunks, chunks, p->slots[node]);
    for (uint32_t i = 0; i < p->blocks[node]; i++) {
        const struct end *end = &p->end[p->first[node] + i];
        print_thread_block(p, &p->group[end->group], end->sends);
    }
    print_own_block(p, node);
    (void)fputs("  </gpu>\n", p->out);
}

static void print_all(const struct printer *p)
{
    const struct torus *t = p->torus;
    const struct algorithm *a = p->algorithm;
    char dims[TORUS_TEXT_SIZE];

    (void)fprintf(p->out,
                  "<algo name=\"%s\" proto=\"Simple\" nchannels=\"%u\" nchunksperloop=\"%" PRIu32
                  "\" ngpus=\"%" PRIu32 "\" coll=\"alltoall\" inplace=\"0\" outofplace=\"1\" "
                  "redop=\"nop\" minBytes=\"0\" maxBytes=\"9223372036854775807\" torus=\"%s\">\n",
                  a->imported != NULL ? imported_name(a->imported) : a->name, torus_ports(t),
                  t->nodes * a->segments, t->nodes, torus_format(t, dims));
    for (uint32_t node = 0; node < t->nodes && !ferror(p->out); node++)
        print_node(p, node);
    (void)fputs("</algo>\n", p->out);
}

int msccl_print(FILE *out, const struct torus *t, const struct algorithm *a, struct error *e)
{
    struct printer p = {.out = out, .torus = t, .algorithm = a};
    int rc;

    if (a->operation != OPERATION_EXCHANGE)
        return error_set(e, ERROR_USAGE,
                         "%s is for operation %s; MSCCL's format is written for "
                         "exchanges only",
                         a->name, schedule_operation_name(a->operation));
    if ((uint64_t)t->nodes * (t->nodes - 1) * a->segments > TRANSFERS_MOST)
        return too_many(&p, e);
    p.slots = calloc(t->nodes, sizeof *p.slots);
    p.blocks = calloc(t->nodes, sizeof *p.blocks);
    if (p.slots == NULL || p.blocks == NULL)
        rc = no_memory(&p, e);
    else
        rc = add_routes(&p, e);
    if (rc == 0)
        rc = arrange(&p, e);
    if (rc == 0)
        rc = find_ends(&p, e);
    if (rc == 0)
        print_all(&p);
    free(p.transfer);
    free(p.order);
    free(p.group);
    free(p.slots);
    free(p.blocks);
    free(p.end);
    free(p.first);
    return rc;
}
