#include "daemon/torusd/copy/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/ranked_path.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/torusd/planning/spec.h"
#include "proto/control_fields.h"
#include "proto/copy.pb-c.h"
#include "proto/text.h"
#include "proto/unpack.h"

/* --- paths --- */

/* Checks a path: absolute, not too long, no '%' except %r and %%. `what` is "source" or "target". Sets *ranks to
 * whether it contains %r. Returns 0, or -1 with *e. */
static int copy_path_check(const char *path, const char *what, bool *ranks, struct error *e)
{
    char shown[120];

    *ranks = ranked_path_has_rank(path);
    if (ranked_path_check(path, e) != 0)
        return error_wrap(e, "%s", what);
    if (strlen(path) <= COPY_PATH_MOST)
        return 0;
    return error_set(e, ERROR_USAGE, "the %s \"%s\" is longer than %u bytes", what,
                     text_printable(shown, sizeof shown, path), COPY_PATH_MOST);
}

char *copy_path_expand(const char *path, uint32_t rank, const uint32_t *below)
{
    char none[1];
    const size_t length = ranked_path_expand(path, rank, none, sizeof none);
    const size_t room = length + RANK_DIGITS + 2;
    char *out = malloc(room);

    if (out == NULL)
        return NULL;
    (void)ranked_path_expand(path, rank, out, room);
    if (below != NULL)
        (void)snprintf(out + length, room - length, "/%u", *below);
    return out;
}

/* The same path without empty names, ".", and a slash at the end; allocated. */
static char *tidy(const char *path)
{
    char *out = malloc(strlen(path) + 2), *end = out;

    while (out != NULL && *path != '\0') {
        const size_t length = strcspn(path, "/");
        if (length > 0 && !(length == 1 && path[0] == '.')) {
            *end++ = '/';
            end = (char *)memcpy(end, path, length) + length;
        }
        path += length + (path[length] == '/');
    }
    if (out != NULL)
        *end = '\0';
    return out;
}

/* Whether `inner` is `outer`, or is in a folder RANK of it. */
static bool is_in_ranks(const char *outer, const char *inner)
{
    const size_t length = strlen(outer);

    if (strncmp(outer, inner, length) != 0)
        return false;
    return inner[length] == '\0' ||
           (inner[length] == '/' &&
            strspn(inner + length + 1, "0123456789") == strcspn(inner + length + 1, "/"));
}

/* Whether what is written below the folder `to`, as to/RANK, may be something that is read below the folder `from`, as
 * from/RANK. The paths are expanded. Returns 1, 0, or -1 without memory. */
static int copy_paths_clash(const char *from, const char *to)
{
    char *a = tidy(from), *b = tidy(to);
    const int result = a == NULL || b == NULL ? -1 : is_in_ranks(a, b) || is_in_ranks(b, a);

    free(a);
    free(b);
    return result;
}

#define MILLISECOND UINT64_C(1000000)
#define PATTERN_MOST 4096u

/* --- rules --- */

static int check_sources(const struct copy_request *r, struct error *e)
{
    if (r->sources == 0 || r->sources > COPY_SOURCES_MOST)
        return error_set(e, ERROR_USAGE, "a copy has 1 to %u sources, not %u", COPY_SOURCES_MOST,
                         r->sources);
    if (r->kind == COPY_EXCHANGE && (r->sources > 1 || r->into))
        return error_set(e, ERROR_USAGE,
                         "an exchange of folders has one source, the folder with a tree for each "
                         "node");
    if (r->sources > 1 && !r->into)
        return error_set(e, ERROR_USAGE,
                         "several sources need a folder as the target: end it with '/'");
    for (uint32_t i = 0; i < r->sources; i++) {
        bool ranks;
        if (copy_path_check(r->source[i], "source", &ranks, e) != 0)
            return -1;
        if (r->kind == COPY_TO_ALL && ranks)
            return error_set(e, ERROR_USAGE,
                             "%%r is possible in the target only: all nodes get the same sources");
        if (r->kind == COPY_SCATTER && !ranks)
            return error_set(e, ERROR_USAGE,
                             "each source of a scatter must contain %%r, the rank of the node that "
                             "gets it");
    }
    return 0;
}

static int check_target(const struct copy_request *r, struct error *e)
{
    bool ranks;

    if (copy_path_check(r->target, "target", &ranks, e) != 0)
        return -1;
    if (r->kind == COPY_GATHER && !ranks)
        return error_set(e, ERROR_USAGE,
                         "the target of a gather must contain %%r, the rank of the node that the "
                         "tree comes from");
    return 0;
}

static int check_nodes(const struct copy_request *r, struct error *e)
{
    for (uint32_t i = 0; i < r->nodes_count; i++) {
        if (i > 0 && r->nodes[i] <= r->nodes[i - 1])
            return error_set(e, ERROR_USAGE, "the nodes of a copy are not in ascending order");
        if (r->nodes[i] == r->node)
            return error_set(e, ERROR_USAGE,
                             "node %u is at the other end of the copy already, and must not be "
                             "listed",
                             r->node);
    }
    return 0;
}

static int check_patterns(const struct copy_request *r, struct error *e)
{
    if (r->patterns > COPY_PATTERNS_MOST)
        return error_set(e, ERROR_USAGE, "a copy has at most %u patterns, not %u",
                         COPY_PATTERNS_MOST, r->patterns);
    for (uint32_t i = 0; i < r->patterns; i++) {
        const char *p = r->pattern[i];
        if ((p[0] != '-' && p[0] != '+') || p[1] != ' ' || p[2] == '\0')
            return error_set(e, ERROR_USAGE,
                             "pattern %u is neither \"- PATTERN\" nor \"+ PATTERN\"", i + 1);
        if (strlen(p) > PATTERN_MOST)
            return error_set(e, ERROR_USAGE, "pattern %u has more than %u bytes", i + 1,
                             PATTERN_MOST);
    }
    return 0;
}

static int check_rules(const struct copy_request *r, struct error *e)
{
    if (r->kind < COPY_TO_ALL || r->kind >= COPY_KINDS)
        return error_set(e, ERROR_USAGE,
                         "torusd " TORUSD_VERSION
                         " knows no copy of kind %u: install the client and "
                         "torusd from the same release",
                         (unsigned)r->kind);
    if (r->shrink && r->wait)
        return error_set(e, ERROR_USAGE,
                         "a copy either waits for nodes that are down or leaves them out");
    if (r->skip_changing && r->as_it_comes)
        return error_set(e, ERROR_USAGE,
                         "a copy that leaves out files which change knows only at its end which "
                         "these are, so it cannot put each file in place as it comes");
    if (check_sources(r, e) != 0 || check_target(r, e) != 0 || check_nodes(r, e) != 0 ||
        check_patterns(r, e) != 0)
        return -1;
    if (r->algorithm == NULL)
        return r->mode == MODE_OF_ALGORITHM
                   ? 0
                   : error_set(e, ERROR_USAGE,
                               "a mode is for a named algorithm: without one, the nodes choose "
                               "algorithm and mode together");
    if (r->kind != COPY_EXCHANGE)
        return error_set(e, ERROR_USAGE,
                         "only an exchange of folders can name an algorithm: the other copies do "
                         "not have a tree for every pair of nodes");
    if (r->shrink)
        return error_set(e, ERROR_USAGE,
                         "a copy that names an algorithm cannot leave out nodes that are down: the "
                         "algorithm needs all of them");
    return 0;
}

/* Whether the routes of the algorithm are found on this network, as those of copies without an algorithm are. */
static bool is_found(const struct copy_request *r, const struct torus *t)
{
    return !torus_is_plain(t) && strcmp(r->algorithm, FOUND_NAME) == 0;
}

/* Sets *mode to that in which the algorithm runs on this torus. Returns 0, or -1 with *e. */
static int check_algorithm(const struct copy_request *r, const struct torus *t, enum mode *mode,
                           struct error *e)
{
    const struct spec spec = {.schedule = "",
                              .members = "",
                              .algorithm = r->algorithm,
                              .operation = OPERATION_EXCHANGE,
                              .barrier = "",
                              .from = "",
                              .to = ""};

    if (is_found(r, t))
        return 0;
    if (spec_check(&spec, t, e) != 0)
        return -1;
    if (spec_leaves_choice(&spec))
        return error_set(e, ERROR_USAGE,
                         "%s is chosen by the size of the blocks, and a copy knows that only when "
                         "its trees have been compared: name an algorithm, or none",
                         r->algorithm);
    const struct algorithm *a = algorithm_find(r->algorithm);
    if (spec_check_algorithm(&spec, t, a, mode, e) != 0)
        return -1;
    return a->port_model == PORT_MODEL_ALL
               ? 0
               : error_set(e, ERROR_USAGE,
                           "%s is one-port, which only exchanges of blocks can be: trees need an "
                           "all-port algorithm",
                           a->name);
}

const struct algorithm *copy_request_algorithm(const struct copy_request *r, const struct torus *t,
                                               enum mode *mode)
{
    struct error e;

    *mode = r->mode;
    if (r->algorithm == NULL || is_found(r, t) || check_algorithm(r, t, mode, &e) != 0)
        return NULL;
    return algorithm_find(r->algorithm);
}

/* At each node, an exchange reads trees below its source, and replaces trees below its target. Links are not followed
 * here, so this finds mistakes, not intent. */
static int check_exchange(const struct copy_request *r, uint32_t node, struct error *e)
{
    char *from = copy_path_expand(r->source[0], node, NULL), shown[160];
    char *to = copy_path_expand(r->target, node, NULL);
    const int clash = from == NULL || to == NULL ? -1 : copy_paths_clash(from, to);

    if (clash < 0)
        (void)error_set(e, ERROR_MEMORY, "out of memory for a copy");
    else if (clash > 0)
        (void)error_set(e, ERROR_USAGE,
                        "the exchange would replace what node %u still reads: choose a target that "
                        "has nothing to do with the trees below %s",
                        node, text_printable(shown, sizeof shown, from));
    free(from);
    free(to);
    return clash == 0 ? 0 : -1;
}

int copy_request_check(const struct copy_request *r, const struct torus *t, struct error *e)
{
    const uint32_t nodes = t->nodes;
    enum mode mode = r->mode;

    if (r->node >= nodes || (r->nodes_count > 0 && r->nodes[r->nodes_count - 1] >= nodes))
        return error_set(e, ERROR_USAGE, "there is no node %u: the nodes are 0 to %u",
                         r->node >= nodes ? r->node : r->nodes[r->nodes_count - 1], nodes - 1);
    for (uint32_t node = 0; r->kind == COPY_EXCHANGE && node < nodes; node++)
        if (copy_request_takes_part(r, node) && check_exchange(r, node, e) != 0)
            return -1;
    return r->algorithm == NULL ? 0 : check_algorithm(r, t, &mode, e);
}

bool copy_request_takes_part(const struct copy_request *r, uint32_t node)
{
    if (r->nodes_count == 0 || node == r->node)
        return true;
    for (uint32_t i = 0; i < r->nodes_count; i++)
        if (r->nodes[i] == node)
            return true;
    return false;
}

/* --- codec --- */

static void free_list(char **list, uint32_t count)
{
    for (uint32_t i = 0; list != NULL && i < count; i++)
        free(list[i]);
    free((void *)list);
}

void copy_request_free(struct copy_request *r)
{
    free_list(r->source, r->sources);
    free_list(r->pattern, r->patterns);
    free(r->target);
    free(r->algorithm);
    free(r->nodes);
    *r = (struct copy_request){0};
}

/* Copies bytes as a text. Returns NULL with *e if they contain a 0 byte, or without memory. */
static char *take_text(const ProtobufCBinaryData *from, struct error *e)
{
    char *text;

    if (from->len > 0 && memchr(from->data, 0, from->len) != NULL) {
        (void)error_set(e, ERROR_USAGE, "a path or pattern of the copy contains a 0 byte");
        return NULL;
    }
    text = malloc(from->len + 1);
    if (text == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for a copy");
        return NULL;
    }
    if (from->len > 0)
        memcpy(text, from->data, from->len);
    text[from->len] = '\0';
    return text;
}

static int take_list(char ***list, uint32_t *taken, const ProtobufCBinaryData *from, size_t count,
                     struct error *e)
{
    if (count == 0)
        return 0;
    *list = calloc(count, sizeof **list);
    if (*list == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a copy");
    for (size_t i = 0; i < count; i++) {
        (*list)[i] = take_text(&from[i], e);
        if ((*list)[i] == NULL)
            return -1;
        (*taken)++;
    }
    return 0;
}

static int take_nodes(struct copy_request *r, const Torus__CopyRequest *from, struct error *e)
{
    if (from->n_nodes == 0)
        return 0;
    r->nodes = calloc(from->n_nodes, sizeof *r->nodes);
    if (r->nodes == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a copy");
    memcpy(r->nodes, from->nodes, from->n_nodes * sizeof *r->nodes);
    r->nodes_count = (uint32_t)from->n_nodes;
    return 0;
}

/* "" and "auto" leave the choice to the group. */
static int take_algorithm(struct copy_request *r, const Torus__CopyRequest *from, struct error *e)
{
    if (mode_parse(from->mode, &r->mode) != 0)
        return error_set(e, ERROR_USAGE, "mode \"%.20s\" is neither stepped nor streaming",
                         from->mode);
    if (from->algorithm[0] == '\0' || strcmp(from->algorithm, SPEC_AUTO) == 0)
        return 0;
    r->algorithm = strdup(from->algorithm);
    if (r->algorithm == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a copy");
    text_clean(r->algorithm);
    return 0;
}

int copy_request_take(struct copy_request *r, const Torus__CopyRequest *from, struct error *e)
{
#define READ(type, number, field, ours, result) .ours = from->field,
    *r = (struct copy_request){
        .kind = (enum copy_kind)(from->kind < COPY_KINDS ? from->kind : COPY_KINDS),
        .delete_most = from->delete_most,
        .told = from->told,
        .timeout_ns = from->timeout_ms > SPEC_LONGEST_TIMEOUT / MILLISECOND
                          ? SPEC_LONGEST_TIMEOUT
                          : from->timeout_ms * MILLISECOND,
        .user = from->user,
        COPY_REQUEST_NUMBERS(READ)};
#undef READ
    if (from->n_source > COPY_SOURCES_MOST || from->n_pattern > COPY_PATTERNS_MOST)
        return error_set(e, ERROR_USAGE, "a copy has at most %u sources and %u patterns",
                         COPY_SOURCES_MOST, COPY_PATTERNS_MOST);
    r->target = take_text(&from->target, e);
    if (r->target != NULL &&
        take_list(&r->source, &r->sources, from->source, from->n_source, e) == 0 &&
        take_list(&r->pattern, &r->patterns, from->pattern, from->n_pattern, e) == 0 &&
        take_nodes(r, from, e) == 0 && take_algorithm(r, from, e) == 0 && check_rules(r, e) == 0)
        return 0;
    copy_request_free(r);
    return -1;
}

int copy_request_unpack(struct copy_request *r, const uint8_t *bytes, size_t length,
                        struct error *e)
{
    Torus__CopyRequest *message;
    int result;

    if (length > COPY_REQUEST_MOST)
        return error_set(e, ERROR_USAGE,
                         "a copy of %zu bytes of sources and patterns: at most %u "
                         "are possible",
                         length, COPY_REQUEST_MOST);
    message =
        unpack_bounded(&torus__copy_request__descriptor, bytes, length, 64u * COPY_REQUEST_MOST);
    if (message == NULL)
        return error_set(e, ERROR_PROTOCOL, "the bytes are not a request for a copy");
    result = copy_request_take(r, message, e);
    unpack_free(message);
    return result;
}

static void lend_list(ProtobufCBinaryData *to, char *const *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        to[i] = (ProtobufCBinaryData){strlen(list[i]), (uint8_t *)list[i]};
}

static void fill_message(Torus__CopyRequest *m, const struct copy_request *r,
                         ProtobufCBinaryData *texts)
{
    torus__copy_request__init(m);
#define WRITE(type, number, field, ours, result) m->field = r->ours;
    COPY_REQUEST_NUMBERS(WRITE)
#undef WRITE
    m->kind = r->kind;
    m->n_source = r->sources;
    m->source = texts;
    lend_list(texts, r->source, r->sources);
    m->n_pattern = r->patterns;
    m->pattern = texts + r->sources;
    lend_list(m->pattern, r->pattern, r->patterns);
    m->target = (ProtobufCBinaryData){strlen(r->target), (uint8_t *)r->target};
    m->n_nodes = r->nodes_count;
    m->nodes = r->nodes;
    m->delete_most = r->delete_most;
    m->told = r->told;
    m->timeout_ms = r->timeout_ns / MILLISECOND;
    m->user = r->user;
    if (r->algorithm != NULL)
        m->algorithm = r->algorithm;
    m->mode = (char *)(uintptr_t)mode_name(r->mode);
}

int copy_request_pack(const struct copy_request *r, uint8_t **bytes, size_t *length,
                      struct error *e)
{
    ProtobufCBinaryData *texts = calloc((size_t)r->sources + r->patterns + 1, sizeof *texts);
    Torus__CopyRequest m;

    *bytes = NULL;
    if (texts == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a copy");
    fill_message(&m, r, texts);
    *length = torus__copy_request__get_packed_size(&m);
    if (*length > COPY_REQUEST_MOST) {
        free(texts);
        return error_set(e, ERROR_USAGE,
                         "the sources, nodes and patterns of the copy have %zu bytes: at most %u "
                         "are possible. Copy a folder that holds them, or make several copies",
                         *length, COPY_REQUEST_MOST);
    }
    *bytes = malloc(*length);
    if (*bytes != NULL)
        (void)torus__copy_request__pack(&m, *bytes);
    free(texts);
    return *bytes != NULL ? 0 : error_set(e, ERROR_MEMORY, "out of memory for a copy");
}

/* --- copies of requests --- */

int copy_request_copy(struct copy_request *to, const struct copy_request *from, struct error *e)
{
    uint8_t *bytes;
    size_t length;
    int result;

    if (copy_request_pack(from, &bytes, &length, e) != 0)
        return -1;
    result = copy_request_unpack(to, bytes, length, e);
    free(bytes);
    return result;
}
