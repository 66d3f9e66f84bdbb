#include "daemon/torusd/copy/slots.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/copy/memory.h"

#define PART_LEAST (256u * 1024u) /* bytes for which another work is worth while */
#define STATUS_FAILED (UINT64_C(1) << 63)

/* In front of each block: what it must be, and whether its reader has failed. */
struct piece_head {
    uint64_t place;
    uint64_t length; /* with STATUS_FAILED: the bytes are not those of the tree */
};

_Static_assert(sizeof(struct piece_head) == PIECE_HEAD, "as rounds count it");

static bool goes_to_all(const struct agent *a)
{
    return a->plan.tree[0].writer == COPY_EVERY_NODE;
}

uint32_t slot_end_of(const struct agent *a, uint32_t tree)
{
    const struct copy_plan *p = &a->plan;
    const uint32_t rank = agent_rank(a);

    if (!goes_to_all(a)) /* pairs: the tree and its end have the same number */
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

int slot_fill(struct slot *s)
{
    const struct agent *a = s->agent;
    const struct copy_rounds *r = &a->moving.rounds;
    const uint32_t rank = agent_rank(a);
    const uint64_t second = goes_to_all(a) ? 0 : r->side;

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

void slot_free(struct slot *s)
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

void slot_write_heads(struct slot *s)
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
    uint64_t done = 0;

    while (done < part->length) {
        const struct tree_span span =
            copy_spans_at(&tree->missing, part->place + done, part->length - done);
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

int slot_read(struct slot *s)
{
    const struct agent *a = s->agent;

    s->parts = 0;
    for (uint32_t i = 0; i < s->sends; i++)
        if (a->plan.tree[s->sent[i].piece.tree].failed.code == ERROR_NONE)
            add_parts(s, &s->sent[i], 0, most_of_part(s, s->send_bytes));
    return start_works(s, run_read, a->moving.rounds.what == MOVED_STREAMS);
}

int slot_write(struct slot *s, struct error *e)
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

void slot_take_errors(struct slot *s)
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
