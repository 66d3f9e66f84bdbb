#include "daemon/torusd/copy/outcome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/elapsed.h"

static int compare(const void *a, const void *b)
{
    const struct copy_outcome *x = a, *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->from < y->from ? -1 : x->from > y->from;
}

static void set_end(struct copy_outcome *to, const struct copy_plan *p, const struct copy_end *end)
{
    const struct copy_tree *tree = &p->tree[end->tree];
    const struct error *failed = copy_end_failed(p, end);

    *to = (struct copy_outcome){.node = end->node, .from = tree->reader, .report = end->report};
    if (end->going_length > 0 && (to->going = malloc(end->going_length)) != NULL) {
        memcpy((void *)(uintptr_t)to->going, end->going, end->going_length);
        to->going_length = end->going_length;
    }
    if (failed == NULL)
        return;
    to->error = *failed;
    if (failed == &tree->failed && tree->reader != end->node)
        (void)error_wrap_node(&to->error, tree->reader);
}

struct copy_outcomes *copy_outcomes_new(const struct agent *a, uint64_t began, uint64_t now)
{
    const struct copy_plan *p = &a->plan;
    struct copy_outcomes *o = calloc(1, sizeof *o);

    if (o == NULL)
        return NULL;
    o->list = calloc(p->ends > 0 ? p->ends : 1, sizeof *o->list);
    o->absent = calloc(p->absents > 0 ? p->absents : 1, sizeof *o->absent);
    if (o->list == NULL || o->absent == NULL) {
        copy_outcomes_free(o);
        return NULL;
    }
    for (uint32_t i = 0; i < p->ends; i++)
        set_end(&o->list[i], p, &p->end[i]);
    qsort(o->list, p->ends, sizeof *o->list, compare);
    for (uint32_t i = 0; i < p->absents; i++)
        o->absent[i] = p->absent[i];
    (void)snprintf(o->first_left_out, sizeof o->first_left_out, "%s", p->first_left_out);
    (void)snprintf(o->id, sizeof o->id, "%s", a->id_text);
    o->result = (struct copy_result){.outcome = o->list,
                                     .outcomes = p->ends,
                                     .nanoseconds = elapsed(began, now),
                                     .compare_nanoseconds = elapsed(began, a->compared_at),
                                     .left_out = p->left_out,
                                     .first_left_out = o->first_left_out,
                                     .id = o->id,
                                     .attempts = a->attempt,
                                     .absent = o->absent,
                                     .absents = p->absents,
                                     .bytes_sent = a->moved};
    (void)strcpy(o->first_link_out, p->first_link_out);
    o->result.links_out = p->links_out;
    o->result.first_link_out = o->first_link_out;
    o->result.first_changed = o->first_changed;
    for (uint32_t i = 0; i < p->trees; i++) {
        o->result.bytes_all += p->tree[i].stream;
        if (o->result.changed == 0)
            (void)strcpy(o->first_changed, p->tree[i].first_changed);
        o->result.changed += p->tree[i].changes;
    }
    return o;
}

void copy_outcomes_free(struct copy_outcomes *o)
{
    if (o == NULL)
        return;
    for (uint32_t i = 0; o->list != NULL && i < o->result.outcomes; i++)
        free((void *)(uintptr_t)o->list[i].going);
    free(o->list);
    free(o->absent);
    free(o);
}
