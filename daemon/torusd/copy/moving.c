#include "daemon/torusd/copy/agent.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* --- a round: its blocks in memory, and the works that read or write them --- */

#define PART_LEAST (256u * 1024u) /* bytes for which another work is worth while */
#define STATUS_FAILED (UINT64_C(1) << 63)

/* In front of each block: what it must be, and whether its reader has failed. */
struct piece_head {
    uint64_t place;
    uint64_t length; /* with STATUS_FAILED: the bytes are not those of the tree */
};

_Static_assert(sizeof(struct piece_head) == PIECE_HEAD, "as rounds count it");

/* The number of this node's end of a tree; COPY_EVERY_NODE: it has none. */
static uint32_t slot_end_of(const struct agent *a, uint32_t tree)
{
    const struct copy_plan *p = &a->plan;
    const uint32_t rank = agent_rank(a);

    if (!copy_plan_goes_to_all(&a->plan)) /* pairs: the tree and its end have the same number */
        return p->end[tree].node == rank ? tree : COPY_EVERY_NODE;
    for (uint32_t i = 0; i < p->ends; i++)
        if (p->end[i].node == rank)
            return i;
    return COPY_EVERY_NODE;
}

/* --- memory --- */

static int take_memory(struct slot *s)
{
    const uint32_t size = s->agent->plan.call_bytes;

    if (s->memory != NULL && s->memory->references == 1)
        return 0;
    program_memory_unref(s->memory); /* frames on their way still use it */
    s->memory = copy_memory_new(size);
    return s->memory != NULL ? 0 : -1;
}

static int take_lists(struct slot *s, uint32_t pieces)
{
    if (s->sent == NULL)
        s->sent = calloc(s->agent->plan.trees, sizeof *s->sent);
    if (s->received == NULL)
        s->received = calloc(s->agent->plan.trees, sizeof *s->received);
    if (pieces + COPY_PARTS > s->parts_room) {
        free(s->part);
        s->parts_room = pieces + COPY_PARTS;
        s->part = calloc(s->parts_room, sizeof *s->part);
    }
    return s->sent != NULL && s->received != NULL && s->part != NULL ? 0 : -1;
}

/* Lays the agent's last computed round out in the slot's memory. Returns 0, or -1 without memory. */
static int slot_fill(struct slot *s)
{
    const struct agent *a = s->agent;
    const struct copy_rounds *r = &a->moving.rounds;
    const uint32_t rank = agent_rank(a);
    const uint64_t second = copy_plan_goes_to_all(&a->plan) ? 0 : r->side;

    if (take_memory(s) != 0 || take_lists(s, r->pieces) != 0)
        return -1;
    s->sends = s->receives = 0;
    s->send_bytes = s->receive_bytes = s->bytes = 0;
    for (uint32_t i = 0; i < r->pieces; i++) {
        const struct copy_piece *piece = &r->piece[i];
        const struct copy_tree *tree = &a->plan.tree[piece->tree];
        s->bytes += piece->length;
        if (tree->reader == rank) {
            s->sent[s->sends++] = (struct slot_piece){*piece, s->send_bytes};
            s->send_bytes += PIECE_HEAD + piece->length;
        }
        if (tree->writer == rank || (tree->writer == COPY_EVERY_NODE && tree->reader != rank)) {
            s->received[s->receives++] = (struct slot_piece){*piece, second + s->receive_bytes};
            s->receive_bytes += PIECE_HEAD + piece->length;
        }
    }
    return 0;
}

static void slot_free(struct slot *s)
{
    program_memory_unref(s->memory);
    free(s->sent);
    free(s->received);
    free(s->part);
    s->memory = NULL;
    s->sent = s->received = NULL;
    s->part = NULL;
}

/* --- heads --- */

/* Writes the heads of the blocks that this node sends. */
static void slot_write_heads(struct slot *s)
{
    for (uint32_t i = 0; i < s->sends; i++) {
        const struct slot_piece *p = &s->sent[i];
        const bool failed = s->agent->plan.tree[p->piece.tree].failed.code != ERROR_NONE;
        const struct piece_head head = {htole64(p->piece.place),
                                        htole64(p->piece.length | (failed ? STATUS_FAILED : 0))};
        memcpy(s->memory->data + p->at, &head, sizeof head);
    }
}

static int check_head(struct slot *s, const struct slot_piece *p, struct error *e)
{
    struct copy_tree *tree = &s->agent->plan.tree[p->piece.tree];
    struct piece_head head;

    memcpy(&head, s->memory->data + p->at, sizeof head);
    if (le64toh(head.place) != p->piece.place ||
        (le64toh(head.length) & ~STATUS_FAILED) != p->piece.length) {
        (void)error_set(e, ERROR_PROTOCOL,
                        "node %u has sent another part of its tree than expected", tree->reader);
        return error_blame_node(e, tree->reader);
    }
    tree->broken |= (le64toh(head.length) & STATUS_FAILED) != 0;
    return 0;
}

/* --- works --- */

/* Reads or writes a part that belongs to a document. */
static int handle_document(const struct agent *a, struct slot_part *part, bool writes)
{
    const struct tree_store *store = a->set.trees;
    const enum tree_document which =
        a->moving.rounds.what == MOVED_MANIFESTS ? TREE_MANIFEST : TREE_DIGESTS;

    if (writes)
        return store->write_document(a->plan.end[part->end].w, which, part->bytes, part->length,
                                     &part->error);
    return store->read_document(a->plan.tree[part->tree].r, which, part->place, part->bytes,
                                part->length, &part->error);
}

/* Reads or writes a part that belongs to the missing ranges of a stream. */
static int handle_stream(const struct agent *a, struct slot_part *part, bool writes)
{
    const struct tree_store *store = a->set.trees;
    const struct copy_tree *tree = &a->plan.tree[part->tree];
    struct interval_walk walk = intervals_walk(&tree->missing, part->place);
    uint64_t done = 0;

    while (done < part->length) {
        const struct interval span = intervals_next(&tree->missing, &walk, part->length - done);
        const size_t length = span.end - span.begin;
        int result;
        if (atomic_load(&a->progress.stop))
            return error_set(&part->error, ERROR_CANCELLED, "the copy has ended");
        if (writes)
            result = store->write(a->plan.end[part->end].w, span.begin, part->bytes + done, length,
                                  &part->error);
        else
            result = store->read(tree->r, span.begin, part->bytes + done, length, &part->error);
        if (result != 0)
            return -1;
        done += length;
    }
    return 0;
}

static void run(struct work *work, bool writes)
{
    struct slot_work *w = (struct slot_work *)work;
    struct slot *s = w->slot;

    for (uint32_t i = w->from; i < w->to; i++) {
        struct slot_part *part = &s->part[i];
        part->error = (struct error){.code = ERROR_NONE};
        if (s->agent->moving.rounds.what == MOVED_STREAMS)
            (void)handle_stream(s->agent, part, writes);
        else
            (void)handle_document(s->agent, part, writes);
        if (part->error.code != ERROR_NONE)
            part->turn = 1 + atomic_fetch_add(&s->agent->moving.failures, 1);
    }
}

static void run_read(struct work *work)
{
    run(work, false);
}

static void run_write(struct work *work)
{
    run(work, true);
}

static void on_done(struct work *work)
{
    struct slot_work *w = (struct slot_work *)work;

    w->runs = false;
    w->slot->works--;
    agent_wake(w->slot->agent);
}

/* Adds a piece as parts of at most `most` bytes. */
static void add_parts(struct slot *s, const struct slot_piece *p, uint32_t end, uint64_t most)
{
    for (uint64_t done = 0; done < p->piece.length; done += most) {
        const uint64_t rest = p->piece.length - done;
        s->part[s->parts++] =
            (struct slot_part){.tree = p->piece.tree,
                               .end = end,
                               .place = p->piece.place + done,
                               .bytes = s->memory->data + p->at + PIECE_HEAD + done,
                               .length = (uint32_t)(rest < most ? rest : most)};
    }
}

/* Starts works for all parts. Those that cannot be started for lack of memory run at once. */
static int start_works(struct slot *s, void (*what)(struct work *work), bool parallel)
{
    const struct agent *a = s->agent;
    uint64_t bytes = 0, each, passed = 0;
    uint32_t next = 0;

    for (uint32_t i = 0; i < s->parts; i++)
        bytes += s->part[i].length;
    each = parallel ? (bytes + COPY_PARTS - 1) / COPY_PARTS : bytes;
    each = each < PART_LEAST ? PART_LEAST : each;
    for (unsigned i = 0; i < COPY_PARTS && next < s->parts; i++) {
        struct slot_work *w = &s->work[i];
        *w = (struct slot_work){.work = {.run = what, .done = on_done}, .slot = s, .from = next};
        do
            passed += s->part[next++].length;
        while (next < s->parts && (passed < each * (i + 1) || i + 1 == COPY_PARTS));
        w->to = next;
        s->works++;
        w->runs = true;
        if (workers_submit(a->set.workers, &w->work) != 0) {
            what(&w->work);
            w->runs = false;
            s->works--;
        }
    }
    return (int)s->works;
}

/* Whether a piece is in one part: documents are read and written in order. */
static uint64_t most_of_part(const struct slot *s, uint64_t bytes)
{
    const uint64_t each = (bytes + COPY_PARTS - 1) / COPY_PARTS;

    if (s->agent->moving.rounds.what != MOVED_STREAMS)
        return UINT64_MAX / 2;
    return each < PART_LEAST ? PART_LEAST : each;
}

/* Starts works that read what this node sends. Returns how many; 0: there is nothing to read; -1 without memory. */
static int slot_read(struct slot *s)
{
    const struct agent *a = s->agent;

    s->parts = 0;
    for (uint32_t i = 0; i < s->sends; i++)
        if (a->plan.tree[s->sent[i].piece.tree].failed.code == ERROR_NONE)
            add_parts(s, &s->sent[i], 0, most_of_part(s, s->send_bytes));
    return start_works(s, run_read, a->moving.rounds.what == MOVED_STREAMS);
}

/* Checks the heads of the blocks that have arrived, and starts works that write them. Returns how many, or -1 with *e. */
static int slot_write(struct slot *s, struct error *e)
{
    const struct agent *a = s->agent;

    s->parts = 0;
    for (uint32_t i = 0; i < s->receives; i++) {
        const uint32_t tree = s->received[i].piece.tree, end = slot_end_of(a, tree);
        if (check_head(s, &s->received[i], e) != 0)
            return -1;
        if (end != COPY_EVERY_NODE && !a->plan.tree[tree].broken && a->plan.end[end].w != NULL &&
            a->plan.end[end].error.code == ERROR_NONE)
            add_parts(s, &s->received[i], end, most_of_part(s, s->receive_bytes));
    }
    return start_works(s, run_write, a->moving.rounds.what == MOVED_STREAMS);
}

/* Takes the first failure of a tree or end: later ones may only say that it has failed. */
static void take_error(struct error *to, uint32_t *turn, const struct slot_part *part)
{
    if (part->error.code == ERROR_NONE ||
        (to->code != ERROR_NONE && (*turn == 0 || *turn < part->turn)))
        return;
    *to = part->error;
    *turn = part->turn;
}

/* Notes the errors of the works, which have ended, at their trees or ends. */
static void slot_take_errors(struct slot *s)
{
    struct copy_plan *p = &s->agent->plan;
    const bool writes = s->state == SLOT_WRITING;

    for (uint32_t i = 0; i < s->parts; i++) {
        struct copy_end *end = &p->end[s->part[i].end];
        struct copy_tree *tree = &p->tree[s->part[i].tree];
        if (writes)
            take_error(&end->error, &end->failed_turn, &s->part[i]);
        else
            take_error(&tree->failed, &tree->failed_turn, &s->part[i]);
    }
    s->parts = 0;
}

/* --- moving --- */

#define CALLS_MOST 3u /* of the group, that have not ended here */

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
    agent_fail_for_memory(a);
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
            agent_fail_for_memory(a);
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

/* Sets the sizes and offsets of this node's blocks in the two areas, by member. */
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
    const struct program_area area = {s->memory, 0, s->memory->size};
    struct group_call call = {.receive = area, .send = area};

    slot_write_heads(s);
    if (copy_plan_goes_to_all(&a->plan)) {
        call.operation = GROUP_BROADCAST;
        call.root = a->member[a->plan.tree[0].reader];
        call.size = PIECE_HEAD + s->bytes;
    } else {
        set_counts(a, s);
        call.operation = GROUP_ALLTOALLV;
        call.algorithm = a->algorithm;
        call.mode = a->mode;
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
