/* Copies of trees of files: the request. */
#include <string.h>

#include "client/libtorus/common/fail.h"
#include "client/libtorus/common/request.h"
#include "client/libtorus/requests/copy_result.h"
#include "client/libtorus/requests/operation.h"

#define REQUEST_MOST (16u * 1024u) /* bytes of a packed request, as in the daemon */

const char *torus_copy_phase_name(enum torus_copy_phase phase)
{
    switch (phase) {
    case TORUS_COPY_CALLING:
        return "calling";
    case TORUS_COPY_READING:
        return "reading";
    case TORUS_COPY_COMPARING:
        return "comparing";
    case TORUS_COPY_MOVING:
        return "moving";
    case TORUS_COPY_PLACING:
        return "placing";
    }
    return "unknown";
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
    return 0;
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
    body->kind = (uint32_t)c->kind;
    body->node = c->node;
    body->n_source = c->source_count;
    body->source = sources;
    body->target = bytes_of(c->target);
    body->into = c->into;
    body->n_nodes = c->node_count;
    body->nodes = (uint32_t *)(uintptr_t)c->nodes;
    body->n_pattern = c->pattern_count;
    body->pattern = patterns;
    body->delete_ = c->remove;
    body->checksum = c->checksum;
    body->dry_run = c->dry_run;
    body->verify = c->verify;
    body->as_it_comes = c->as_it_comes;
    body->shrink = c->shrink;
    body->wait = c->wait;
    body->missing_ok = c->missing_ok;
    body->trace = c->trace;
    body->skip_changing = c->skip_changing;
    body->delete_root = c->remove_root;
    body->copy_links = c->copy_links;
    body->delete_most = !c->limit_remove              ? 0
                        : c->remove_most < UINT64_MAX ? c->remove_most + 1
                                                      : UINT64_MAX;
    body->timeout_ms = c->timeout_ms;
}

static int start(struct torus_client *client, const struct torus_copy *copy,
                 struct operation operation, struct torus_error *error)
{
    ProtobufCBinaryData sources[TORUS_COPY_LIST_MAX], patterns[TORUS_COPY_LIST_MAX];
    Torus__CopyRequest body = TORUS__COPY_REQUEST__INIT;
    Control__Request request = CONTROL__REQUEST__INIT;
    struct torus_copy c;

    if (copy_read(copy, &c, error) != 0 || check(&c, error) != 0)
        return -1;
    fill(&body, &c, sources, patterns);
    if (torus__copy_request__get_packed_size(&body) > REQUEST_MOST)
        return fail(error, TORUS_ERROR_USAGE,
                    "the request is too long: paths, patterns and ranks may have %u bytes together",
                    REQUEST_MOST);
    operation.expects = CONTROL__REPLY__KIND_COPY_RESULT;
    operation.convert = copy_result_from;
    operation.is_copy = true;
    operation.waits = c.wait;
    if (c.timeout_ms > 0 && c.timeout_ms < INT64_MAX / 2)
        operation.limit_ms = (int64_t)c.timeout_ms + CLIENT_GRACE;
    request.kind_case = CONTROL__REQUEST__KIND_COPY;
    request.copy = &body;
    return client_start(client, &operation, &request, error);
}

/* ---- The public functions -------------------------------------------------------------------- */

static struct operation operation_of(torus_copy_progress_fn *progress, void *progress_data,
                                     struct torus_copy_result **result, torus_done_fn *done,
                                     void *data)
{
    *result = NULL;
    return (struct operation){
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
    return start(client, copy, operation_of(progress, data, result, done, data), error);
}

int torus_client_copy(struct torus_client *client, const struct torus_copy *copy,
                      torus_copy_progress_fn *progress, void *data,
                      struct torus_copy_result **result, struct torus_error *error)
{
    struct outcome outcome = {.error = error};

    if (start(client, copy, operation_of(progress, data, result, outcome_set, &outcome), error) !=
        0)
        return -1;
    return client_wait(client, &outcome);
}
