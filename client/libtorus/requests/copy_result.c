#include "client/libtorus/requests/copy_result.h"

#include <stdlib.h>
#include <string.h>

#include "client/libtorus/common/fail.h"
#include "client/libtorus/requests/reply_parts.h"
#include "proto/text.h"

struct copy_holder {
    struct torus_copy_result result; /* must be first: torus_copy_result_free() casts it back */
    Control__Reply *reply;
    struct torus_copy_node *node;
    const struct torus_copy_node **nodes;
    char **first; /* of each node */
    struct going {
        char **path;
        size_t count;
    } * going; /* of each node */
    char *left_out, *skipped, *link_out;
};

static void free_going(struct going *g)
{
    for (size_t i = 0; i < g->count; i++)
        free(g->path[i]);
    free((void *)g->path);
}

void torus_copy_result_free(struct torus_copy_result *result)
{
    struct copy_holder *h = (struct copy_holder *)result;

    if (h == NULL)
        return;
    for (size_t i = 0; h->first != NULL && i < h->result.node_count; i++)
        free(h->first[i]);
    for (size_t i = 0; h->going != NULL && i < h->reply->copy_result->n_node; i++)
        free_going(&h->going[i]);
    free(h->going);
    free(h->link_out);
    control__reply__free_unpacked(h->reply, NULL);
    free(h->node);
    free(h->nodes);
    free(h->first);
    free(h->left_out);
    free(h->skipped);
    free(h);
}

static int order(const Control__CopyResult__Node *x, const Control__CopyResult__Node *y)
{
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

static int by_rank(const void *a, const void *b)
{
    return order(*(Control__CopyResult__Node *const *)a, *(Control__CopyResult__Node *const *)b);
}

static int check(const Control__CopyResult *in, struct torus_error *e)
{
    if (in->id[0] == '\0')
        return invalid_reply(e, "it has no id");
    if (in->compare_nanoseconds > in->nanoseconds)
        return invalid_reply(e, "a part of its time is longer than the whole");
    for (size_t i = 1; i < in->n_node; i++)
        if (order(in->node[i - 1], in->node[i]) >= 0)
            return invalid_reply(e, "it has two results of one node");
    for (size_t i = 1; i < in->n_absent; i++)
        if (in->absent[i] <= in->absent[i - 1])
            return invalid_reply(e, "its absent nodes are not in order");
    return 0;
}

static enum torus_error_code code_of(uint32_t code)
{
    return code <= TORUS_ERROR_BUSY ? (enum torus_error_code)code : TORUS_ERROR_PROTOCOL;
}

/* Returns the text of bytes that the daemon has already made printable, without a 0 byte at their end. The caller
 * frees it. */
static char *printable(const ProtobufCBinaryData *bytes)
{
    char *text = malloc(bytes->len + 1);

    if (text == NULL)
        return NULL;
    if (bytes->len > 0)
        memcpy(text, bytes->data, bytes->len);
    text[bytes->len] = '\0';
    text_clean(text);
    return text;
}

enum torus_copy_phase copy_phase_of(uint32_t number)
{
    return number < TORUS_COPY_PLACING ? (enum torus_copy_phase)number : TORUS_COPY_PLACING;
}

int copies_from(const Control__Status *status, struct torus_copy_activity **one,
                const struct torus_copy_activity ***list, struct torus_error *e)
{
    *one = array_new(status->n_copy, sizeof **one);
    *list = array_new(status->n_copy, sizeof **list);
    if (*one == NULL || *list == NULL)
        return fail_memory(e);
    for (size_t i = 0; i < status->n_copy; i++) {
        const Control__Status__Copy *from = status->copy[i];
        (*one)[i] = (struct torus_copy_activity){
            .id = clean_text(from->id),
            .asker = from->asker,
            .target = clean_text(from->target),
            .phase = copy_phase_of(from->phase),
            .files = from->files,
            .bytes = from->bytes,
            .bytes_of = from->bytes_of,
            .waits_for = clean_text(from->waits_for),
        };
        (*list)[i] = &(*one)[i];
    }
    return 0;
}

/* Takes paths, each of which has a 0 byte behind it. */
static int fill_going(struct going *g, const ProtobufCBinaryData *bytes, struct torus_error *e)
{
    size_t count = 0;

    for (size_t i = 0; i < bytes->len; i++)
        count += bytes->data[i] == 0;
    g->path = array_new(count, sizeof *g->path);
    if (g->path == NULL)
        return fail_memory(e);
    for (size_t at = 0, length; g->count < count; at += length + 1) {
        length = strnlen((const char *)bytes->data + at, bytes->len - at);
        g->path[g->count] = text_escaped(bytes->data + at, length);
        if (g->path[g->count++] == NULL)
            return fail_memory(e);
    }
    return 0;
}

static int fill_node(struct copy_holder *h, size_t i, struct torus_error *e)
{
    const Control__CopyResult__Node *in = h->reply->copy_result->node[i];

    h->first[i] = printable(&in->first);
    if (h->first[i] == NULL)
        return fail_memory(e);
    if (fill_going(&h->going[i], &in->going, e) != 0)
        return -1;
    h->node[i] = (struct torus_copy_node){
        .rank = in->rank,
        .from = in->from,
        .code = code_of(in->code),
        .error = clean_text(in->error),
        .files = in->files,
        .folders = in->folders,
        .links = in->links,
        .added = in->added,
        .changed = in->changed,
        .removed = in->removed,
        .unchanged = in->unchanged,
        .bytes = in->bytes,
        .bytes_missing = in->bytes_missing,
        .not_owned = in->not_owned,
        .not_attributed = in->not_attributed,
        .first = h->first[i],
        .grown = in->grown,
        .going_count = h->going[i].count,
        .going = (const char *const *)h->going[i].path,
    };
    if (in->code == 0)
        h->node[i].error = "";
    else if (in->error[0] == '\0')
        h->node[i].error = "the node gave no reason";
    h->nodes[i] = &h->node[i];
    return 0;
}

static int fill(struct copy_holder *h, struct torus_error *e)
{
    Control__CopyResult *in = h->reply->copy_result;

    if (in->n_node > 1)
        qsort(in->node, in->n_node, sizeof *in->node, by_rank);
    if (check(in, e) != 0)
        return -1;
    h->node = array_new(in->n_node, sizeof *h->node);
    h->nodes = array_new(in->n_node, sizeof *h->nodes);
    h->first = array_new(in->n_node, sizeof *h->first);
    h->left_out = text_escaped(in->first_left_out.data, in->first_left_out.len);
    h->going = array_new(in->n_node, sizeof *h->going);
    h->link_out = text_escaped(in->first_link_out.data, in->first_link_out.len);
    h->skipped = text_escaped(in->first_skipped.data, in->first_skipped.len);
    if (h->node == NULL || h->nodes == NULL || h->first == NULL || h->left_out == NULL ||
        h->skipped == NULL || h->going == NULL || h->link_out == NULL)
        return fail_memory(e);
    h->result = (struct torus_copy_result){
        .id = clean_text(in->id),
        .node_count = in->n_node,
        .node = h->nodes,
        .bytes_sent = in->bytes_sent,
        .bytes_all = in->bytes_all,
        .nanoseconds = in->nanoseconds,
        .compare_nanoseconds = in->compare_nanoseconds,
        .left_out = in->left_out,
        .first_left_out = h->left_out,
        .attempts = in->attempts > 0 ? in->attempts : 1,
        .absent_count = in->n_absent,
        .absent = in->absent,
        .links_out = in->links_out,
        .first_link_out = h->link_out,
        .skipped = in->skipped,
        .first_skipped = h->skipped,
    };
    for (size_t i = 0; i < in->n_node; i++)
        if (fill_node(h, i, e) != 0)
            return -1;
    return 0;
}

int copy_result_from(Control__Reply *reply, void *result, struct torus_error *e)
{
    struct copy_holder *h = calloc(1, sizeof *h);
    struct torus_copy_result **out = result;

    if (h == NULL) {
        control__reply__free_unpacked(reply, NULL);
        return fail_memory(e);
    }
    h->reply = reply;
    if (fill(h, e) != 0) {
        torus_copy_result_free(&h->result);
        return -1;
    }
    *out = &h->result;
    return 0;
}
