/* torusctl routes: shows the IP routes that torus-routed keeps on this host. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/cli/terminal/command.h"
#include "client/cli/terminal/json.h"

#define DEFAULT_SOCKET "/run/torus-routed/routes.sock"
#define REPORT_MOST (256u << 20)
#define PATIENCE_SECONDS 10

struct routes_arguments {
    const char *from;
};

static const struct option options[] = {
    {"--from", "PATH", offsetof(struct routes_arguments, from),
     "socket of torus-routed (default: $TORUS_ROUTES, or\n" DEFAULT_SOCKET ")"},
    {0},
};

static const struct section sections[] = {
    RECORD(NULL, FIELD("torus"), FIELD("this host", "host"), FIELD("address"),
           FIELD("IPv6 address", "address6"), FIELD("torusd"), FIELD("down"), FIELD("firewall"),
           FIELD("problem")),
    TABLE("routes", FIELD("host"), FIELD("address"), FIELD("IPv6 address", "address6"),
          FIELD("state"), FIELD("hops"), FIELD("by"), FIELD("for", "seconds", FORMAT_SECONDS),
          FIELD("why")),
};

/* Returns a connection to torus-routed, or -1 with *e. */
static int connect_to(const char *path, struct error *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    int fd;

    if (strlen(path) >= sizeof address.sun_path)
        return error_set(e, ERROR_USAGE, "%.120s...: the path of a socket has at most %zu bytes",
                         path, sizeof address.sun_path - 1);
    (void)strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
        connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    (void)error_set(e, ERROR_IO, "cannot ask torus-routed at %s: %s (is it running?)", path,
                    strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

/* Reads until the end. Returns the text, which the caller frees, or NULL with *e. */
static char *read_report(int fd, struct error *e)
{
    char *text = NULL, *more;
    size_t used = 0, room = 0;
    ssize_t n = 1;

    while (n > 0) {
        room = used == room ? 2 * room + 65536 : room;
        more = room <= REPORT_MOST ? realloc(text, room + 1) : NULL;
        if (more == NULL) {
            free(text);
            (void)error_set(e, ERROR_MEMORY, "the report of torus-routed is too large");
            return NULL;
        }
        text = more;
        n = recv(fd, text + used, room - used, 0);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0)
            used += (size_t)n;
    }
    text[used] = '\0';
    if (n == 0)
        return text;
    (void)error_set(e, ERROR_IO, "torus-routed does not answer: %s", strerror(errno));
    free(text);
    return NULL;
}

/* Returns the sum of the weights if they differ, or 0. */
static json_int_t sum_of_weights(const json_t *hops)
{
    json_int_t sum = 0, first = 0;
    bool differ = false;
    const json_t *hop;
    size_t i;

    json_array_foreach(hops, i, hop)
    {
        const json_int_t weight = json_integer_value(json_object_get(hop, "weight"));
        first = first > 0 ? first : weight;
        differ |= weight > 0 && weight != first;
        sum += weight;
    }
    return differ ? sum : 0;
}

/* Adds "by": the interfaces of the next hosts, their names, and what part of the packets each takes unless it is the same. */
static int add_next_hops(json_t *route)
{
    const json_t *hops = json_object_get(route, "ways"), *hop;
    const json_int_t sum = sum_of_weights(hops);
    char text[1024] = "";
    size_t i, used = 0;

    json_array_foreach(hops, i, hop)
    {
        const char *interface = json_string_value(json_object_get(hop, "interface"));
        const char *host = json_string_value(json_object_get(hop, "host"));
        const bool spare = json_is_false(json_object_get(hop, "used"));
        if (interface != NULL && host != NULL && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%.15s (%.64s)",
                                     i > 0 ? ", " : "", spare ? "spare: " : "", interface, host);
        if (sum > 0 && !spare && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, " %.0f %%",
                                     100.0 * json_number_value(json_object_get(hop, "weight")) /
                                         (double)sum);
    }
    return json_object_set_new(route, "by", json_string(text));
}

static json_t *parse(char *text, struct error *e)
{
    json_error_t error;
    json_t *value = json_loads(text, 0, &error), *route;
    int r = json_is_object(value) ? 0 : -1;
    size_t i;

    json_array_foreach(json_object_get(value, "routes"), i, route) r |= add_next_hops(route);
    if (r == 0)
        r |= json_object_set_new(value, "torusd",
                                 json_string(json_is_true(json_object_get(value, "daemon"))
                                                 ? "connected"
                                                 : "does not answer: the routes stay as they are"));
    if (r == 0)
        return value;
    json_decref(value);
    (void)error_set(e, ERROR_PROTOCOL, "the report of torus-routed is not valid");
    return NULL;
}

static int run(struct cli *cli, const void *arguments)
{
    const struct routes_arguments *a = arguments;
    const char *environment = getenv("TORUS_ROUTES");
    const char *path = a->from != NULL       ? a->from
                       : environment != NULL ? environment
                                             : DEFAULT_SOCKET;
    struct error e;
    json_t *value = NULL;
    char *text = NULL;
    int fd = connect_to(path, &e);

    if (fd >= 0) {
        text = read_report(fd, &e);
        (void)close(fd);
    }
    if (text != NULL)
        value = parse(text, &e);
    free(text);
    if (value == NULL)
        return cli_fail(cli, &e);
    return cli_print(cli, value, VIEW(sections));
}

const struct command command_routes = {
    .name = "routes",
    .summary = "Show this host's IP routes to all other hosts, and why they are so",
    .usage = "[--from PATH] [--json]",
    .options = options,
    .arguments_size = sizeof(struct routes_arguments),
    .run = run,
};
