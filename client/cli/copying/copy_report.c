#include "client/cli/copying/copy_report.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/terminal/json.h"
#include "proto/text.h"

static const char *const kinds[] = {
    [TORUS_COPY_TO_ALL] = "copy",
    [TORUS_COPY_GATHER] = "gather",
    [TORUS_COPY_SCATTER] = "scatter",
    [TORUS_COPY_EXCHANGE] = "exchange",
};

static const struct field node_fields[] = {
    {"node", "rank", FORMAT_PLAIN},
    {"host", "host", FORMAT_PLAIN},
    {"from", "from", FORMAT_PLAIN},
    {"added", "added", FORMAT_PLAIN},
    {"changed", "changed", FORMAT_PLAIN},
    {"removed", "removed", FORMAT_PLAIN},
    {"unchanged", "unchanged", FORMAT_PLAIN},
    {"bytes", "bytes", FORMAT_BYTES},
    {"missing", "bytes_missing", FORMAT_BYTES},
    {"no owner", "not_owned", FORMAT_PLAIN},
    {"no attributes", "not_attributed", FORMAT_PLAIN},
    {"first", "first", FORMAT_PLAIN},
    {0},
};
static const struct section table_section[] = {
    {.layout = LAYOUT_TABLE, .key = "per_node", .fields = node_fields},
};
const struct view copy_report_table = {table_section, 1};

bool copy_report_differs(const struct torus_copy_node *n)
{
    return n->added > 0 || n->changed > 0 || n->removed > 0;
}

bool copy_report_removes(const struct torus_copy_result *r)
{
    for (size_t i = 0; i < r->node_count; i++)
        if (r->node[i]->going_count > 0)
            return true;
    return false;
}

size_t copy_report_failures(const struct torus_copy_result *r)
{
    size_t count = 0;

    for (size_t i = 0; i < r->node_count; i++)
        count += r->node[i]->code != TORUS_ERROR_NONE;
    return count;
}

size_t copy_report_differences(const struct torus_copy_result *r)
{
    size_t count = 0;

    for (size_t i = 0; i < r->node_count; i++)
        count += r->node[i]->code == TORUS_ERROR_NONE && copy_report_differs(r->node[i]);
    return count;
}

/* A path may have any bytes. */
static json_t *path_value(const char *path)
{
    char *text = text_escaped((const uint8_t *)path, strlen(path));
    json_t *value = text != NULL ? json_string(text) : NULL;

    free(text);
    return value;
}

static json_t *host_value(const struct all_nodes *names, uint32_t rank)
{
    if (names->state != NULL && rank < names->state->count &&
        names->state->nodes[rank]->host[0] != '\0')
        return json_string(names->state->nodes[rank]->host);
    return json_null();
}

static int set_counts(json_t *o, const struct torus_copy_node *n)
{
    const struct {
        const char *key;
        uint64_t count;
    } counts[] = {
        {"files", n->files},         {"folders", n->folders},
        {"links", n->links},         {"added", n->added},
        {"changed", n->changed},     {"removed", n->removed},
        {"grown", n->grown},         {"unchanged", n->unchanged},
        {"bytes", n->bytes},         {"bytes_missing", n->bytes_missing},
        {"not_owned", n->not_owned}, {"not_attributed", n->not_attributed},
    };
    int r = 0;

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        r |= json_object_set_new(o, counts[i].key, json_count(counts[i].count));
    return r;
}

/* Paths that a dry run would remove. */
static json_t *going_value(const struct torus_copy_node *n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n->going_count; i++)
        (void)json_array_append_new(list, json_string(n->going[i]));
    return list;
}

static json_t *node_value(const struct copy_order *o, const struct torus_copy_node *n,
                          const struct all_nodes *names)
{
    json_t *v = json_object(), *error = json_null();
    int r = 0;

    if (n->code != TORUS_ERROR_NONE)
        error = json_pack("{s:s, s:s}", "code", torus_error_name(n->code), "text", n->error);
    r |= json_object_set_new(v, "rank", json_integer(n->rank));
    r |= json_object_set_new(v, "host", host_value(names, n->rank));
    if (o->copy.kind == TORUS_COPY_GATHER || o->copy.kind == TORUS_COPY_EXCHANGE)
        r |= json_object_set_new(v, "from", json_integer(n->from));
    r |= json_object_set_new(v, "error", error);
    if (o->copy.verify)
        r |= json_object_set_new(
            v, "equal", json_boolean(n->code == TORUS_ERROR_NONE && !copy_report_differs(n)));
    r |= set_counts(v, n);
    r |= json_object_set_new(v, "first", json_string(n->first));
    if (o->copy.dry_run)
        r |= json_object_set_new(v, "would_remove", going_value(n));
    if (r == 0)
        return v;
    json_decref(v);
    return NULL;
}

static json_t *nodes_value(const struct copy_order *o, const struct torus_copy_result *r,
                           const struct all_nodes *names)
{
    json_t *list = json_array();
    int failed = 0;

    for (size_t i = 0; i < r->node_count; i++)
        failed |= json_array_append_new(list, node_value(o, r->node[i], names));
    if (failed == 0)
        return list;
    json_decref(list);
    return NULL;
}

static int set_request(json_t *v, const struct copy_order *o)
{
    json_t *sources = json_array();
    int r = 0;

    for (size_t i = 0; i < o->copy.source_count; i++)
        r |= json_array_append_new(sources, path_value(o->source[i]));
    r |= json_object_set_new(v, "operation", json_string(kinds[o->copy.kind]));
    r |= json_object_set_new(v, "node", json_integer(o->copy.node));
    r |= json_object_set_new(v, "sources", sources);
    r |= json_object_set_new(v, "target", path_value(o->target));
    r |= json_object_set_new(v, "dry_run", json_boolean(o->copy.dry_run));
    r |= json_object_set_new(v, "verify", json_boolean(o->copy.verify));
    return r;
}

static json_t *absent_value(const struct torus_copy_result *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < r->absent_count; i++)
        (void)json_array_append_new(list, json_integer(r->absent[i]));
    return list;
}

json_t *copy_report_value(const struct copy_order *o, const struct torus_copy_result *x,
                          const struct all_nodes *names)
{
    json_t *v = json_object();
    int r = json_object_set_new(v, "id", json_string(x->id));

    r |= set_request(v, o);
    r |= json_object_set_new(v, "failures", json_count(copy_report_failures(x)));
    if (o->copy.verify)
        r |= json_object_set_new(
            v, "equal",
            json_boolean(copy_report_failures(x) == 0 && copy_report_differences(x) == 0));
    r |= json_object_set_new(v, "bytes_all", json_count(x->bytes_all));
    r |= json_object_set_new(v, "bytes_sent", json_count(x->bytes_sent));
    r |= json_object_set_new(v, "seconds", json_real((double)x->nanoseconds / 1e9));
    r |= json_object_set_new(v, "compare_seconds", json_real((double)x->compare_nanoseconds / 1e9));
    r |= json_object_set_new(v, "left_out", json_count(x->left_out));
    r |= json_object_set_new(v, "first_left_out", json_string(x->first_left_out));
    r |= json_object_set_new(v, "links_out", json_count(x->links_out));
    r |= json_object_set_new(v, "first_link_out", json_string(x->first_link_out));
    r |= json_object_set_new(v, "skipped", json_count(x->skipped));
    r |= json_object_set_new(v, "first_skipped", json_string(x->first_skipped));
    r |= json_object_set_new(v, "attempts", json_integer(x->attempts));
    r |= json_object_set_new(v, "absent", absent_value(x));
    r |= json_object_set_new(v, "per_node", nodes_value(o, x, names));
    if (r == 0)
        return v;
    json_decref(v);
    return NULL;
}
