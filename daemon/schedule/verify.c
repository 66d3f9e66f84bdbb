#include "daemon/schedule/verify.h"

#include <stdlib.h>

#include "daemon/schedule/routes.h"

enum { MAX_STEP = (1 << 24) - 1 }; /* room for it in a message's key */

/* A combined message, of every node of the class of its first node. */
struct message {
    uint64_t key; /* (step, class, port, hops): sorted, they are in the order in which they run */
    uint64_t blocks; /* 0: an empty place in the table */
};

/* Messages by key: open addressing, at most half full. */
struct messages {
    struct message *at;
    size_t count, room; /* room: 0 or a power of two */
};

/* A channel of every node of a class. */
struct channel {
    uint64_t free;     /* when it has carried everything of steps before `step` */
    uint64_t start;    /* when it begins with what it carries in `step`, */
    uint64_t load;     /* blocks */
    uint32_t messages; /* and messages */
    uint32_t step;
    uint64_t total; /* blocks, in all steps so far */
};

/* The last step in which a message started, and in which one ended, at a node of a class, counted
 * from 1; 0 = none so far. */
struct turn {
    uint32_t started, ended;
};

/* The schedule as it runs, each class of nodes standing for all its nodes. */
struct run {
    const struct routes *routes;
    struct channel *channel; /* class * ports + port */
    uint64_t *ready;         /* class -> when it has taken in all of its steps so far */
    struct turn *turn;       /* by class */
};

static uint32_t message_step(const struct message *m)
{
    return (uint32_t)(m->key >> 40);
}

static uint32_t message_class(const struct message *m)
{
    return (uint32_t)(m->key >> 20) & (TORUS_MAX_NODES - 1);
}

static unsigned message_port(const struct message *m)
{
    return (unsigned)(m->key >> 16) & (TORUS_MAX_PORTS - 1);
}

static uint16_t message_hops(const struct message *m)
{
    return (uint16_t)m->key;
}

/* The place of `key` in the table: the message that has it, or an empty one. */
static struct message *find_place(const struct messages *table, uint64_t key)
{
    size_t mask = table->room - 1;
    size_t place = (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & mask; /* Fibonacci hashing */

    while (table->at[place].blocks != 0 && table->at[place].key != key)
        place = (place + 1) & mask;
    return &table->at[place];
}

static int make_room(struct messages *table)
{
    struct messages larger = {.count = table->count,
                              .room = table->room == 0 ? 1024 : 2 * table->room};

    larger.at = calloc(larger.room, sizeof *larger.at);
    if (larger.at == NULL)
        return -1;
    for (size_t i = 0; i < table->room; i++)
        if (table->at[i].blocks != 0)
            *find_place(&larger, table->at[i].key) = table->at[i];
    free(table->at);
    *table = larger;
    return 0;
}

/* One more block in the message with this key. */
static int add_block(struct messages *table, uint64_t key)
{
    if (2 * table->count >= table->room && make_room(table) != 0)
        return -1;
    struct message *m = find_place(table, key);
    table->count += m->blocks == 0;
    m->key = key;
    m->blocks++;
    return 0;
}

static int compare_messages(const void *a, const void *b)
{
    const struct message *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Makes a sorted list of the table. */
static void sort_messages(struct messages *table)
{
    size_t used = 0;

    for (size_t i = 0; i < table->room; i++)
        if (table->at[i].blocks != 0)
            table->at[used++] = table->at[i];
    if (used > 0)
        qsort(table->at, used, sizeof *table->at, compare_messages);
}

static int no_memory(const struct routes *r, struct error *e)
{
    return error_set(e, ERROR_MEMORY, "no memory for the messages of %u nodes", r->torus->nodes);
}

static int bad_route(const struct routes *r, struct error *e, const char *why, uint32_t leg)
{
    char torus[TORUS_TEXT_SIZE];
    return error_set(e, ERROR_DAMAGED, "%s on %s: block %u -> %u, leg %u: %s", r->algorithm->name,
                     torus_format(r->torus, torus), r->source, r->destination, leg, why);
}

/* Whether two routes begin with the same legs. */
static bool same_legs(const struct leg *a, const struct leg *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i].step != b[i].step || a[i].hops != b[i].hops || a[i].dim != b[i].dim ||
            a[i].direction != b[i].direction)
            return false;
    return true;
}

/* Allgather: the last leg has to start where another route of the tree, with the same legs, ends.
 * `other` has room for a route. */
static int check_branch(const struct routes *r, uint32_t start, struct leg *other, struct error *e)
{
    const struct algorithm *a = r->algorithm;
    uint32_t last = r->legs - 1;

    if (start == r->source || a->route(r->torus, r->source, start, r->segment, other) != last ||
        !same_legs(r->leg, other, last))
        return bad_route(r, e, "does not branch off another route's end", last);
    return 0;
}

/* Walks the current route: notes its messages, or says what is wrong with it. `other` has room for
 * another route. */
static int check_route(const struct routes *r, struct leg *other, struct messages *messages,
                       bool *minimal, struct error *e)
{
    uint32_t new = routes_new_legs(r);
    uint32_t here = r->source;
    uint32_t hops = 0;

    if (r->legs > r->algorithm->max_legs(r->torus))
        return bad_route(r, e, "more legs than announced", r->legs);
    for (uint32_t i = 0; i < r->legs; i++) {
        const struct leg *leg = &r->leg[i];

        if (leg->dim >= r->torus->dims || (leg->direction != 1 && leg->direction != -1))
            return bad_route(r, e, "no such port", i);
        if (leg->hops == 0)
            return bad_route(r, e, "no hops", i);
        if (leg->step > MAX_STEP || (i > 0 && leg->step <= leg[-1].step))
            return bad_route(r, e, "steps do not rise", i);
        unsigned port = torus_port(leg->dim, leg->direction);
        uint64_t key = (uint64_t)leg->step << 40 | (uint64_t)r->class_of[here] << 20 |
                       (uint64_t)port << 16 | leg->hops;
        if (i >= new &&add_block(messages, key) != 0)
            return no_memory(r, e);
        if (i > 0 && i == new &&check_branch(r, here, other, e) != 0)
            return -1;
        here = routes_leg_end(r, here, leg);
        if (here == TORUS_NO_NODE)
            return bad_route(r, e, "no link there", i);
        hops += leg->hops;
    }
    if (here != r->destination)
        return bad_route(r, e, "does not end at the destination", r->legs);
    if (hops != torus_distance(r->torus, r->source, r->destination))
        *minimal = false;
    return 0;
}

/* The channel on which a message leaves *node, made ready for the message's step; moves *node to
 * its other end. */
static struct channel *cross(const struct run *run, const struct message *m, uint32_t *node)
{
    const struct routes *r = run->routes;
    unsigned port = message_port(m);
    struct channel *c = &run->channel[(size_t)r->class_of[*node] * torus_ports(r->torus) + port];

    if (c->step != message_step(m))
        *c = (struct channel){
            .free = c->start + c->load, .step = message_step(m), .total = c->total};
    *node = routes_neighbour(r, *node, port);
    return c;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* A message starts when its first node is ready and all its channels are free; a channel, when all
 * messages that share it in this step can start. */
static void start_message(const struct run *run, const struct message *m)
{
    uint32_t first = run->routes->representative[message_class(m)];
    uint64_t start = run->ready[message_class(m)];
    uint32_t node = first;

    for (uint32_t hop = 0; hop < message_hops(m); hop++)
        start = later(start, cross(run, m, &node)->free);
    node = first;
    for (uint32_t hop = 0; hop < message_hops(m); hop++) {
        struct channel *c = cross(run, m, &node);
        c->start = later(c->start, start);
        c->load += m->blocks;
        c->total += m->blocks;
        c->messages++;
    }
}

/* Notes that a message starts at `first` and ends at `last`; returns whether it is the only one of
 * its step that does. */
static bool take_turn(const struct run *run, const struct message *m, uint32_t first, uint32_t last)
{
    struct turn *from = &run->turn[run->routes->class_of[first]];
    struct turn *to = &run->turn[run->routes->class_of[last]];
    uint32_t step = message_step(m) + 1;
    bool alone = from->started != step && to->ended != step;

    from->started = to->ended = step;
    return alone;
}

/* It has arrived when the last of its channels has carried the step's load. Notes the largest load,
 * and the largest number of messages, of its channels. Returns whether no other message of the step
 * has started or ended where it does. */
static bool finish_message(const struct run *run, const struct message *m, uint64_t *load,
                           uint64_t *messages)
{
    uint32_t node = run->routes->representative[message_class(m)];
    uint64_t end = 0;

    for (uint32_t hop = 0; hop < message_hops(m); hop++) {
        const struct channel *c = cross(run, m, &node);
        end = later(end, c->start + c->load);
        *load = later(*load, c->load);
        *messages = later(*messages, c->messages);
    }
    uint64_t *ready = &run->ready[run->routes->class_of[node]];
    *ready = later(*ready, end);
    return take_turn(run, m, run->routes->representative[message_class(m)], node);
}

static void run_schedule(const struct run *run, const struct messages *messages,
                         struct schedule_report *r)
{
    const struct message *m = messages->at, *end = m + messages->count;

    while (m < end) {
        const struct message *first = m;
        uint64_t load = 0, crowd = 0, hops = 0;

        for (; m < end && message_step(m) == message_step(first); m++) {
            start_message(run, m);
            hops = later(hops, message_hops(m));
        }
        for (m = first; m < end && message_step(m) == message_step(first); m++)
            r->one_port_kept &= finish_message(run, m, &load, &crowd);
        r->startups++;
        r->transmission += load;
        r->hops += hops;
        r->contended_steps += crowd > 1;
    }
    for (uint32_t i = 0; i < run->routes->classes; i++)
        r->critical_path = later(r->critical_path, run->ready[i]);
    for (size_t i = 0; i < (size_t)run->routes->classes * torus_ports(run->routes->torus); i++)
        r->busiest = later(r->busiest, run->channel[i].total);
}

static int price(const struct routes *routes, struct messages *messages, struct schedule_report *r,
                 struct error *e)
{
    size_t classes = routes->classes;
    struct run run = {
        .routes = routes,
        .channel = calloc(classes * torus_ports(routes->torus), sizeof *run.channel),
        .ready = calloc(classes, sizeof *run.ready),
        .turn = calloc(classes, sizeof *run.turn),
    };
    int rc = 0;

    sort_messages(messages);
    if (run.channel != NULL && run.ready != NULL && run.turn != NULL)
        run_schedule(&run, messages, r);
    else
        rc = no_memory(routes, e);
    free(run.channel);
    free(run.ready);
    free(run.turn);
    return rc;
}

int schedule_verify(const struct torus *t, const struct algorithm *a, struct schedule_report *r,
                    struct error *e)
{
    struct routes routes;
    struct messages messages = {0};
    int rc = 0;

    if (routes_open(&routes, t, a, e) != 0)
        return -1;
    struct leg *other = calloc((size_t)a->max_legs(t) + 1, sizeof *other); /* never 0 bytes */
    if (other == NULL)
        rc = no_memory(&routes, e);
    *r = (struct schedule_report){
        .minimal = true,
        .one_port_kept = true,
        .bound = algorithm_bound(a, t),
    };
    while (rc == 0 && routes_next(&routes))
        rc = check_route(&routes, other, &messages, &r->minimal, e);
    if (rc == 0)
        rc = price(&routes, &messages, r, e);
    free(messages.at);
    free(other);
    routes_close(&routes);
    return rc;
}
