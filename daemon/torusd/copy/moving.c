#include "daemon/torusd/copy/moving.h"

#include <stdlib.h>

#include "daemon/torusd/copy/slots.h"

#define CALLS_MOST 3u /* of the group, that have not ended here */

static void fail_for_memory(struct agent *a)
{
    struct error e;

    (void)error_set(&e, ERROR_MEMORY, "node %u has no memory for the copy", agent_rank(a));
    (void)error_blame_node(&e, agent_rank(a));
    agent_fail(a, &e);
}

int moving_begin(struct agent *a, enum moved what)
{
    struct moving *m = &a->moving;
    bool good;

    *m = (struct moving){.active = true};
    good = copy_rounds_init(&m->rounds, &a->plan, what, groups_torus(a->set.groups)->nodes,
                            a->plan.call_bytes) == 0;
    for (unsigned i = 0; i < 4; i++) {
        m->count[i] = calloc(a->members, sizeof *m->count[i]);
        good = good && m->count[i] != NULL;
    }
    for (unsigned i = 0; i < COPY_SLOTS; i++)
        m->slot[i].agent = a;
    if (good)
        return 0;
    fail_for_memory(a);
    return -1;
}

bool moving_works(const struct agent *a)
{
    for (unsigned i = 0; a->moving.active && i < COPY_SLOTS; i++)
        if (a->moving.slot[i].works > 0)
            return true;
    return false;
}

/* The next call is that of the earliest round that has not been called: it is being read here, or has no slot yet, because
 * what arrived in earlier rounds is not written. */
enum group_client_wait moving_waits(const struct agent *a)
{
    const struct moving *m = &a->moving;

    for (unsigned i = 0; m->active && i < COPY_SLOTS; i++)
        if (m->slot[i].state == SLOT_READING && m->slot[i].round == m->called &&
            m->slot[i].works > 0)
            return GROUP_CLIENT_READS;
    for (unsigned i = 0; m->active && i < COPY_SLOTS; i++)
        if (m->slot[i].state == SLOT_WRITING && m->slot[i].works > 0)
            return GROUP_CLIENT_WRITES;
    return GROUP_CLIENT_OTHERS;
}

void moving_end(struct agent *a)
{
    struct moving *m = &a->moving;

    for (unsigned i = 0; i < COPY_SLOTS; i++)
        slot_free(&m->slot[i]);
    for (unsigned i = 0; i < 4; i++)
        free(m->count[i]);
    copy_rounds_free(&m->rounds);
    *m = (struct moving){0};
}

static struct slot *slot_of(struct agent *a, uint64_t round)
{
    return &a->moving.slot[round % COPY_SLOTS];
}

static bool is_document(const struct agent *a)
{
    return a->moving.rounds.what != MOVED_STREAMS;
}

/* Computes rounds for slots that are free. */
static int compute_rounds(struct agent *a)
{
    struct moving *m = &a->moving;

    while (!m->planned && slot_of(a, m->computed)->state == SLOT_FREE) {
        struct slot *s = slot_of(a, m->computed);
        if (!copy_rounds_next(&m->rounds)) {
            m->planned = true;
            return 0;
        }
        if (slot_fill(s) != 0) {
            fail_for_memory(a);
            return -1;
        }
        s->round = m->computed++;
        s->state = SLOT_READING;
        s->parts = 0;
        s->started = false;
    }
    return 0;
}

/* Whether a slot has to wait until those of earlier rounds have left this state: a document is read, and written, from
 * front to back. */
static bool waits_for_earlier(struct agent *a, const struct slot *s, enum slot_state before)
{
    for (unsigned i = 0; is_document(a) && i < COPY_SLOTS; i++) {
        const struct slot *other = &a->moving.slot[i];
        if (other->state != SLOT_FREE && other->round < s->round && other->state <= before)
            return true;
    }
    return false;
}

static void advance_reading(struct agent *a, struct slot *s)
{
    if (!s->started && waits_for_earlier(a, s, SLOT_READING))
        return;
    if (!s->started) {
        s->started = true;
        (void)slot_read(s);
    }
    if (s->works > 0)
        return;
    slot_take_errors(s);
    s->state = SLOT_READY;
}

/* The sizes and offsets of this node's blocks, by member, in the two areas. */
static void set_counts(struct agent *a, const struct slot *s)
{
    uint64_t **count = a->moving.count;

    for (uint32_t i = 0; i < a->members; i++)
        count[0][i] = count[1][i] = count[2][i] = count[3][i] = 0;
    for (uint32_t i = 0; i < s->sends; i++) {
        const uint32_t to = a->member[a->plan.tree[s->sent[i].piece.tree].writer];
        count[0][to] = PIECE_HEAD + s->sent[i].piece.length;
        count[1][to] = s->sent[i].at;
    }
    for (uint32_t i = 0; i < s->receives; i++) {
        const uint32_t from = a->member[a->plan.tree[s->received[i].piece.tree].reader];
        count[2][from] = PIECE_HEAD + s->received[i].piece.length;
        count[3][from] = s->received[i].at;
    }
}

static int make_call(struct agent *a, struct slot *s)
{
    const struct copy_tree *first = &a->plan.tree[0];
    const struct program_area area = {s->memory, 0, s->memory->size};
    struct group_call call = {.receive = area, .send = area};

    slot_write_heads(s);
    if (first->writer == COPY_EVERY_NODE) {
        call.operation = GROUP_BROADCAST;
        call.root = a->member[first->reader];
        call.size = PIECE_HEAD + s->bytes;
    } else {
        set_counts(a, s);
        call.operation = GROUP_ALLTOALLV;
        call.send_size = a->moving.count[0];
        call.send_offset = a->moving.count[1];
        call.receive_size = a->moving.count[2];
        call.receive_offset = a->moving.count[3];
    }
    s->state = SLOT_CALLED;
    a->moving.called++;
    return agent_call(a, &call, s->round % COPY_SLOTS);
}

static int make_calls(struct agent *a)
{
    struct moving *m = &a->moving;

    for (;;) {
        struct slot *s = slot_of(a, m->called);
        unsigned under_way = 0;
        for (unsigned i = 0; i < COPY_SLOTS; i++)
            under_way += m->slot[i].state == SLOT_CALLED;
        if (m->called == m->computed || s->state != SLOT_READY || under_way >= CALLS_MOST)
            return 0;
        if (make_call(a, s) != 0)
            return -1;
    }
}

void moving_called(struct agent *a, unsigned slot)
{
    if (slot < COPY_SLOTS && a->moving.slot[slot].state == SLOT_CALLED)
        a->moving.slot[slot].state = SLOT_ARRIVED;
}

static int advance_writing(struct agent *a, struct slot *s)
{
    struct error e;

    if (s->state == SLOT_ARRIVED) {
        if (waits_for_earlier(a, s, SLOT_WRITING))
            return 0;
        s->state = SLOT_WRITING;
        if (slot_write(s, &e) < 0) {
            agent_fail(a, &e);
            return -1;
        }
    }
    if (s->works > 0)
        return 0;
    slot_take_errors(s);
    s->state = SLOT_FREE;
    a->moving.ended++;
    a->moving.bytes += s->bytes;
    return 0;
}

static int advance_slots(struct agent *a)
{
    for (unsigned i = 0; i < COPY_SLOTS; i++) {
        struct slot *s = &a->moving.slot[i];
        if (s->state == SLOT_READING)
            advance_reading(a, s);
        else if ((s->state == SLOT_ARRIVED || s->state == SLOT_WRITING) &&
                 advance_writing(a, s) != 0)
            return -1;
    }
    return 0;
}

int moving_advance(struct agent *a)
{
    struct moving *m = &a->moving;
    uint64_t ended;

    do {
        ended = m->ended;
        if (advance_slots(a) != 0 || compute_rounds(a) != 0 || advance_slots(a) != 0 ||
            make_calls(a) != 0)
            return -1;
    } while (m->ended != ended);
    return m->planned && m->ended == m->computed;
}
