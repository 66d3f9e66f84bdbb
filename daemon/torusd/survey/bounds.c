#include "daemon/torusd/survey/bounds.h"

#include <stdlib.h>
#include <string.h>

int collected_begin(struct collected *c, uint32_t nodes)
{
    *c = (struct collected){.nodes = nodes, .node = calloc(nodes, sizeof *c->node)};
    return c->node != NULL ? 0 : -1;
}

void collected_end(struct collected *c)
{
    for (uint32_t rank = 0; c->node != NULL && rank < c->nodes; rank++)
        free(c->node[rank].bytes);
    free(c->node);
    *c = (struct collected){0};
}

/* Makes room for the parts of a node. Returns false if there is none. */
static bool make_room(struct collected *c, struct collected_node *n, uint32_t parts)
{
    const size_t size = (size_t)parts * SURVEY_PART;

    if (size > SURVEY_TOTAL_MOST - c->total || (n->bytes = malloc(size)) == NULL)
        return false;
    n->parts = parts;
    c->total += size;
    return true;
}

/* Gives back the memory behind a complete answer. */
static void shrink(struct collected *c, struct collected_node *n)
{
    uint8_t *smaller = realloc(n->bytes, n->length > 0 ? n->length : 1);

    c->total -= (size_t)n->parts * SURVEY_PART - n->length;
    if (smaller != NULL)
        n->bytes = smaller;
}

bool collected_add(struct collected *c, const struct peer_survey_answer *part, uint64_t now)
{
    struct collected_node *n = &c->node[part->node];
    const bool last = part->part + 1 == part->parts;

    if (n->complete || n->too_large || (n->have & 1u << part->part) != 0)
        return false;
    if (n->bytes == NULL && !make_room(c, n, part->parts)) {
        n->too_large = true;
        return true;
    }
    if (part->parts != n->parts || (!last && part->bytes.len != SURVEY_PART))
        return false;
    if (part->bytes.len > 0)
        memcpy(n->bytes + (size_t)part->part * SURVEY_PART, part->bytes.data, part->bytes.len);
    n->have |= 1u << part->part;
    if (last)
        n->length = (uint32_t)(part->part * SURVEY_PART + part->bytes.len);
    n->complete = n->have == (1u << n->parts) - 1;
    n->at = now;
    if (n->complete)
        shrink(c, n);
    return n->complete;
}

void collected_view(const struct collected *c, uint32_t rank, struct survey_node *out)
{
    const struct collected_node *n = &c->node[rank];

    if (n->too_large || (n->complete && n->length == 0))
        *out = (struct survey_node){.outcome = SURVEY_TOO_LARGE};
    else if (n->complete)
        *out = (struct survey_node){SURVEY_ANSWERED, n->bytes, n->length, n->at};
}
