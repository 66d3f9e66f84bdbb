/* `dims = graph:FILE` in a configuration names a file. A fuzzer opens none. */
#include "daemon/lib/schedule/graph/graph.h"

const struct graph *__wrap_graph_read(const char *path, struct error *e);

const struct graph *__wrap_graph_read(const char *path, struct error *e)
{
    (void)error_set(e, ERROR_USAGE, "%.64s: fuzzers open no files", path);
    return NULL;
}
