#include "daemon/torus-routed/holdings.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/torus-routed/kernel/kernel.h"
#include "daemon/torus-routed/kernel/settings.h"

#define SHARED_INTERFACE "torus0" /* 'torusctl ip-routes' makes it, too */
#define PATH_SIZE 256u

static char *path_of(const struct holdings *h, const char *name, char path[PATH_SIZE])
{
    (void)snprintf(path, PATH_SIZE, "%.230s/%s", h->state, name);
    return path;
}

/* --- notes --- */

static int read_note(struct holdings *h, struct error *e)
{
    char path[PATH_SIZE];
    FILE *in = state_file_open(path_of(h, "interface", path), "r");

    if (in == NULL && errno == ENOENT)
        return 0;
    if (in == NULL)
        return error_set(e, ERROR_IO, "cannot read %.200s: %s", path, strerror(errno));
    if (fscanf(in, "%15s", h->noted) != 1)
        h->noted[0] = '\0';
    (void)fclose(in);
    return 0;
}

/* The note comes first: whatever happens then, the interface is removed. */
static int note(struct holdings *h, struct error *e)
{
    char path[PATH_SIZE];
    FILE *out = state_file_open(path_of(h, "interface", path), "w");
    bool failed = out == NULL || fprintf(out, "%s\n", h->interface) < 0;

    failed |= out != NULL && fclose(out) != 0;
    if (failed)
        return error_set(e, ERROR_IO, "cannot write %.200s: %s", path, strerror(errno));
    (void)snprintf(h->noted, sizeof h->noted, "%s", h->interface);
    return 0;
}

/* --- begin and end --- */

/* Whether a process of root has the name. Another user may have taken it, to keep torus-routed from starting. */
static bool is_of_root(const struct sockaddr_un *address, socklen_t length)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    bool connected = fd >= 0 && connect(fd, (const struct sockaddr *)address, length) == 0;
    bool is_root = !connected || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
                   peer.uid == 0 || peer.uid == geteuid();

    if (fd >= 0)
        (void)close(fd);
    return is_root;
}

/* Takes the place of the only torus-routed of this network namespace: abstract names of sockets belong to it. */
static int lock_namespace(struct holdings *h, struct error *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "\0torus-routed"};
    const socklen_t length = offsetof(struct sockaddr_un, sun_path) + sizeof "\0torus-routed" - 1;

    h->place = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (h->place < 0)
        return error_set(e, ERROR_IO, "no socket: %s", strerror(errno));
    if (bind(h->place, (const struct sockaddr *)&address, length) == 0)
        return listen(h->place, 1) == 0 ? 0 : error_set(e, ERROR_IO, "%s", strerror(errno));
    if (errno != EADDRINUSE)
        return error_set(e, ERROR_IO, "cannot bind @torus-routed: %s", strerror(errno));
    if (is_of_root(&address, length))
        return error_set(e, ERROR_REFUSED,
                         "another torus-routed runs in this network namespace, and one is enough");
    log_warning("a process of another user has the socket @torus-routed: nothing prevents a second "
                "torus-routed in this network namespace");
    return 0;
}

/* Takes the state folder, which may be a link, as systemd makes it. Its files must not be links. */
static int lock_state(struct holdings *h, struct error *e)
{
    char path[PATH_SIZE];
    struct stat st;

    if (mkdir(h->state, 0755) != 0 && errno != EEXIST)
        return error_set(e, ERROR_IO, "cannot create %.200s: %s", h->state, strerror(errno));
    if (stat(h->state, &st) != 0 || !S_ISDIR(st.st_mode))
        return error_set(e, ERROR_USAGE, "%.200s is not a folder", h->state);
    h->lock = state_file_descriptor(path_of(h, "lock", path), O_RDWR | O_CREAT);
    if (h->lock < 0)
        return error_set(e, ERROR_IO, "cannot open %.200s: %s", path, strerror(errno));
    if (flock(h->lock, LOCK_EX | LOCK_NB) != 0)
        return error_set(e, ERROR_REFUSED, "another torus-routed uses %.200s, and one is enough",
                         h->state);
    return 0;
}

int holdings_open(struct holdings *h, const char *state, const char *interface, struct error *e)
{
    *h = (struct holdings){.state = state, .interface = interface, .lock = -1, .place = -1};
    if (lock_namespace(h, e) != 0 || lock_state(h, e) != 0 ||
        settings_open(&h->settings, state, e) != 0 || read_note(h, e) != 0)
        return -1;
    if (netlink_open(&h->netlink, NETLINK_ROUTE) != 0)
        return error_set(e, ERROR_IO, "cannot reach the kernel's routes: %s", strerror(errno));
    return 0;
}

void holdings_close(struct holdings *h)
{
    settings_free(&h->settings);
    netlink_close(&h->netlink);
    if (h->lock >= 0)
        (void)close(h->lock);
    if (h->place >= 0)
        (void)close(h->place);
    h->lock = h->place = -1;
}

bool holdings_any(const struct holdings *h)
{
    return h->noted[0] != '\0' || h->settings.count > 0;
}

/* --- the host --- */

static bool is_noted(const struct holdings *h)
{
    return strcmp(h->noted, h->interface) == 0;
}

int holdings_may_use_interface(struct holdings *h, struct error *e)
{
    const enum netlink_maker maker = netlink_interface_maker(&h->netlink, h->interface);

    if (maker == NETLINK_MISSING || (maker == NETLINK_LIKE_OURS &&
                                     (is_noted(h) || strcmp(h->interface, SHARED_INTERFACE) == 0)))
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "the interface %s exists, and torus-routed has not made it: give another "
                     "--interface, or remove it (ip link del %s)",
                     h->interface, h->interface);
}

/* Returns 0, or -1 with errno. */
static int remove_noted(struct holdings *h)
{
    if (h->noted[0] == '\0' || netlink_interface_maker(&h->netlink, h->noted) != NETLINK_LIKE_OURS)
        return 0;
    return netlink_remove_interface(&h->netlink, h->noted);
}

static int take_interface(struct holdings *h, struct error *e)
{
    if (holdings_may_use_interface(h, e) != 0)
        return -1;
    if (!is_noted(h)) {
        if (remove_noted(h) != 0) /* of a former --interface */
            log_warning("%s could not be removed: %s", h->noted, strerror(errno));
        if (note(h, e) != 0)
            return -1;
    }
    if (netlink_make_interface(&h->netlink, h->interface) != 0)
        return error_set(e, ERROR_IO, "cannot make the interface %s: %s", h->interface,
                         strerror(errno));
    return 0;
}

/* Returns 0, or -1 with *e. */
static int set_addresses(struct holdings *h, const struct host_entry *self, bool v6,
                         struct error *e)
{
    if (v6 && settings_allow_v6(&h->settings, h->interface, e) != 0)
        return -1;
    if (netlink_set_addresses(&h->netlink, h->interface, self->ip, v6 ? 2 : 1) == 0)
        return 0;
    return error_set(e, ERROR_IO, "cannot give %s the address of this host: %s", h->interface,
                     strerror(errno));
}

int holdings_prepare(struct holdings *h, const struct host_entry *self, uint32_t rank, bool *v6,
                     struct error *e)
{
    struct error more;

    if (take_interface(h, e) != 0)
        return -1;
    if (set_addresses(h, self, *v6, e) != 0) {
        if (!*v6 || set_addresses(h, self, false, &more) != 0)
            return -1;
        log_warning("only IPv4 routes are set: %s", e->text);
        *v6 = false;
    }
    return settings_prepare_host(&h->settings, rank, *v6, e);
}

int holdings_remove(struct holdings *h, bool all, struct error *e)
{
    char path[PATH_SIZE];
    int rc = 0;

    if (!all && !holdings_any(h)) {
        (void)unlink(path_of(h, "lock", path));
        return 0;
    }
    if (all && h->noted[0] == '\0' && strcmp(h->interface, SHARED_INTERFACE) == 0)
        (void)strcpy(h->noted, SHARED_INTERFACE);
    if (netlink_remove_routes(&h->netlink) != 0)
        rc = error_set(e, ERROR_IO, "some routes could not be removed: %s", strerror(errno));
    if (remove_noted(h) != 0)
        rc = error_set(e, ERROR_IO, "%s could not be removed: %s", h->noted, strerror(errno));
    firewall_remove();
    if (settings_restore(&h->settings) != 0)
        rc = error_set(e, ERROR_IO, "some settings could not be restored: %s", strerror(errno));
    if (rc != 0)
        return rc;
    (void)unlink(path_of(h, "interface", path));
    (void)unlink(path_of(h, "lock", path));
    h->noted[0] = '\0';
    return 0;
}
