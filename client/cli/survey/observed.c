#include "client/cli/survey/observed.h"

#include <stdlib.h>
#include <string.h>

#include "proto/error.h"
#include "proto/text.h"

/* --- the ends of links --- */

#define BYTES_OF_MBIT 125000.0
/* Slower rates are those of heartbeats, and say nothing about the links: a torus at rest is not full. */
#define FASTEST_FROM (10 * BYTES_OF_MBIT)

/* Returns the seconds between two answers of a node by its own clock, or 0 if they cannot be compared: one of them is
 * missing, or the daemon has been restarted. `before` may be empty. */
static double link_ends_elapsed(const struct all_nodes *now, const struct all_nodes *before,
                                uint32_t rank)
{
    if (before->state == NULL || !all_nodes_answered(now, rank) ||
        !all_nodes_answered(before, rank))
        return 0;
    const struct torus_status *s = now->state->nodes[rank]->status,
                              *old = before->state->nodes[rank]->status;
    if (s->pid != old->pid || s->uptime_ms <= old->uptime_ms)
        return 0;
    return (double)(s->uptime_ms - old->uptime_ms) / 1000;
}

static double rate_of(uint64_t now, uint64_t before, double elapsed)
{
    return now >= before ? (double)(now - before) / elapsed : -1;
}

static void set_rates(struct link_end *e, const struct torus_link *old, double elapsed)
{
    const struct torus_link *l = e->link;

    if (old == NULL || elapsed <= 0 || l->state != TORUS_LINK_UP || old->state != TORUS_LINK_UP ||
        l->connects != old->connects)
        return;
    e->sent = rate_of(l->tx_bytes, old->tx_bytes, elapsed);
    e->received = rate_of(l->rx_bytes, old->rx_bytes, elapsed);
    e->resent = rate_of(l->retransmits, old->retransmits, elapsed);
}

/* Fills the ends of a node, by port. `before` are its ends in the survey before, whose links are still valid; NULL:
 * there was none. Rates are not known if `elapsed` is 0, or if the link was not up all the time, because counters begin
 * again with each connection. */
static void link_ends_fill(struct link_end *ends, const struct all_nodes *now, uint32_t rank,
                           const struct link_end *before, double elapsed)
{
    const struct torus_links *links = now->state->nodes[rank]->links;
    const unsigned ports = torus_ports(&now->torus);

    for (unsigned port = 0; port < ports; port++)
        ends[port] = (struct link_end){.sent = -1, .received = -1, .resent = -1};
    for (size_t i = 0; links != NULL && i < links->count; i++) {
        const struct torus_link *l = links->link[i];
        if (l->port >= ports || torus_neighbour(&now->torus, rank, l->port) == TORUS_NO_NODE)
            continue; /* the node says something impossible */
        ends[l->port].link = l;
        if (before != NULL)
            set_rates(&ends[l->port], before[l->port].link, elapsed);
    }
}

/* Updates *c from a survey, and from the rates of all ends, by rank and port. */
static void link_capacity_update(struct link_capacity *c, const struct all_nodes *now,
                                 const struct link_end *ends)
{
    const unsigned ports = torus_ports(&now->torus);
    double mbit = 0;

    for (uint32_t rank = 0; rank < now->torus.nodes; rank++) {
        const struct torus_status *s = now->state->nodes[rank]->status;
        if (s != NULL && s->link_mbit > mbit)
            mbit = s->link_mbit;
        for (unsigned port = 0; port < ports; port++) {
            const struct link_end *e = &ends[(size_t)rank * ports + port];
            const double rate = e->sent > e->received ? e->sent : e->received;
            c->fastest = rate > c->fastest ? rate : c->fastest;
        }
    }
    c->nominal = mbit > 0;
    c->value = c->nominal ? mbit * BYTES_OF_MBIT : c->fastest >= FASTEST_FROM ? c->fastest : 0;
}

/* --- what runs --- */

#define SMOOTH 0.5 /* weight of the last interval in a rate */

static bool is_same(const char *id, const char *other)
{
    return strncmp(id, other, RUN_ID_SIZE - 1) == 0;
}

static const struct torus_activity *find_exchange(const struct torus_status *s, const char *id)
{
    for (size_t i = 0; s != NULL && i < s->exchange_count; i++)
        if (is_same(s->exchanges[i]->id, id))
            return s->exchanges[i];
    return NULL;
}

static const struct torus_group_info *find_group(const struct torus_status *s, const char *name)
{
    for (size_t i = 0; s != NULL && i < s->group_count; i++)
        if (is_same(s->groups[i]->name, name))
            return s->groups[i];
    return NULL;
}

static const struct torus_copy_activity *find_copy(const struct torus_status *s, const char *id)
{
    for (size_t i = 0; s != NULL && i < s->copy_count; i++)
        if (is_same(s->copies[i]->id, id))
            return s->copies[i];
    return NULL;
}

static const struct torus_status *status_of(const struct all_nodes *c, uint32_t rank)
{
    return c->state != NULL && rank < c->state->count ? c->state->nodes[rank]->status : NULL;
}

const struct torus_activity *run_exchange_at(const struct run *r, const struct all_nodes *c,
                                             uint32_t rank)
{
    return r->kind == RUN_EXCHANGE ? find_exchange(status_of(c, rank), r->id) : NULL;
}

const struct torus_group_info *run_group_at(const struct run *r, const struct all_nodes *c,
                                            uint32_t rank)
{
    return r->kind == RUN_GROUP ? find_group(status_of(c, rank), r->id) : NULL;
}

const struct torus_copy_activity *run_copy_at(const struct run *r, const struct all_nodes *c,
                                              uint32_t rank)
{
    return r->kind == RUN_COPY ? find_copy(status_of(c, rank), r->id) : NULL;
}

static struct run *find(struct runs *runs, enum run_kind kind, const char *id)
{
    for (size_t i = 0; i < runs->count; i++)
        if (runs->run[i].kind == kind && is_same(runs->run[i].id, id))
            return &runs->run[i];
    return NULL;
}

/* Whether no node before this one knows the run. */
static bool is_first(const struct run *r, const struct all_nodes *now, uint32_t rank)
{
    for (uint32_t i = 0; i < rank; i++)
        if (run_exchange_at(r, now, i) != NULL || run_group_at(r, now, i) != NULL ||
            run_copy_at(r, now, i) != NULL)
            return false;
    return true;
}

/* The run that a node tells, added if it is new; NULL if there are too many. */
static struct run *entry(struct runs *runs, enum run_kind kind, const char *id,
                         const struct all_nodes *now, uint32_t rank)
{
    struct run *r = find(runs, kind, id);

    if (r != NULL)
        return r;
    struct run new = {.kind = kind,
                      .what = "",
                      .root = TORUS_RANK_NONE,
                      .rate = -1,
                      .part = -1,
                      .left = -1,
                      .first_part = -1,
                      .reason = "",
                      .call_rate = -1,
                      .missing = "",
                      .avoids = "",
                      .waits_for = ""};
    (void)snprintf(new.id, sizeof new.id, "%s", id);
    if (runs->count == RUNS_MOST) {
        runs->left_out += is_first(&new, now, rank);
        return NULL;
    }
    r = &runs->run[runs->count++];
    *r = new;
    return r;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void add_rate(double *rate, uint64_t now, uint64_t before, double elapsed)
{
    if (elapsed > 0 && now >= before)
        *rate = (*rate > 0 ? *rate : 0) + (double)(now - before) / elapsed;
}

static void add_exchange(struct run *r, const struct torus_activity *x,
                         const struct torus_activity *before, double elapsed)
{
    if (r->nodes++ == 0 || x->round < r->round)
        r->round = x->round;
    r->states[(unsigned)x->state < RUN_STATES ? x->state : TORUS_STATE_UNKNOWN]++;
    r->what = x->algorithm;
    r->root = x->coordinator;
    r->age_ms = x->age_ms > r->age_ms ? x->age_ms : r->age_ms;
    r->rounds = x->rounds > r->rounds ? x->rounds : r->rounds;
    r->done = sum(r->done, x->done_bytes);
    r->total = sum(r->total, x->total_bytes);
    if (x->reason[0] != '\0')
        r->reason = x->reason;
    if (before != NULL)
        add_rate(&r->rate, x->done_bytes, before->done_bytes, elapsed);
}

static void add_group(struct run *r, const struct torus_group_info *g,
                      const struct torus_group_info *before, double elapsed)
{
    double calls = -1;

    if (r->nodes++ == 0 || g->calls_done < r->calls_done)
        r->calls_done = g->calls_done;
    r->what = g->name;
    r->calls = g->calls > r->calls ? g->calls : r->calls;
    r->done = sum(r->done, g->bytes_received);
    r->open += g->open;
    if (r->missing[0] == '\0') /* the first node knows most */
        r->missing = g->missing;
    if (g->avoids[0] != '\0')
        r->avoids = g->avoids;
    if (before == NULL || strcmp(before->id, g->id) != 0)
        return;
    add_rate(&r->rate, g->bytes_received, before->bytes_received, elapsed);
    add_rate(&calls, g->calls_done, before->calls_done, elapsed);
    r->call_rate = calls > r->call_rate ? calls : r->call_rate;
}

/* The node that was asked for a copy knows about all of it; another one counts only if that node does not answer. */
static void add_copy(struct run *r, const struct torus_copy_activity *x, uint32_t rank,
                     const struct torus_copy_activity *before, double elapsed)
{
    if (r->nodes++ > 0 && x->asker != rank)
        return;
    r->what = x->target;
    r->root = x->asker;
    r->phase = x->phase;
    r->done = x->bytes;
    r->total = x->bytes_of;
    r->waits_for = x->waits_for;
    r->rate = -1;
    if (before != NULL)
        add_rate(&r->rate, x->bytes, before->bytes, elapsed);
}

static bool is_over(const struct torus_activity *x)
{
    return x->state >= TORUS_STATE_FINISHED;
}

/* Adds the exchanges of a node that are under way, or that have ended. Those that have ended at some nodes only are
 * found again, and added to those that are under way. */
static void add_exchanges(struct runs *runs, const struct all_nodes *now, uint32_t rank,
                          const struct torus_status *before, double elapsed, bool ended)
{
    const struct torus_status *s = status_of(now, rank);

    for (size_t i = 0; s != NULL && i < s->exchange_count; i++) {
        const struct torus_activity *x = s->exchanges[i];
        struct run *r = is_over(x) == ended ? entry(runs, RUN_EXCHANGE, x->id, now, rank) : NULL;
        if (r != NULL)
            add_exchange(r, x, find_exchange(before, x->id), elapsed);
    }
}

/* Adds the groups and copies of a node; a node tells only those that are under way. */
static void add_others(struct runs *runs, const struct all_nodes *now, uint32_t rank,
                       const struct torus_status *before, double elapsed)
{
    const struct torus_status *s = status_of(now, rank);

    for (size_t i = 0; s != NULL && i < s->group_count; i++) {
        const struct torus_group_info *g = s->groups[i];
        struct run *r = entry(runs, RUN_GROUP, g->name, now, rank);
        if (r != NULL)
            add_group(r, g, find_group(before, g->name), elapsed);
    }
    for (size_t i = 0; s != NULL && i < s->copy_count; i++) {
        const struct torus_copy_activity *x = s->copies[i];
        struct run *r = entry(runs, RUN_COPY, x->id, now, rank);
        if (r != NULL)
            add_copy(r, x, rank, find_copy(before, x->id), elapsed);
    }
}

static double part_of(const struct run *r)
{
    if (r->kind == RUN_GROUP)
        return -1;
    if (r->total > 0)
        return r->done >= r->total ? 1 : (double)r->done / (double)r->total;
    if (r->rounds > 1) /* files: their bytes are not known */
        return r->round >= r->rounds ? 1 : (double)r->round / (double)r->rounds;
    return -1;
}

/* Sets what follows from the sums, and from what was known before. */
static void conclude(struct run *r, const struct run *old, double seconds)
{
    r->part = part_of(r);
    if (old != NULL && old->rate >= 0 && !r->ended)
        r->rate = r->rate < 0 ? old->rate : SMOOTH * r->rate + (1 - SMOOTH) * old->rate;
    const bool known = old != NULL && old->first_part >= 0 && r->part >= old->first_part;
    r->first_part = known ? old->first_part : r->part;
    r->first_seconds = known ? old->first_seconds : seconds;
    if (r->ended || r->part < 0)
        return;
    if (r->total > 0 && r->rate > 0)
        r->left = (1 - r->part) * (double)r->total / r->rate;
    else if (r->total == 0 && r->part > r->first_part)
        r->left = (1 - r->part) / (r->part - r->first_part) * (seconds - r->first_seconds);
}

/* Fills *runs from the survey `now`, and rates from `before` (`state` may be NULL). `elapsed[rank]` are the seconds
 * between both, by the clock of each node; 0 or less: not known. `*runs` has what it was filled with before, or zeros.
 * `seconds` is a steady clock. */
static void runs_fill(struct runs *runs, const struct all_nodes *now,
                      const struct all_nodes *before, const double *elapsed, double seconds)
{
    static struct runs old; /* large, and there is one view of a torus at a time */
    old = *runs;

    *runs = (struct runs){0};
    for (uint32_t rank = 0; rank < now->torus.nodes; rank++) {
        add_exchanges(runs, now, rank, status_of(before, rank), elapsed[rank], false);
        add_others(runs, now, rank, status_of(before, rank), elapsed[rank]);
    }
    const size_t under_way = runs->count;
    for (uint32_t rank = 0; rank < now->torus.nodes; rank++)
        add_exchanges(runs, now, rank, status_of(before, rank), elapsed[rank], true);
    for (size_t i = 0; i < runs->count; i++) {
        struct run *r = &runs->run[i];
        r->ended = i >= under_way;
        conclude(r, find(&old, r->kind, r->id), seconds);
    }
}

const char *run_kind_name(enum run_kind kind)
{
    static const char *const names[] = {
        [RUN_EXCHANGE] = "exchange", [RUN_GROUP] = "group", [RUN_COPY] = "copy"};

    return names[kind];
}

/* "running", or "running 12, done 4" if the nodes are in different states. */
static void exchange_state(const struct run *r, char *out, size_t size)
{
    size_t used = 0;
    unsigned kinds = 0;

    for (unsigned i = 0; i < RUN_STATES; i++)
        kinds += r->states[i] > 0;
    for (unsigned i = 0; i < RUN_STATES; i++) {
        if (r->states[i] == 0 || used >= size)
            continue;
        const char *name = torus_state_name((enum torus_state)i);
        int n = kinds == 1 ? snprintf(out, size, "%s", name)
                           : snprintf(out + used, size - used, "%s%s %u", used > 0 ? ", " : "",
                                      name, r->states[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

const char *run_state(const struct run *r, char *out, size_t size)
{
    out[0] = '\0';
    switch (r->kind) {
    case RUN_EXCHANGE:
        exchange_state(r, out, size);
        break;
    case RUN_GROUP:
        (void)snprintf(out, size, r->open < r->nodes ? "being opened" : "open");
        break;
    case RUN_COPY:
        (void)snprintf(out, size, "%s", torus_copy_phase_name(r->phase));
        break;
    }
    return out;
}

bool run_has_failed(const struct run *r)
{
    return r->states[TORUS_STATE_FAILED] > 0 || r->states[TORUS_STATE_IN_DOUBT] > 0 ||
           r->states[TORUS_STATE_FAILING] > 0;
}

bool run_was_cancelled(const struct run *r)
{
    return r->reason != NULL && strcmp(r->reason, ERROR_TEXT_CANCELLED) == 0;
}

const char *run_reason(const struct run *r, char *out, size_t size)
{
    if (r->missing[0] != '\0')
        (void)snprintf(out, size, "waits for programs on %s %s",
                       strchr(r->missing, ',') != NULL ? "nodes" : "node", r->missing);
    else if (r->avoids[0] != '\0')
        (void)snprintf(out, size, "avoids %s", r->avoids);
    else if (r->waits_for[0] != '\0')
        (void)snprintf(out, size, "waits for %s", r->waits_for);
    else
        (void)snprintf(out, size, "%s", r->reason);
    text_clean(out);
    return out;
}

void observed_free(struct observed *o)
{
    free(o->ends);
    free(o->faults);
    all_nodes_free(&o->now);
    *o = (struct observed){0};
}

bool observed_is_new(const struct observed *o, const struct all_nodes *survey)
{
    return o->now.state == NULL || !torus_equal(&o->now.torus, &survey->torus);
}

static bool is_reachable(const struct observed *o, uint32_t rank)
{
    return o->now.state->nodes[rank]->outcome != TORUS_SURVEY_UNREACHABLE;
}

static void add(struct observed *o, struct fault fault)
{
    o->faults[o->fault_count++] = fault;
}

static void find_faults_of(struct observed *o, uint32_t rank)
{
    const struct torus *t = &o->now.torus;
    const struct torus_status *s = o->now.state->nodes[rank]->status;

    for (size_t i = 0; s != NULL && i < s->link_fault_count; i++)
        if (s->link_faults[i]->port < o->ports)
            add(o, (struct fault){FAULT_CABLE, rank, s->link_faults[i]->port,
                                  s->link_faults[i]->text});
    for (unsigned port = 0; port < o->ports; port++) {
        const struct observed_link l = observed_link(o, rank, port);
        if (l.state == LINK_NONE || !torus_port_dials(t, rank, port))
            continue;
        o->links++;
        o->links_up += l.state == LINK_UP;
        if (l.state == LINK_DOWN && is_reachable(o, rank) && is_reachable(o, l.neighbour))
            add(o, (struct fault){.kind = FAULT_LINK, .node = rank, .port = port});
    }
}

/* Counts nodes and links, and lists faults: each link once, and none of a node that is down. */
static void find_faults(struct observed *o)
{
    for (uint32_t rank = 0; rank < o->now.torus.nodes; rank++) {
        if (all_nodes_answered(&o->now, rank))
            o->answered++;
        else
            add(o, (struct fault){.kind = FAULT_NODE, .node = rank});
    }
    for (uint32_t rank = 0; rank < o->now.torus.nodes; rank++)
        find_faults_of(o, rank);
}

static size_t most_faults(const struct observed *o)
{
    size_t n = o->now.torus.nodes * (1 + (size_t)o->ports);

    for (uint32_t rank = 0; rank < o->now.torus.nodes; rank++)
        if (o->now.state->nodes[rank]->status != NULL)
            n += o->now.state->nodes[rank]->status->link_fault_count;
    return n;
}

/* Fills what follows from o->now and from the observation before. Returns 0, or -1 if memory is short. */
static int fill(struct observed *o, const struct observed *before, double longest_gap,
                double seconds)
{
    const uint32_t nodes = o->now.torus.nodes;
    double *elapsed = calloc(nodes, sizeof *elapsed);

    o->ends = calloc((size_t)nodes * o->ports + 1, sizeof *o->ends);
    o->faults = calloc(most_faults(o), sizeof *o->faults);
    if (elapsed == NULL || o->ends == NULL || o->faults == NULL) {
        free(elapsed);
        return -1;
    }
    for (uint32_t rank = 0; rank < nodes; rank++) {
        const size_t first = (size_t)rank * o->ports;
        elapsed[rank] = link_ends_elapsed(&o->now, &before->now, rank);
        if (longest_gap > 0 && elapsed[rank] > longest_gap)
            elapsed[rank] = 0;
        link_ends_fill(&o->ends[first], &o->now, rank,
                       before->ends != NULL ? &before->ends[first] : NULL, elapsed[rank]);
    }
    link_capacity_update(&o->capacity, &o->now, o->ends);
    find_faults(o);
    runs_fill(&o->runs, &o->now, &before->now, elapsed, seconds);
    free(elapsed);
    return 0;
}

int observed_take(struct observed *o, struct all_nodes *survey, double longest_gap, double seconds)
{
    if (observed_is_new(o, survey))
        observed_free(o);
    struct observed before = *o;

    *o = (struct observed){.now = *survey,
                           .ports = torus_ports(&survey->torus),
                           .capacity = before.capacity,
                           .runs = before.runs};
    *survey = (struct all_nodes){0};
    const int result = fill(o, &before, longest_gap, seconds);
    observed_free(&before);
    if (result != 0)
        observed_free(o);
    return result;
}

const struct link_end *observed_end(const struct observed *o, uint32_t rank, unsigned port)
{
    return &o->ends[(size_t)rank * o->ports + port];
}

/* The load of a direction, from what its two ends have counted. */
static double load_of(const struct observed *o, double sent, double received)
{
    const double rate = sent > received ? sent : received;

    return rate < 0 ? -1 : o->capacity.value > 0 ? rate / o->capacity.value : 0;
}

struct observed_link observed_link(const struct observed *o, uint32_t rank, unsigned port)
{
    const struct torus *t = &o->now.torus;
    struct observed_link l = {.neighbour = TORUS_NO_NODE, .away = -1, .towards = -1};

    if (rank < t->nodes && port < o->ports)
        l.neighbour = torus_neighbour(t, rank, port);
    if (l.neighbour == TORUS_NO_NODE)
        return l;
    l.port_there = torus_port_opposite(t, port);
    l.here = observed_end(o, rank, port);
    l.there = observed_end(o, l.neighbour, l.port_there);
    const struct torus_link *a = l.here->link, *b = l.there->link;
    if (a == NULL && b == NULL)
        l.state = LINK_UNKNOWN;
    else if ((a != NULL && a->state != TORUS_LINK_UP) || (b != NULL && b->state != TORUS_LINK_UP))
        l.state = LINK_DOWN;
    else
        l.state = LINK_UP;
    l.away = load_of(o, l.here->sent, l.there->received);
    l.towards = load_of(o, l.there->sent, l.here->received);
    return l;
}

double observed_load(const struct observed_link *l)
{
    return l->away > l->towards ? l->away : l->towards;
}

static const char *reason_at(const struct link_end *e)
{
    if (e->link == NULL || e->link->state == TORUS_LINK_UP)
        return "";
    return e->link->reason[0] != '\0' ? e->link->reason : torus_link_state_name(e->link->state);
}

const char *observed_reason(const struct observed_link *l)
{
    const char *reason = reason_at(l->here);

    return reason[0] != '\0' ? reason : reason_at(l->there);
}
