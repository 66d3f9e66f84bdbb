#include <stdio.h>
#include <string.h>

#include "daemon/lib/schedule/factor_text.h"
#include "daemon/lib/schedule/torus.h"

static int too_many_dimensions(const struct factor_text *r, struct error *e)
{
    return error_set(e, ERROR_USAGE, "torus \"%.64s\" has more than %d dimensions", r->text,
                     TORUS_MAX_DIMS);
}

/* Appends a factor as many times as its power says. */
static int append(const struct factor_text *r, struct torus *t, const struct factor *f,
                  uint32_t times, struct error *e)
{
    for (; times > 0; times--) {
        if (t->dims == TORUS_MAX_DIMS)
            return too_many_dimensions(r, e);
        if (f->nodes > TORUS_MAX_NODES / t->nodes)
            return error_set(e, ERROR_USAGE, "torus \"%.64s\" has more than %u nodes", r->text,
                             TORUS_MAX_NODES);
        if (torus_append(t, f->nodes, f->kind == FACTOR_RING, f->graph) != 0)
            return error_set(e, ERROR_USAGE, "torus \"%.64s\" needs more than %d ports a node",
                             r->text, TORUS_MAX_PORTS);
    }
    return 0;
}

static int parse(struct torus *t, struct factor_text r, struct error *e)
{
    struct torus result = {.nodes = 1};
    struct factor f;
    uint32_t times;

    do {
        if (result.dims == TORUS_MAX_DIMS)
            return too_many_dimensions(&r, e);
        if (factor_text_read(&r, &f, &times, e) != 0 || append(&r, &result, &f, times, e) != 0)
            return -1;
    } while (factor_text_goes_on(&r));
    if (factor_text_end(&r, e) != 0)
        return -1;
    *t = result;
    return 0;
}

int torus_parse(struct torus *t, const char *text, struct error *e)
{
    return parse(t,
                 (struct factor_text){
                     .what = "torus", .text = text, .at = text, .links = true, .files = true},
                 e);
}

int torus_parse_named(struct torus *t, const char *text, struct error *e)
{
    return parse(t, (struct factor_text){.what = "torus", .text = text, .at = text, .links = true},
                 e);
}

int torus_parse_known(struct torus *t, const char *text, struct error *e)
{
    return parse(t,
                 (struct factor_text){
                     .what = "torus", .text = text, .at = text, .links = true, .known = true},
                 e);
}

char *torus_format(const struct torus *t, char *text)
{
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < t->dims && used < TORUS_TEXT_SIZE; i++) {
        const char *times = i == 0 ? "" : t->graphs != 0 ? " x " : "x";
        int n = t->graph[i] != NULL ? snprintf(text + used, TORUS_TEXT_SIZE - used, "%s%s", times,
                                               t->graph[i]->text)
                                    : snprintf(text + used, TORUS_TEXT_SIZE - used, "%s%u%s", times,
                                               t->size[i], t->wrap[i] ? "" : "m");
        used += (size_t)n;
    }
    return text;
}

char *torus_port_name(const struct torus *t, uint32_t rank, unsigned port, char *name)
{
    unsigned dim = torus_port_dim(t, port);
    int direction = torus_port_direction(t, port);
    uint32_t at[TORUS_MAX_DIMS], there;

    if (t->graphs == 0 || t->graph[dim] == NULL) {
        (void)snprintf(name, TORUS_PORT_NAME_SIZE, "%c%u", direction > 0 ? '+' : '-', dim % 10);
        return name;
    }
    torus_coordinates(t, rank, at);
    there = graph_neighbour(t->graph[dim], at[dim], (unsigned)direction - 1);
    if (there == GRAPH_NO_NODE)
        (void)snprintf(name, TORUS_PORT_NAME_SIZE, "%u:?", dim % 10);
    else
        (void)snprintf(name, TORUS_PORT_NAME_SIZE, "%u:%u", dim % 10, there % 10000);
    return name;
}

int torus_port_parse(const struct torus *t, uint32_t rank, const char *name)
{
    char known[TORUS_PORT_NAME_SIZE];

    for (unsigned port = 0; port < torus_ports(t); port++)
        if (strcmp(torus_port_name(t, rank, port, known), name) == 0 && strchr(name, '?') == NULL)
            return (int)port;
    return -1;
}
