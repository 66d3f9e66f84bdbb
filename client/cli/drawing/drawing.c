#include "client/cli/drawing/drawing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/terminal/arguments.h"
#include "daemon/lib/schedule/routes.h"
#include "daemon/lib/schedule/tally.h"

static int no_memory(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for the picture");
}

static size_t channel(const struct torus *t, uint32_t node, unsigned port)
{
    return (size_t)node * torus_ports(t) + port;
}

/* ---- Collecting the messages ----------------------------------------------------------------- */

/* Counts the combined messages of one node of each class. */
static int tally_classes(struct routes *r, struct tally *messages)
{
    while (routes_next(r)) {
        uint32_t here = r->source;
        for (uint32_t i = 0; i < r->legs; i++) {
            uint32_t class = r->class_of[here];
            struct leg moved = routes_moved_leg(r, &r->leg[i], here, r->representative[class]);
            if (i >= routes_new_legs(r) &&
                tally_add(messages, message_key(r->torus, class, &moved)) != 0)
                return -1;
            here = routes_leg_end(r, here, &r->leg[i]);
        }
    }
    return tally_sort(messages);
}

/* As tally_classes(), for the blocks of one source only, and with nodes instead of classes. The routes of the source
 * are those of its class, moved to it. */
static int tally_source(struct routes *r, uint32_t source, struct tally *messages)
{
    uint32_t class = r->class_of[source], first = r->representative[class];
    uint64_t count = (uint64_t)r->torus->nodes * r->algorithm->segments;

    for (uint64_t i = 0; i < count; i++) {
        uint32_t destination = (uint32_t)(i / r->algorithm->segments), here = first;
        if (destination == first)
            continue;
        routes_seek(r, class, destination, (uint32_t)(i % r->algorithm->segments));
        for (uint32_t leg = 0; leg < r->legs; leg++) {
            uint32_t start = routes_move(r, here, first, source);
            struct leg moved = routes_moved_leg(r, &r->leg[leg], here, start);
            if (leg >= routes_new_legs(r) &&
                tally_add(messages, message_key(r->torus, start, &moved)) != 0)
                return -1;
            here = routes_leg_end(r, here, &r->leg[leg]);
        }
    }
    return tally_sort(messages);
}

/* Whether a step is collected: all are if the whole torus is shown, else those that were chosen, as long as
 * there are not too many messages in the steps before. */
static bool is_collected(struct drawing *d, bool whole, uint32_t step, size_t before)
{
    if (whole)
        return true;
    if (step < d->first_chosen || step > d->last_chosen)
        return false;
    if (before > DRAWING_MOST_MESSAGES)
        d->left_out = true;
    return !d->left_out;
}

/* Counts the messages of all nodes that cross the part, and writes them to `messages` unless that is
 * NULL. */
static size_t count_members(struct drawing *d, const struct routes *r, const struct tally *classes,
                            struct drawn_message *messages)
{
    bool whole = drawing_part_is_whole(&d->layout.part, r->torus), collected = false;
    size_t count = 0;

    d->left_out = false;
    for (size_t i = 0; i < classes->count; i++) {
        uint32_t class = message_key_class(classes->at[i].key), first = r->representative[class];
        struct leg leg = message_key_leg(r->torus, classes->at[i].key);
        if (i == 0 || leg.step != message_key_step(classes->at[i - 1].key))
            collected = is_collected(d, whole, leg.step, count);
        if (!collected)
            continue;
        for (uint32_t start = first; start < r->torus->nodes; start++) {
            if (r->class_of[start] != class)
                continue;
            struct leg moved = routes_moved_leg(r, &leg, first, start);
            if (!whole && !drawing_part_is_crossed(&d->layout.part, r->torus, start, &moved))
                continue;
            if (messages != NULL)
                messages[count] = (struct drawn_message){
                    .leg = moved, .start = start, .segments = classes->at[i].count};
            count++;
        }
    }
    return count;
}

/* Derives the messages of all nodes from those of the classes. */
static int expand(struct drawing *d, const struct routes *r, const struct tally *classes)
{
    d->message = calloc(count_members(d, r, classes, NULL) + 1, sizeof *d->message);
    if (d->message == NULL)
        return -1;
    d->messages = count_members(d, r, classes, d->message);
    return 0;
}

static int compare_keys(const void *key, const void *entry)
{
    uint64_t a = *(const uint64_t *)key, b = ((const struct tally_entry *)entry)->key;
    return a < b ? -1 : a > b;
}

/* Reduces the messages to the blocks in the tally. */
static void restrict_to(struct drawing *d, const struct tally *source)
{
    for (size_t i = 0; i < d->messages; i++) {
        uint64_t key = message_key(d->torus, d->message[i].start, &d->message[i].leg);
        const struct tally_entry *found =
            source->count == 0
                ? NULL
                : bsearch(&key, source->at, source->count, sizeof *source->at, compare_keys);
        d->message[i].segments = found == NULL ? 0 : found->count;
    }
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 32;
}

/* Groups nodes that send the same messages, by the sum of the hashes of the messages. */
static int group_nodes(struct drawing *d)
{
    uint64_t *hash = calloc(d->torus->nodes, sizeof *hash), first[DRAWING_MOST_GROUPS];

    d->group = calloc(d->torus->nodes, sizeof *d->group);
    if (hash == NULL || d->group == NULL) {
        free(hash);
        return -1;
    }
    for (size_t i = 0; i < d->messages; i++)
        hash[d->message[i].start] +=
            mix(mix(0, message_key(d->torus, 0, &d->message[i].leg)), d->message[i].segments);
    for (uint32_t node = 0; node < d->torus->nodes; node++) {
        uint32_t group = 0;
        if (!drawing_part_has(&d->layout.part, d->torus, node))
            continue;
        while (group < d->groups && first[group] != hash[node])
            group++;
        if (group == DRAWING_MOST_GROUPS) {
            d->groups = 0;
            break;
        }
        if (group == d->groups)
            first[d->groups++] = hash[node];
        d->group[node] = group;
    }
    free(hash);
    return 0;
}

/* ---- Choosing from them ---------------------------------------------------------------------- */

/* "3" or "0-7". */
static int parse_steps(struct drawing *d, const struct tally *messages, struct error *e)
{
    char text[32];
    const char *steps = d->choice.steps, *dash;

    if (messages->count > 0)
        d->last_step = message_key_step(messages->at[messages->count - 1].key);
    d->last_chosen = d->last_step;
    if (steps == NULL)
        return 0;
    dash = strchr(steps, '-');
    if (messages->count == 0)
        return error_set(e, ERROR_USAGE, "--steps: the schedule has no steps");
    (void)snprintf(text, sizeof text, "%.*s",
                   (int)(dash == NULL ? sizeof text : (size_t)(dash - steps)), steps);
    if (strlen(steps) >= sizeof text ||
        parse_number(text, d->last_step, &d->first_chosen, NULL) != 0 ||
        parse_number(dash == NULL ? text : dash + 1, d->last_step, &d->last_chosen, NULL) != 0 ||
        d->first_chosen > d->last_chosen)
        return error_set(e, ERROR_USAGE,
                         "--steps: '%.40s' is not a step, or a range of steps such as 0-%" PRIu32
                         ", of this schedule; its steps are 0 to %" PRIu32,
                         steps, d->last_step, d->last_step);
    return 0;
}

static void choose_steps(struct drawing *d)
{
    size_t kept = 0;

    for (size_t i = 0; i < d->messages; i++)
        if (d->message[i].leg.step >= d->first_chosen && d->message[i].leg.step <= d->last_chosen)
            d->message[kept++] = d->message[i];
    d->messages = kept;
}

static int collect(struct drawing *d, struct error *e)
{
    struct routes routes;
    struct tally classes = {0}, source = {0};
    int rc;

    if (routes_open_ends(&routes, d->torus, d->algorithm, e) != 0)
        return -1;
    rc = tally_classes(&routes, &classes) == 0 ? 0 : no_memory(e);
    if (rc == 0)
        rc = parse_steps(d, &classes, e);
    if (rc == 0 && (expand(d, &routes, &classes) != 0 || group_nodes(d) != 0))
        rc = no_memory(e);
    if (rc == 0 && d->choice.source != TORUS_NO_NODE) {
        rc = tally_source(&routes, d->choice.source, &source) == 0 ? 0 : no_memory(e);
        if (rc == 0)
            restrict_to(d, &source);
    }
    tally_free(&classes);
    tally_free(&source);
    routes_close(&routes);
    return rc;
}

/* Replaces the messages by an arrow for each channel that carries anything. */
static int sum_load(struct drawing *d, struct error *e)
{
    const struct torus *t = d->torus;
    size_t channels = (size_t)t->nodes * torus_ports(t), count = 0;
    uint64_t *load = calloc(channels, sizeof *load);
    struct drawn_message *sums = calloc(channels, sizeof *sums);

    if (load == NULL || sums == NULL) {
        free(load);
        free(sums);
        return no_memory(e);
    }
    for (size_t i = 0; i < d->messages; i++) {
        const struct drawn_message *m = &d->message[i];
        unsigned port = torus_port(t, m->leg.dim, m->leg.direction);
        uint32_t node = m->start;
        for (uint16_t hop = 0; hop < m->leg.hops; hop++) {
            load[channel(t, node, port)] += m->segments;
            node = torus_neighbour(t, node, port);
        }
    }
    for (size_t i = 0; i < channels; i++) {
        unsigned port = (unsigned)(i % torus_ports(t));
        struct drawn_message sum = {.leg = {.hops = 1,
                                            .dim = (uint8_t)torus_port_dim(t, port),
                                            .direction = (int8_t)torus_port_direction(t, port)},
                                    .start = (uint32_t)(i / torus_ports(t)),
                                    .segments = load[i]};
        if (load[i] > 0 && drawing_part_is_crossed(&d->layout.part, t, sum.start, &sum.leg))
            sums[count++] = sum;
    }
    free(load);
    free(d->message);
    d->message = sums;
    d->messages = count;
    return 0;
}

static bool passes_node(const struct torus *t, const struct drawn_message *m, uint32_t node)
{
    uint32_t here = m->start;

    for (uint16_t hop = 0; hop < m->leg.hops && here != node; hop++)
        here = torus_neighbour(t, here, torus_port(t, m->leg.dim, m->leg.direction));
    return here == node;
}

/* Hides messages of which the part has nothing to show. */
static void choose_part(struct drawing *d)
{
    for (size_t i = 0; i < d->messages; i++)
        if (!drawing_part_shows(&d->layout.part, d->torus, d->message[i].start, &d->message[i].leg))
            d->message[i].segments = 0;
}

static void choose_node(struct drawing *d)
{
    for (size_t i = 0; i < d->messages && d->choice.node != TORUS_NO_NODE; i++)
        if (!passes_node(d->torus, &d->message[i], d->choice.node))
            d->message[i].segments = 0;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

uint32_t drawing_count_crossing(struct drawing *d, const struct drawn_step *step)
{
    const struct torus *t = d->torus;
    uint32_t most = 0;

    memset(d->crossing, 0, (size_t)t->nodes * torus_ports(t) * sizeof *d->crossing);
    for (size_t i = step->first; i < step->first + step->count; i++) {
        unsigned port = torus_port(t, d->message[i].leg.dim, d->message[i].leg.direction);
        uint32_t node = d->message[i].start;
        for (uint16_t hop = 0; hop < d->message[i].leg.hops; hop++) {
            uint32_t crossing = ++d->crossing[channel(t, node, port)];
            if (crossing > most && drawing_part_has(&d->layout.part, t, node))
                most = crossing;
            node = torus_neighbour(t, node, port);
        }
    }
    return most;
}

/* Gives a message of several hops the lowest lane that is free on all of its channels, and marks the lane in taken[],
 * by channel. Messages beyond MOST_LANES share the last lane. Returns the lane. */
static uint32_t assign_lane(const struct torus *t, struct drawn_message *m, uint64_t *taken)
{
    enum { MOST_LANES = 64 };
    unsigned port = torus_port(t, m->leg.dim, m->leg.direction);
    uint64_t here = 0;
    uint32_t node = m->start;

    for (uint16_t hop = 0; hop < m->leg.hops; hop++) {
        here |= taken[channel(t, node, port)];
        node = torus_neighbour(t, node, port);
    }
    while (m->lane < MOST_LANES - 1 && (here >> m->lane & 1) != 0)
        m->lane++;
    node = m->start;
    for (uint16_t hop = 0; hop < m->leg.hops; hop++) {
        taken[channel(t, node, port)] |= UINT64_C(1) << m->lane;
        node = torus_neighbour(t, node, port);
    }
    return m->lane;
}

static int find_lanes(struct drawing *d, struct error *e)
{
    size_t channels = (size_t)d->torus->nodes * torus_ports(d->torus);
    uint64_t *taken = calloc(channels, sizeof *taken);

    if (taken == NULL)
        return no_memory(e);
    for (struct drawn_step *s = d->step; s < d->step + d->steps; s++) {
        memset(taken, 0, channels * sizeof *taken);
        for (struct drawn_message *m = d->message + s->first; m < d->message + s->first + s->count;
             m++) {
            uint32_t lane =
                m->segments > 0 && m->leg.hops > 1 ? assign_lane(d->torus, m, taken) : 0;
            if (lane >= s->lanes)
                s->lanes = lane + 1;
        }
    }
    free(taken);
    return 0;
}

/* Returns the record of the step whose first message is at `first`. */
static struct drawn_step make_step(struct drawing *d, size_t first)
{
    struct drawn_step s = {.step = d->message[first].leg.step, .first = first};

    for (size_t i = first; i < d->messages && d->message[i].leg.step == s.step; i++) {
        uint64_t segments = d->message[i].segments;
        s.count++;
        if (segments == 0)
            continue;
        s.shown++;
        if (segments > s.most)
            s.most = segments;
        if (s.least == 0 || segments < s.least)
            s.least = segments;
    }
    if (!d->choice.load && s.shown > 0)
        s.crowd = drawing_count_crossing(d, &s);
    return s;
}

static int make_steps(struct drawing *d, struct error *e)
{
    size_t distinct = 1; /* never 0 bytes */

    for (size_t i = 1; i < d->messages; i++)
        distinct += d->message[i].leg.step != d->message[i - 1].leg.step;
    d->step = calloc(distinct, sizeof *d->step);
    d->crossing = calloc((size_t)d->torus->nodes * torus_ports(d->torus), sizeof *d->crossing);
    if (d->step == NULL || d->crossing == NULL)
        return no_memory(e);
    for (size_t i = 0; i < d->messages;) {
        struct drawn_step s = make_step(d, i);
        i += s.count;
        if (s.shown == 0)
            continue;
        d->step[d->steps++] = s;
        d->shown += s.shown;
        if (s.most > d->most)
            d->most = s.most;
    }
    return 0;
}

/* Leaves out the last steps if there are too many arrows. Refuses a step that alone has too many, and says
 * what can be drawn instead. */
static int limit_size(struct drawing *d, struct error *e)
{
    size_t arrows = 0;
    uint32_t fitting = 0;

    if (d->shown <= DRAWING_MOST_ARROWS)
        return 0;
    while ((arrows += d->step[fitting].shown) <= DRAWING_MOST_ARROWS)
        fitting++;
    if (fitting == 0)
        return error_set(e, ERROR_REFUSED,
                         "step %" PRIu32 " alone has %zu messages, too many for a picture (at most "
                         "%u); draw the blocks of one source with --source 0, the messages of one "
                         "node with --node 0, or the sum of all steps with --load",
                         d->step[0].step, d->step[0].shown, DRAWING_MOST_ARROWS);
    d->left_out = true;
    d->steps = fitting;
    d->shown = arrows - d->step[fitting].shown;
    return 0;
}

int drawing_make(struct drawing *d, const struct torus *t, const struct algorithm *a,
                 const struct drawing_choice *choice, struct error *e)
{
    *d = (struct drawing){.torus = t, .algorithm = a, .choice = *choice};
    const struct drawing_part part = drawing_part_choose(
        t, DRAWING_MOST_NODES, choice->node != TORUS_NO_NODE ? choice->node : choice->source);
    int rc = svg_layout_make(&d->layout, t, &part) == 0 ? 0 : no_memory(e);
    if (rc == 0)
        rc = collect(d, e);
    if (rc == 0)
        choose_steps(d);
    if (rc == 0 && choice->load)
        rc = sum_load(d, e);
    if (rc == 0) {
        choose_part(d);
        choose_node(d);
        rc = make_steps(d, e);
    }
    if (rc == 0)
        rc = limit_size(d, e);
    if (rc == 0)
        rc = find_lanes(d, e);
    if (rc != 0)
        drawing_free(d);
    return rc;
}

void drawing_free(struct drawing *d)
{
    svg_layout_free(&d->layout);
    free(d->message);
    free(d->step);
    free(d->group);
    free(d->crossing);
    *d = (struct drawing){0};
}
