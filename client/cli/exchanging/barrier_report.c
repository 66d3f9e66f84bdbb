#include "client/cli/exchanging/barrier_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/cli/exchanging/exchange_report.h"
#include "client/cli/terminal/json.h"

static const struct section sections[] = {
    RECORD(NULL, FIELD("barrier", "name"), FIELD("id"), FIELD("torus", "dims", FORMAT_TORUS),
           FIELD("nodes", "node_count"), FIELD("without"), FIELD("reroutes"),
           FIELD("waited here", "waited_seconds", FORMAT_SECONDS), FIELD("came first", "first"),
           FIELD("came last", "last")),
    TABLE("nodes", FIELD("node", "rank"),
          FIELD("after the first", "after_seconds", FORMAT_SECONDS)),
};
const struct view barrier_report_view = {sections, 2};

/* By time; nodes of the same time by rank. */
static int compare_times(const void *a, const void *b)
{
    const struct torus_arrival *l = *(const struct torus_arrival *const *)a;
    const struct torus_arrival *r = *(const struct torus_arrival *const *)b;

    if (l->after_nanoseconds != r->after_nanoseconds)
        return l->after_nanoseconds < r->after_nanoseconds ? -1 : 1;
    return l->rank < r->rank ? -1 : l->rank > r->rank;
}

static json_t *node_value(uint32_t rank, const struct torus_arrival *a)
{
    json_t *o = json_object();

    (void)json_object_set_new(o, "rank", json_integer(rank));
    (void)json_object_set_new(o, "after_seconds",
                              a != NULL ? json_real((double)a->after_nanoseconds / 1e9)
                                        : json_null());
    return o;
}

/* Every node, by rank, also those of which it is not known when they came. */
static json_t *nodes_by_rank(const struct torus_result *x)
{
    json_t *list = json_array();
    size_t next = 0;

    for (uint32_t rank = 0; rank < x->nodes; rank++) {
        const bool known = next < x->arrival_count && x->arrival[next]->rank == rank;
        (void)json_array_append_new(list, node_value(rank, known ? x->arrival[next] : NULL));
        next += known;
    }
    return list;
}

/* The nodes in the order in which they came, followed by those whose time is not known. */
static json_t *nodes_by_time(const struct torus_result *x, const struct torus_arrival **sorted)
{
    json_t *list = json_array(), *all = nodes_by_rank(x), *node;
    size_t i;

    for (i = 0; i < x->arrival_count; i++)
        (void)json_array_append_new(list, node_value(sorted[i]->rank, sorted[i]));
    json_array_foreach(all, i, node)
    {
        if (json_is_null(json_object_get(node, "after_seconds")))
            (void)json_array_append(list, node);
    }
    json_decref(all);
    return list;
}

/* Adds which node came first and which one last: for programs their ranks, for people sentences. They are known only if
 * the time at which every node came is known. */
static int set_ends(json_t *o, const struct torus_result *x, const struct torus_arrival **sorted,
                    bool text)
{
    const bool known = x->arrival_count == x->nodes;
    const struct torus_arrival *last = known ? sorted[x->nodes - 1] : NULL;
    char after[FORMAT_SIZE];

    if (!known && text)
        return json_object_set_new(o, "last",
                                   json_string("not known: not every node said when it came"));
    if (!known)
        return json_object_set_new(o, "first", json_null()) |
               json_object_set_new(o, "last", json_null());
    if (!text)
        return json_object_set_new(o, "first", json_integer(sorted[0]->rank)) |
               json_object_set_new(o, "last", json_integer(last->rank));
    if (x->nodes == 1)
        return 0;
    format_seconds(after, (double)last->after_nanoseconds / 1e9);
    return json_object_set_new(o, "first", json_sprintf("node %" PRIu32, sorted[0]->rank)) |
           json_object_set_new(o, "last",
                               json_sprintf("node %" PRIu32 ", %s later", last->rank, after));
}

static JSON_MEMBERS(members, MEMBER(torus_result, id),
                    NAMED(torus_result, operation, torus_operation_name),
                    MEMBER_AS("node_count", torus_result, nodes), PRESENT(torus_result, without),
                    PRESENT(torus_result, reroutes),
                    FROM_NS("waited_seconds", torus_result, waited_nanoseconds));

json_t *barrier_report(const struct torus_result *x, const char *name, bool by_time,
                       struct error *e)
{
    const struct torus_arrival **sorted;
    struct torus torus;
    json_t *o;
    int r = 0;

    if (result_torus(x, &torus, e) != 0)
        return NULL;
    sorted = calloc(x->arrival_count + 1, sizeof *sorted);
    o = sorted != NULL ? json_of(x, members) : NULL;
    for (size_t i = 0; sorted != NULL && i < x->arrival_count; i++)
        sorted[i] = x->arrival[i];
    if (sorted != NULL)
        qsort(sorted, x->arrival_count, sizeof *sorted, compare_times);
    if (name != NULL || !by_time) /* people see no line of the default name */
        r |= json_object_set_new(o, "name", json_string(name != NULL ? name : ""));
    r |= json_set_torus(o, &torus);
    if (o != NULL) {
        r |= set_ends(o, x, sorted, by_time);
        r |= json_object_set_new(o, "nodes", by_time ? nodes_by_time(x, sorted) : nodes_by_rank(x));
    }
    free(sorted);
    if (r == 0)
        return o;
    json_decref(o);
    error_set(e, ERROR_MEMORY, "out of memory for the result");
    return NULL;
}
