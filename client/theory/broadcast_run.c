#include "client/theory/broadcast_run.h"

#include <stdlib.h>

#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

enum { NONE = UINT32_MAX };

/* A switch or a channel, and the buffer before it. A message on its way to a node is the number
 * source * N + node; so is a node's own message. */
struct server {
    uint32_t first, last; /* waiting; NONE: nothing */
    uint32_t busy;        /* being handled, or NONE */
};

/* When servers of one kind are done. All take the same time, so that they are done in the order in which
 * they started. */
struct ending {
    uint64_t at;
    uint32_t server;
};
struct endings {
    struct ending *ring; /* room for all servers */
    size_t head, count, room;
};

struct broadcast {
    const struct torus *torus;
    const struct broadcast_model *model;
    struct broadcast_report *report;
    uint32_t nodes, ports;
    uint32_t *children; /* by message: the ports through which its node sends it on, a bit each */
    uint32_t *ahead; /* by message: hops of the longest path from its node to an end of the route */
    bool *reached;   /* by message: whether it comes to its node */
    uint32_t *behind; /* by message: the next one in the same buffer, or NONE */
    uint64_t *sent;   /* by channel */
    /* Switches, node * (ports + 1) + port, of which the last of a node is for its own message at input
     * buffers; and from first_channel on channels, node * ports + port. */
    struct server *server;
    uint32_t servers, first_channel;
    struct endings switched, transmitted;
};

static uint32_t channel(const struct broadcast *b, uint32_t node, unsigned port)
{
    return b->first_channel + node * b->ports + port;
}

static uint32_t switch_of(const struct broadcast *b, uint32_t node, unsigned port)
{
    return node * (b->ports + 1) + port;
}

static int follow(struct broadcast *b, uint32_t source, const struct leg *legs, uint32_t count,
                  struct error *e)
{
    uint32_t node = source, hops = 0;

    for (uint32_t i = 0; i < count; i++)
        hops += legs[i].hops;
    for (uint32_t i = 0; i < count; i++) {
        unsigned port = torus_port(b->torus, legs[i].dim, legs[i].direction);
        for (uint32_t hop = 0; hop < legs[i].hops; hop++) {
            uint32_t here = source * b->nodes + node, bit = UINT32_C(1) << port;

            node = torus_neighbour(b->torus, node, port);
            uint32_t there = source * b->nodes + node;
            if (b->ahead[here] < hops)
                b->ahead[here] = hops;
            hops--;
            if ((b->children[here] & bit) != 0)
                continue;
            if (node == source || b->reached[there])
                return error_set(e, ERROR_DAMAGED, "the block of node %u comes to node %u twice",
                                 source, node);
            b->children[here] |= bit;
            b->reached[there] = true;
        }
    }
    return 0;
}

static int make_trees(struct broadcast *b, const struct algorithm *a, struct error *e)
{
    struct leg *legs = calloc((size_t)algorithm_max_legs(a, b->torus) + 1, sizeof *legs);
    int rc = 0;

    if (legs == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for routes");
    for (uint32_t source = 0; source < b->nodes && rc == 0; source++) {
        for (uint32_t node = 0; node < b->nodes && rc == 0; node++) {
            if (node == source)
                continue;
            uint32_t count = algorithm_route(a, b->torus, source, node, 0, legs);
            rc = follow(b, source, legs, count, e);
        }
    }
    free(legs);
    return rc;
}

static void enqueue(struct broadcast *b, uint32_t index, uint32_t message)
{
    struct server *s = &b->server[index];

    b->behind[message] = NONE;
    if (s->first == NONE)
        s->first = message;
    else
        b->behind[s->last] = message;
    s->last = message;
}

/* The message before the one to be handled next; NONE: that is the first. */
static uint32_t before_next(const struct broadcast *b, const struct server *s)
{
    uint32_t before = NONE, most = b->ahead[s->first];

    if (b->model->queue == BROADCAST_FIFO)
        return NONE;
    for (uint32_t m = s->first; m != s->last; m = b->behind[m]) {
        if (b->ahead[b->behind[m]] > most) {
            most = b->ahead[b->behind[m]];
            before = m;
        }
    }
    return before;
}

static uint32_t dequeue(struct broadcast *b, struct server *s)
{
    uint32_t before = before_next(b, s);
    uint32_t message = before == NONE ? s->first : b->behind[before];

    if (before == NONE)
        s->first = b->behind[message];
    else
        b->behind[before] = b->behind[message];
    if (s->last == message)
        s->last = before;
    return message;
}

static void start(struct broadcast *b, uint32_t index, uint64_t now)
{
    const struct broadcast_model *m = b->model;
    bool sends = index >= b->first_channel;
    struct endings *endings = sends ? &b->transmitted : &b->switched;
    struct server *s = &b->server[index];

    s->busy = dequeue(b, s);
    endings->ring[(endings->head + endings->count++) % endings->room] =
        (struct ending){now + (sends ? m->transmission : m->switching), index};
    if (!sends)
        return;
    uint32_t at = index - b->first_channel;
    if (++b->sent[at] > b->report->busiest)
        b->report->busiest = b->sent[at];
    if (m->sends != NULL)
        m->sends(m->context, s->busy / b->nodes, at / b->ports, at % b->ports);
}

/* A node sends a message on, as soon as it has been switched. */
static void send_on(struct broadcast *b, uint32_t message)
{
    uint32_t source = message / b->nodes, node = message % b->nodes;

    for (unsigned port = 0; port < b->ports; port++) {
        if ((b->children[message] >> port & 1) == 0)
            continue;
        uint32_t next = source * b->nodes + torus_neighbour(b->torus, node, port);
        enqueue(b,
                b->model->place == BROADCAST_SWITCH_INPUT ? channel(b, node, port)
                                                          : switch_of(b, node, port),
                next);
    }
}

static void arrive(struct broadcast *b, uint32_t message, unsigned port)
{
    if (b->model->place == BROADCAST_SWITCH_INPUT)
        enqueue(b, switch_of(b, message % b->nodes, port), message);
    else
        send_on(b, message);
}

/* What follows when a server is done. */
static void end(struct broadcast *b, uint32_t index, uint64_t now)
{
    struct server *s = &b->server[index];
    uint32_t message = s->busy;

    s->busy = NONE;
    if (index >= b->first_channel) {
        uint32_t port = (index - b->first_channel) % b->ports;
        b->report->delay = now;
        watch_count(&b->report->arrivals, (uint64_t)b->nodes * (b->nodes - 1));
        arrive(b, message, torus_port_opposite(b->torus, port));
    } else if (b->model->place == BROADCAST_SWITCH_INPUT) {
        send_on(b, message);
    } else {
        uint32_t node = index / (b->ports + 1), port = index % (b->ports + 1);
        enqueue(b, channel(b, node, port), message);
    }
}

static uint64_t next_ending(const struct endings *endings)
{
    return endings->count > 0 ? endings->ring[endings->head].at : UINT64_MAX;
}

static void end_all(struct broadcast *b, struct endings *endings, uint64_t now)
{
    while (next_ending(endings) == now) {
        uint32_t index = endings->ring[endings->head].server;
        endings->head = (endings->head + 1) % endings->room;
        endings->count--;
        end(b, index, now);
    }
}

static void run(struct broadcast *b)
{
    uint64_t now = b->model->startup;

    b->report->delay = now;
    for (uint32_t node = 0; node < b->nodes; node++)
        arrive(b, node * b->nodes + node, b->ports);
    for (;;) {
        for (uint32_t i = 0; i < b->servers; i++)
            if (b->server[i].busy == NONE && b->server[i].first != NONE)
                start(b, i, now);
        uint64_t switched = next_ending(&b->switched), transmitted = next_ending(&b->transmitted);
        now = switched < transmitted ? switched : transmitted;
        if (now == UINT64_MAX)
            break;
        end_all(b, &b->transmitted, now);
        end_all(b, &b->switched, now);
    }
}

static int allocate(struct broadcast *b)
{
    size_t messages = (size_t)b->nodes * b->nodes;

    b->first_channel = b->nodes * (b->ports + 1);
    b->servers = b->first_channel + b->nodes * b->ports;
    b->switched.room = b->transmitted.room = b->servers;
    b->children = calloc(messages, sizeof *b->children);
    b->ahead = calloc(messages, sizeof *b->ahead);
    b->reached = calloc(messages, sizeof *b->reached);
    b->behind = calloc(messages, sizeof *b->behind);
    b->sent = calloc(b->servers, sizeof *b->sent);
    b->server = calloc(b->servers, sizeof *b->server);
    b->switched.ring = calloc(b->servers, sizeof *b->switched.ring);
    b->transmitted.ring = calloc(b->servers, sizeof *b->transmitted.ring);
    if (!b->children || !b->ahead || !b->reached || !b->behind || !b->sent || !b->server ||
        !b->switched.ring || !b->transmitted.ring)
        return -1;
    for (uint32_t i = 0; i < b->servers; i++)
        b->server[i] = (struct server){NONE, NONE, NONE};
    return 0;
}

static void release(struct broadcast *b)
{
    free(b->children);
    free(b->ahead);
    free(b->reached);
    free(b->behind);
    free(b->sent);
    free(b->server);
    free(b->switched.ring);
    free(b->transmitted.ring);
}

static int check(const struct torus *t, const struct algorithm *a, const struct broadcast_model *m,
                 struct error *e)
{
    if (a->operation != OPERATION_ALLGATHER || a->segments != 1)
        return error_set(e, ERROR_REFUSED, "%s does not send whole blocks to all nodes", a->name);
    if (algorithm_accepts(a, t, e) != 0)
        return -1;
    if (t->nodes > BROADCAST_RUN_MOST_NODES)
        return error_set(e, ERROR_REFUSED, "%u nodes are too many: at most %u can be simulated",
                         t->nodes, BROADCAST_RUN_MOST_NODES);
    if (m->startup > BROADCAST_RUN_MOST_TIME || m->switching > BROADCAST_RUN_MOST_TIME ||
        m->transmission > BROADCAST_RUN_MOST_TIME)
        return error_set(e, ERROR_REFUSED,
                         "a startup, a switching or a transmission takes more than a second");
    return 0;
}

int broadcast_run(const struct torus *t, const struct algorithm *a, const struct broadcast_model *m,
                  struct broadcast_report *r, struct error *e)
{
    struct broadcast b = {
        .torus = t, .model = m, .report = r, .nodes = t->nodes, .ports = torus_ports(t)};
    int rc;

    if (check(t, a, m, e) != 0)
        return -1;
    *r = (struct broadcast_report){0};
    if (allocate(&b) != 0)
        rc = error_set(e, ERROR_MEMORY, "out of memory to simulate a broadcast of %u %s", t->nodes,
                       text_plural(t->nodes, "node", "nodes"));
    else
        rc = make_trees(&b, a, e);
    if (rc == 0)
        run(&b);
    release(&b);
    return rc;
}

/* ---- Lower bounds ---------------------------------------------------------------------------- */

uint32_t broadcast_bound_one_to_all(const struct product *p)
{
    return product_diameter(p);
}

uint32_t broadcast_bound_all_to_all(const struct product *p)
{
    uint32_t links = 0, diameter = product_diameter(p);

    for (unsigned i = 0; i < p->dims; i++)
        links += factor_fewest_links(&p->factor[i]);
    if (links == 0)
        return 0;
    uint32_t received = (p->nodes - 1 + links - 1) / links;
    return received > diameter ? received : diameter;
}
