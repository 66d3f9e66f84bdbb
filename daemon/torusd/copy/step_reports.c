#include "daemon/torusd/copy/step_reports.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/copy/agent.h"
#include "proto/text.h"

#define ALL_SPANS (64u * 1024u) /* of all step reports together, about */
#define ALL_WANTED (8u * 1024u * 1024u)
#define ALL_CHANGES (256u * 1024u)
#define ALL_GOING (4u * 1024u * 1024u)

uint32_t step_reports_spans_most(const struct copy_plan *p)
{
    const uint32_t each = ALL_SPANS / p->ends;
    return each > 4096 ? 4096 : each < 8 ? 8 : each;
}

size_t step_reports_wanted_most(const struct copy_plan *p)
{
    const size_t each = ALL_WANTED / p->ends;
    return each > TREE_WANTED_MOST ? TREE_WANTED_MOST : each;
}

size_t step_reports_going_most(const struct copy_plan *p)
{
    const size_t each = ALL_GOING / p->ends;
    return each > TREE_GOING_MOST ? TREE_GOING_MOST : each;
}

uint32_t step_reports_changes_most(const struct copy_plan *p)
{
    const uint32_t each = ALL_CHANGES / p->trees;
    return each > 64u * 1024u ? 64u * 1024u : each < 8 ? 8 : each;
}

/* --- what step reports have --- */

/* Writes the fields of a step report, or reads them: each is named once. */
struct codec {
    struct step_report_bytes *out; /* NULL: reads */
    const uint8_t *at, *end;       /* of what is read */
    bool bad;                      /* what is read is malformed */
};

static void put(struct step_report_bytes *out, const void *bytes, size_t length)
{
    if (out->failed || length > STEP_REPORT_MOST - out->length) {
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

/* Returns `length` bytes of the step report, or NULL. */
static const uint8_t *take(struct codec *c, uint64_t length)
{
    const uint8_t *at = c->at;

    if (c->bad || length > (uint64_t)(c->end - c->at)) {
        c->bad = true;
        return NULL;
    }
    c->at += length;
    return at;
}

/* Reads or writes a number in 8 bytes, the lowest first. */
static void code_number(struct codec *c, uint64_t *value)
{
    uint8_t bytes[8];

    if (c->out != NULL) {
        for (unsigned i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)(*value >> 8 * i);
        put(c->out, bytes, sizeof bytes);
        return;
    }
    const uint8_t *at = take(c, sizeof bytes);
    *value = 0;
    for (unsigned i = 0; at != NULL && i < sizeof bytes; i++)
        *value |= (uint64_t)at[i] << 8 * i;
}

/* Writes a number that is known, or reads one. Returns it. */
static uint64_t code_value(struct codec *c, uint64_t value)
{
    code_number(c, &value);
    return value;
}

static void code_limited(struct codec *c, uint64_t *value, uint64_t most)
{
    code_number(c, value);
    c->bad |= c->out == NULL && *value > most;
}

/* Reads or writes a text in an array of `size` bytes; a longer one is cut when it is written. */
static void code_text(struct codec *c, char *text, size_t size)
{
    const uint64_t length = code_value(c, c->out != NULL ? strnlen(text, size - 1) : 0);

    if (c->out != NULL) {
        put(c->out, text, length);
        return;
    }
    const uint8_t *bytes = length < size ? take(c, length) : NULL;
    c->bad |= bytes == NULL;
    if (bytes != NULL)
        memcpy(text, bytes, length);
    text[bytes != NULL ? length : 0] = '\0';
    text_clean(text);
}

/* Reads or writes an error of this node. */
static void code_error(struct codec *c, uint32_t node, struct error *e)
{
    const uint64_t code = code_value(c, (uint64_t)e->code);
    char cause[STEP_REPORT_ERROR_TEXT + 1];

    if (c->out != NULL) {
        if (code != ERROR_NONE)
            code_text(c, e->text, sizeof cause);
        return;
    }
    *e = (struct error){.code = ERROR_NONE};
    if (code == ERROR_NONE || c->bad)
        return;
    c->bad |= code > ERROR_BUSY;
    code_text(c, cause, sizeof cause);
    (void)error_set(e, c->bad ? ERROR_PROTOCOL : (enum error_code)code, "%s", cause);
    (void)error_blame_node(e, node);
}

static void code_report(struct codec *c, struct tree_report *r)
{
    uint64_t *const field[] = {&r->files,         &r->folders,   &r->links,         &r->added,
                               &r->changed,       &r->removed,   &r->unchanged,     &r->bytes,
                               &r->bytes_missing, &r->not_owned, &r->not_attributed};

    for (size_t i = 0; i < sizeof field / sizeof *field; i++)
        code_number(c, field[i]);
    code_text(c, r->first, sizeof r->first);
}

/* A list of at most `most` numbers, which is replaced. Returns 0, or -1: no memory. */
static int code_numbers(struct codec *c, uint64_t **list, uint32_t *count, uint32_t most)
{
    const uint64_t n = code_value(c, *count);

    if (c->out == NULL) {
        free(*list);
        *list = NULL;
        *count = 0;
        c->bad |= n > most || n > (uint64_t)(c->end - c->at) / 8;
        if (c->bad)
            return 0;
        *list = calloc(n + 1, sizeof **list);
        if (*list == NULL)
            return -1;
        *count = (uint32_t)n;
    }
    for (uint64_t i = 0; i < n; i++)
        code_number(c, &(*list)[i]);
    return 0;
}

/* At most `most` bytes; more are left out. A reader keeps its own places if it hears of none. Returns 1 if any were
 * read, 0, or -1: no memory. */
static int code_bytes(struct codec *c, uint8_t **data, size_t *size, size_t most)
{
    const uint64_t length = code_value(c, *size <= most ? *size : 0);

    if (c->out != NULL) {
        put(c->out, *data, length);
        return 0;
    }
    const uint8_t *from = length <= most ? take(c, length) : NULL;
    c->bad |= from == NULL;
    if (c->bad || length == 0)
        return 0;
    uint8_t *copy = malloc(length);
    if (copy == NULL)
        return -1;
    memcpy(copy, from, length);
    free(*data);
    *data = copy;
    *size = length;
    return 1;
}

/* Numbers must rise; only the last ones, of files without an entry, may be equal. Returns 0, or -1: no memory. */
static int code_changes(struct codec *c, const struct copy_plan *p, struct copy_tree *t)
{
    if (code_numbers(c, &t->changed, &t->changes, step_reports_changes_most(p)) != 0)
        return -1;
    for (uint32_t i = 1; c->out == NULL && i < t->changes; i++)
        c->bad |= t->changed[i] < t->changed[i - 1] ||
                  (t->changed[i] == t->changed[i - 1] && t->changed[i] != UINT64_MAX);
    if (!c->bad)
        code_text(c, t->first_changed, sizeof t->first_changed);
    return 0;
}

static int code_tree(struct codec *c, enum step_report_kind kind, const struct copy_plan *p,
                     struct copy_tree *t)
{
    code_error(c, t->reader, &t->failed);
    if (t->failed.code != ERROR_NONE) {
        if (c->out == NULL)
            t->size[TREE_MANIFEST] = t->size[TREE_DIGESTS] = 0;
        return 0;
    }
    if (kind == STEP_REPORT_OPENED) {
        code_limited(c, &t->size[TREE_MANIFEST], TREE_DOCUMENT_MOST);
        code_limited(c, &t->stream, INT64_MAX);
        return p->told ? code_numbers(c, &t->place, &t->places, TREE_PLACES_MOST) : 0;
    }
    if (kind == STEP_REPORT_DIGESTED)
        code_limited(c, &t->size[TREE_DIGESTS], TREE_DOCUMENT_MOST);
    return kind == STEP_REPORT_CHECKED && p->told ? code_changes(c, p, t) : 0;
}

/* Ranges that are missing: rising, of the tree's stream. A reader adds them to what is missing anywhere. */
static int code_spans(struct codec *c, const struct copy_plan *p, const struct copy_end *end)
{
    struct copy_tree *tree = &p->tree[end->tree];
    uint64_t last = 0, count = code_value(c, end->spans);

    c->bad |= c->out == NULL && count > step_reports_spans_most(p);
    for (uint64_t i = 0; i < count && !c->bad; i++) {
        struct interval span = c->out != NULL ? end->span[i] : (struct interval){0};
        code_number(c, &span.begin);
        code_number(c, &span.end);
        if (c->out != NULL)
            continue;
        c->bad |= span.begin >= span.end || span.end > tree->stream || span.begin < last;
        last = span.end;
        if (!c->bad && intervals_add(&tree->missing, span.begin, span.end) != 0)
            return -1;
    }
    return 0;
}

static int code_finished(struct codec *c, const struct copy_plan *p, struct copy_end *end)
{
    code_report(c, &end->report);
    if (!p->told) {
        if (c->out == NULL)
            end->report.grown = 0;
        return 0;
    }
    code_number(c, &end->report.grown);
    const int result = code_bytes(c, &end->going, &end->going_length, step_reports_going_most(p));
    c->bad |= result == 1 && end->going[end->going_length - 1] != 0;
    return result;
}

static int code_end(struct codec *c, enum step_report_kind kind, struct copy_plan *p,
                    struct copy_end *end)
{
    int result = 0;

    code_error(c, end->node, &end->error);
    if (end->error.code != ERROR_NONE || c->bad)
        return 0;
    if (kind == STEP_REPORT_OPENED && p->told) {
        code_number(c, &end->granularity);
    } else if (kind == STEP_REPORT_COMPARED) {
        result = code_bytes(c, &end->wanted, &end->wanted_length, step_reports_wanted_most(p));
        p->wants |= result == 1;
    } else if (kind == STEP_REPORT_MISSING) {
        result = code_spans(c, p, end);
    } else if (kind == STEP_REPORT_FINISHED) {
        result = code_finished(c, p, end);
    }
    return result < 0 ? -1 : 0;
}

/* What a node tells of itself. */
static void code_node(struct codec *c, struct copy_plan *p, const struct step_report_of_node *self)
{
    char left_out[sizeof p->first_left_out] = "", link_out[sizeof p->first_link_out] = "";
    uint64_t call_bytes = self->call_bytes, left = self->left_out, links = self->links_out;

    if (c->out != NULL) {
        (void)snprintf(left_out, sizeof left_out, "%s", self->first_left_out);
        (void)snprintf(link_out, sizeof link_out, "%s", self->first_link_out);
    }
    code_number(c, &call_bytes);
    code_number(c, &left);
    code_text(c, left_out, sizeof left_out);
    if (p->told) {
        code_number(c, &links);
        code_text(c, link_out, sizeof link_out);
    }
    if (c->out != NULL)
        return;
    c->bad |= call_bytes < COPY_CALL_LEAST || call_bytes > COPY_CALL_MOST;
    if (p->call_bytes == 0 || call_bytes < p->call_bytes)
        p->call_bytes = (uint32_t)call_bytes;
    if (p->left_out == 0 && left > 0)
        (void)strcpy(p->first_left_out, left_out);
    if (p->links_out == 0 && links > 0)
        (void)strcpy(p->first_link_out, link_out);
    p->left_out += left;
    p->links_out += links;
}

static bool has_trees(enum step_report_kind kind)
{
    return kind == STEP_REPORT_OPENED || kind == STEP_REPORT_DIGESTED ||
           kind == STEP_REPORT_CHECKED;
}

static bool has_ends(enum step_report_kind kind)
{
    return kind != STEP_REPORT_DIGESTED && kind != STEP_REPORT_CHECKED;
}

/* Returns 0, or -1: no memory. */
static int code_step_report(struct codec *c, struct copy_plan *p, enum step_report_kind kind,
                            uint32_t node, const struct step_report_of_node *self)
{
    int result = 0;

    c->bad |= code_value(c, (uint64_t)kind) != (uint64_t)kind;
    if (kind == STEP_REPORT_OPENED)
        code_node(c, p, self);
    for (uint32_t i = 0; has_trees(kind) && i < p->trees && !c->bad && result == 0; i++)
        if (p->tree[i].reader == node)
            result = code_tree(c, kind, p, &p->tree[i]);
    for (uint32_t i = 0; has_ends(kind) && i < p->ends && !c->bad && result == 0; i++)
        if (p->end[i].node == node)
            result = code_end(c, kind, p, &p->end[i]);
    return result;
}

int step_reports_write(const struct copy_plan *p, enum step_report_kind kind, uint32_t node,
                       const struct step_report_of_node *self, struct step_report_bytes *out,
                       struct error *e)
{
    struct codec c = {.out = out};

    *out = (struct step_report_bytes){0};
    /* writing does not change the plan */
    (void)code_step_report(&c, (struct copy_plan *)(uintptr_t)p, kind, node, self);
    if (!out->failed)
        return 0;
    free(out->data);
    *out = (struct step_report_bytes){0};
    return error_set(e, ERROR_MEMORY, "out of memory for a step report of a copy");
}

int step_reports_read(struct copy_plan *p, enum step_report_kind kind, uint32_t node,
                      const uint8_t *data, size_t length, struct error *e)
{
    static const struct step_report_of_node none = {0};
    struct codec c = {.at = data, .end = data + length};

    if (code_step_report(&c, p, kind, node, &none) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory for the step reports of a copy");
    if (!c.bad && c.at == c.end)
        return 0;
    (void)error_set(e, ERROR_PROTOCOL, "node %u sent a malformed step report of the copy", node);
    return error_blame_node(e, node);
}

/* --- records of all members --- */

static int fail(struct agent *a, const struct error *e)
{
    step_report_gathering_end(a);
    agent_fail(a, e);
    return -1;
}

static int fail_for_memory(struct agent *a)
{
    step_report_gathering_end(a);
    agent_fail_for_memory(a);
    return -1;
}

void step_report_gathering_end(struct agent *a)
{
    struct step_report_gathering *g = &a->gathering;

    program_memory_unref(g->memory);
    free(g->report);
    free(g->lengths);
    free(g->offsets);
    *g = (struct step_report_gathering){0};
}

/* What this node has left out, and can take at once. */
static void describe_node(const struct agent *a, struct step_report_of_node *self)
{
    *self = (struct step_report_of_node){
        .call_bytes = a->call_bytes, .first_left_out = "", .first_link_out = ""};
    for (uint32_t i = 0; i < a->plan.trees; i++) {
        const struct copy_tree *tree = &a->plan.tree[i];
        if (tree->r == NULL)
            continue;
        const struct tree_facts facts = a->set.trees->facts(tree->r);
        self->left_out += facts.left_out;
        self->links_out += facts.links_out;
        if (self->first_left_out[0] == '\0')
            self->first_left_out = facts.first_left_out;
        if (self->first_link_out[0] == '\0')
            self->first_link_out = facts.first_link_out;
    }
}

int step_report_gathering_begin(struct agent *a, enum step_report_kind kind)
{
    struct step_report_gathering *g = &a->gathering;
    struct step_report_of_node self;
    struct step_report_bytes report;
    struct error e;

    describe_node(a, &self);
    if (step_reports_write(&a->plan, kind, agent_rank(a), &self, &report, &e) != 0) {
        (void)error_blame_node(&e, agent_rank(a));
        agent_fail(a, &e);
        return -1;
    }
    *g = (struct step_report_gathering){.state = GATHERING_LENGTHS,
                                        .report = report.data,
                                        .length = report.length,
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

/* Takes the lengths, and begins to gather the step reports. */
static int gather_bytes(struct agent *a)
{
    struct step_report_gathering *g = &a->gathering;
    uint64_t all = 0;
    struct error e;

    for (uint32_t i = 0; i < a->members; i++) {
        uint64_t length;
        memcpy(&length, g->memory->data + 8 + 8 * (size_t)i, sizeof length);
        g->lengths[i] = le64toh(length);
        g->offsets[i] = all;
        if (g->lengths[i] > STEP_REPORT_MOST || all + g->lengths[i] > STEP_REPORTS_MOST) {
            (void)error_set(&e, ERROR_PROTOCOL,
                            "node %u has a step report of a copy that is too long", a->node[i]);
            (void)error_blame_node(&e, a->node[i]);
            return fail(a, &e);
        }
        all += g->lengths[i];
    }
    program_memory_unref(g->memory);
    g->memory = copy_memory_new(g->length + all);
    if (g->memory == NULL)
        return fail_for_memory(a);
    memcpy(g->memory->data, g->report, g->length);
    g->state = GATHERING_BYTES;
    const struct group_call call = {.operation = GROUP_ALLGATHERV,
                                    .send = {g->memory, 0, g->length},
                                    .receive = {g->memory, g->length, all},
                                    .receive_size = g->lengths,
                                    .receive_offset = g->offsets};
    return agent_call(a, &call, GATHERING_CALL);
}

int step_report_gathering_called(struct agent *a, enum step_report_kind kind)
{
    struct step_report_gathering *g = &a->gathering;
    struct error e;

    if (g->state == GATHERING_LENGTHS)
        return gather_bytes(a);
    for (uint32_t i = 0; i < a->members; i++)
        if (step_reports_read(&a->plan, kind, a->node[i],
                              g->memory->data + g->length + g->offsets[i], g->lengths[i], &e) != 0)
            return fail(a, &e);
    step_report_gathering_end(a);
    return 1;
}
