#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/graph/graph_record.h"
#include "proto/text_file.h"

#define BYTES_MOST (1u << 20)
#define EDGES_MOST (GRAPH_NODES_MOST * GRAPH_DIRECTIONS_MOST / 2)

static const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r')
        p++;
    return p;
}

/* Reads a node's number, and the blanks behind it. */
static int read_node(const char **text, uint32_t *node, struct error *e)
{
    const char *p = *text;
    uint32_t number = 0;

    if (*p < '0' || *p > '9')
        return error_set(e, ERROR_USAGE,
                         "expected two numbers of nodes, as in \"0 1\", at \"%.*s\"",
                         (int)strcspn(p, "\r\n") < 16 ? (int)strcspn(p, "\r\n") : 16, p);
    for (; *p >= '0' && *p <= '9'; p++)
        if ((number = 10 * number + (uint32_t)(*p - '0')) >= GRAPH_NODES_MOST)
            return error_set(e, ERROR_USAGE, "a graph has at most %u nodes, from 0",
                             GRAPH_NODES_MOST);
    *node = number;
    *text = skip_blanks(p);
    return 0;
}

/* Reads a line up to its end, or to its comment. */
static int read_line(const char **text, uint32_t *edge, size_t *count, struct error *e)
{
    const char *p = skip_blanks(*text);

    if (*p != '\0' && *p != '\n' && *p != '#') {
        if (*count == EDGES_MOST)
            return error_set(e, ERROR_USAGE, "a graph has at most %u edges", EDGES_MOST);
        if (read_node(&p, &edge[2 * *count], e) != 0 ||
            read_node(&p, &edge[2 * *count + 1], e) != 0)
            return -1;
        if (*p != '\0' && *p != '\n' && *p != '#')
            return error_set(e, ERROR_USAGE, "an edge has two numbers; there is more behind them");
        ++*count;
    }
    p += strcspn(p, "\n");
    *text = *p == '\n' ? p + 1 : p;
    return 0;
}

static const struct graph *read_edges(const char *path, const char *text, uint32_t *edge,
                                      struct error *e)
{
    const struct graph *g;
    size_t count = 0;

    for (unsigned line = 1; *text != '\0'; line++)
        if (read_line(&text, edge, &count, e) != 0) {
            (void)error_wrap(e, "%s, line %u", path, line);
            return NULL;
        }
    g = graph_of_edges(edge, count, e);
    if (g == NULL)
        (void)error_wrap(e, "%s", path);
    return g;
}

const struct graph *graph_read(const char *path, struct error *e)
{
    static const struct text_kind kind = {.name = "a list of edges", .most = BYTES_MOST};
    uint32_t *edge = calloc(2 * (size_t)EDGES_MOST, sizeof *edge);
    const struct graph *g = NULL;
    size_t length;
    char *text;

    if (edge == NULL)
        (void)error_set(e, ERROR_MEMORY, "out of memory for the edges of %s", path);
    else if (text_file_read(path, &kind, &text, &length, e) == 0) {
        g = read_edges(path, text, edge, e);
        free(text);
    }
    free(edge);
    return g;
}
