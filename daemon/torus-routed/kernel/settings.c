#include "daemon/torus-routed/kernel/settings.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/lib/host/netlink.h"

int state_file_descriptor(const char *path, int flags)
{
    int fd = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    struct stat st;

    if (fd < 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
        return fd;
    (void)close(fd);
    errno = ELOOP;
    return -1;
}

FILE *state_file_open(const char *path, const char *mode)
{
    int fd = state_file_descriptor(path, mode[0] == 'r'   ? O_RDONLY
                                         : mode[0] == 'a' ? O_WRONLY | O_CREAT | O_APPEND
                                                          : O_WRONLY | O_CREAT | O_TRUNC);
    FILE *file = fd >= 0 ? fdopen(fd, mode) : NULL;

    if (file == NULL && fd >= 0)
        (void)close(fd);
    return file;
}

#define NAME_SIZE 128u
#define VALUE_SIZE 64u

/* --- one setting --- */

static int open_setting(const struct settings *s, const char *name, int flags)
{
    char path[sizeof "/proc/sys/net/" + NAME_SIZE + 64];

    (void)snprintf(path, sizeof path, "%s/%s", s->folder, name);
    return open(path, flags | O_CLOEXEC);
}

/* Returns 0, or -1 with errno: ENOENT if this kernel, or this interface, does not have it. */
static int get(const struct settings *s, const char *name, char value[VALUE_SIZE])
{
    int fd = open_setting(s, name, O_RDONLY), before;
    ssize_t length;

    if (fd < 0)
        return -1;
    length = read(fd, value, VALUE_SIZE - 1);
    before = errno;
    (void)close(fd);
    errno = before;
    if (length <= 0)
        return -1;
    value[length] = '\0';
    value[strcspn(value, "\n")] = '\0';
    return 0;
}

/* Sleeps until nobody else has the kernel's lock of all interfaces, by a request that changes nothing. A write of forwarding
 * or disable_ipv6 needs that lock, and does not sleep: the kernel repeats it until the lock is free. */
static void await_interfaces(void)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_SETLINK, 0);
    struct ifinfomsg *link = mnl_nlmsg_put_extra_header(request, sizeof *link);
    struct netlink nl;

    link->ifi_index = 1; /* lo */
    if (netlink_open(&nl, NETLINK_ROUTE) == 0)
        (void)netlink_do(&nl, request);
    netlink_close(&nl);
}

static int put(const struct settings *s, const char *name, const char *value)
{
    int fd = open_setting(s, name, O_WRONLY), before;
    ssize_t length;

    if (fd < 0)
        return -1;
    await_interfaces();
    length = write(fd, value, strlen(value));
    before = errno;
    (void)close(fd);
    errno = before;
    return length == (ssize_t)strlen(value) ? 0 : -1;
}

/* --- former values --- */

static bool is_saved(const struct settings *s, const char *name)
{
    for (unsigned i = 0; i < s->count; i++)
        if (strcmp(s->saved[i].name, name) == 0)
            return true;
    return false;
}

static int remember(struct settings *s, const char *name, const char *value)
{
    struct saved_setting *more = reallocarray(s->saved, s->count + 1, sizeof *more);

    if (more == NULL)
        return -1;
    s->saved = more;
    s->saved[s->count] = (struct saved_setting){strdup(name), strdup(value)};
    if (s->saved[s->count].name == NULL || s->saved[s->count].value == NULL) {
        free(s->saved[s->count].name);
        free(s->saved[s->count].value);
        return -1;
    }
    s->count++;
    return 0;
}

static int add_to_file(const struct settings *s, const char *name, const char *value)
{
    FILE *out = state_file_open(s->file, "a");
    bool failed = out == NULL || fprintf(out, "%s %s\n", name, value) < 0;

    failed |= out != NULL && fclose(out) != 0;
    return failed ? -1 : 0;
}

int settings_open(struct settings *s, const char *state, struct error *e)
{
    char line[NAME_SIZE + VALUE_SIZE], name[NAME_SIZE], value[VALUE_SIZE];
    FILE *in;
    int rc = 0;

    *s = (struct settings){.folder = "/proc/sys/net"};
    if (asprintf(&s->file, "%s/settings", state) < 0) {
        s->file = NULL;
        return error_set(e, ERROR_MEMORY, "out of memory for the settings");
    }
    in = state_file_open(s->file, "r");
    if (in == NULL && errno == ENOENT)
        return 0;
    if (in == NULL)
        return error_set(e, ERROR_IO, "cannot read %.200s: %s", s->file, strerror(errno));
    while (rc == 0 && fgets(line, sizeof line, in) != NULL)
        if (sscanf(line, "%127s %63s", name, value) == 2 && strstr(name, "..") == NULL)
            rc = remember(s, name, value);
    (void)fclose(in);
    return rc == 0 ? 0 : error_set(e, ERROR_MEMORY, "out of memory for the settings");
}

void settings_free(struct settings *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        free(s->saved[i].name);
        free(s->saved[i].value);
    }
    free(s->saved);
    free(s->file);
    *s = (struct settings){0};
}

/* Remembers the value before it changes. A setting that does not exist is left out. */
static int keep(struct settings *s, const char *name, struct error *e)
{
    char value[VALUE_SIZE];

    if (is_saved(s, name) || get(s, name, value) != 0)
        return 0;
    if (add_to_file(s, name, value) != 0)
        return error_set(e, ERROR_IO, "cannot write %.200s: %s", s->file, strerror(errno));
    return remember(s, name, value) == 0
               ? 0
               : error_set(e, ERROR_MEMORY, "out of memory for the settings");
}

static int change(struct settings *s, const char *name, const char *value, struct error *e)
{
    char now[VALUE_SIZE];

    if (get(s, name, now) != 0 || strcmp(now, value) == 0)
        return 0;
    if (keep(s, name, e) != 0)
        return -1;
    if (put(s, name, value) == 0 || errno == ENOENT)
        return 0;
    return error_set(e, ERROR_IO, "cannot set %s/%s to %s: %s (CAP_NET_ADMIN is needed)", s->folder,
                     name, value, strerror(errno));
}

int settings_restore(struct settings *s)
{
    char now[VALUE_SIZE];
    int rc = 0, reason = 0;

    for (unsigned i = s->count; i > 0; i--)
        if (get(s, s->saved[i - 1].name, now) == 0 && strcmp(now, s->saved[i - 1].value) != 0 &&
            put(s, s->saved[i - 1].name, s->saved[i - 1].value) != 0 && errno != ENOENT) {
            reason = errno;
            rc = -1;
        }
    if (rc == 0 && s->file != NULL)
        (void)unlink(s->file);
    errno = reason;
    return rc;
}

/* Replaces the file by one with the names as they are now. */
static int write_file(const struct settings *s)
{
    char *fresh = NULL;
    FILE *out = NULL;
    bool failed = asprintf(&fresh, "%s.new", s->file) < 0;

    if (!failed)
        out = state_file_open(fresh, "w");
    failed |= out == NULL;
    for (unsigned i = 0; !failed && i < s->count; i++)
        failed = fprintf(out, "%s %s\n", s->saved[i].name, s->saved[i].value) < 0;
    failed |= out != NULL && fclose(out) != 0;
    failed = failed || rename(fresh, s->file) != 0;
    free(fresh);
    return failed ? -1 : 0;
}

int settings_rename(struct settings *s, const char *from, const char *to, struct error *e)
{
    char part[NAME_SIZE], *at, *name;
    bool any = false;

    (void)snprintf(part, sizeof part, "/conf/%s/", from);
    for (unsigned i = 0; i < s->count; i++) {
        struct saved_setting *saved = &s->saved[i];
        at = strstr(saved->name, part);
        if (at == NULL)
            continue;
        if (asprintf(&name, "%.*s/conf/%s/%s", (int)(at - saved->name), saved->name, to,
                     at + strlen(part)) < 0)
            return error_set(e, ERROR_MEMORY, "out of memory for the settings");
        free(saved->name);
        saved->name = name;
        any = true;
    }
    if (any && write_file(s) != 0)
        return error_set(e, ERROR_IO, "cannot write %.200s: %s", s->file, strerror(errno));
    return 0;
}

/* --- what routes need --- */

static char *conf(char name[NAME_SIZE], const char *family, const char *interface,
                  const char *setting)
{
    (void)snprintf(name, NAME_SIZE, "%s/conf/%.16s/%s", family, interface, setting);
    return name;
}

typedef int each_fn(struct settings *s, const char *interface, const char *value, struct error *e);

/* Calls `each` for all interfaces, with `value`. */
static int for_interfaces(struct settings *s, const char *family, each_fn *each, const char *value,
                          struct error *e)
{
    char path[64];
    const struct dirent *entry;
    DIR *folder;
    int rc = 0;

    (void)snprintf(path, sizeof path, "%s/%s/conf", s->folder, family);
    folder = opendir(path);
    while (folder != NULL && rc == 0 && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "all") != 0)
            rc = each(s, entry->d_name, value, e);
    if (folder != NULL)
        (void)closedir(folder);
    return rc;
}

static int raise_to(struct settings *s, const char *interface, const char *setting,
                    const char *least, struct error *e)
{
    char name[NAME_SIZE], now[VALUE_SIZE];

    if (get(s, conf(name, "ipv4", interface, setting), now) != 0 || atoi(now) >= atoi(least))
        return 0;
    return change(s, name, least, e);
}

static int raise_rp_filter(struct settings *s, const char *interface, const char *least,
                           struct error *e)
{
    return raise_to(s, interface, "rp_filter", least, e);
}

static int raise_send_redirects(struct settings *s, const char *interface, const char *least,
                                struct error *e)
{
    return raise_to(s, interface, "send_redirects", least, e);
}

static int raise_arp_ignore(struct settings *s, const char *interface, const char *least,
                            struct error *e)
{
    return raise_to(s, interface, "arp_ignore", least, e);
}

static int raise_arp_filter(struct settings *s, const char *interface, const char *least,
                            struct error *e)
{
    return raise_to(s, interface, "arp_filter", least, e);
}

/* The kernel uses the larger of the values of an interface and of "all". */
static const struct {
    const char *name;
    each_fn *raise;
} lowered[] = {
    {"rp_filter", raise_rp_filter},
    {"send_redirects", raise_send_redirects},
    {"arp_ignore", raise_arp_ignore},
    {"arp_filter", raise_arp_filter},
};

int settings_allow_v6(struct settings *s, const char *interface, struct error *e)
{
    char name[NAME_SIZE];

    return change(s, conf(name, "ipv6", interface, "disable_ipv6"), "0", e);
}

int settings_prepare_interface(struct settings *s, const char *interface, bool v6, struct error *e)
{
    char name[NAME_SIZE];

    if (change(s, conf(name, "ipv4", interface, "forwarding"), "1", e) != 0 ||
        (v6 && change(s, conf(name, "ipv6", interface, "forwarding"), "1", e) != 0))
        return -1;
    for (unsigned i = 0; i < sizeof lowered / sizeof lowered[0]; i++) {
        if (keep(s, conf(name, "ipv4", interface, lowered[i].name), e) != 0 ||
            change(s, name, "0", e) != 0)
            return -1;
    }
    return 0;
}

bool settings_forwards(const struct settings *s, const char *interface, bool v6)
{
    char name[NAME_SIZE], now[VALUE_SIZE];

    return get(s, conf(name, "ipv4", interface, "forwarding"), now) == 0 && strcmp(now, "0") != 0 &&
           (!v6 || (get(s, conf(name, "ipv6", interface, "forwarding"), now) == 0 &&
                    strcmp(now, "0") != 0));
}

static int keep_forwarding(struct settings *s, const char *interface, const char *value,
                           struct error *e)
{
    char name[NAME_SIZE];

    (void)value;
    return keep(s, conf(name, "ipv6", interface, "forwarding"), e);
}

/* A host that forwards takes no more addresses from routers, unless it is told so (2). */
static int accept_routers(struct settings *s, const char *interface, const char *value,
                          struct error *e)
{
    char name[NAME_SIZE], now[VALUE_SIZE];

    if (get(s, conf(name, "ipv6", interface, "accept_ra"), now) != 0 || strcmp(now, "1") != 0)
        return 0;
    return change(s, name, value, e);
}

static int prepare_v6(struct settings *s, struct error *e)
{
    char now[VALUE_SIZE];

    if (get(s, "ipv6/conf/all/forwarding", now) == 0 && strcmp(now, "0") == 0 &&
        (for_interfaces(s, "ipv6", accept_routers, "2", e) != 0 ||
         for_interfaces(s, "ipv6", keep_forwarding, NULL, e) != 0))
        return -1;
    if (change(s, "ipv6/fib_multipath_hash_policy", "1", e) != 0)
        return -1;
    return change(s, "ipv6/conf/all/forwarding", "1", e);
}

int settings_prepare_host(struct settings *s, unsigned rank, bool v6, struct error *e)
{
    char name[NAME_SIZE], now[VALUE_SIZE], seed[VALUE_SIZE];

    for (unsigned i = 0; i < sizeof lowered / sizeof lowered[0]; i++) {
        if (get(s, conf(name, "ipv4", "all", lowered[i].name), now) != 0 || atoi(now) == 0)
            continue;
        if (for_interfaces(s, "ipv4", lowered[i].raise, now, e) != 0 ||
            change(s, name, "0", e) != 0)
            return -1;
    }
    (void)snprintf(seed, sizeof seed, "%u", rank + 1); /* else machines could all choose alike */
    if (change(s, "ipv4/fib_multipath_hash_policy", "1", e) != 0 ||
        (get(s, "ipv4/fib_multipath_hash_seed", now) == 0 && strcmp(now, "0") == 0 &&
         change(s, "ipv4/fib_multipath_hash_seed", seed, e) != 0))
        return -1;
    return v6 ? prepare_v6(s, e) : 0;
}
