/* What all of libtorus uses: errors, names of values, structs of callers, sockets. */
#include "client/libtorus/common.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "proto/error.h"
#include "proto/text.h"

int64_t clock_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- Errors ---------------------------------------------------------------------------------- */

/* The daemon's codes come over the wire; the public ones are the same numbers. */
_Static_assert((int)TORUS_ERROR_USAGE == (int)ERROR_USAGE, "error codes");
_Static_assert((int)TORUS_ERROR_REFUSED == (int)ERROR_REFUSED, "error codes");
_Static_assert((int)TORUS_ERROR_LINK == (int)ERROR_LINK, "error codes");
_Static_assert((int)TORUS_ERROR_PROTOCOL == (int)ERROR_PROTOCOL, "error codes");
_Static_assert((int)TORUS_ERROR_IO == (int)ERROR_IO, "error codes");
_Static_assert((int)TORUS_ERROR_MEMORY == (int)ERROR_MEMORY, "error codes");
_Static_assert((int)TORUS_ERROR_TIMEOUT == (int)ERROR_TIMEOUT, "error codes");
_Static_assert((int)TORUS_ERROR_CANCELLED == (int)ERROR_CANCELLED, "error codes");
_Static_assert((int)TORUS_ERROR_DAMAGED == (int)ERROR_DAMAGED, "error codes");
_Static_assert((int)TORUS_ERROR_IN_DOUBT == (int)ERROR_IN_DOUBT, "error codes");
_Static_assert((int)TORUS_ERROR_BUSY == (int)ERROR_BUSY, "error codes");

const char *torus_error_name(enum torus_error_code code)
{
    switch (code) {
    case TORUS_ERROR_NO_DAEMON:
        return "no daemon";
    case TORUS_ERROR_LOST:
        return "lost";
    case TORUS_ERROR_NONE:
    case TORUS_ERROR_USAGE:
    case TORUS_ERROR_REFUSED:
    case TORUS_ERROR_LINK:
    case TORUS_ERROR_PROTOCOL:
    case TORUS_ERROR_IO:
    case TORUS_ERROR_MEMORY:
    case TORUS_ERROR_TIMEOUT:
    case TORUS_ERROR_CANCELLED:
    case TORUS_ERROR_DAMAGED:
    case TORUS_ERROR_IN_DOUBT:
    case TORUS_ERROR_BUSY:
        break;
    }
    return error_name((enum error_code)code);
}

int fail(struct torus_error *e, enum torus_error_code code, const char *format, ...)
{
    if (e != NULL) {
        va_list ap;
        va_start(ap, format);
        e->code = code;
        e->exchange[0] = '\0';
        (void)vsnprintf(e->text, sizeof e->text, format, ap);
        va_end(ap);
        text_clean(e->text);
    }
    return -1;
}

int fail_memory(struct torus_error *e)
{
    return fail(e, TORUS_ERROR_MEMORY, "out of memory");
}

void fail_exchange(struct torus_error *e, const char *id)
{
    copy_text(e->exchange, sizeof e->exchange, id);
}

void copy_text(char *out, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);
    memcpy(out, text, length);
    out[length] = '\0';
    text_clean(out);
}

/* ---- Names of values ------------------------------------------------------------------------- */

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static const char *const states[] = {
    [TORUS_STATE_UNKNOWN] = "unknown",     [TORUS_STATE_WAITING] = "waiting",
    [TORUS_STATE_ENTERED] = "entered",     [TORUS_STATE_OPENING] = "opening",
    [TORUS_STATE_OPENED] = "opened",       [TORUS_STATE_PREPARING] = "preparing",
    [TORUS_STATE_READY] = "ready",         [TORUS_STATE_RUNNING] = "running",
    [TORUS_STATE_PAUSED] = "paused",       [TORUS_STATE_DONE] = "done",
    [TORUS_STATE_DECIDING] = "deciding",   [TORUS_STATE_COMMITTING] = "committing",
    [TORUS_STATE_FAILING] = "failing",     [TORUS_STATE_FINISHED] = "finished",
    [TORUS_STATE_COMMITTED] = "committed", [TORUS_STATE_FAILED] = "failed",
    [TORUS_STATE_IN_DOUBT] = "in doubt",
};

static const char *const link_states[] = {
    [TORUS_LINK_UNKNOWN] = "unknown", [TORUS_LINK_DIALLING] = "dialling",
    [TORUS_LINK_WAITING] = "waiting", [TORUS_LINK_HELLO] = "hello",
    [TORUS_LINK_UP] = "up",           [TORUS_LINK_HELD] = "held",
    [TORUS_LINK_PROBING] = "probing",
};

static const char *const operations[] = {
    [TORUS_EXCHANGE] = "exchange",
    [TORUS_ALLGATHER] = "allgather",
    [TORUS_BROADCAST] = "broadcast",
    [TORUS_BARRIER] = "barrier",
};

static const char *const modes[] = {
    [TORUS_MODE_ANY] = "any",
    [TORUS_MODE_STEPPED] = "stepped",
    [TORUS_MODE_STREAMING] = "streaming",
};

static const char *const checks[] = {
    [TORUS_CHECK_NOTHING] = "nothing",
    [TORUS_CHECK_DIGESTS] = "digests",
    [TORUS_CHECK_BYTES] = "every byte",
};

static const char *name_of(const char *const *names, size_t count, unsigned value)
{
    return value < count ? names[value] : "unknown";
}

/* Returns the index of the name in the list, or `count`. */
static size_t place_of(const char *const *names, size_t count, const char *name)
{
    size_t i = 0;
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    return i;
}

const char *torus_state_name(enum torus_state state)
{
    return name_of(states, COUNT(states), (unsigned)state);
}

const char *torus_link_state_name(enum torus_link_state state)
{
    return name_of(link_states, COUNT(link_states), (unsigned)state);
}

const char *torus_operation_name(enum torus_operation operation)
{
    return name_of(operations, COUNT(operations), (unsigned)operation);
}

const char *torus_mode_name(enum torus_mode mode)
{
    return name_of(modes, COUNT(modes), (unsigned)mode);
}

const char *torus_check_name(enum torus_check check)
{
    return name_of(checks, COUNT(checks), (unsigned)check);
}

const char *torus_copy_phase_name(enum torus_copy_phase phase)
{
    switch (phase) {
    case TORUS_COPY_CALLING:
        return "calling";
    case TORUS_COPY_READING:
        return "reading";
    case TORUS_COPY_COMPARING:
        return "comparing";
    case TORUS_COPY_MOVING:
        return "moving";
    case TORUS_COPY_PLACING:
        return "placing";
    }
    return "unknown";
}

enum torus_copy_phase copy_phase_of(uint32_t number)
{
    return number < TORUS_COPY_PLACING ? (enum torus_copy_phase)number : TORUS_COPY_PLACING;
}

enum torus_state state_named(const char *name)
{
    size_t i = place_of(states, COUNT(states), name);
    return i < COUNT(states) ? (enum torus_state)i : TORUS_STATE_UNKNOWN;
}

enum torus_link_state link_state_named(const char *name)
{
    size_t i = place_of(link_states, COUNT(link_states), name);
    return i < COUNT(link_states) ? (enum torus_link_state)i : TORUS_LINK_UNKNOWN;
}

enum torus_mode mode_named(const char *name)
{
    size_t i = place_of(modes, COUNT(modes), name);
    return i < COUNT(modes) ? (enum torus_mode)i : TORUS_MODE_ANY;
}

int operation_named(const char *name, enum torus_operation *operation)
{
    size_t i = place_of(operations, COUNT(operations), name);
    if (i == COUNT(operations))
        return -1;
    *operation = (enum torus_operation)i;
    return 0;
}

/* ---- Structs of callers ---------------------------------------------------------------------- */

/* The sizes of these structs in the first version of the ABI. Never change them. A struct must not end in padding,
 * because a later version could put a field there. */
#define REQUEST_SIZE_1 (offsetof(struct torus_request, missing_ok) + 8)
#define COPY_SIZE_1 (offsetof(struct torus_copy, missing_ok) + 8)
#define COSTS_SIZE_1 (offsetof(struct torus_costs, bytes_per_second) + sizeof(double))
#define GROUP_OPTIONS_SIZE_1 (offsetof(struct torus_group_options, unchecked) + 4)

_Static_assert(sizeof(struct torus_group_options) ==
                   offsetof(struct torus_group_options, memory_timeout_ms) + sizeof(uint32_t),
               "the struct has grown, or ends in padding");

_Static_assert(sizeof(struct torus_request) ==
                   offsetof(struct torus_request, schedule) + sizeof(const char *),
               "the struct has grown, or ends in padding");

_Static_assert(sizeof(struct torus_copy) == offsetof(struct torus_copy, reserved_too) +
                                                sizeof(((struct torus_copy *)0)->reserved_too),
               "the struct has grown, or ends in padding");

_Static_assert(sizeof(struct torus_costs) == COSTS_SIZE_1,
               "the struct has grown, or ends in padding");

/* Copies a struct that begins with struct_size. `least` is its size in the first version, `known` in this version. */
static int read_struct(const void *in, void *out, size_t least, size_t known, const char *init,
                       struct torus_error *e)
{
    const unsigned char *bytes = in;
    size_t size;

    memcpy(&size, in, sizeof size);
    if (size < least)
        return fail(e, TORUS_ERROR_USAGE, "struct_size is not set: call %s() first", init);
    for (size_t i = known; i < size; i++)
        if (bytes[i] != 0)
            return fail(
                e, TORUS_ERROR_USAGE,
                "the program uses fields that libtorus %s does not know: it was built for a "
                "later version",
                TORUSD_VERSION);
    memset(out, 0, known);
    memcpy(out, in, size < known ? size : known);
    return 0;
}

int request_read(const struct torus_request *in, struct torus_request *out, struct torus_error *e)
{
    static const char none[sizeof out->reserved];

    if (read_struct(in, out, REQUEST_SIZE_1, sizeof *out, "torus_request_init", e) != 0)
        return -1;
    if (memcmp(out->reserved, none, sizeof none) != 0)
        return fail(e, TORUS_ERROR_USAGE, "the reserved bytes of the request are not 0");
    return 0;
}

int group_options_read(const struct torus_group_options *in, struct torus_group_options *out,
                       struct torus_error *e)
{
    static const char none[sizeof out->reserved];

    if (read_struct(in, out, GROUP_OPTIONS_SIZE_1, sizeof *out, "torus_group_options_init", e) != 0)
        return -1;
    if (memcmp(out->reserved, none, sizeof none) != 0)
        return fail(e, TORUS_ERROR_USAGE, "the reserved bytes of the options are not 0");
    return 0;
}

int copy_read(const struct torus_copy *in, struct torus_copy *out, struct torus_error *e)
{
    static const char none[sizeof out->reserved_too];

    if (read_struct(in, out, COPY_SIZE_1, sizeof *out, "torus_copy_init", e) != 0)
        return -1;
    if (memcmp(out->reserved, none, sizeof out->reserved) != 0 ||
        memcmp(out->reserved_too, none, sizeof none) != 0)
        return fail(e, TORUS_ERROR_USAGE, "the reserved bytes of the request are not 0");
    return 0;
}

int costs_read(const struct torus_costs *in, struct torus_costs *out, struct torus_error *e)
{
    return read_struct(in, out, COSTS_SIZE_1, sizeof *out, "torus_costs_init", e);
}

int mode_check(enum torus_mode mode, struct torus_error *e)
{
    if (mode == TORUS_MODE_ANY || mode == TORUS_MODE_STEPPED || mode == TORUS_MODE_STREAMING)
        return 0;
    return fail(e, TORUS_ERROR_USAGE, "there is no mode %u", (unsigned)mode);
}

char *wire_mode(enum torus_mode mode)
{
    if (mode == TORUS_MODE_ANY)
        return (char *)(uintptr_t) "";
    return (char *)(uintptr_t)torus_mode_name(mode);
}

/* ---- Sockets --------------------------------------------------------------------------------- */

#define CONNECT_SECONDS 5 /* how long to wait for a daemon whose queue is full */

const char *torus_default_socket(void)
{
    const char *path = getenv("TORUS_SOCKET");
    return path != NULL && path[0] != '\0' ? path : TORUS_DEFAULT_SOCKET;
}

/* Names the group whose members may connect, and what makes this user one of them. */
static int not_in_group(const char *path, gid_t group, struct torus_error *e)
{
    char storage[4096];
    struct group entry, *found = NULL;

    if (getgrgid_r(group, &entry, storage, sizeof storage, &found) == 0 && found != NULL)
        return fail(
            e, TORUS_ERROR_NO_DAEMON,
            "permission denied: only members of the group %.60s may connect to the daemon at "
            "%s: run 'sudo usermod -aG %.60s $USER', and log in again",
            found->gr_name, path, found->gr_name);
    return fail(e, TORUS_ERROR_NO_DAEMON,
                "permission denied: only members of group %u may connect to the daemon at %s",
                (unsigned)group, path);
}

static int no_daemon(const char *path, int cause, struct torus_error *e)
{
    struct stat st;

    switch (cause) {
    case ENOENT:
    case ENOTDIR:
        return fail(e, TORUS_ERROR_NO_DAEMON, "no daemon at %s: there is no such socket", path);
    case ECONNREFUSED:
        return fail(e, TORUS_ERROR_NO_DAEMON,
                    "no daemon at %s: the socket exists, but no process listens on it", path);
    case EACCES:
    case EPERM:
        if (stat(path, &st) == 0 && (st.st_mode & S_IWOTH) == 0)
            return not_in_group(path, st.st_gid, e);
        return fail(e, TORUS_ERROR_NO_DAEMON,
                    "permission denied: this user may not connect to the daemon at %s", path);
    case EAGAIN:
        return fail(e, TORUS_ERROR_NO_DAEMON,
                    "the daemon at %s has not accepted the connection within %d s", path,
                    CONNECT_SECONDS);
    default:
        return fail(e, TORUS_ERROR_NO_DAEMON, "cannot connect to the daemon at %s: %s", path,
                    strerror(cause));
    }
}

char *socket_path(const char *path, const char *suffix)
{
    char host[HOST_NAME_MAX + 1] = "", *out = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&out, &size);

    if (f == NULL)
        return NULL;
    (void)gethostname(host, sizeof host - 1);
    for (const char *at = path; *at != '\0'; at++)
        if (at[0] == '%' && at[1] == 'h') {
            (void)fputs(host, f);
            at++;
        } else {
            (void)fputc(*at, f);
        }
    (void)fputs(suffix, f);
    if (fclose(f) == 0)
        return out;
    free(out);
    return NULL;
}

int socket_connect(const char *path, int type, struct torus_error *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval timeout = {.tv_sec = CONNECT_SECONDS};
    int r, fd;

    if (strlen(path) >= sizeof address.sun_path)
        return fail(e, TORUS_ERROR_USAGE,
                    "the socket path is too long, %zu bytes of at most %zu: %s", strlen(path),
                    sizeof address.sun_path - 1, path);
    memcpy(address.sun_path, path, strlen(path));

    fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail(e, TORUS_ERROR_IO, "cannot create a socket: %s", strerror(errno));
    /* On a Unix socket the send timeout also applies to connect(). */
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
    do
        r = connect(fd, (const struct sockaddr *)&address, sizeof address);
    while (r != 0 && errno == EINTR);
    if (r == 0)
        return fd;
    r = errno;
    (void)close(fd);
    return no_daemon(path, r, e);
}
