#include "daemon/torusd/exchange/record/sentence.h"

#include <stdarg.h>
#include <stdio.h>

void sentence_add(struct sentence *s, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    int n = vsnprintf(s->text + s->used, sizeof s->text - s->used, format, ap);
    va_end(ap);
    s->used += n > 0 ? (size_t)n : 0;
    if (s->used >= sizeof s->text)
        s->used = sizeof s->text - 1;
}

/* Adds "5 (1,1)". */
static void add_node(struct sentence *s, const struct torus *t, uint32_t rank)
{
    uint32_t at[TORUS_MAX_DIMS];

    sentence_add(s, "%u", rank);
    if (t->dims == 1)
        return; /* one dimension: the coordinate is the rank */
    torus_coordinates(t, rank, at);
    for (unsigned dim = 0; dim < t->dims; dim++)
        sentence_add(s, "%s%u", dim == 0 ? " (" : ",", at[dim]);
    sentence_add(s, ")");
}

uint32_t sentence_add_nodes(struct sentence *s, const struct torus *t,
                            bool (*is_one)(const void *context, uint32_t rank), const void *context)
{
    uint32_t count = 0, named = 0;

    for (uint32_t rank = 0; rank < t->nodes; rank++)
        count += is_one(context, rank);
    if (count == 0)
        return 0;
    sentence_add(s, "%s ", count == 1 ? "node" : "nodes");
    for (uint32_t rank = 0; rank < t->nodes && named < SENTENCE_NODES_MOST; rank++)
        if (is_one(context, rank)) {
            sentence_add(s, "%s", named == 0 ? "" : named + 1 == count ? " and " : ", ");
            add_node(s, t, rank);
            named++;
        }
    if (named < count)
        sentence_add(s, " and %u more", count - named);
    return count;
}
