#include "client/cli/top/runs.h"

#include <stdlib.h>
#include <string.h>

#define SMOOTH 0.5 /* weight of the last interval in a rate */

static const struct torus_activity *find_exchange(const struct torus_status *s, const char *id)
{
    for (size_t i = 0; s != NULL && i < s->exchange_count; i++)
        if (strncmp(s->exchanges[i]->id, id, TOP_RUN_NAME_SIZE - 1) == 0)
            return s->exchanges[i];
    return NULL;
}

static const struct torus_group_info *find_group(const struct torus_status *s, const char *name)
{
    for (size_t i = 0; s != NULL && i < s->group_count; i++)
        if (strncmp(s->groups[i]->name, name, TOP_RUN_NAME_SIZE - 1) == 0)
            return s->groups[i];
    return NULL;
}

static const struct torus_status *status_of(const struct all_nodes *c, uint32_t rank)
{
    return c->state != NULL && rank < c->state->count ? c->state->nodes[rank]->status : NULL;
}

const struct torus_activity *top_run_exchange_at(const struct top_run *r, const struct all_nodes *c,
                                                 uint32_t rank)
{
    return r->group ? NULL : find_exchange(status_of(c, rank), r->name);
}

const struct torus_group_info *top_run_group_at(const struct top_run *r, const struct all_nodes *c,
                                                uint32_t rank)
{
    return r->group ? find_group(status_of(c, rank), r->name) : NULL;
}

static struct top_run *find(struct top_runs *runs, bool group, const char *name)
{
    for (size_t i = 0; i < runs->count; i++)
        if (runs->run[i].group == group &&
            strncmp(runs->run[i].name, name, TOP_RUN_NAME_SIZE - 1) == 0)
            return &runs->run[i];
    return NULL;
}

/* The run of this name, added if it is new; NULL if there are too many. */
static struct top_run *entry(struct top_runs *runs, bool group, const char *name)
{
    struct top_run *r = find(runs, group, name);

    if (r != NULL)
        return r;
    if (runs->count == TOP_MOST_RUNS) {
        runs->left_out++;
        return NULL;
    }
    r = &runs->run[runs->count++];
    *r = (struct top_run){.group = group,
                          .reason = "",
                          .algorithm = "",
                          .missing = "",
                          .avoids = "",
                          .rate = -1,
                          .part = -1,
                          .left = -1,
                          .first_part = -1,
                          .call_rate = -1};
    (void)snprintf(r->name, sizeof r->name, "%s", name);
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

static void add_exchange(struct top_runs *runs, const struct torus_activity *x,
                         const struct torus_activity *before, double elapsed)
{
    struct top_run *r = entry(runs, false, x->id);

    if (r == NULL)
        return;
    if (r->nodes++ == 0 || x->round < r->round)
        r->round = x->round;
    r->states[(unsigned)x->state < TOP_STATES ? x->state : TORUS_STATE_UNKNOWN]++;
    r->algorithm = x->algorithm;
    r->coordinator = x->coordinator;
    r->age_ms = x->age_ms > r->age_ms ? x->age_ms : r->age_ms;
    r->rounds = x->rounds > r->rounds ? x->rounds : r->rounds;
    r->done = sum(r->done, x->done_bytes);
    r->total = sum(r->total, x->total_bytes);
    if (x->reason[0] != '\0')
        r->reason = x->reason;
    if (before != NULL)
        add_rate(&r->rate, x->done_bytes, before->done_bytes, elapsed);
}

static void add_group(struct top_runs *runs, const struct torus_group_info *g,
                      const struct torus_group_info *before, double elapsed)
{
    struct top_run *r = entry(runs, true, g->name);
    double calls = -1;

    if (r == NULL)
        return;
    if (r->nodes++ == 0 || g->calls_done < r->calls_done)
        r->calls_done = g->calls_done;
    r->calls = g->calls > r->calls ? g->calls : r->calls;
    r->open += g->open;
    if (g->missing[0] != '\0')
        r->missing = g->missing;
    if (g->avoids[0] != '\0')
        r->avoids = g->avoids;
    if (before == NULL || strcmp(before->id, g->id) != 0)
        return;
    add_rate(&r->rate, g->bytes_received, before->bytes_received, elapsed);
    add_rate(&calls, g->calls_done, before->calls_done, elapsed);
    r->call_rate = calls > r->call_rate ? calls : r->call_rate;
}

static bool is_over(const struct torus_activity *x)
{
    return x->state >= TORUS_STATE_FINISHED;
}

/* Adds what is under way, or what has ended, at all nodes. Exchanges that have ended at some nodes only are added with
 * the former. */
static void add_all(struct top_runs *runs, const struct all_nodes *now,
                    const struct all_nodes *before, const double *elapsed, bool ended)
{
    for (uint32_t rank = 0; rank < now->torus.nodes; rank++) {
        const struct torus_status *s = status_of(now, rank), *old = status_of(before, rank);
        for (size_t i = 0; s != NULL && i < s->exchange_count; i++) {
            const struct torus_activity *x = s->exchanges[i];
            if (is_over(x) == ended)
                add_exchange(runs, x, find_exchange(old, x->id), elapsed[rank]);
        }
        for (size_t i = 0; s != NULL && !ended && i < s->group_count; i++)
            add_group(runs, s->groups[i], find_group(old, s->groups[i]->name), elapsed[rank]);
    }
}

static double part_of(const struct top_run *r)
{
    if (r->total > 0)
        return r->done >= r->total ? 1 : (double)r->done / (double)r->total;
    if (r->rounds > 1) /* files: their bytes are not known */
        return r->round >= r->rounds ? 1 : (double)r->round / (double)r->rounds;
    return -1;
}

/* Sets what follows from the sums, and from what was known before. */
static void conclude(struct top_run *r, const struct top_run *old, double seconds)
{
    r->part = r->group ? -1 : part_of(r);
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

void top_runs_fill(struct top_runs *runs, const struct all_nodes *now,
                   const struct all_nodes *before, const double *elapsed, double seconds)
{
    static struct top_runs old; /* large; there is one view at a time */
    old = *runs;

    *runs = (struct top_runs){0};
    add_all(runs, now, before, elapsed, false);
    const size_t under_way = runs->count;
    add_all(runs, now, before, elapsed, true);
    for (size_t i = 0; i < runs->count; i++) {
        struct top_run *r = &runs->run[i];
        r->ended = i >= under_way;
        conclude(r, find(&old, r->group, r->name), seconds);
    }
}

const char *top_run_states(const struct top_run *r, char *out, size_t size)
{
    size_t used = 0;
    unsigned kinds = 0;

    for (unsigned i = 0; i < TOP_STATES; i++)
        kinds += r->states[i] > 0;
    out[0] = '\0';
    for (unsigned i = 0; i < TOP_STATES; i++) {
        if (r->states[i] == 0 || used >= size)
            continue;
        const char *name = torus_state_name((enum torus_state)i);
        int n = kinds == 1 ? snprintf(out, size, "%s", name)
                           : snprintf(out + used, size - used, "%s%s %u", used > 0 ? ", " : "",
                                      name, r->states[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    return out;
}
