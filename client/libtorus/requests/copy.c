/* Copies of trees of files: the request and its result. */
#include <stdlib.h>
#include <string.h>

#include "client/libtorus/common.h"
#include "client/libtorus/requests/client.h"
#include "client/libtorus/requests/results.h"
#include "proto/text.h"

#define REQUEST_MOST (16u * 1024u) /* bytes of a packed request, as in the daemon */

/* ---- The result ------------------------------------------------------------------------------ */

void torus_copy_result_free(struct torus_copy_result *result)
{
    result_free(result);
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

static int check_result(const Control__CopyResult *in, struct torus_error *e)
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

/* Adds the text of bytes that the daemon has already made printable, without a 0 byte at their end. */
static const char *add_text(void *result, const ProtobufCBinaryData *bytes)
{
    char *text = result_array(result, bytes->len + 1, 1);

    if (text == NULL)
        return NULL;
    if (bytes->len > 0)
        memcpy(text, bytes->data, bytes->len);
    text_clean(text);
    return text;
}

/* Adds paths, each of which has a 0 byte behind it. Returns NULL if there is no memory. */
static char **add_going(void *result, const ProtobufCBinaryData *bytes, size_t *count)
{
    char **path;

    *count = 0;
    for (size_t i = 0; i < bytes->len; i++)
        *count += bytes->data[i] == 0;
    path = result_array(result, *count, sizeof *path);
    for (size_t i = 0, at = 0, length; path != NULL && i < *count; i++, at += length + 1) {
        length = strnlen((const char *)bytes->data + at, bytes->len - at);
        path[i] = result_keep(result, text_escaped(bytes->data + at, length));
        if (path[i] == NULL)
            return NULL;
    }
    return path;
}

static int fill_node(void *result, struct torus_copy_node *to,
                     const Control__CopyResult__Node *from, struct torus_error *e)
{
    CONTROL_COPY_NODE(CONTROL_READ)
    to->first = add_text(result, &from->first);
    to->going = (const char *const *)add_going(result, &from->going, &to->going_count);
    if (to->first == NULL || to->going == NULL)
        return fail_memory(e);
    if (from->code == 0)
        to->error = "";
    else if (from->error[0] == '\0')
        to->error = "the node gave no reason";
    return 0;
}

static const char *add_escaped(void *result, const ProtobufCBinaryData *bytes)
{
    return result_keep(result, text_escaped(bytes->data, bytes->len));
}

static int fill_result(struct torus_copy_result *to, const Control__CopyResult *from,
                       struct torus_error *e)
{
    struct torus_copy_node *node = result_array(to, from->n_node, sizeof *node);

    if (from->n_node > 1)
        qsort(from->node, from->n_node, sizeof *from->node, by_rank);
    if (check_result(from, e) != 0)
        return -1;
    CONTROL_COPY_RESULT(CONTROL_READ)
    if (to->attempts == 0)
        to->attempts = 1;
    to->absent_count = from->n_absent;
    to->absent = from->absent;
    to->node_count = from->n_node;
    to->node = result_list(to, node, from->n_node, sizeof *node);
    to->first_left_out = add_escaped(to, &from->first_left_out);
    to->first_link_out = add_escaped(to, &from->first_link_out);
    to->first_skipped = add_escaped(to, &from->first_skipped);
    if (to->node == NULL || to->first_left_out == NULL || to->first_link_out == NULL ||
        to->first_skipped == NULL)
        return fail_memory(e);
    if (result_link_rates(to, from->link_rates, &to->link_rates, e) != 0)
        return -1;
    for (size_t i = 0; i < from->n_node; i++)
        if (fill_node(to, &node[i], from->node[i], e) != 0)
            return -1;
    return 0;
}

/* A convert_fn: stores a struct torus_copy_result * at `result`, a struct torus_copy_result **. */
static int result_from(Control__Reply *reply, void *result, struct torus_error *e)
{
    struct torus_copy_result *to = result_new(sizeof *to, reply, e);

    return to != NULL ? result_end(to, fill_result(to, reply->copy_result, e), result) : -1;
}

/* ---- Checks ---------------------------------------------------------------------------------- */

static int check_path(const char *what, const char *path, struct torus_error *e)
{
    if (path == NULL || path[0] == '\0')
        return fail(e, TORUS_ERROR_USAGE, "a %s of the copy is missing", what);
    if (path[0] != '/')
        return fail(e, TORUS_ERROR_USAGE, "paths must be absolute: %s", path);
    return 0;
}

static int check_lists(const struct torus_copy *c, struct torus_error *e)
{
    if (c->source_count == 0)
        return fail(e, TORUS_ERROR_USAGE, "nothing to copy: there is no source");
    if (c->source_count > TORUS_COPY_LIST_MAX)
        return fail(e, TORUS_ERROR_USAGE,
                    "%zu sources are too many: at most %u are possible; name their folder, and "
                    "patterns that leave out the rest",
                    c->source_count, TORUS_COPY_LIST_MAX);
    if (c->pattern_count > TORUS_COPY_LIST_MAX)
        return fail(e, TORUS_ERROR_USAGE, "%zu patterns are too many: at most %u are possible",
                    c->pattern_count, TORUS_COPY_LIST_MAX);
    for (size_t i = 0; i < c->source_count; i++)
        if (check_path("source", c->source[i], e) != 0)
            return -1;
    for (size_t i = 0; i < c->pattern_count; i++)
        if (c->pattern[i] == NULL ||
            (strncmp(c->pattern[i], "- ", 2) != 0 && strncmp(c->pattern[i], "+ ", 2) != 0) ||
            c->pattern[i][2] == '\0')
            return fail(e, TORUS_ERROR_USAGE,
                        "pattern %zu does not begin with '- ' or '+ ', or is empty", i + 1);
    for (size_t i = 1; i < c->node_count; i++)
        if (c->nodes[i] <= c->nodes[i - 1])
            return fail(e, TORUS_ERROR_USAGE, "the ranks of the nodes are not ascending");
    return check_path("target", c->target, e);
}

/* Checks everything that does not depend on the torus. */
static int check(const struct torus_copy *c, struct torus_error *e)
{
    if (c->kind < TORUS_COPY_TO_ALL || c->kind > TORUS_COPY_EXCHANGE)
        return fail(e, TORUS_ERROR_USAGE, "there is no kind %u of copies", (unsigned)c->kind);
    if (check_lists(c, e) != 0)
        return -1;
    if (c->source_count > 1 && !c->into)
        return fail(e, TORUS_ERROR_USAGE,
                    "several sources need a folder as their target: set `into`");
    if (c->shrink && c->wait)
        return fail(
            e, TORUS_ERROR_USAGE,
            "shrink and wait exclude each other: nodes that are down are left out or waited for");
    if (c->skip_changing && c->as_it_comes)
        return fail(
            e, TORUS_ERROR_USAGE,
            "skip_changing and as_it_comes exclude each other: only the end of a copy tells "
            "which files have changed");
    return mode_check(c->mode, e);
}

/* ---- The request ----------------------------------------------------------------------------- */

/* protobuf-c has no const; packing only reads these bytes. */
static ProtobufCBinaryData bytes_of(const char *text)
{
    return (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)(uintptr_t)text};
}

static void fill(Torus__CopyRequest *body, const struct torus_copy *c, ProtobufCBinaryData *sources,
                 ProtobufCBinaryData *patterns)
{
    for (size_t i = 0; i < c->source_count; i++)
        sources[i] = bytes_of(c->source[i]);
    for (size_t i = 0; i < c->pattern_count; i++)
        patterns[i] = bytes_of(c->pattern[i]);
#define WRITE(type, number, field, ours, public) body->field = c->public;
    COPY_REQUEST_NUMBERS(WRITE)
#undef WRITE
    body->kind = (uint32_t)c->kind;
    body->n_source = c->source_count;
    body->source = sources;
    body->target = bytes_of(c->target);
    body->n_nodes = c->node_count;
    body->nodes = (uint32_t *)(uintptr_t)c->nodes;
    body->n_pattern = c->pattern_count;
    body->pattern = patterns;
    body->delete_most = !c->limit_remove              ? 0
                        : c->remove_most < UINT64_MAX ? c->remove_most + 1
                                                      : UINT64_MAX;
    body->timeout_ms = c->timeout_ms;
    if (c->algorithm != NULL && strcmp(c->algorithm, TORUS_AUTO) != 0)
        body->algorithm = (char *)(uintptr_t)c->algorithm;
    body->mode = wire_mode(c->mode);
}

static int start(struct torus_client *client, const struct torus_copy *copy,
                 struct pending_request pending, struct torus_error *error)
{
    ProtobufCBinaryData sources[TORUS_COPY_LIST_MAX], patterns[TORUS_COPY_LIST_MAX];
    Torus__CopyRequest body = TORUS__COPY_REQUEST__INIT;
    struct torus_copy c;

    if (copy_read(copy, &c, error) != 0 || check(&c, error) != 0)
        return -1;
    fill(&body, &c, sources, patterns);
    if (torus__copy_request__get_packed_size(&body) > REQUEST_MOST)
        return fail(error, TORUS_ERROR_USAGE,
                    "the request is too long: paths, patterns and ranks may have %u bytes together",
                    REQUEST_MOST);
    pending.expects = CONTROL__REPLY__KIND_COPY_RESULT;
    pending.convert = result_from;
    pending.is_copy = true;
    pending.waits = c.wait;
    if (c.timeout_ms > 0 && c.timeout_ms < INT64_MAX / 2)
        pending.limit_ms = (int64_t)c.timeout_ms + CLIENT_GRACE;
    return client_start(client, &pending, CONTROL_REQUEST(COPY, copy, &body), error);
}

/* ---- The public functions -------------------------------------------------------------------- */

static struct pending_request pending_request_of(torus_copy_progress_fn *progress,
                                                 void *progress_data,
                                                 struct torus_copy_result **result,
                                                 torus_done_fn *done, void *data)
{
    *result = NULL;
    return (struct pending_request){
        .result = result,
        .done = done,
        .data = data,
        .copy_progress = progress,
        .progress_data = progress_data,
    };
}

int torus_client_start_copy(struct torus_client *client, const struct torus_copy *copy,
                            torus_copy_progress_fn *progress, struct torus_copy_result **result,
                            torus_done_fn *done, void *data, struct torus_error *error)
{
    return start(client, copy, pending_request_of(progress, data, result, done, data), error);
}

int torus_client_copy(struct torus_client *client, const struct torus_copy *copy,
                      torus_copy_progress_fn *progress, void *data,
                      struct torus_copy_result **result, struct torus_error *error)
{
    return CLIENT_WAIT(client, error,
                       start(client, copy,
                             pending_request_of(progress, data, result, outcome_set, &outcome),
                             error));
}
