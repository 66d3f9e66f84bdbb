#include "daemon/lib/schedule/verify.h"

#include <stdlib.h>

#include "daemon/lib/base/grow.h"
#include "daemon/lib/schedule/damage.h"
#include "daemon/lib/schedule/routes.h"
#include "daemon/lib/schedule/tally.h"
#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

#define MESSAGES_MOST (1u << 25) /* their table takes 2 GiB */

/* A channel of a place (struct run). */
struct channel {
    double free;       /* time when it has carried all messages of steps before `step` */
    double start;      /* time when it begins to carry the messages of `step` */
    double load;       /* time that it takes for the blocks of `step` */
    uint32_t messages; /* messages that it carries in `step` */
    uint32_t step;
    double total; /* time for the blocks of all steps so far */
};

/* The messages that start and end at a place: the last step in which one did (steps count from 1;
 * 0: none so far), and the time when the last one has left, and has arrived. */
struct turn {
    uint32_t started, ended;
    double sent, received;
};

/* A combined message that starts at node `start`. */
struct message {
    struct leg leg;
    uint32_t start;
    uint64_t blocks;
};

/* The schedule as it runs. Translations move channels, so one place stands for all nodes of a
 * class. XORs do not move the channels, and channels of different rates cannot stand for others: then each
 * node is a place. */
struct run {
    const struct routes *routes;
    const struct damage *rates; /* NULL: all channels have the full rate */
    uint32_t places;
    bool is_each_a_place;
    uint32_t *next;           /* if so: node -> the next node of its class, or TORUS_NO_NODE */
    bool by_rule;             /* no route has been followed */
    struct channel *channel;  /* place * ports + port */
    struct turn *turn;        /* by place */
    bool has_few_ports;       /* the algorithm limits the messages of a node at a time */
    struct message *messages; /* of the current step */
    size_t count, room;
    uint64_t started;    /* messages of all steps */
    uint64_t block_hops; /* channels crossed by all blocks together */
};

static uint32_t place(const struct run *run, uint32_t node)
{
    return run->is_each_a_place ? node : run->routes->class_of[node];
}

static int no_memory(const struct routes *r, struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for the messages of %u %s", r->torus->nodes,
                     text_plural(r->torus->nodes, "node", "nodes"));
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

/* Allgather: checks that the last leg starts where another route of the tree, with the same legs
 * before, ends. `other` has room for a route. */
static int check_branch(const struct routes *r, uint32_t start, struct leg *other, struct error *e)
{
    const struct algorithm *a = r->algorithm;
    uint32_t last = r->legs - 1;

    if (start == r->source ||
        algorithm_route(a, r->torus, r->source, start, r->segment, other) != last ||
        !same_legs(r->leg, other, last))
        return bad_route(r, e, "does not branch off another route's end", last);
    return 0;
}

/* Counts blocks of a message from the representative of a class. */
static int count_message(const struct routes *r, struct tally *messages, uint32_t class,
                         const struct leg *leg, uint64_t blocks, struct error *e)
{
    if (messages->count == MESSAGES_MOST)
        return error_set(e, ERROR_REFUSED,
                         "%s has more than %u different messages on this torus, too many to check",
                         r->algorithm->name, MESSAGES_MOST);
    if (tally_add_many(messages, message_key(r->torus, class, leg), blocks) != 0)
        return no_memory(r, e);
    return 0;
}

/* Follows the current route and counts its messages. Returns 0, or -1 with *e, which says what is
 * wrong with the route. `other` has room for another route. */
static int check_route(const struct routes *r, struct leg *other, struct tally *messages,
                       bool *minimal, struct error *e)
{
    uint32_t new = routes_new_legs(r);
    uint32_t here = r->source;
    uint32_t hops = 0;

    if (r->legs > algorithm_max_legs(r->algorithm, r->torus))
        return bad_route(r, e, "more legs than announced", r->legs);
    for (uint32_t i = 0; i < r->legs; i++) {
        const struct leg *leg = &r->leg[i];

        if (leg->dim >= r->torus->dims || !torus_has_direction(r->torus, leg->dim, leg->direction))
            return bad_route(r, e, "no such port", i);
        if (leg->hops == 0)
            return bad_route(r, e, "no hops", i);
        if (leg->step > MESSAGE_MAX_STEP || (i > 0 && leg->step <= leg[-1].step))
            return bad_route(r, e, "steps do not rise", i);
        uint32_t end = routes_leg_end(r, here, leg);
        if (end == TORUS_NO_NODE)
            return bad_route(r, e, "no link there", i);
        if (i >= new) {
            uint32_t class = r->class_of[here];
            struct leg moved = routes_moved_leg(r, leg, here, r->representative[class]);
            if (count_message(r, messages, class, &moved, routes_weight(r), e) != 0)
                return -1;
        }
        if (i > 0 && i == new &&check_branch(r, here, other, e) != 0)
            return -1;
        here = end;
        hops += leg->hops;
    }
    if (here != r->destination)
        return bad_route(r, e, "does not end at the destination", r->legs);
    if (hops != torus_distance(r->torus, r->source, r->destination))
        *minimal = false;
    return 0;
}

/* Returns the channel on which a message leaves *node, made ready for the message's step, and moves
 * *node to the channel's other end. */
static struct channel *cross(const struct run *run, const struct leg *leg, uint32_t *node)
{
    const struct routes *r = run->routes;
    unsigned port = torus_port(r->torus, leg->dim, leg->direction);
    struct channel *c = &run->channel[(size_t)place(run, *node) * torus_ports(r->torus) + port];

    if (c->step != leg->step)
        *c = (struct channel){.free = c->start + c->load, .step = leg->step, .total = c->total};
    *node = routes_neighbour(r, *node, port);
    return c;
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* How many different channels, by place, a message crosses: along a dimension, classes repeat. */
static uint32_t count_channels(const struct run *run, const struct leg *leg)
{
    const struct routes *r = run->routes;

    return run->is_each_a_place || leg->hops < r->period[leg->dim] ? leg->hops
                                                                   : r->period[leg->dim];
}

/* The time that the channel through which a message leaves a node takes for a block. */
static double slowness_of(const struct run *run, const struct leg *leg, uint32_t node)
{
    if (run->rates == NULL)
        return 1;
    const unsigned port = torus_port(run->routes->torus, leg->dim, leg->direction);
    return (double)DAMAGE_FULL_RATE / damage_rate(run->rates, node, port);
}

/* A message starts when its first node has received what it needs and all its channels are free;
 * with few ports also when both its ends have finished their messages of earlier steps. A channel
 * starts when all messages that share it in this step can start. */
static void start_message(const struct run *run, const struct message *m)
{
    const struct turn *from = &run->turn[place(run, m->start)];
    double start = from->received;
    uint32_t node = m->start, channels = count_channels(run, &m->leg);

    if (run->has_few_ports) {
        uint32_t last = routes_leg_end(run->routes, m->start, &m->leg);
        start = later(start, later(from->sent, run->turn[place(run, last)].received));
    }
    for (uint32_t i = 0; i < channels; i++)
        start = later(start, cross(run, &m->leg, &node)->free);
    node = m->start;
    for (uint32_t i = 0; i < channels; i++) {
        const double slowness = slowness_of(run, &m->leg, node);
        struct channel *c = cross(run, &m->leg, &node);
        uint32_t times = m->leg.hops / channels + (i < m->leg.hops % channels);
        c->start = later(c->start, start);
        c->load += (double)(times * m->blocks) * slowness;
        c->total += (double)(times * m->blocks) * slowness;
        c->messages += times;
    }
}

/* Notes that a message starts at its first node and ends at `last`, at the time `end`. Returns one
 * of the two nodes if another message of the step has started, or ended, there; otherwise
 * TORUS_NO_NODE. */
static uint32_t take_turn(const struct run *run, const struct message *m, uint32_t last, double end)
{
    struct turn *from = &run->turn[place(run, m->start)];
    struct turn *to = &run->turn[place(run, last)];
    uint32_t step = m->leg.step + 1;
    uint32_t crowded = from->started == step ? m->start : to->ended == step ? last : TORUS_NO_NODE;

    from->started = to->ended = step;
    from->sent = later(from->sent, end);
    to->received = later(to->received, end);
    return crowded;
}

/* The message arrives when the last of its channels has carried the step's load. Raises *load and
 * *messages to those of its channels. Returns what take_turn() returns. */
static uint32_t finish_message(const struct run *run, const struct message *m, double *load,
                               uint32_t *messages)
{
    uint32_t node = m->start, last = routes_leg_end(run->routes, m->start, &m->leg);
    uint32_t channels = count_channels(run, &m->leg);
    double end = 0;

    for (uint32_t i = 0; i < channels; i++) {
        const struct channel *c = cross(run, &m->leg, &node);
        end = later(end, c->start + c->load);
        *load = later(*load, c->load);
        *messages = c->messages > *messages ? c->messages : *messages;
    }
    return take_turn(run, m, last, end);
}

static int add_message(struct run *run, struct message m)
{
    if (GROW(run->messages, run->count, run->room) != 0)
        return -1;
    run->messages[run->count++] = m;
    return 0;
}

/* Adds the messages of one entry of the tally: one from each place of its class. */
static int add_messages(struct run *run, const struct tally_entry *entry)
{
    const struct routes *r = run->routes;
    uint32_t class = message_key_class(entry->key), first = r->representative[class];
    struct leg leg = message_key_leg(r->torus, entry->key);

    for (uint32_t start = first; start != TORUS_NO_NODE;
         start = run->is_each_a_place ? run->next[start] : TORUS_NO_NODE)
        if (add_message(run, (struct message){.leg = routes_moved_leg(r, &leg, first, start),
                                              .start = start,
                                              .blocks = entry->count}) != 0)
            return -1;
    return 0;
}

/* Starts and ends the messages of a step, and adds the step's costs to the report. */
static void run_step(struct run *run, struct schedule_report *r)
{
    uint32_t crowd = 0, hops = 0;
    double load = 0;

    for (size_t i = 0; i < run->count; i++) {
        watch_count(&run->started, 0);
        start_message(run, &run->messages[i]);
        hops = run->messages[i].leg.hops > hops ? run->messages[i].leg.hops : hops;
        run->block_hops += run->messages[i].blocks * run->messages[i].leg.hops;
    }
    for (size_t i = 0; i < run->count; i++) {
        uint32_t crowded = finish_message(run, &run->messages[i], &load, &crowd);
        if (crowded != TORUS_NO_NODE && r->one_port_kept) {
            r->one_port_kept = false;
            r->crowded_step = run->messages[i].leg.step;
            r->crowded_node = crowded;
        }
    }
    r->startups++;
    r->transmission += load;
    r->hops += hops;
    r->contended_steps += crowd > 1;
}

/* The sum of the distances between all pairs of nodes. */
static uint64_t all_distances(const struct torus *t)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < t->dims; i++) {
        uint64_t n = t->size[i], others = t->nodes / n;
        uint64_t in_line = t->wrap[i] ? n * (n * n / 4) : n * (n * n - 1) / 3;
        sum += others * others * in_line;
    }
    return sum;
}

static int run_schedule(struct run *run, const struct tally *messages, struct schedule_report *r)
{
    for (size_t i = 0; i < messages->count;) {
        uint32_t step = message_key_step(messages->at[i].key);

        run->count = 0;
        for (; i < messages->count && message_key_step(messages->at[i].key) == step; i++)
            if (add_messages(run, &messages->at[i]) != 0)
                return -1;
        run_step(run, r);
    }
    for (uint32_t i = 0; i < run->places; i++)
        r->critical_path = later(r->critical_path, run->turn[i].received);
    for (size_t i = 0; i < (size_t)run->places * torus_ports(run->routes->torus); i++)
        r->busiest = later(r->busiest, run->channel[i].total);
    /* XORs change the lengths of routes: compare the sums over all routes. */
    if (run->routes->by_xor || run->by_rule)
        r->minimal =
            run->block_hops == run->routes->algorithm->segments * all_distances(run->routes->torus);
    return 0;
}

/* Returns the list of each class, in ascending order, or NULL without memory. */
static uint32_t *list_classes(const struct routes *r)
{
    const uint32_t nodes = r->torus->nodes;
    uint32_t *next = calloc((size_t)nodes + r->classes, sizeof *next);

    if (next == NULL)
        return NULL;
    for (uint32_t node = 0, *last = next + nodes; node < nodes; node++) {
        const uint32_t class = r->class_of[node];
        if (node != r->representative[class])
            next[last[class]] = node;
        next[node] = TORUS_NO_NODE;
        last[class] = node;
    }
    return next;
}

/* Runs the schedule whose messages these are. Returns 0 with its costs in *r, or -1 with *e (no
 * memory). */
static int price(const struct routes *routes, const struct damage *rates, bool by_rule,
                 struct tally *messages, struct schedule_report *r, struct error *e)
{
    const bool each = routes->by_xor || rates != NULL || by_rule;
    uint32_t places = each ? routes->torus->nodes : routes->classes;
    struct run run = {
        .routes = routes,
        .rates = rates,
        .is_each_a_place = each,
        .next = each ? list_classes(routes) : NULL,
        .by_rule = by_rule,
        .places = places,
        .channel = calloc((size_t)places * torus_ports(routes->torus), sizeof *run.channel),
        .turn = calloc(places, sizeof *run.turn),
        .has_few_ports =
            routes->algorithm->port_model == PORT_MODEL_ONE || routes->algorithm->ports > 0,
    };

    tally_sort(messages);
    int rc = run.channel != NULL && run.turn != NULL && (run.next != NULL || !each)
                 ? run_schedule(&run, messages, r)
                 : -1;
    free(run.next);
    free(run.channel);
    free(run.turn);
    free(run.messages);
    return rc == 0 ? 0 : no_memory(routes, e);
}

/* Follows the routes, and counts their messages. Returns 0, or -1 with *e. */
static int follow(struct routes *routes, struct tally *messages, bool *minimal, struct error *e)
{
    const struct torus *t = routes->torus;
    const struct algorithm *a = routes->algorithm;
    const uint64_t all = (uint64_t)work_routes_followed(t, a);
    uint64_t followed = 0;
    struct leg *other =
        calloc((size_t)algorithm_max_legs(a, t) + 1, sizeof *other); /* never 0 bytes */
    int rc = other != NULL ? 0 : no_memory(routes, e);

    routes_only_on_lines(routes);
    while (rc == 0 && routes_next(routes)) {
        rc = check_route(routes, other, messages, minimal, e);
        watch_count(&followed, all);
    }
    free(other);
    return rc;
}

/* A node whose messages a rule tells. */
struct ruled {
    const struct routes *routes;
    struct tally *messages;
    uint32_t class;
    struct error *e;
};

static int add_ruled(void *context, const struct leg *leg, uint64_t blocks)
{
    const struct ruled *r = context;
    return count_message(r->routes, r->messages, r->class, leg, blocks, r->e);
}

/* Counts the messages by the algorithm's rule. Returns 0, or -1 with *e. */
static int ask(const struct routes *routes, struct tally *messages, struct error *e)
{
    const struct algorithm *a = routes->algorithm;
    struct ruled r = {.routes = routes, .messages = messages, .e = e};

    for (; r.class < routes->classes; r.class ++)
        if (a->messages(a, routes->torus, routes->representative[r.class], add_ruled, &r) != 0)
            return -1;
    return 0;
}

static int verify(const struct torus *t, const struct algorithm *a, const struct damage *damage,
                  bool by_rule, struct schedule_report *r, struct error *e)
{
    const struct damage *rates = damage != NULL && damage->rate != NULL ? damage : NULL;
    struct tally messages = {0};
    struct routes routes;

    if (routes_open_ends(&routes, t, a, e) != 0)
        return -1;
    *r = (struct schedule_report){
        .minimal = true,
        .one_port_kept = true,
        .bound = algorithm_bound(a, t),
    };
    int rc = by_rule ? ask(&routes, &messages, e) : follow(&routes, &messages, &r->minimal, e);
    if (rc == 0)
        rc = price(&routes, rates, by_rule, &messages, r, e);
    tally_free(&messages);
    routes_close(&routes);
    return rc;
}

int schedule_verify(const struct torus *t, const struct algorithm *a, struct schedule_report *r,
                    struct error *e)
{
    return schedule_verify_rated(t, a, algorithm_damage(a), r, e);
}

int schedule_verify_rated(const struct torus *t, const struct algorithm *a,
                          const struct damage *damage, struct schedule_report *r, struct error *e)
{
    if (algorithm_accepts(a, t, e) != 0)
        return -1;
    if (work_check(t, a, work_to_verify(t, a), WORK_MOST, e) != 0)
        return -1;
    return verify(t, a, damage, work_by_rule(t, a), r, e);
}

int schedule_count(const struct torus *t, const struct algorithm *a, struct schedule_report *r,
                   struct error *e)
{
    if (algorithm_accepts(a, t, e) != 0)
        return -1;
    if (a->messages == NULL || !torus_is_plain(t))
        return error_set(e, ERROR_REFUSED, "%s has no rule for its messages on this network",
                         a->name);
    return verify(t, a, algorithm_damage(a), true, r, e);
}

bool schedule_keeps_ports(const struct algorithm *a, const struct schedule_report *r)
{
    return r->contended_steps == 0 && (a->port_model != PORT_MODEL_ONE || r->one_port_kept) &&
           (!a->single_hops || r->hops == r->startups);
}
