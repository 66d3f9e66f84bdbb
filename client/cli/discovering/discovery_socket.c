#include "client/cli/discovering/discovery_socket.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/borrowed.h"
#include "proto/frame.h"
#include "proto/text.h"
#include "proto/unpack.h"

#define LIST_SECONDS 20

/* --- messages --- */

static int no_process(const char *program, const char *path, int cause, struct error *e)
{
    if (cause == ENOENT || cause == ENOTDIR || cause == ECONNREFUSED)
        (void)error_set(e, ERROR_IO, "no %s at %s: start %s.service, or the program", program, path,
                        program);
    else if (cause == EACCES || cause == EPERM)
        (void)error_set(e, ERROR_REFUSED,
                        "permission denied: this user may not connect to %s at %s", program, path);
    else
        (void)error_set(e, ERROR_IO, "cannot connect to %s at %s: %s", program, path,
                        strerror(cause));
    errno = cause == ENOTDIR ? ENOENT : cause;
    return -1;
}

/* Connects to the socket of a program, which then has that many seconds for each answer. Returns a descriptor, or -1
 * with *e, and errno ENOENT or ECONNREFUSED if there is no such process. */
static int message_connect(const char *program, const char *path, int seconds, struct error *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval wait = {.tv_sec = seconds};
    int fd, error;

    if (strlen(path) >= sizeof address.sun_path) {
        errno = 0;
        return error_set(e, ERROR_USAGE, "the path of the socket is too long: %.120s", path);
    }
    (void)strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return no_process(program, path, errno, e);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    error = errno;
    (void)close(fd);
    return no_process(program, path, error, e);
}

/* Sends a message. Returns 0, or -1 with *e. */
static int message_send(int fd, const ProtobufCMessage *message, struct error *e)
{
    struct frame_stream stream = {0};
    int error;

    if (frame_stream_put(&stream, message) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory for the request");
    error = frame_stream_send(&stream, fd, 0);
    sodium_memzero(stream.data, stream.length); /* a setup contains keys */
    frame_stream_free(&stream);
    if (error != 0)
        return error_set(e, ERROR_IO, "cannot send the request: %s", strerror(-error));
    return 0;
}

/* Reads once. Returns 0, or -1 with *e. */
static int read_more(int fd, struct frame_stream *stream, struct error *e)
{
    const int n = frame_stream_receive(stream, fd, 0);

    if (n == 1)
        return 0;
    if (n == -ENOMEM)
        return error_set(e, ERROR_MEMORY, "out of memory for the answer");
    if (n == -EAGAIN)
        return error_set(e, ERROR_TIMEOUT, "there was no answer");
    return error_set(e, ERROR_IO, "the connection was closed%s%s", n < 0 ? ": " : "",
                     n < 0 ? strerror(-n) : "");
}

/* Waits for a message of this kind. Returns it, to be given to unpack_free(); or NULL with *e. */
static ProtobufCMessage *message_read(int fd, const ProtobufCMessageDescriptor *kind,
                                      struct error *e)
{
    struct frame_stream stream = {0};
    ProtobufCMessage *message = NULL;
    const uint8_t *head;
    size_t size;
    int more;

    while ((more = frame_stream_next(&stream, FRAME_MAX_REPLY, &head, &size, e)) == 0)
        if (read_more(fd, &stream, e) != 0)
            break;
    if (more > 0) {
        message = unpack_bounded(kind, head, size, UNPACK_MOST);
        if (message == NULL)
            (void)error_set(e, ERROR_PROTOCOL, "the answer is invalid");
    }
    frame_stream_free(&stream);
    return message;
}

/* Fills *e with a failure that a process reports. */
static void discovery_failure_read(const Discovery__Failure *failure, struct error *e)
{
    char text[sizeof e->text];

    (void)error_set(e, (enum error_code)failure->code, "%s",
                    text_printable(text, sizeof text, failure->text));
}

/* Waits for a reply. Returns it, or NULL with *e, which is the failure that the process reports. */
static Discovery__Reply *discovery_reply_read(int fd, struct error *e)
{
    ProtobufCMessage *message = message_read(fd, &discovery__reply__descriptor, e);
    Discovery__Reply *reply = (Discovery__Reply *)message;

    if (reply != NULL && reply->kind_case == DISCOVERY__REPLY__KIND_FAILURE) {
        discovery_failure_read(reply->failure, e);
        unpack_free(reply);
        reply = NULL;
    }
    return reply;
}

/* --- hosts --- */

static void key_text(char text[KEY_ID_TEXT_SIZE], const ProtobufCBinaryData *id)
{
    text[0] = '\0';
    if (id->len == KEY_ID_SIZE)
        (void)key_id_text(id->data, text);
}

static int take_hosts(struct discovered *d, const Discovery__Hosts *hosts, struct error *e)
{
    d->host = calloc(hosts->n_hosts + 1, sizeof d->host[0]);
    if (d->host == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the hosts");
    for (size_t i = 0; i < hosts->n_hosts; i++) {
        const Discovery__Host *from = hosts->hosts[i];
        struct discovered_host *to = &d->host[d->hosts];
        to->report = report_read(from->report.data, from->report.len, e);
        if (to->report == NULL)
            return -1;
        d->hosts++;
        to->trust = (enum trust)from->trust;
        key_text(to->key, &from->key_id);
        to->self = from->self;
        to->reachable = from->reachable;
        to->distance = from->distance;
    }
    d->digest = hosts->digest;
    d->quiet_ms = hosts->quiet_ms;
    key_text(d->key, &hosts->key_id);
    (void)snprintf(d->setup_socket, sizeof d->setup_socket, "%s", hosts->setup_socket);
    return discovered_finish(d) == 0 ? 0 : error_set(e, ERROR_MEMORY, "out of memory");
}

int discover_hosts(const char *socket, struct discovered *d, struct error *e)
{
    Discovery__Request request = DISCOVERY__REQUEST__INIT;
    Discovery__List list = DISCOVERY__LIST__INIT;
    Discovery__Reply *reply = NULL;
    int fd = message_connect("torusd-discover", socket != NULL ? socket : DISCOVERY_DEFAULT_SOCKET,
                             LIST_SECONDS, e);
    int result = -1;

    *d = (struct discovered){0};
    if (fd < 0)
        return -1;
    request.kind_case = DISCOVERY__REQUEST__KIND_LIST;
    request.list = &list;
    if (message_send(fd, &request.base, e) == 0)
        reply = discovery_reply_read(fd, e);
    (void)close(fd);
    if (reply != NULL && reply->kind_case == DISCOVERY__REPLY__KIND_HOSTS)
        result = take_hosts(d, reply->hosts, e);
    else if (reply != NULL)
        (void)error_set(e, ERROR_PROTOCOL, "torusd-discover sent an unexpected answer");
    if (reply != NULL)
        unpack_free(reply);
    if (result != 0)
        discovered_free(d);
    errno = 0;
    return result;
}

/* --- setups --- */

static void abandon(struct setup_sending *s)
{
    sodium_memzero(&s->keys, sizeof s->keys);
    if (s->fd >= 0)
        (void)close(s->fd);
    s->fd = -1;
}

/* --- the beginning --- */

int setup_begin(struct setup_sending *s, const char *socket, const struct host_id *host,
                struct error *e)
{
    Discovery__Request request = DISCOVERY__REQUEST__INIT;
    Discovery__SetupRequest setup = DISCOVERY__SETUP_REQUEST__INIT;

    s->own = false;
    s->host = *host;
    s->fd = -1;
    if (s->size > DISCOVERY_SETUP_MOST)
        return error_set(e, ERROR_USAGE, "the setup has %zu bytes, at most %u are possible",
                         s->size, DISCOVERY_SETUP_MOST);
    s->fd = message_connect("torusd-discover", socket != NULL ? socket : DISCOVERY_DEFAULT_SOCKET,
                            SETUP_SECONDS, e);
    if (s->fd < 0)
        return -1;
    setup.host = borrowed(host->bytes, HOST_ID_SIZE);
    request.kind_case = DISCOVERY__REQUEST__KIND_SETUP;
    request.setup = &setup;
    if (message_send(s->fd, &request.base, e) == 0)
        return 0;
    abandon(s);
    return -1;
}

/* A setup for torusd-setup of this host is not sealed, so the server of the socket must really be torusd-setup. */
static int check_server(int fd, const char *path, struct error *e)
{
    struct ucred server;
    socklen_t size = sizeof server;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &size) == 0 &&
        (server.uid == 0 || server.uid == geteuid()))
        return 0;
    return error_set(e, ERROR_REFUSED, "%s is not served by root, and gets no setup", path);
}

int setup_begin_own(struct setup_sending *s, const char *socket, struct error *e)
{
    Discovery__SetupCall call = DISCOVERY__SETUP_CALL__INIT;
    Discovery__OwnSetup own = DISCOVERY__OWN_SETUP__INIT;

    s->own = true;
    s->fd = message_connect("torusd-setup", socket, SETUP_SECONDS, e);
    if (s->fd < 0)
        return -1;
    own.apply = s->apply;
    own.bytes = borrowed(s->bytes, s->size);
    call.kind_case = DISCOVERY__SETUP_CALL__KIND_OWN;
    call.own = &own;
    if (check_server(s->fd, socket, e) == 0 && message_send(s->fd, &call.base, e) == 0)
        return 0;
    abandon(s);
    return -1;
}

/* --- the rest --- */

/* Seals the setup as the host demands. Returns 0, or -1 with *e. */
static int answer_challenge(struct setup_sending *s, const Discovery__Challenged *c,
                            struct error *e)
{
    Discovery__Request request = DISCOVERY__REQUEST__INIT;
    Discovery__SealedSetup message = DISCOVERY__SEALED_SETUP__INIT;
    struct setup_frame frame = {.id = c->setup.data, .to = &s->host, .nonce = c->nonce.data};
    struct host_id from, owner;
    size_t size = 0;
    uint8_t *sealed;
    int rc;

    if (c->setup.len != SETUP_ID_SIZE || !host_id_read(&from, c->from.data, c->from.len) ||
        c->nonce.len != NONCE_SIZE || c->key.len != PUBLIC_KEY_SIZE)
        return error_set(e, ERROR_PROTOCOL, "torusd-discover sent an invalid challenge");
    owner = host_id_of(c->key.data);
    if (!host_id_is(&owner, &s->host))
        return error_set(e, ERROR_REFUSED, "torusd-discover gave the keys of another host");
    frame.from = &from;
    randombytes_buf(s->keys.secret_key, sizeof s->keys.secret_key);
    reply_keys_make(&s->keys);
    sealed = seal_setup(&frame, s->secrets, c->key.data, &s->keys, s->apply, s->bytes, s->size,
                        &size, e);
    if (sealed == NULL)
        return -1;
    message.bytes = borrowed(sealed, size);
    request.kind_case = DISCOVERY__REQUEST__KIND_SEALED;
    request.sealed = &message;
    rc = message_send(s->fd, &request.base, e);
    free(sealed);
    return rc;
}

static int continue_other(struct setup_sending *s, struct setup_answer *answer, char **storage,
                          struct error *e)
{
    Discovery__Reply *message = discovery_reply_read(s->fd, e);
    int rc;

    if (message == NULL)
        return -1;
    if (message->kind_case == DISCOVERY__REPLY__KIND_CHALLENGED)
        rc = answer_challenge(s, message->challenged, e);
    else if (message->kind_case == DISCOVERY__REPLY__KIND_SETUP)
        rc = open_result(&s->keys, message->setup->sealed.data, message->setup->sealed.len, answer,
                         storage, e);
    else
        rc = error_set(e, ERROR_PROTOCOL, "torusd-discover sent an unexpected answer");
    unpack_free(message);
    return rc;
}

static int continue_own(const struct setup_sending *s, struct setup_answer *answer, char **storage,
                        struct error *e)
{
    ProtobufCMessage *message = message_read(s->fd, &discovery__setup_event__descriptor, e);
    const Discovery__SetupEvent *event = (const Discovery__SetupEvent *)message;
    int rc = -1;

    if (message == NULL)
        return -1;
    if (event->kind_case == DISCOVERY__SETUP_EVENT__KIND_RESULT)
        rc = read_result(event->result, answer, storage, e);
    else if (event->kind_case == DISCOVERY__SETUP_EVENT__KIND_FAILURE)
        discovery_failure_read(event->failure, e);
    else
        (void)error_set(e, ERROR_PROTOCOL, "torusd-setup sent an unexpected answer");
    unpack_free(message);
    return rc;
}

int setup_continue(struct setup_sending *s, struct setup_answer *answer, char **storage,
                   struct error *e)
{
    int rc;

    *storage = NULL;
    rc = s->own ? continue_own(s, answer, storage, e) : continue_other(s, answer, storage, e);
    if (rc == 0 && *storage == NULL)
        return 0;
    abandon(s);
    if (rc == 0 && answer->e.code == ERROR_NONE)
        return 1;
    if (rc == 0)
        *e = answer->e;
    free(*storage);
    *storage = NULL;
    return -1;
}
