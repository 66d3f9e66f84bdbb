/* Disks. An output is a list of how many bytes have come from whom; the bytes themselves are those
 * of the generated pattern and are checked when a write completes, so that a buffer that was used
 * again too early does not go unnoticed.
 *
 * A dead node's disk does not change: whatever its daemon still does while it is taken apart
 * (closing sinks) happens only in its memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/exchange/pattern.h"
#include "tests/sim/internal.h"

#define SEED 7u
#define CHUNK (32u * 1024u)

enum output_state { FILLING, SYNCING, FINISHED, PLACED };

/* Bytes of a block that have come: one run if it comes front to back, several if in segments. */
struct run {
    uint64_t from, to;
};

struct arrived {
    struct run *run;
    size_t runs;
};

struct output {
    struct output *next;
    char id[EXCHANGE_ID_SIZE];
    char from[64], to[64];
    enum operation operation;
    uint32_t sender;
    uint32_t nodes;
    uint64_t *got; /* bytes, by origin; UINT64_MAX: not even an empty block */
    struct arrived *arrived;
    enum output_state state;
};

struct sim_source {
    struct source base;
    struct node *node;
    struct block_events events;
    char from[64];
    enum operation operation;
    bool sends;
    bool opening, checked, closed, waking;
    char rival[64];     /* the target, if it is there already */
    uint32_t ready_for; /* a destination whose bytes are there now */
    struct slab_writer writer;
};

struct write {
    struct write *next;
    struct sim_sink *sink; /* NULL: it was closed meanwhile */
    struct extent piece;
    uint32_t origin;
    uint64_t offset;
};

struct sim_sink {
    struct sink base;
    struct node *node;
    struct block_events events;
    struct output *output;
    struct write *writes;
    uint64_t pending;
    bool closed, syncing;
    bool tried;            /* to put it in place */
    struct error obstacle; /* why that failed */
    bool keep;
};

/* An operation that begins now: `over` is called when it is. */
static void operate(struct node *node, const char *what,
                    void (*over)(struct sim *sim, void *object, uint64_t number), void *object)
{
    struct disk *disk = &node->disk;
    uint64_t time = node->sim->set.chop ? chance_below(&disk->chance, 300 * MICROSECONDS) : 0;

    if (disk->slowness > 0)
        time += chance_below(&disk->chance, disk->slowness);
    sim_schedule_at_node(node, time, what, over, object);
}

static bool faulty(struct node *node, enum sim_disk_fault fault, struct error *e)
{
    static const char *const name[] = {"open", "read",   "check",  "write",
                                       "sync", "record", "commit", "digest"};

    static const bool needs_room[SIM_DISK_FAULTS] = {[SIM_DISK_OPEN] = true,
                                                     [SIM_DISK_WRITE] = true,
                                                     [SIM_DISK_SYNC] = true,
                                                     [SIM_DISK_RECORD] = true};

    if (!node->disk.fault[fault] && !(node->disk.full && needs_room[fault]))
        return false;
    node->disk.fault[fault] = false;
    (void)error_set(e, ERROR_IO, "disk error (%s)", name[fault]);
    return true;
}

uint64_t sim_block_size(const char *from, uint32_t source, uint32_t destination)
{
    unsigned long long most = strtoull(strrchr(from, '/') + 1, NULL, 10);
    struct chance c = {(uint64_t)source << 32 | destination};

    if (strncmp(from, "/random/", 8) != 0)
        return most;
    uint64_t kind = chance_below(&c, 4);
    return kind == 0 ? 0 : kind == 1 ? most : chance_below(&c, most + 1);
}

/* --- source --- */

static uint64_t source_size(struct source *base, uint32_t destination)
{
    struct sim_source *s = (struct sim_source *)base;
    return sim_block_size(s->from, s->node->rank, destination);
}

/* Its last operation is over. */
static void source_gone(struct sim_source *s)
{
    const struct block_events events = s->events;

    free(s);
    events.closed(events.context);
}

static void source_ready(struct sim *sim, void *object, uint64_t number)
{
    struct sim_source *s = object;
    struct node *node = s->node;
    struct error e;

    (void)sim, (void)number;
    s->waking = false;
    if (s->closed)
        source_gone(s);
    else if (faulty(node, SIM_DISK_READ, &e))
        s->events.failed(s->events.context, &e);
    else
        s->events.wake(s->events.context);
}

static int source_read(struct source *base, uint32_t destination, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    struct sim_source *s = (struct sim_source *)base;
    struct sim *sim = s->node->sim;
    uint64_t left = source_size(base, destination) - offset;
    uint32_t length = most < CHUNK ? most : CHUNK;

    if (s->node->disk.fault[SIM_DISK_READ] || (sim->set.chop && s->ready_for != destination &&
                                               chance_below(&s->node->disk.chance, 3) == 0)) {
        if (!s->waking)
            operate(s->node, "read", source_ready, s);
        s->waking = true;
        s->ready_for = destination;
        return 0;
    }
    s->ready_for = UINT32_MAX;
    if (length > left)
        sim_fail(sim, "a block is read beyond its end");
    if (sim->set.chop)
        length = 1 + (uint32_t)chance_below(&s->node->disk.chance, length);
    uint8_t *at = slab_writer_take(&s->writer, &s->node->pool, length, out);
    if (at == NULL)
        return error_set(e, ERROR_MEMORY, "no memory");
    pattern_fill(at, length, SEED, s->node->rank, destination, offset);
    return 1;
}

static uint64_t digest_of(uint32_t source, uint32_t destination, uint64_t size)
{
    struct chance c = {((uint64_t)source << 32 | destination) ^ size << 20};
    return chance_word(&c);
}

static bool source_opened(struct source *base)
{
    return !((struct sim_source *)base)->opening;
}

static int source_lay_out(struct source *base, uint64_t round_bytes, uint32_t segments,
                          struct error *e)
{
    (void)base, (void)round_bytes, (void)segments, (void)e;
    return 0;
}

/* The one operation that may be under way. */
static void begin(struct sim_source *s, const char *what,
                  void (*over)(struct sim *sim, void *object, uint64_t number))
{
    if (!s->waking)
        operate(s->node, what, over, s);
    s->waking = true;
}

static void source_checked(struct sim *sim, void *object, uint64_t number)
{
    struct sim_source *s = object;
    struct node *node = s->node;
    struct error e;

    (void)sim, (void)number;
    s->waking = false;
    if (s->closed) {
        source_gone(s);
    } else if (faulty(node, SIM_DISK_CHECK, &e)) {
        s->events.failed(s->events.context, &e);
    } else {
        s->checked = true;
        s->events.wake(s->events.context);
    }
}

static bool source_finish(struct source *base)
{
    struct sim_source *s = (struct sim_source *)base;

    if (!s->checked)
        begin(s, "checked", source_checked);
    return s->checked;
}

static void source_is_open(struct sim *sim, void *object, uint64_t number)
{
    struct sim_source *s = object;
    struct node *node = s->node;
    struct error e;

    (void)sim, (void)number;
    s->waking = false;
    if (s->closed) {
        source_gone(s);
    } else if (s->rival[0] != '\0') {
        (void)error_set(&e, ERROR_REFUSED, "target folder %s exists and is not empty", s->rival);
        s->events.failed(s->events.context, &e);
    } else if (faulty(node, SIM_DISK_OPEN, &e)) {
        s->events.failed(s->events.context, &e);
    } else {
        s->opening = false;
        s->events.wake(s->events.context);
    }
}

static uint64_t source_digest(struct source *base)
{
    struct sim_source *s = (struct sim_source *)base;
    uint64_t sum = 0, *digest = &sum;
    uint32_t nodes = s->node->sim->torus.nodes, me = s->node->rank;

    if (s->operation != OPERATION_EXCHANGE && s->sends)
        *digest += nodes * digest_of(me, me, source_size(base, me));
    for (uint32_t d = 0; s->operation == OPERATION_EXCHANGE && d < nodes; d++)
        *digest += digest_of(s->node->rank, d, source_size(base, d));
    return sum + faulty(s->node, SIM_DISK_DIGEST, NULL);
}

static bool source_close(struct source *base)
{
    struct sim_source *s = (struct sim_source *)base;

    slab_writer_close(&s->writer);
    s->closed = true;
    if (s->waking)
        return false;
    free(s);
    return true;
}

/* --- sink --- */

/* The bytes that node `rank` is to get from `origin`: those made for it, or those that the origin
 * has for itself and for all. */
static uint32_t intended(const struct output *o, uint32_t rank, uint32_t origin)
{
    return o->operation == OPERATION_EXCHANGE ? rank : origin;
}

/* Whether it is to get any. */
static bool is_expected(const struct output *o, uint32_t origin)
{
    return o->operation != OPERATION_BROADCAST || origin == o->sender;
}

static bool sink_opened(struct sink *base)
{
    (void)base; /* with the source */
    return true;
}

static int sink_lay_out(struct sink *base, uint64_t round_bytes, uint32_t segments, struct error *e)
{
    (void)base, (void)round_bytes, (void)segments, (void)e;
    return 0;
}

static void forget_write(struct write *w)
{
    struct write **at = &w->sink->writes;

    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    slab_unref(w->piece.slab);
}

static void write_over(struct sim *sim, void *object, uint64_t number)
{
    struct write *w = object;
    struct sim_sink *s = w->sink;
    struct node *node;
    struct error e;

    (void)number;
    if (s == NULL) {
        free(w);
        return;
    }
    node = s->node;
    if (pattern_compare(w->piece.data, w->piece.length, SEED, w->origin,
                        intended(s->output, node->rank, w->origin), w->offset) != w->piece.length)
        sim_violated(sim, "bytes", "node %u wrote wrong bytes from node %u", node->rank, w->origin);
    s->pending -= w->piece.length;
    forget_write(w);
    free(w);
    if (faulty(node, SIM_DISK_WRITE, &e))
        s->events.failed(s->events.context, &e);
    else if (s->pending == 0)
        s->events.wake(s->events.context);
}

/* False if some of it has come before. */
static bool arrive(struct arrived *a, uint64_t from, uint64_t to)
{
    struct run *continued = NULL;

    for (size_t i = 0; i < a->runs; i++) {
        if (from < a->run[i].to && to > a->run[i].from)
            return false;
        if (from == a->run[i].to)
            continued = &a->run[i];
    }
    if (continued != NULL) {
        continued->to = to;
        return true;
    }
    a->run = sim_realloc(a->run, (a->runs + 1) * sizeof *a->run);
    a->run[a->runs++] = (struct run){from, to};
    return true;
}

static int sink_write(struct sink *base, uint32_t origin, uint64_t offset,
                      const struct extent *piece, struct error *e)
{
    struct sim_sink *s = (struct sim_sink *)base;
    struct sim *sim = s->node->sim;
    struct output *o = s->output;
    uint64_t got = o->got[origin] == UINT64_MAX ? 0 : o->got[origin];
    uint64_t size = sim_block_size(o->from, origin, intended(o, s->node->rank, origin));

    (void)e;
    if (o->state != FILLING)
        sim_fail(sim, "node %u writes to an output that is finished", s->node->rank);
    if (piece->length == 0) { /* no bytes of this block in this round */
        o->got[origin] = got;
        return 0;
    }
    if (offset + piece->length > size ||
        !arrive(&o->arrived[origin], offset, offset + piece->length))
        sim_violated(sim, "once",
                     "block %u to %u of %llu bytes: %u bytes at %llu come twice or too many",
                     origin, s->node->rank, (unsigned long long)size, piece->length,
                     (unsigned long long)offset);
    struct write *w = sim_alloc(sizeof *w);
    *w = (struct write){s->writes, s, *piece, origin, offset};
    (void)slab_ref(piece->slab);
    s->writes = w;
    s->pending += piece->length;
    o->got[origin] = got + piece->length;
    operate(s->node, "written", write_over, w);
    return 0;
}

static uint64_t sink_pending(struct sink *base)
{
    return ((struct sim_sink *)base)->pending;
}

static void remove_output(struct node *node, struct output *o);

/* Its last operation is over. */
static void sink_gone(struct sim_sink *s)
{
    const struct block_events events = s->events;

    if (s->output->state != PLACED && !s->keep && !s->node->doomed)
        remove_output(s->node, s->output);
    free(s);
    events.closed(events.context);
}

static void sync_over(struct sim *sim, void *object, uint64_t number)
{
    struct sim_sink *s = object;
    struct node *node = s->node;
    struct error e;

    (void)sim, (void)number;
    s->syncing = false;
    if (s->closed) {
        sink_gone(s);
    } else if (faulty(node, SIM_DISK_SYNC, &e)) {
        s->events.failed(s->events.context, &e);
    } else {
        s->output->state = FINISHED;
        s->events.wake(s->events.context);
    }
}

static bool sink_finish(struct sink *base)
{
    struct sim_sink *s = (struct sim_sink *)base;

    if (s->output->state == FILLING && s->pending == 0) {
        s->output->state = SYNCING;
        s->syncing = true;
        operate(s->node, "synced", sync_over, s);
    }
    return s->output->state == FINISHED;
}

static uint64_t sink_digest(struct sink *base)
{
    struct sim_sink *s = (struct sim_sink *)base;
    uint64_t sum = 0;

    for (uint32_t i = 0; i < s->output->nodes; i++)
        if (is_expected(s->output, i))
            sum += digest_of(i, intended(s->output, s->node->rank, i),
                             s->output->got[i] == UINT64_MAX ? 0 : s->output->got[i]);
    return sum;
}

static uint32_t root_of(const char *id)
{
    return (uint32_t)strtoul(id, NULL, 10);
}

static void place(struct node *node, struct output *o)
{
    if (!sim_decided(node->sim, root_of(o->id), o->id))
        sim_violated(node->sim, "decision",
                     "node %u puts the output of %s in place, which its root never decided",
                     node->rank, o->id);
    if (o->state != FINISHED)
        sim_violated(node->sim, "whole outputs", "node %u puts an unfinished output in place",
                     node->rank);
    o->state = PLACED;
}

static void commit_over(struct sim *sim, void *object, uint64_t number)
{
    struct sim_sink *s = object;
    struct node *node = s->node;

    (void)sim, (void)number;
    s->syncing = false;
    s->tried = true;
    if (!node->doomed) { /* else dead, in truth */
        if (faulty(node, SIM_DISK_COMMIT, &s->obstacle))
            s->keep = true;
        else
            place(node, s->output);
    }
    if (s->closed)
        sink_gone(s);
    else
        s->events.wake(s->events.context);
}

static int sink_commit(struct sink *base, struct error *e)
{
    struct sim_sink *s = (struct sim_sink *)base;

    if (!s->tried) {
        if (!s->syncing)
            operate(s->node, "placed", commit_over, s);
        s->syncing = true;
        return 0;
    }
    *e = s->obstacle;
    return s->keep ? -1 : 1;
}

static void remove_output(struct node *node, struct output *o)
{
    struct output **at = &node->disk.outputs;

    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    for (uint32_t i = 0; i < o->nodes; i++)
        free(o->arrived[i].run);
    free(o->arrived);
    free(o->got);
    free(o);
}

static void removed(struct sim *sim, void *object, uint64_t number)
{
    struct sim_sink *s = object;

    (void)sim, (void)number;
    s->syncing = false;
    sink_gone(s);
}

/* What was not committed is removed when the operation under way is over, or after a while. */
static bool sink_close(struct sink *base, bool keep)
{
    struct sim_sink *s = (struct sim_sink *)base;
    struct write *next;

    for (struct write *w = s->writes; w != NULL; w = next) {
        next = w->next;
        forget_write(w);
        w->sink = NULL; /* freed when it completes */
    }
    s->keep = s->keep || keep;
    s->closed = true;
    if (!s->syncing && (s->output->state == PLACED || s->keep || s->node->doomed)) {
        free(s);
        return true;
    }
    if (!s->syncing)
        operate(s->node, "removed", removed, s);
    s->syncing = true;
    return false;
}

/* --- storage --- */

static int open_folders(void *context, const struct folder_request *request,
                        const struct block_events *events, struct source **source,
                        struct sink **sink, struct error *e)
{
    static const struct source_ops source_ops = {source_opened, source_lay_out, source_size,
                                                 source_read,   source_finish,  source_digest,
                                                 source_close};
    static const struct sink_ops sink_ops = {sink_opened, sink_lay_out, sink_write,  sink_pending,
                                             sink_finish, sink_digest,  sink_commit, sink_close};
    struct node *node = context;
    struct sim_source *from = sim_alloc(sizeof *from);
    struct sim_sink *to = sim_alloc(sizeof *to);
    struct output *o = sim_alloc(sizeof *o);

    (void)e;
    o->got = sim_alloc(request->nodes * sizeof *o->got);
    o->arrived = sim_alloc(request->nodes * sizeof *o->arrived);
    for (const struct output *other = node->disk.outputs; other != NULL; other = other->next)
        if (strcmp(other->to, request->to) == 0)
            (void)snprintf(from->rival, sizeof from->rival, "%s", request->to);
    from->base = (struct source){&source_ops, true};
    from->node = to->node = node;
    from->events = to->events = *events;
    from->opening = true;
    from->ready_for = UINT32_MAX;
    (void)snprintf(from->from, sizeof from->from, "%s", request->from);
    from->operation = o->operation = request->operation;
    from->sends = folder_sends(request, node->rank);
    o->sender = request->sender;
    memset(o->got, 0xff, request->nodes * sizeof *o->got);
    o->nodes = request->nodes;
    (void)snprintf(o->id, sizeof o->id, "%s", request->id);
    (void)snprintf(o->from, sizeof o->from, "%s", request->from);
    (void)snprintf(o->to, sizeof o->to, "%s", request->to);
    o->next = node->disk.outputs;
    node->disk.outputs = o;
    to->base = (struct sink){&sink_ops, true, CHECK_DIGEST};
    to->output = o;
    begin(from, "opened", source_is_open);
    *source = &from->base;
    *sink = &to->base;
    return 0;
}

/* Something begun, of which somebody is told when it is over. */
struct begun {
    struct node *node;
    uint32_t storage; /* it is told through this one, if it is still the node's */
    char id[EXCHANGE_ID_SIZE];
    bool committed;
    storage_done_fn *done;
    void *argument;
};

static void begin_operation(struct node *node, const char *what, const char *id, bool committed,
                            storage_done_fn *done, void *argument,
                            void (*over)(struct sim *sim, void *object, uint64_t number))
{
    struct begun *op = sim_alloc(sizeof *op);

    *op = (struct begun){node, node->life, "", committed, done, argument};
    (void)snprintf(op->id, sizeof op->id, "%s", id);
    operate(node, what, over, op);
}

/* False: the machine has died meanwhile. */
static bool still_there(const struct begun *op)
{
    return op->node->alive && op->node->life == op->storage;
}

static void tell(struct begun *op, const struct error *e)
{
    op->done(op->argument, op->id, e);
    free(op);
}

static void recorded(struct sim *sim, void *object, uint64_t number)
{
    struct begun *op = object;
    struct node *node = op->node;
    struct disk *disk = &node->disk;
    struct error e;

    (void)sim, (void)number;
    if (!still_there(op)) {
        free(op);
        return;
    }
    if (faulty(node, SIM_DISK_RECORD, &e)) {
        tell(op, &e);
        return;
    }
    disk->decision = sim_realloc(disk->decision, (disk->decisions + 1) * sizeof *disk->decision);
    struct decision *d = &disk->decision[disk->decisions++];
    (void)snprintf(d->id, sizeof d->id, "%s", op->id);
    d->forgotten = false;
    if (node->crash_when_decided)
        node->doomed = true;
    tell(op, NULL);
}

static void record_commit(void *context, const char *id, storage_done_fn *done, void *argument)
{
    begin_operation(context, "recorded", id, true, done, argument, recorded);
}

static struct decision *find_decision(const struct node *node, const char *id)
{
    for (size_t i = 0; i < node->disk.decisions; i++)
        if (strcmp(node->disk.decision[i].id, id) == 0)
            return &node->disk.decision[i];
    return NULL;
}

static void each_committed(void *context, void (*each)(void *argument, const char *id),
                           void *argument)
{
    const struct node *node = context;

    for (size_t i = 0; i < node->disk.decisions; i++)
        if (!node->disk.decision[i].forgotten)
            each(argument, node->disk.decision[i].id);
}

static void forget_commit(void *context, const char *id)
{
    find_decision(context, id)->forgotten = true;
}

static void each_in_doubt(void *context, void (*each)(void *argument, const char *id),
                          void *argument)
{
    for (struct output *o = ((struct node *)context)->disk.outputs; o != NULL; o = o->next)
        if (o->state == FINISHED)
            each(argument, o->id);
}

static void resolved(struct sim *sim, void *object, uint64_t number)
{
    struct begun *op = object;
    struct node *node = op->node;
    struct error e;

    (void)sim, (void)number;
    if (!still_there(op)) {
        free(op);
        return;
    }
    for (struct output *o = node->disk.outputs; o != NULL; o = o->next) {
        if (strcmp(o->id, op->id) != 0)
            continue;
        if (op->committed && faulty(node, SIM_DISK_COMMIT, &e)) {
            tell(op, &e);
            return;
        }
        if (op->committed)
            place(node, o);
        else
            remove_output(node, o);
        tell(op, NULL);
        return;
    }
    sim_fail(sim, "node %u resolves exchange %s, of which it has no output", node->rank, op->id);
}

static void resolve(void *context, const char *id, bool committed, storage_done_fn *done,
                    void *argument)
{
    begin_operation(context, "resolved", id, committed, done, argument, resolved);
}

void disk_storage(struct node *node, struct storage *storage)
{
    *storage = (struct storage){
        .context = node,
        .open_folders = open_folders,
        .record_commit = record_commit,
        .forget_commit = forget_commit,
        .each_committed = each_committed,
        .each_in_doubt = each_in_doubt,
        .resolve = resolve,
    };
}

void disk_storage_closed(struct node *node)
{
    node->life++; /* what is under way belongs to the one before */
}

/* What was never finished is removed, as the daemon does when it starts. */
void disk_after_crash(struct node *node)
{
    struct output *next;

    for (struct output *o = node->disk.outputs; o != NULL; o = next) {
        next = o->next;
        if (o->state == FILLING || o->state == SYNCING)
            remove_output(node, o);
    }
}

void disk_free(struct node *node)
{
    while (node->disk.outputs != NULL)
        remove_output(node, node->disk.outputs);
    free(node->disk.decision);
}

/* --- for tests --- */

void sim_disk_slow(struct sim *sim, uint32_t rank, uint64_t most)
{
    sim->slowed = true;
    sim->node[rank].disk.slowness = most;
}

void sim_disk_full(struct sim *sim, uint32_t rank, bool full)
{
    sim_harmed(sim);
    sim->node[rank].disk.full = full;
}

void sim_check_leftovers(struct sim *sim, uint32_t rank)
{
    const struct disk *disk = &sim->node[rank].disk;

    for (size_t i = 0; i < disk->decisions; i++)
        if (!disk->decision[i].forgotten)
            sim_violated(sim, "leftovers", "node %u still has the decision to commit %s on record",
                         rank, disk->decision[i].id);
    for (const struct output *o = disk->outputs; o != NULL; o = o->next)
        if (o->state != PLACED)
            sim_violated(sim, "leftovers", "node %u still has a temporary output of %s", rank,
                         o->id);
}

void sim_disk_fail(struct sim *sim, uint32_t rank, enum sim_disk_fault fault)
{
    sim_harmed(sim);
    sim->node[rank].disk.fault[fault] = true;
}

bool sim_decided(struct sim *sim, uint32_t rank, const char *id)
{
    return find_decision(&sim->node[rank], id) != NULL;
}

enum sim_output sim_output(struct sim *sim, uint32_t rank, const char *id)
{
    for (const struct output *o = sim->node[rank].disk.outputs; o != NULL; o = o->next) {
        if (strcmp(o->id, id) != 0)
            continue;
        if (o->state != PLACED)
            return SIM_OUTPUT_TEMPORARY;
        for (uint32_t i = 0; i < o->nodes; i++)
            if (o->got[i] != (is_expected(o, i) ? sim_block_size(o->from, i, intended(o, rank, i))
                                                : UINT64_MAX) &&
                (i != rank || o->got[i] != UINT64_MAX))
                sim_violated(sim, "whole outputs",
                             "node %u has half a block from node %u under its final name", rank, i);
        return SIM_OUTPUT_FINAL;
    }
    return SIM_OUTPUT_NONE;
}
