#include <stdio.h>

#include "daemon/lib/cabling/cabling.h"

struct end_text {
    char text[160];
};

/* "gamma's eth2" */
static struct end_text name(const struct cabling_input *in, struct cabling_end end)
{
    struct end_text t;

    if (end.host == CABLING_NONE)
        (void)snprintf(t.text, sizeof t.text, "the missing host");
    else if (end.interface == CABLING_NONE)
        (void)snprintf(t.text, sizeof t.text, "a new interface of %s (none is free)",
                       in->host[end.host].name);
    else
        (void)snprintf(t.text, sizeof t.text, "%s's %s", in->host[end.host].name,
                       in->host[end.host].interface[end.interface].name);
    return t;
}

/* "epsilon (rank 4) is missing: start it, or cable it with gamma's eth1, delta's eth0" */
static int missing_text(const struct cabling_result *r, const struct cabling_input *in,
                        uint32_t rank, char *text, size_t size)
{
    const struct torus *t = &r->torus;
    const char *expected = in->expected != NULL ? in->expected[rank] : NULL;
    int used = expected != NULL ? snprintf(text, size, "%s (rank %u)", expected, rank)
                                : snprintf(text, size, "the host of rank %u", rank);
    unsigned ports = torus_ports(t), named = 0;
    size_t begun = (size_t)used < size ? (size_t)used : size;

    used += snprintf(text + begun, size - begun, " is missing: start it, or cable it with");
    for (unsigned port = 0; port < ports; port++) {
        uint32_t there = torus_neighbour(t, rank, port);
        if (there == TORUS_NO_NODE || r->host_of_rank[there] == CABLING_NONE)
            continue;
        struct cabling_end end = {
            r->host_of_rank[there],
            r->interface_at[(size_t)there * ports + torus_port_opposite(t, port)]};
        size_t at = (size_t)used < size ? (size_t)used : size;
        used += snprintf(text + at, size - at, "%s %s", named++ > 0 ? "," : "", name(in, end).text);
    }
    return used;
}

int cabling_move_text(const struct cabling_result *r, const struct cabling_input *in, uint32_t move,
                      char *text, size_t size)
{
    const struct cabling_move *m = &r->move[move];
    struct end_text from = name(in, m->from), to = name(in, m->to), stays = name(in, m->stays);

    switch (m->kind) {
    case CABLING_MOVE_END:
        return snprintf(text, size, "move the cable in %s to %s (its other end stays in %s)",
                        from.text, to.text, stays.text);
    case CABLING_SWAP:
        return snprintf(text, size, "swap the cables in %s and %s", from.text, to.text);
    case CABLING_ADD:
        return snprintf(text, size, "add a cable between %s and %s, or replace it if there is one",
                        from.text, to.text);
    case CABLING_PLUG:
        return snprintf(text, size,
                        "plug the other end of the cable in %s, which leads to no known host, "
                        "into %s",
                        from.text, to.text);
    case CABLING_CHECK:
        return snprintf(text, size,
                        "connect %s and %s directly: both have a carrier, but hear nobody",
                        from.text, to.text);
    case CABLING_REMOVE:
        return snprintf(text, size, "remove the cable between %s and %s", from.text, to.text);
    case CABLING_REPLACE:
        return snprintf(text, size,
                        "replace the cable between %s and %s: only %s hears the other end",
                        from.text, to.text, to.text);
    case CABLING_START_HOST:
        return missing_text(r, in, m->rank, text, size);
    }
    return snprintf(text, size, "?");
}

int cabling_dims(const struct torus *t, const char *graph_file, char *text, size_t size)
{
    char all[TORUS_TEXT_SIZE];
    int used = 0;

    if (t->graphs == 0 || graph_file == NULL)
        return snprintf(text, size, "%s", torus_format(t, all));
    for (unsigned i = 0; i < t->dims; i++) {
        size_t at = (size_t)used < size ? (size_t)used : size;
        const char *times = i > 0 ? " x " : "";
        if (t->graph[i] == NULL)
            used +=
                snprintf(text + at, size - at, "%s%u%s", times, t->size[i], t->wrap[i] ? "" : "m");
        else if (t->graph[i]->kind == GRAPH_KIND_EDGES)
            used += snprintf(text + at, size - at, "%sgraph:%s", times, graph_file);
        else
            used += snprintf(text + at, size - at, "%s%s", times, t->graph[i]->text);
    }
    return used;
}
