#include "daemon/lib/schedule/verify.h"

#include <stdlib.h>

#include "daemon/lib/base/grow.h"
#include "daemon/lib/schedule/damage.h"
#include "daemon/lib/schedule/routes.h"
#include "daemon/lib/schedule/tally.h"
#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

#define MESSAGES_MOST (1u << 25) /* their tally takes 1 GiB at most */

/* The messages that start and end at a place: the last step in which one did (steps count from 1;
 * 0: none so far), and the time when the last one has left, and has arrived. */
struct turn {
    uint32_t started, ended;
    double sent, received;
};

/* Channels with consecutive numbers; a message crosses each of them so many times. */
struct stretch {
    uint32_t first, count, times;
};

/* A combined message from node `start` to node `end`, on stretches of the line that begins with channel `line`. */
struct message {
    struct leg leg;
    uint32_t start, end;
    uint64_t blocks;
    double time; /* when it starts */
    size_t stretch;
    uint32_t stretches, line;
};

/* The schedule as it runs. Translations move channels, so one place stands for all nodes of a
 * class. XORs do not move the channels, and channels of different rates cannot stand for others: then each
 * node is a place.
 *
 * Channels are numbered so that the channels that a message crosses follow each other: by port, then
 * by lines of places, then along the line. A step costs a few additions and comparisons for each
 * channel of each message, which take most of the time: so each figure has an array of its own. */
struct run {
    const struct routes *routes;
    const struct damage *rates; /* NULL: all channels have the full rate */
    uint32_t places;
    /* Places along a line of a dimension, and how far apart their numbers are. */
    uint32_t span[TORUS_MAX_DIMS], stride[TORUS_MAX_DIMS];
    bool is_each_a_place;
    uint32_t *next; /* if so: node -> the next node of its class, or TORUS_NO_NODE */
    bool by_rule;   /* no route has been followed */

    /* By channel. `start` and `load` are those of the step of its line. */
    double *free;     /* time when it has carried all messages of earlier steps */
    double *start;    /* time when it begins to carry the messages of the step; 0: it has none */
    double *load;     /* time that it takes for their blocks */
    double *total;    /* time for the blocks of all earlier steps */
    double *slowness; /* time for a block; if all have the full rate: of any line */
    uint32_t *
        step; /* by the first channel of a line: the last step with messages there, as in struct turn */

    struct turn *turn;        /* by place */
    bool has_few_ports;       /* the algorithm limits the messages of a node at a time */
    struct message *messages; /* of the current step */
    size_t count, room;
    struct stretch *stretch; /* of these messages */
    size_t stretches, stretch_room;
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
    if (messages->sorted > MESSAGES_MOST)
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

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* A channel's number, and that of the first one of its line. */
struct position {
    uint32_t channel, line;
};

static struct position position_of(const struct run *run, uint32_t node, unsigned dim,
                                   unsigned port)
{
    const uint32_t span = run->span[dim], stride = run->stride[dim], at = place(run, node);
    const uint32_t along = at / stride; /* of the dimensions up to this one */
    const uint32_t line = port * run->places + (along / span * stride + at % stride) * span;

    return (struct position){.channel = line + along % span, .line = line};
}

static inline int add_stretch(struct run *run, struct message *m, struct stretch stretch)
{
    if (stretch.count == 0 || stretch.times == 0)
        return 0;
    if (GROW(run->stretch, run->stretches, run->stretch_room) != 0)
        return -1;
    run->stretch[run->stretches++] = stretch;
    m->stretches++;
    return 0;
}

/* In a graph, a path's channels are anywhere on the line. */
static int add_hops(struct run *run, struct message *m, unsigned port)
{
    uint32_t node = m->start;

    for (uint32_t i = 0; i < m->leg.hops; i++) {
        const struct position at = position_of(run, node, m->leg.dim, port);
        if (add_stretch(run, m, (struct stretch){at.channel, 1, 1}) != 0)
            return -1;
        node = routes_neighbour(run->routes, node, port);
    }
    return 0;
}

/* Finds the channels of a message. A line of places is a circle: places repeat where classes do. */
static int find_channels(struct run *run, struct message *m)
{
    const struct torus *t = run->routes->torus;
    const unsigned dim = m->leg.dim, port = torus_port(t, dim, m->leg.direction);
    const struct position at = position_of(run, m->start, dim, port);
    const uint32_t span = run->span[dim], end = at.line + span;
    uint32_t circles = 0, hops = m->leg.hops;

    m->stretch = run->stretches;
    m->line = at.line;
    if (t->graph[dim] != NULL)
        return add_hops(run, m, port);
    if (hops >= span) {
        circles = hops / span;
        hops %= span;
    }
    /* The remaining hops, fewer than a circle, cross the channels from `lowest` to the end of the line, then those at
     * its beginning. */
    uint32_t lowest = at.channel;
    if (m->leg.direction < 0)
        lowest = lowest + 1 >= at.line + hops ? lowest + 1 - hops : lowest + 1 + span - hops;
    const uint32_t straight = hops <= end - lowest ? hops : end - lowest;
    return add_stretch(run, m, (struct stretch){at.line, span, circles}) |
           add_stretch(run, m, (struct stretch){lowest, straight, 1}) |
           add_stretch(run, m, (struct stretch){at.line, hops - straight, 1});
}

/* Ends the last step that had messages on the channels of a message's line, if it is not the current one. */
static void renew_line(const struct run *run, const struct message *m)
{
    const uint32_t span = run->span[m->leg.dim];
    double *free = &run->free[m->line], *total = &run->total[m->line];
    double *start = &run->start[m->line], *load = &run->load[m->line];

    if (run->step[m->line] == m->leg.step + 1)
        return;
    run->step[m->line] = m->leg.step + 1;
    for (uint32_t i = 0; i < span; i++) {
        free[i] = later(free[i], start[i] + load[i]);
        total[i] += load[i];
        start[i] = load[i] = 0;
    }
}

/* A message starts when its first node has received what it needs and all its channels are free;
 * with few ports also when both its ends have finished their messages of earlier steps. */
static void start_message(const struct run *run, struct message *m)
{
    const struct turn *from = &run->turn[place(run, m->start)];
    double time = from->received;

    if (run->has_few_ports)
        time = later(time, later(from->sent, run->turn[place(run, m->end)].received));
    renew_line(run, m);
    for (uint32_t k = 0; k < m->stretches; k++) {
        const struct stretch s = run->stretch[m->stretch + k];
        const double *free = &run->free[s.first];
#pragma omp simd reduction(max : time)
        for (uint32_t i = 0; i < s.count; i++)
            time = later(time, free[i]);
    }
    m->time = time;
}

/* Adds the message to its channels. A channel starts when all messages that share it in this step can
 * start. Returns whether another message shares one, or this one crosses one twice. */
static bool load_channels(const struct run *run, const struct message *m)
{
    const double time = m->time;
    bool shared = false;

    for (uint32_t k = 0; k < m->stretches; k++) {
        const struct stretch s = run->stretch[m->stretch + k];
        const double blocks = (double)(s.times * m->blocks);
        const double *slowness = run->rates != NULL ? &run->slowness[s.first] : run->slowness;
        double *start = &run->start[s.first], *load = &run->load[s.first], before = 0;
#pragma omp simd reduction(max : before)
        for (uint32_t i = 0; i < s.count; i++) {
            before = later(before, load[i]);
            start[i] = later(start[i], time);
            load[i] += blocks * slowness[i];
        }
        shared |= before > 0 || s.times > 1;
    }
    return shared;
}

/* Notes that a message starts at its first node and ends at its last one, at the time `end`. Returns one
 * of the two nodes if another message of the step has started, or ended, there; otherwise
 * TORUS_NO_NODE. */
static uint32_t take_turn(const struct run *run, const struct message *m, double end)
{
    struct turn *from = &run->turn[place(run, m->start)];
    struct turn *to = &run->turn[place(run, m->end)];
    uint32_t step = m->leg.step + 1;
    uint32_t crowded = from->started == step ? m->start
                       : to->ended == step   ? m->end
                                             : TORUS_NO_NODE;

    from->started = to->ended = step;
    from->sent = later(from->sent, end);
    to->received = later(to->received, end);
    return crowded;
}

/* The message arrives when the last of its channels has carried the step's load. Raises *most to the
 * loads of its channels. Returns what take_turn() returns. */
static uint32_t finish_message(const struct run *run, const struct message *m, double *most)
{
    double end = 0, highest = *most;

    for (uint32_t k = 0; k < m->stretches; k++) {
        const struct stretch s = run->stretch[m->stretch + k];
        const double *start = &run->start[s.first], *load = &run->load[s.first];
#pragma omp simd reduction(max : end, highest)
        for (uint32_t i = 0; i < s.count; i++) {
            end = later(end, start[i] + load[i]);
            highest = later(highest, load[i]);
        }
    }
    *most = highest;
    return take_turn(run, m, end);
}

static int add_message(struct run *run, struct message m)
{
    if (GROW(run->messages, run->count, run->room) != 0 || find_channels(run, &m) != 0)
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
         start = run->is_each_a_place ? run->next[start] : TORUS_NO_NODE) {
        const struct leg moved = routes_moved_leg(r, &leg, first, start);
        if (add_message(run, (struct message){.leg = moved,
                                              .start = start,
                                              .end = routes_leg_end(r, start, &moved),
                                              .blocks = entry->count}) != 0)
            return -1;
    }
    return 0;
}

/* Starts and ends the messages of a step, and adds the step's costs to the report. */
static void run_step(struct run *run, struct schedule_report *r)
{
    uint32_t hops = 0;
    bool contended = false;
    double load = 0;

    for (size_t i = 0; i < run->count; i++) {
        watch_count(&run->started, 0);
        start_message(run, &run->messages[i]);
        hops = run->messages[i].leg.hops > hops ? run->messages[i].leg.hops : hops;
        run->block_hops += run->messages[i].blocks * run->messages[i].leg.hops;
    }
    for (size_t i = 0; i < run->count; i++)
        contended |= load_channels(run, &run->messages[i]);
    for (size_t i = 0; i < run->count; i++) {
        uint32_t crowded = finish_message(run, &run->messages[i], &load);
        if (crowded != TORUS_NO_NODE && r->one_port_kept) {
            r->one_port_kept = false;
            r->crowded_step = run->messages[i].leg.step;
            r->crowded_node = crowded;
        }
    }
    r->startups++;
    r->transmission += load;
    r->hops += hops;
    r->contended_steps += contended;
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

        run->count = run->stretches = 0;
        for (; i < messages->count && message_key_step(messages->at[i].key) == step; i++)
            if (add_messages(run, &messages->at[i]) != 0)
                return -1;
        run_step(run, r);
    }
    for (uint32_t i = 0; i < run->places; i++)
        r->critical_path = later(r->critical_path, run->turn[i].received);
    for (size_t i = 0; i < (size_t)run->places * torus_ports(run->routes->torus); i++)
        r->busiest = later(r->busiest, run->total[i] + run->load[i]);
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

/* Makes the arrays of channels. Returns 0, or -1 without memory. */
static int make_channels(struct run *run)
{
    const struct torus *t = run->routes->torus;
    const size_t count = (size_t)run->places * torus_ports(t);

    run->free = calloc(5 * count + 1, sizeof *run->free); /* never 0 bytes */
    run->step = calloc(count + 1, sizeof *run->step);
    if (run->free == NULL || run->step == NULL)
        return -1;
    run->start = run->free + count;
    run->load = run->start + count;
    run->total = run->load + count;
    run->slowness = run->total + count;
    for (size_t i = 0; i < count; i++)
        run->slowness[i] = 1;
    for (uint32_t node = 0; run->rates != NULL && node < t->nodes; node++)
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (routes_neighbour(run->routes, node, port) != TORUS_NO_NODE)
                run->slowness[position_of(run, node, torus_port_dim(t, port), port).channel] =
                    (double)DAMAGE_FULL_RATE / damage_rate(run->rates, node, port);
    return 0;
}

/* Runs the schedule whose messages these are. Returns 0 with its costs in *r, or -1 with *e (no
 * memory). */
static int price(const struct routes *routes, const struct damage *rates, bool by_rule,
                 struct tally *messages, struct schedule_report *r, struct error *e)
{
    const struct torus *t = routes->torus;
    const bool each = routes->by_xor || rates != NULL || by_rule;
    struct run run = {
        .routes = routes,
        .rates = rates,
        .is_each_a_place = each,
        .next = each ? list_classes(routes) : NULL,
        .by_rule = by_rule,
        .places = 1,
        .has_few_ports =
            routes->algorithm->port_model == PORT_MODEL_ONE || routes->algorithm->ports > 0,
    };

    for (unsigned i = t->dims; i-- > 0;) {
        run.span[i] = each ? t->size[i] : routes->period[i];
        run.stride[i] = run.places;
        run.places *= run.span[i];
    }
    run.turn = calloc(run.places, sizeof *run.turn);
    int rc = tally_sort(messages) == 0 && make_channels(&run) == 0 && run.turn != NULL &&
                     (run.next != NULL || !each)
                 ? run_schedule(&run, messages, r)
                 : -1;
    free(run.next);
    free(run.free);
    free(run.step);
    free(run.turn);
    free(run.messages);
    free(run.stretch);
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
