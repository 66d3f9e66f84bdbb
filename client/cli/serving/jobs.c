#include "client/cli/serving/jobs.h"

#include <string.h>

#include "proto/text.h"

#define SMOOTH 0.4 /* how much of a rate the newest value decides */

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

static struct job *find(struct jobs *jobs, enum job_kind kind, const char *id)
{
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->job[i].kind == kind && strncmp(jobs->job[i].id, id, JOB_TEXT_SIZE - 1) == 0)
            return &jobs->job[i];
    return NULL;
}

/* The job with this id, added if there is none; NULL: the list is full. */
static struct job *entry(struct jobs *jobs, enum job_kind kind, const char *id, const char *what)
{
    char clean[JOB_TEXT_SIZE];
    struct job *j = find(jobs, kind, text_printable(clean, sizeof clean, id));

    if (j != NULL)
        return j;
    if (jobs->count == JOBS_MOST) {
        jobs->left_out++;
        return NULL;
    }
    j = &jobs->job[jobs->count++];
    *j = (struct job){.kind = kind, .root = TORUS_RANK_NONE, .part = -1, .rate = -1, .left = -1};
    (void)strcpy(j->id, clean);
    (void)text_printable(j->what, sizeof j->what, what);
    return j;
}

static void set_reason(struct job *j, const char *text)
{
    if (text[0] != '\0')
        (void)text_printable(j->reason, sizeof j->reason, text);
}

static void add_exchange(struct jobs *jobs, const struct torus_activity *x)
{
    struct job *j = entry(jobs, JOB_EXCHANGE, x->id, x->algorithm);

    if (j == NULL)
        return;
    if (j->nodes++ == 0 || x->round < j->round)
        j->round = x->round;
    j->rounds = x->rounds > j->rounds ? x->rounds : j->rounds;
    j->states[(unsigned)x->state < JOB_STATES ? x->state : TORUS_STATE_UNKNOWN]++;
    j->root = x->coordinator;
    j->age_ms = x->age_ms > j->age_ms ? x->age_ms : j->age_ms;
    j->done = sum(j->done, x->done_bytes);
    j->total = sum(j->total, x->total_bytes);
    set_reason(j, x->reason);
}

static void add_group(struct jobs *jobs, const struct torus_group_info *g)
{
    struct job *j = entry(jobs, JOB_GROUP, g->name, g->name);

    if (j == NULL)
        return;
    if (j->nodes++ == 0 || g->calls_done < j->calls_done)
        j->calls_done = g->calls_done;
    j->calls = g->calls > j->calls ? g->calls : j->calls;
    j->open += g->open;
    j->done = sum(j->done, g->bytes_received);
    if (g->missing[0] != '\0')
        (void)snprintf(j->reason, sizeof j->reason, "waits for a program on node %.100s",
                       g->missing);
    else if (g->avoids[0] != '\0' && j->reason[0] == '\0')
        (void)snprintf(j->reason, sizeof j->reason, "avoids %.100s", g->avoids);
    text_clean(j->reason);
}

/* The node that was asked for a copy knows about all of it. */
static void add_copy(struct jobs *jobs, const struct torus_copy_activity *x, uint32_t rank)
{
    struct job *j = entry(jobs, JOB_COPY, x->id, x->target);

    if (j == NULL)
        return;
    if (j->nodes++ > 0 && x->asker != rank)
        return;
    j->root = x->asker;
    j->phase = torus_copy_phase_name(x->phase);
    j->done = x->bytes;
    j->total = x->bytes_of;
    j->reason[0] = '\0';
    if (x->waits_for[0] != '\0')
        (void)snprintf(j->reason, sizeof j->reason, "waits for %.100s", x->waits_for);
    text_clean(j->reason);
}

static bool is_over(const struct torus_activity *x)
{
    return x->state >= TORUS_STATE_FINISHED;
}

/* Exchanges that have ended at some nodes only are added with those that are under way. */
static void add_all(struct jobs *jobs, const struct all_nodes *now, bool ended)
{
    for (uint32_t rank = 0; rank < now->torus.nodes; rank++) {
        const struct torus_status *s = now->state->nodes[rank]->status;
        if (s == NULL)
            continue;
        for (size_t i = 0; i < s->exchange_count; i++)
            if (is_over(s->exchanges[i]) == ended)
                add_exchange(jobs, s->exchanges[i]);
        for (size_t i = 0; !ended && i < s->group_count; i++)
            add_group(jobs, s->groups[i]);
        for (size_t i = 0; !ended && i < s->copy_count; i++)
            add_copy(jobs, s->copies[i], rank);
    }
}

static double part_of(const struct job *j)
{
    if (j->kind == JOB_GROUP)
        return -1;
    if (j->total > 0)
        return j->done >= j->total ? 1 : (double)j->done / (double)j->total;
    if (j->rounds > 1) /* files: their bytes are not known */
        return j->round >= j->rounds ? 1 : (double)j->round / (double)j->rounds;
    return -1;
}

/* Sets what follows from the sums, and from what the survey before gave. */
static void conclude(struct job *j, const struct job *old, double since)
{
    j->part = part_of(j);
    if (j->ended)
        return;
    if (old != NULL && since > 0) {
        /* Less than before: another repetition, or a node that does not answer any more. */
        const double rate =
            j->done >= old->done ? (double)(j->done - old->done) / since : old->rate;
        j->rate = old->rate < 0 || rate < 0 ? rate : SMOOTH * rate + (1 - SMOOTH) * old->rate;
    }
    if (j->total > j->done && j->rate > 0)
        j->left = (double)(j->total - j->done) / j->rate;
}

void jobs_fill(struct jobs *jobs, const struct all_nodes *now, double since)
{
    static struct jobs old; /* large, and there is one scene */
    old = *jobs;

    *jobs = (struct jobs){0};
    add_all(jobs, now, false);
    const size_t under_way = jobs->count;
    add_all(jobs, now, true);
    for (size_t i = 0; i < jobs->count; i++) {
        struct job *j = &jobs->job[i];
        j->ended = i >= under_way;
        conclude(j, find(&old, j->kind, j->id), since);
    }
}

const char *job_kind_name(enum job_kind kind)
{
    static const char *const names[] = {"exchange", "group", "copy"};

    return names[kind];
}

/* "running", or "running 12, done 4" if the nodes are in different states. */
static void exchange_state(const struct job *j, char *out, size_t size)
{
    size_t used = 0;
    unsigned kinds = 0;

    for (unsigned i = 0; i < JOB_STATES; i++)
        kinds += j->states[i] > 0;
    for (unsigned i = 0; i < JOB_STATES; i++) {
        const char *name = torus_state_name((enum torus_state)i);
        if (j->states[i] == 0 || used >= size)
            continue;
        const int n = kinds == 1 ? snprintf(out, size, "%s", name)
                                 : snprintf(out + used, size - used, "%s%s %u",
                                            used > 0 ? ", " : "", name, j->states[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

const char *job_state(const struct job *j, char *out, size_t size)
{
    out[0] = '\0';
    switch (j->kind) {
    case JOB_EXCHANGE:
        exchange_state(j, out, size);
        break;
    case JOB_GROUP:
        (void)snprintf(out, size, j->open == j->nodes ? "open" : "opening");
        break;
    case JOB_COPY:
        (void)snprintf(out, size, "%s", j->phase);
        break;
    }
    return out;
}
