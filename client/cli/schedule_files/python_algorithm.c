#include "client/cli/schedule_files/python_algorithm.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/schedule_files/python_algorithm_py.h"
#include "daemon/lib/host/run.h"
#include "daemon/lib/schedule/file/imported.h"
#include "proto/text.h"

#define PREFIX "python:"
#define PATIENCE_MS 90000 /* the process ends after a minute of processor time by itself */
#define SETTINGS_MOST 8u

bool python_algorithm_is_name(const char *name)
{
    return name != NULL && strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}

void python_algorithm_take(const char **algorithm, const char **schedule)
{
    if (!python_algorithm_is_name(*algorithm))
        return;
    *schedule = *algorithm;
    *algorithm = NULL;
}

/* The links of a graph: for each coordinate, the coordinates at the other ends by direction, or null. */
static json_t *links_value(const struct graph *g)
{
    json_t *links = json_array();

    for (uint32_t node = 0; node < g->nodes; node++) {
        json_t *ends = json_array();
        for (unsigned i = 0; i < g->directions; i++) {
            const uint32_t end = g->neighbour[node * g->directions + i];
            (void)json_array_append_new(ends,
                                        end == GRAPH_NO_NODE ? json_null() : json_integer(end));
        }
        (void)json_array_append_new(links, ends);
    }
    return links;
}

/* The network as JSON, for the process; NULL without memory. */
static char *network_text(const struct torus *t)
{
    char dims[TORUS_TEXT_SIZE];
    json_t *factors = json_array();

    for (unsigned i = 0; i < t->dims; i++) {
        json_t *factor = json_pack("{s:i,s:b}", "size", (int)t->size[i], "wraps", (int)t->wrap[i]);
        if (t->graph[i] != NULL)
            (void)json_object_set_new(factor, "links", links_value(t->graph[i]));
        (void)json_array_append_new(factors, factor);
    }
    json_t *network = json_pack("{s:s,s:o}", "dims", torus_format(t, dims), "factors", factors);
    char *text = network != NULL ? json_dumps(network, JSON_COMPACT) : NULL;
    json_decref(network);
    return text;
}

/* Cuts the name into the file and its settings, in place. Returns the number of arguments, or 0 if there are too many. */
static unsigned cut(char *name, const char **arguments)
{
    unsigned count = 0;

    for (char *at = name; at != NULL && count <= SETTINGS_MOST;) {
        arguments[count++] = at;
        at = strchr(at, ':');
        if (at != NULL)
            *at++ = '\0';
    }
    return count <= SETTINGS_MOST ? count : 0;
}

/* Runs python3. Returns 0 with the schedule in `text`, or -1 with *e. */
static int run(const char *const *argv, char *text, size_t size, struct error *e)
{
    char said[300];
    int status;

    (void)host_run(argv, PATIENCE_MS, text, size, &status);
    if (status == 0)
        return 0;
    if (strlen(text) == size - 1)
        return error_set(e, ERROR_REFUSED,
                         "its schedule has more than %u MiB: a period makes it shorter",
                         IMPORTED_BYTES_MOST >> 20);
    if (status == 1 && text[0] != '\0') {
        char *last = text;
        for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
            last = line;
        return error_set(e, ERROR_REFUSED, "%s", text_printable(said, sizeof said, last));
    }
    return error_set(e, ERROR_REFUSED,
                     "python3 could not be started, or did not end within a minute of processor "
                     "time");
}

int python_algorithm_run(const char *name, const struct torus *t, char **text, size_t *length,
                         struct error *e)
{
    const char *argv[4 + SETTINGS_MOST + 2] = {"python3", "-c", python_algorithm_py};
    char *copy = strdup(name + strlen(PREFIX)), *network = network_text(t);
    const size_t size = IMPORTED_BYTES_MOST + 2;
    int rc = -1;

    *text = malloc(size);
    if (copy == NULL || network == NULL || *text == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for the algorithm in Python");
    } else {
        const unsigned count = cut(copy, argv + 3);
        if (count == 0) {
            (void)error_set(e, ERROR_USAGE, "more than %u settings", SETTINGS_MOST - 1);
        } else {
            argv[3 + count] = network;
            rc = run(argv, *text, size, e);
        }
    }
    free(copy);
    free(network);
    if (rc == 0) {
        *length = strlen(*text);
        return 0;
    }
    free(*text);
    *text = NULL;
    return -1;
}
