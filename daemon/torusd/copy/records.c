#include "daemon/torusd/copy/records.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/copy/agent.h"
#include "proto/text.h"

#define ALL_SPANS (64u * 1024u) /* of all records together, about */
#define ALL_WANTED (8u * 1024u * 1024u)
#define ALL_CHANGES (256u * 1024u)
#define ALL_GOING (4u * 1024u * 1024u)

uint32_t records_spans_most(const struct copy_plan *p)
{
    const uint32_t each = ALL_SPANS / p->ends;
    return each > 4096 ? 4096 : each < 8 ? 8 : each;
}

size_t records_wanted_most(const struct copy_plan *p)
{
    const size_t each = ALL_WANTED / p->ends;
    return each > TREE_WANTED_MOST ? TREE_WANTED_MOST : each;
}

size_t records_going_most(const struct copy_plan *p)
{
    const size_t each = ALL_GOING / p->ends;
    return each > TREE_GOING_MOST ? TREE_GOING_MOST : each;
}

uint32_t records_changes_most(const struct copy_plan *p)
{
    const uint32_t each = ALL_CHANGES / p->trees;
    return each > 64u * 1024u ? 64u * 1024u : each < 8 ? 8 : each;
}

/* --- writing --- */

static void put(struct record_bytes *out, const void *bytes, size_t length)
{
    if (out->failed || length > RECORD_MOST - out->length) {
        out->failed = true;
        return;
    }
    if (length > out->room - out->length) {
        const size_t room = 2 * out->room + length + 256;
        uint8_t *more = realloc(out->data, room);
        if (more == NULL) {
            out->failed = true;
            return;
        }
        out->data = more;
        out->room = room;
    }
    if (length > 0)
        memcpy(out->data + out->length, bytes, length);
    out->length += length;
}

static void put_number(struct record_bytes *out, uint64_t value)
{
    uint8_t bytes[8];

    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
    put(out, bytes, sizeof bytes);
}

static void put_text(struct record_bytes *out, const char *text, size_t most)
{
    const size_t length = strnlen(text, most);

    put_number(out, length);
    put(out, text, length);
}

static void put_error(struct record_bytes *out, const struct error *e)
{
    put_number(out, (uint64_t)e->code);
    if (e->code != ERROR_NONE)
        put_text(out, e->text, RECORD_ERROR_TEXT);
}

static void put_report(struct record_bytes *out, const struct tree_report *r)
{
    const uint64_t number[] = {r->files,         r->folders,   r->links,         r->added,
                               r->changed,       r->removed,   r->unchanged,     r->bytes,
                               r->bytes_missing, r->not_owned, r->not_attributed};

    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        put_number(out, number[i]);
    put_text(out, r->first, sizeof r->first - 1);
}

static void put_changes(struct record_bytes *out, const struct copy_tree *t)
{
    put_number(out, t->changes);
    for (uint32_t i = 0; i < t->changes; i++)
        put_number(out, t->changed[i]);
    put_text(out, t->first_changed, sizeof t->first_changed - 1);
}

static void put_tree(struct record_bytes *out, enum record_kind kind, const struct copy_plan *p,
                     const struct copy_tree *t)
{
    put_error(out, &t->failed);
    if (t->failed.code != ERROR_NONE)
        return;
    if (kind == RECORD_OPENED) {
        put_number(out, t->size[TREE_MANIFEST]);
        put_number(out, t->stream);
        for (uint32_t i = 0; p->told && i <= t->places; i++)
            put_number(out, i == 0 ? t->places : t->place[i - 1]);
    } else if (kind == RECORD_DIGESTED) {
        put_number(out, t->size[TREE_DIGESTS]);
    } else if (kind == RECORD_CHECKED && p->told) {
        put_changes(out, t);
    }
}

static void put_end(struct record_bytes *out, enum record_kind kind, const struct copy_plan *p,
                    const struct copy_end *end)
{
    put_error(out, &end->error);
    if (end->error.code != ERROR_NONE)
        return;
    if (kind == RECORD_OPENED && p->told) {
        put_number(out, end->granularity);
    } else if (kind == RECORD_COMPARED) {
        const size_t length = end->wanted_length <= records_wanted_most(p) ? end->wanted_length : 0;
        put_number(out, length);
        put(out, end->wanted, length);
    } else if (kind == RECORD_MISSING) {
        put_number(out, end->spans);
        for (uint32_t i = 0; i < end->spans; i++) {
            put_number(out, end->span[i].begin);
            put_number(out, end->span[i].end);
        }
    } else if (kind == RECORD_FINISHED) {
        put_report(out, &end->report);
        if (p->told) {
            put_number(out, end->report.grown);
            put_number(out, end->going_length);
            put(out, end->going, end->going_length);
        }
    }
}

static bool has_trees(enum record_kind kind)
{
    return kind == RECORD_OPENED || kind == RECORD_DIGESTED || kind == RECORD_CHECKED;
}

static bool has_ends(enum record_kind kind)
{
    return kind != RECORD_DIGESTED && kind != RECORD_CHECKED;
}

int records_write(const struct copy_plan *p, enum record_kind kind, uint32_t node,
                  const struct record_of_node *self, struct record_bytes *out, struct error *e)
{
    *out = (struct record_bytes){0};
    put_number(out, (uint64_t)kind);
    if (kind == RECORD_OPENED) {
        put_number(out, self->call_bytes);
        put_number(out, self->left_out);
        put_text(out, self->first_left_out, sizeof p->first_left_out - 1);
        if (p->told) {
            put_number(out, self->links_out);
            put_text(out, self->first_link_out, sizeof p->first_link_out - 1);
        }
    }
    for (uint32_t i = 0; has_trees(kind) && i < p->trees; i++)
        if (p->tree[i].reader == node)
            put_tree(out, kind, p, &p->tree[i]);
    for (uint32_t i = 0; has_ends(kind) && i < p->ends; i++)
        if (p->end[i].node == node)
            put_end(out, kind, p, &p->end[i]);
    if (!out->failed)
        return 0;
    free(out->data);
    *out = (struct record_bytes){0};
    return error_set(e, ERROR_MEMORY, "out of memory for what a copy tells other nodes");
}

/* --- reading --- */

struct reading {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t take_number(struct reading *r)
{
    uint64_t value = 0;

    if (r->bad || r->end - r->at < 8) {
        r->bad = true;
        return 0;
    }
    for (unsigned i = 0; i < 8; i++)
        value |= (uint64_t)r->at[i] << 8 * i;
    r->at += 8;
    return value;
}

/* Returns `length` bytes of the record, or NULL. */
static const uint8_t *take(struct reading *r, uint64_t length)
{
    const uint8_t *at = r->at;

    if (r->bad || length > (uint64_t)(r->end - r->at)) {
        r->bad = true;
        return NULL;
    }
    r->at += length;
    return at;
}

static void take_text(struct reading *r, char *out, size_t size)
{
    const uint64_t length = take_number(r);
    const uint8_t *bytes = length < size ? take(r, length) : NULL;

    out[0] = '\0';
    if (bytes == NULL) {
        r->bad = true;
        return;
    }
    memcpy(out, bytes, length);
    out[length] = '\0';
    text_clean(out);
}

static void take_error(struct reading *r, uint32_t node, struct error *e)
{
    const uint64_t code = take_number(r);
    char text[RECORD_ERROR_TEXT + 1];

    *e = (struct error){.code = ERROR_NONE};
    if (code == ERROR_NONE || r->bad)
        return;
    r->bad |= code > ERROR_BUSY;
    take_text(r, text, sizeof text);
    (void)error_set(e, r->bad ? ERROR_PROTOCOL : (enum error_code)code, "%s", text);
    (void)error_blame_node(e, node);
}

static void take_report(struct reading *r, struct tree_report *to)
{
    uint64_t *const number[] = {&to->files,         &to->folders,   &to->links,         &to->added,
                                &to->changed,       &to->removed,   &to->unchanged,     &to->bytes,
                                &to->bytes_missing, &to->not_owned, &to->not_attributed};

    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        *number[i] = take_number(r);
    take_text(r, to->first, sizeof to->first);
}

static uint64_t take_document_size(struct reading *r)
{
    const uint64_t size = take_number(r);

    r->bad |= size > TREE_DOCUMENT_MOST;
    return size;
}

/* Returns 0, or -1: no memory. */
static int take_places(struct reading *r, struct copy_tree *t)
{
    const uint64_t count = take_number(r);

    r->bad |= count > TREE_PLACES_MOST;
    free(t->place);
    t->place = NULL;
    t->places = 0;
    if (r->bad)
        return 0;
    t->place = calloc(count + 1, sizeof *t->place);
    if (t->place == NULL)
        return -1;
    for (uint64_t i = 0; i < count; i++)
        t->place[i] = take_number(r);
    t->places = (uint32_t)count;
    return 0;
}

/* Numbers must rise; only the last ones, of files without an entry, may be equal. Returns 0, or -1: no memory. */
static int take_changes(struct reading *r, const struct copy_plan *p, struct copy_tree *t)
{
    const uint64_t count = take_number(r);

    r->bad |= count > records_changes_most(p);
    free(t->changed);
    t->changed = NULL;
    t->changes = 0;
    if (r->bad || count > (uint64_t)(r->end - r->at) / 8) {
        r->bad = true;
        return 0;
    }
    t->changed = calloc(count + 1, sizeof *t->changed);
    if (t->changed == NULL)
        return -1;
    for (uint64_t i = 0; i < count; i++) {
        t->changed[i] = take_number(r);
        r->bad |= i > 0 && (t->changed[i] < t->changed[i - 1] ||
                            (t->changed[i] == t->changed[i - 1] && t->changed[i] != UINT64_MAX));
    }
    t->changes = (uint32_t)count;
    take_text(r, t->first_changed, sizeof t->first_changed);
    return 0;
}

static int take_tree(struct reading *r, enum record_kind kind, const struct copy_plan *p,
                     struct copy_tree *t)
{
    take_error(r, t->reader, &t->failed);
    if (t->failed.code != ERROR_NONE) {
        t->size[TREE_MANIFEST] = t->size[TREE_DIGESTS] = 0;
        return 0;
    }
    if (kind == RECORD_OPENED) {
        t->size[TREE_MANIFEST] = take_document_size(r);
        t->stream = take_number(r);
        r->bad |= t->stream > INT64_MAX;
        return p->told ? take_places(r, t) : 0;
    }
    if (kind == RECORD_DIGESTED) {
        t->size[TREE_DIGESTS] = take_document_size(r);
    } else if (kind == RECORD_CHECKED && p->told) {
        return take_changes(r, p, t);
    }
    return 0;
}

/* At the end's own node it keeps what it has. */
static int take_wanted(struct reading *r, struct copy_plan *p, struct copy_end *end)
{
    const uint64_t length = take_number(r);
    const uint8_t *bytes = length <= records_wanted_most(p) ? take(r, length) : NULL;
    uint8_t *copy;

    r->bad |= bytes == NULL;
    if (r->bad || length == 0)
        return 0;
    copy = malloc(length);
    if (copy == NULL)
        return -1;
    memcpy(copy, bytes, length);
    free(end->wanted);
    end->wanted = copy;
    end->wanted_length = length;
    p->wants = true;
    return 0;
}

/* Paths, each with a 0 byte behind it. At the end's own node it keeps what it has. */
static int take_going(struct reading *r, const struct copy_plan *p, struct copy_end *end)
{
    const uint64_t length = take_number(r);
    const uint8_t *bytes = length <= records_going_most(p) ? take(r, length) : NULL;
    uint8_t *copy;

    r->bad |= bytes == NULL || (length > 0 && bytes[length - 1] != 0);
    if (r->bad || length == 0)
        return 0;
    copy = malloc(length);
    if (copy == NULL)
        return -1;
    memcpy(copy, bytes, length);
    free(end->going);
    end->going = copy;
    end->going_length = length;
    return 0;
}

static int take_spans(struct reading *r, const struct copy_plan *p, const struct copy_end *end)
{
    struct copy_tree *tree = &p->tree[end->tree];
    const uint64_t count = take_number(r);

    r->bad |= count > records_spans_most(p);
    for (uint64_t i = 0, last = 0; i < count && !r->bad; i++) {
        const struct tree_span span = {take_number(r), take_number(r)};
        r->bad |= span.begin >= span.end || span.end > tree->stream || (i > 0 && span.begin < last);
        last = span.end;
        if (!r->bad && copy_spans_add(&tree->missing, span) != 0)
            return -1;
    }
    return 0;
}

static int take_end(struct reading *r, enum record_kind kind, struct copy_plan *p,
                    struct copy_end *end)
{
    int result = 0;

    take_error(r, end->node, &end->error);
    if (end->error.code != ERROR_NONE || r->bad)
        return 0;
    if (kind == RECORD_OPENED && p->told) {
        end->granularity = take_number(r);
    } else if (kind == RECORD_COMPARED) {
        result = take_wanted(r, p, end);
    } else if (kind == RECORD_MISSING) {
        result = take_spans(r, p, end);
    } else if (kind == RECORD_FINISHED) {
        take_report(r, &end->report);
        end->report.grown = p->told ? take_number(r) : 0;
        result = p->told ? take_going(r, p, end) : 0;
    }
    return result;
}

static void take_node(struct reading *r, struct copy_plan *p)
{
    char first[sizeof p->first_left_out];
    const uint64_t call_bytes = take_number(r), left_out = take_number(r);

    take_text(r, first, sizeof first);
    r->bad |= call_bytes < COPY_CALL_LEAST || call_bytes > COPY_CALL_MOST;
    if (p->call_bytes == 0 || call_bytes < p->call_bytes)
        p->call_bytes = (uint32_t)call_bytes;
    if (p->left_out == 0 && left_out > 0)
        (void)strcpy(p->first_left_out, first);
    p->left_out += left_out;
    if (!p->told)
        return;
    const uint64_t links_out = take_number(r);
    take_text(r, first, sizeof first);
    if (p->links_out == 0 && links_out > 0)
        (void)strcpy(p->first_link_out, first);
    p->links_out += links_out;
}

int records_read(struct copy_plan *p, enum record_kind kind, uint32_t node, const uint8_t *bytes,
                 size_t length, struct error *e)
{
    struct reading r = {bytes, bytes + length, false};
    int result = 0;

    r.bad |= take_number(&r) != (uint64_t)kind;
    if (kind == RECORD_OPENED)
        take_node(&r, p);
    for (uint32_t i = 0; has_trees(kind) && i < p->trees && !r.bad && result == 0; i++)
        if (p->tree[i].reader == node)
            result = take_tree(&r, kind, p, &p->tree[i]);
    for (uint32_t i = 0; has_ends(kind) && i < p->ends && !r.bad && result == 0; i++)
        if (p->end[i].node == node)
            result = take_end(&r, kind, p, &p->end[i]);
    if (result != 0)
        return error_set(e, ERROR_MEMORY, "out of memory for what other nodes tell of a copy");
    if (!r.bad && r.at == r.end)
        return 0;
    (void)error_set(e, ERROR_PROTOCOL, "node %u has told something of the copy that is malformed",
                    node);
    return error_blame_node(e, node);
}

/* --- records of all members --- */

static int fail(struct agent *a, const struct error *e)
{
    record_gathering_end(a);
    agent_fail(a, e);
    return -1;
}

static int fail_for_memory(struct agent *a)
{
    record_gathering_end(a);
    agent_fail_for_memory(a);
    return -1;
}

void record_gathering_end(struct agent *a)
{
    struct record_gathering *g = &a->gathering;

    program_memory_unref(g->memory);
    free(g->record);
    free(g->lengths);
    free(g->offsets);
    *g = (struct record_gathering){0};
}

/* What this node has left out, and can take at once. */
static void describe_node(const struct agent *a, struct record_of_node *self)
{
    *self = (struct record_of_node){
        .call_bytes = a->call_bytes, .first_left_out = "", .first_link_out = ""};
    for (uint32_t i = 0; i < a->plan.trees; i++) {
        const struct copy_tree *tree = &a->plan.tree[i];
        const char *first = "";
        if (tree->r == NULL)
            continue;
        self->left_out += a->set.trees->left_out(tree->r, &first);
        if (self->first_left_out[0] == '\0')
            self->first_left_out = first;
        self->links_out += a->set.trees->links_out(tree->r, &first);
        if (self->first_link_out[0] == '\0')
            self->first_link_out = first;
    }
}

int record_gathering_begin(struct agent *a, enum record_kind kind)
{
    struct record_gathering *g = &a->gathering;
    struct record_of_node self;
    struct record_bytes record;
    struct error e;

    describe_node(a, &self);
    if (records_write(&a->plan, kind, agent_rank(a), &self, &record, &e) != 0) {
        (void)error_blame_node(&e, agent_rank(a));
        agent_fail(a, &e);
        return -1;
    }
    *g = (struct record_gathering){.state = GATHERING_LENGTHS,
                                   .record = record.data,
                                   .length = record.length,
                                   .lengths = calloc(a->members, sizeof *g->lengths),
                                   .offsets = calloc(a->members, sizeof *g->offsets),
                                   .memory = copy_memory_new(8 + 8 * (uint64_t)a->members)};
    if (g->memory == NULL || g->lengths == NULL || g->offsets == NULL)
        return fail_for_memory(a);
    const uint64_t length = htole64(g->length);
    memcpy(g->memory->data, &length, sizeof length);
    const struct group_call call = {.operation = GROUP_ALLGATHER,
                                    .size = 8,
                                    .send = {g->memory, 0, 8},
                                    .receive = {g->memory, 8, 8 * (uint64_t)a->members}};
    return agent_call(a, &call, GATHERING_CALL);
}

/* Takes the lengths, and begins to gather the records. */
static int gather_bytes(struct agent *a)
{
    struct record_gathering *g = &a->gathering;
    uint64_t all = 0;
    struct error e;

    for (uint32_t i = 0; i < a->members; i++) {
        uint64_t length;
        memcpy(&length, g->memory->data + 8 + 8 * (size_t)i, sizeof length);
        g->lengths[i] = le64toh(length);
        g->offsets[i] = all;
        if (g->lengths[i] > RECORD_MOST || all + g->lengths[i] > RECORDS_MOST) {
            (void)error_set(&e, ERROR_PROTOCOL, "node %u tells too much of a copy", a->node[i]);
            (void)error_blame_node(&e, a->node[i]);
            return fail(a, &e);
        }
        all += g->lengths[i];
    }
    program_memory_unref(g->memory);
    g->memory = copy_memory_new(g->length + all);
    if (g->memory == NULL)
        return fail_for_memory(a);
    memcpy(g->memory->data, g->record, g->length);
    g->state = GATHERING_BYTES;
    const struct group_call call = {.operation = GROUP_ALLGATHERV,
                                    .send = {g->memory, 0, g->length},
                                    .receive = {g->memory, g->length, all},
                                    .receive_size = g->lengths,
                                    .receive_offset = g->offsets};
    return agent_call(a, &call, GATHERING_CALL);
}

int record_gathering_called(struct agent *a, enum record_kind kind)
{
    struct record_gathering *g = &a->gathering;
    struct error e;

    if (g->state == GATHERING_LENGTHS)
        return gather_bytes(a);
    for (uint32_t i = 0; i < a->members; i++)
        if (records_read(&a->plan, kind, a->node[i], g->memory->data + g->length + g->offsets[i],
                         g->lengths[i], &e) != 0)
            return fail(a, &e);
    record_gathering_end(a);
    return 1;
}
