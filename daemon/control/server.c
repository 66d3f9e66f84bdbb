/* Who may connect: so many clients as descriptors allow; one more is told so and closed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/control/internal.h"
#include "daemon/control/server.h"

#define CLIENTS_MOST 256u
#define CLIENTS_SHARE 4u /* of the descriptors that this process may have: one in so many */

static void server_release(struct control_server *s)
{
    if (!s->closing || !s->listener_closed || s->clients != NULL)
        return;
    reserve_close(&s->reserve);
    free(s);
}

static void on_leaves(struct control_client *client)
{
    /* It may still want to know how its exchange ends; if not, the answer cannot be written. */
    exchange_cancel(client->exchange);
}

static void on_closed(struct control_client *client)
{
    struct control_server *s = client->server;

    for (struct control_client **at = &s->clients; *at != NULL; at = &(*at)->next)
        if (*at == client) {
            *at = client->next;
            break;
        }
    control_candidates_forget(client);
    s->client_count--;
    free(client);
    reserve_fill(&s->reserve, s->closing ? 0 : 1);
    server_release(s);
}

static void on_gone(struct control_client *client)
{
    control_exchange_abandon(client);
    control_schedule_leave(client);
}

static const struct control_hooks hooks = {control_request, on_leaves, on_gone, on_closed};

/* At most a share of the descriptors: links and files need theirs. */
static unsigned most_clients(void)
{
    struct rlimit limit;
    rlim_t share;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return CLIENTS_MOST;
    share = limit.rlim_cur / CLIENTS_SHARE;
    return share < CLIENTS_MOST ? (unsigned)share : CLIENTS_MOST;
}

static void on_accepted(void *context, int fd)
{
    struct control_server *s = context;
    struct control_client *client = s->closing ? NULL : calloc(1, sizeof *client);
    struct error e;

    if (client == NULL) {
        (void)close(fd);
        return;
    }
    client->hooks = &hooks;
    client->server = s;
    client->handles = 2;
    (void)uv_pipe_init(s->set.loop, &client->pipe, 0);
    (void)uv_timer_init(s->set.loop, &client->progress);
    client->pipe.data = client->progress.data = client;
    client->next = s->clients;
    s->clients = client;
    s->client_count++;
    if (uv_pipe_open(&client->pipe, fd) != 0) {
        (void)close(fd);
        control_client_close(client);
    } else if (s->client_count > s->most_clients || s->reserve.held == 0) {
        if (s->client_count > s->most_clients)
            (void)error_set(&e, ERROR_REFUSED,
                            "%u clients are connected to this daemon, which is the most it takes; "
                            "try again when some have gone",
                            s->most_clients);
        else
            (void)error_set(&e, ERROR_REFUSED,
                            "this daemon has no file descriptors left; try again, or raise its "
                            "limit (LimitNOFILE, ulimit -n)");
        control_client_refuse(client, &e,
                              s->reserve.held > 0 && s->client_count <= 2 * s->most_clients);
    } else {
        control_client_begin(client);
    }
}

/* Does anybody answer at this socket? */
static bool is_served(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool served;

    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    served = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0;
    if (fd >= 0)
        (void)close(fd);
    return served;
}

static void on_listener_closed(void *context)
{
    struct control_server *s = context;

    s->listener_closed = true;
    server_release(s);
}

/* Is the path free? What a crash has left there is removed. */
static int make_room(const char *path, struct error *e)
{
    struct stat st;

    if (strlen(path) >= sizeof((struct sockaddr_un *)NULL)->sun_path)
        return error_set(e, ERROR_USAGE, "control socket %s: a path of at most %zu bytes", path,
                         sizeof((struct sockaddr_un *)NULL)->sun_path - 1);
    if (lstat(path, &st) != 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return error_set(e, ERROR_REFUSED, "%s exists and is not a socket", path);
    if (is_served(path))
        return error_set(e, ERROR_REFUSED,
                         "another daemon serves the control socket %s; give this one a different "
                         "--control",
                         path);
    (void)unlink(path);
    return 0;
}

struct control_server *control_open(const struct control_setup *setup, struct error *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct control_server *s;

    if (make_room(setup->path, e) != 0)
        return NULL;
    s = calloc(1, sizeof *s);
    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    s->set = *setup;
    s->started = uv_hrtime();
    s->most_clients = most_clients();
    s->listener = (struct listener){.reserve = &s->reserve,
                                    .accepted = on_accepted,
                                    .closed = on_listener_closed,
                                    .context = s};
    strncpy(address.sun_path, setup->path, sizeof address.sun_path - 1);
    mode_t before = umask(0117); /* the owner and its group */
    int result =
        listener_open(&s->listener, setup->loop, (struct sockaddr *)&address, sizeof address);
    (void)umask(before);
    if (result != 0) {
        (void)error_set(e, ERROR_IO, "control socket %s: %s", setup->path, strerror(errno));
        free(s);
        return NULL;
    }
    reserve_fill(&s->reserve, 1);
    return s;
}

void control_planned(struct control_server *s)
{
    for (struct control_client *c = s->clients; c != NULL; c = c->next)
        control_candidates_again(c);
}

void control_close(struct control_server *s)
{
    s->closing = true;
    for (struct control_client *c = s->clients; c != NULL; c = c->next)
        control_client_close(c);
    (void)unlink(s->set.path);
    listener_close(&s->listener);
}
