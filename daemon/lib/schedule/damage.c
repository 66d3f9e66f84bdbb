#include "daemon/lib/schedule/damage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

int damage_init(struct damage *d, const struct torus *t, struct error *e)
{
    *d = (struct damage){.torus = *t};
    d->dead = calloc(t->nodes, sizeof *d->dead);
    d->gone = calloc(t->nodes, sizeof *d->gone);
    if (d->dead != NULL && d->gone != NULL)
        return 0;
    damage_free(d);
    return error_set(e, ERROR_MEMORY, "out of memory for the links of %u %s", t->nodes,
                     text_plural(t->nodes, "node", "nodes"));
}

void damage_free(struct damage *d)
{
    free(d->dead);
    free(d->gone);
    *d = (struct damage){0};
}

int damage_copy(struct damage *d, const struct damage *from, struct error *e)
{
    if (damage_init(d, &from->torus, e) != 0)
        return -1;
    memcpy(d->dead, from->dead, from->torus.nodes * sizeof *d->dead);
    memcpy(d->gone, from->gone, from->torus.nodes * sizeof *d->gone);
    return 0;
}

bool damage_equal(const struct damage *a, const struct damage *b)
{
    return torus_equal(&a->torus, &b->torus) &&
           memcmp(a->dead, b->dead, a->torus.nodes * sizeof *a->dead) == 0 &&
           memcmp(a->gone, b->gone, a->torus.nodes * sizeof *a->gone) == 0;
}

void damage_add_link(struct damage *d, uint32_t rank, unsigned port)
{
    d->dead[rank] |= 1u << port;
    d->dead[torus_neighbour(&d->torus, rank, port)] |= 1u << torus_port_opposite(&d->torus, port);
}

void damage_add_node(struct damage *d, uint32_t rank)
{
    d->gone[rank] = true;
    for (unsigned port = 0; port < torus_ports(&d->torus); port++)
        if (torus_neighbour(&d->torus, rank, port) != TORUS_NO_NODE)
            damage_add_link(d, rank, port);
}

bool damage_is_none(const struct damage *d)
{
    for (uint32_t rank = 0; rank < d->torus.nodes; rank++)
        if (d->dead[rank] != 0 || d->gone[rank])
            return false;
    return true;
}

/* --- as text --- */

/* Reads one link or node, up to the comma or the end. */
static int parse_one(struct damage *d, const char *text, struct error *e)
{
    const struct torus *t = &d->torus;
    char *end, dims[TORUS_TEXT_SIZE];
    size_t length = strcspn(text, ",");
    unsigned long rank = 0;

    end = (char *)(uintptr_t)text;
    if (*text >= '0' && *text <= '9')
        rank = strtoul(text, &end, 10);
    if (end == text || (*end != ':' && *end != ',' && *end != '\0'))
        return error_set(e, ERROR_USAGE,
                         "'%.*s' is neither a link, such as 3:+0, nor a node, such as 7",
                         (int)(length < 40 ? length : 40), text);
    if (rank >= t->nodes)
        return error_set(e, ERROR_USAGE, "'%.*s': a torus of %s has the nodes 0 to %u",
                         (int)(length < 40 ? length : 40), text, torus_format(t, dims),
                         t->nodes - 1);
    if (*end != ':') {
        damage_add_node(d, (uint32_t)rank);
        return 0;
    }
    char name[TORUS_PORT_NAME_SIZE] = "";
    size_t of_name = length - (size_t)(end + 1 - text);
    if (of_name < sizeof name)
        memcpy(name, end + 1, of_name);
    int port = torus_port_parse(t, (uint32_t)rank, name);
    if (port < 0 || torus_neighbour(t, (uint32_t)rank, (unsigned)port) == TORUS_NO_NODE)
        return error_set(e, ERROR_USAGE,
                         "'%.*s': node %lu of a torus of %s has no link at that port",
                         (int)(length < 40 ? length : 40), text, rank, torus_format(t, dims));
    damage_add_link(d, (uint32_t)rank, (unsigned)port);
    return 0;
}

int damage_parse(struct damage *d, const struct torus *t, const char *text, struct error *e)
{
    if (damage_init(d, t, e) != 0)
        return -1;
    for (;;) {
        if (parse_one(d, text, e) != 0) {
            damage_free(d);
            return -1;
        }
        text += strcspn(text, ",");
        if (*text++ == '\0')
            return 0;
    }
}

struct writer {
    char *text;
    size_t size, used;
    bool full;
};

/* Appends the part if it fits, otherwise "..."; there is always room left for "...". */
static void append(struct writer *w, const char *separator, const char *part)
{
    const size_t kept = sizeof "...";
    size_t more = strlen(part) + (w->used > 0 ? strlen(separator) : 0);

    if (w->full)
        return;
    if (w->used + more + kept > w->size) {
        w->full = true;
        separator = "";
        part = "...";
    }
    if (w->used + kept <= w->size)
        w->used += (size_t)snprintf(w->text + w->used, w->size - w->used, "%s%s",
                                    w->used > 0 ? separator : "", part);
}

static char *write_all(const struct damage *d, struct writer w, const char *separator,
                       const char *link, const char *node)
{
    char part[48], name[TORUS_PORT_NAME_SIZE];

    if (w.size > 0)
        w.text[0] = '\0';
    for (uint32_t rank = 0; rank < d->torus.nodes; rank++) {
        if (d->gone[rank]) {
            (void)snprintf(part, sizeof part, "%s%u", node != NULL ? node : "", rank);
            if (node != NULL)
                append(&w, separator, part);
            continue;
        }
        for (unsigned port = 0; port < torus_ports(&d->torus); port++) {
            /* Name each link at the end that dials. */
            if (!torus_port_dials(&d->torus, rank, port) || (d->dead[rank] & 1u << port) == 0 ||
                d->gone[torus_neighbour(&d->torus, rank, port)])
                continue;
            (void)snprintf(part, sizeof part, "%s%u:%s", link, rank,
                           torus_port_name(&d->torus, rank, port, name));
            append(&w, separator, part);
        }
    }
    return w.text;
}

char *damage_format(const struct damage *d, char *text, size_t size)
{
    return write_all(d, (struct writer){.text = text, .size = size}, ",", "", "");
}

char *damage_describe_links(const struct damage *d, char *text, size_t size)
{
    return write_all(d, (struct writer){.text = text, .size = size}, ", ", "link ", NULL);
}

char *damage_describe(const struct damage *d, char *text, size_t size)
{
    return write_all(d, (struct writer){.text = text, .size = size}, ", ", "link ", "node ");
}

/* --- whether the torus is in parts --- */

/* Sets *e, which names the nodes of one part, the smaller of two, as far as there is room. Returns
 * -1. */
static int name_part(const struct damage *d, uint32_t first, const bool *reached, uint32_t known,
                     uint32_t present, struct error *e)
{
    char text[100], part[24];
    struct writer w = {.text = text, .size = sizeof text};
    bool which = known < present - known; /* whether to name the nodes that were reached */
    uint32_t count = which ? known : present - known, from = first;

    for (uint32_t rank = d->torus.nodes; which && rank-- > 0;)
        if (!d->gone[rank] && !reached[rank])
            from = rank;
    for (uint32_t rank = 0; rank < d->torus.nodes; rank++) {
        if (d->gone[rank] || reached[rank] != which)
            continue;
        (void)snprintf(part, sizeof part, "%u", rank);
        append(&w, ", ", part);
    }
    return error_set(e, ERROR_LINK,
                     "the torus is in parts: node%s %s cannot be reached from node %u",
                     count == 1 ? "" : "s", text, from);
}

int damage_is_connected(const struct damage *d, struct error *e)
{
    uint32_t nodes = d->torus.nodes, first = 0, seen = 0, known = 0, present = 0;
    bool *reached = calloc(nodes, sizeof *reached);
    uint32_t *order = calloc(nodes, sizeof *order);
    int rc = 0;

    if (reached == NULL || order == NULL) {
        rc = error_set(e, ERROR_MEMORY, "out of memory for the links of %u %s", nodes,
                       text_plural(nodes, "node", "nodes"));
        goto done;
    }
    for (uint32_t rank = 0; rank < nodes; rank++)
        present += !d->gone[rank];
    while (first < nodes && d->gone[first])
        first++;
    if (first < nodes) {
        reached[first] = true;
        order[known++] = first;
    }
    for (; seen < known; seen++) {
        for (unsigned port = 0; port < torus_ports(&d->torus); port++) {
            uint32_t there = torus_neighbour(&d->torus, order[seen], port);
            if (!damage_has_link(d, order[seen], port) || reached[there])
                continue;
            reached[there] = true;
            order[known++] = there;
        }
    }
    if (known < present)
        rc = name_part(d, first, reached, known, present, e);
done:
    free(reached);
    free(order);
    return rc;
}
