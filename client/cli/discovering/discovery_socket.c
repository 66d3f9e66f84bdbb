#include "client/cli/discovering/discovery_socket.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/discovery.pb-c.h"
#include "proto/frame.h"
#include "proto/text.h"

#define LIST_SECONDS 20

static int no_process(const char *path, int cause, struct error *e)
{
    if (cause == ENOENT || cause == ENOTDIR || cause == ECONNREFUSED)
        (void)error_set(e, ERROR_IO,
                        "no discovery process at %s: start torusd-discover.service or "
                        "torusd-discover",
                        path);
    else if (cause == EACCES || cause == EPERM)
        (void)error_set(e, ERROR_REFUSED,
                        "permission denied: this user may not connect to the discovery process "
                        "at %s",
                        path);
    else
        (void)error_set(e, ERROR_IO, "cannot connect to the discovery process at %s: %s", path,
                        strerror(cause));
    errno = cause == ENOTDIR ? ENOENT : cause;
    return -1;
}

/* Returns a connected socket, or -1 with *e and errno. */
static int connect_to(const char *path, int seconds, struct error *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval wait = {.tv_sec = seconds};
    int fd, error;

    if (path == NULL)
        path = DISCOVERY_DEFAULT_SOCKET;
    if (strlen(path) >= sizeof address.sun_path) {
        errno = 0;
        return error_set(e, ERROR_USAGE, "the path of the discovery socket is too long: %.120s",
                         path);
    }
    (void)strcpy(address.sun_path, path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return no_process(path, errno, e);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    error = errno;
    (void)close(fd);
    return no_process(path, error, e);
}

static int send_all(int fd, const uint8_t *bytes, size_t size, struct error *e)
{
    while (size > 0) {
        ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_set(e, ERROR_IO, "cannot send to the discovery process: %s",
                             strerror(errno));
        bytes += n;
        size -= (size_t)n;
    }
    return 0;
}

static int send_request(int fd, const Discovery__Request *request, struct error *e)
{
    size_t size = 0;
    uint8_t *frame = frame_pack(&request->base, &size);
    int result;

    if (frame == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the request");
    result = send_all(fd, frame, size, e);
    sodium_memzero(frame, size); /* a setup contains keys */
    free(frame);
    return result;
}

/* Reads once. Returns 0, or -1 with *e. */
static int read_more(int fd, struct frame_stream *stream, struct error *e)
{
    size_t room;
    uint8_t *at = frame_stream_room(stream, 65536, &room);
    ssize_t n;

    if (at == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the answer");
    n = recv(fd, at, room, 0);
    if (n < 0 && errno == EINTR)
        return 0;
    if (n < 0 && errno == EAGAIN)
        return error_set(e, ERROR_TIMEOUT, "the discovery process did not answer");
    if (n <= 0)
        return error_set(e, ERROR_IO, "the discovery process closed the connection%s%s",
                         n < 0 ? ": " : "", n < 0 ? strerror(errno) : "");
    frame_stream_added(stream, (size_t)n);
    return 0;
}

/* Waits for the reply. Returns it, or NULL with *e, which is the failure that the process reports. */
static Discovery__Reply *read_reply(int fd, struct error *e)
{
    struct frame_stream stream = {0};
    Discovery__Reply *reply = NULL;
    const uint8_t *head;
    size_t size;
    int more;

    while ((more = frame_stream_next(&stream, FRAME_MAX_REPLY, &head, &size, e)) == 0)
        if (read_more(fd, &stream, e) != 0)
            break;
    if (more > 0) {
        reply = discovery__reply__unpack(NULL, size, head);
        if (reply == NULL)
            (void)error_set(e, ERROR_PROTOCOL, "the discovery process sent an invalid answer");
    }
    frame_stream_free(&stream);
    if (reply != NULL && reply->kind_case == DISCOVERY__REPLY__KIND_FAILURE) {
        char text[sizeof e->text];
        (void)error_set(e, (enum error_code)reply->failure->code, "%s",
                        text_printable(text, sizeof text, reply->failure->text));
        discovery__reply__free_unpacked(reply, NULL);
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
        to->trust = from->trust == DISCOVERY__TRUST__PROVED      ? DISCOVERED_PROVED
                    : from->trust == DISCOVERY__TRUST__OTHER_KEY ? DISCOVERED_OTHER_KEY
                                                                 : DISCOVERED_OPEN;
        key_text(to->key, &from->key_id);
        to->self = from->self;
        to->reachable = from->reachable;
        to->distance = from->distance;
    }
    d->digest = hosts->digest;
    d->quiet_ms = hosts->quiet_ms;
    key_text(d->key, &hosts->key_id);
    return discovered_finish(d) == 0 ? 0 : error_set(e, ERROR_MEMORY, "out of memory");
}

int discover_hosts(const char *socket, struct discovered *d, struct error *e)
{
    Discovery__Request request = DISCOVERY__REQUEST__INIT;
    Discovery__List list = DISCOVERY__LIST__INIT;
    Discovery__Reply *reply = NULL;
    int fd = connect_to(socket, LIST_SECONDS, e), result = -1;

    *d = (struct discovered){0};
    if (fd < 0)
        return -1;
    request.kind_case = DISCOVERY__REQUEST__KIND_LIST;
    request.list = &list;
    if (send_request(fd, &request, e) == 0)
        reply = read_reply(fd, e);
    (void)close(fd);
    if (reply != NULL && reply->kind_case == DISCOVERY__REPLY__KIND_HOSTS)
        result = take_hosts(d, reply->hosts, e);
    else if (reply != NULL)
        (void)error_set(e, ERROR_PROTOCOL, "the discovery process sent an unexpected answer");
    if (reply != NULL)
        discovery__reply__free_unpacked(reply, NULL);
    if (result != 0)
        discovered_free(d);
    errno = 0;
    return result;
}

/* --- setups --- */

int setup_begin(const char *socket, const struct host_id *host, bool apply, const void *bytes,
                size_t size, struct error *e)
{
    Discovery__Request request = DISCOVERY__REQUEST__INIT;
    Discovery__SetupRequest setup = DISCOVERY__SETUP_REQUEST__INIT;
    int fd = connect_to(socket, DISCOVERY_SETUP_SECONDS, e);

    if (fd < 0)
        return -1;
    setup.host = (ProtobufCBinaryData){HOST_ID_SIZE, (uint8_t *)(uintptr_t)host->bytes};
    setup.apply = apply;
    setup.bytes = (ProtobufCBinaryData){size, (uint8_t *)(uintptr_t)bytes};
    request.kind_case = DISCOVERY__REQUEST__KIND_SETUP;
    request.setup = &setup;
    if (send_request(fd, &request, e) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* Copies bytes as a text. Returns NULL if there is no memory. */
static char *copy_text(const ProtobufCBinaryData *bytes, size_t *length)
{
    char *text = malloc(bytes->len + 1);

    if (text == NULL)
        return NULL;
    if (bytes->len > 0)
        memcpy(text, bytes->data, bytes->len);
    text[bytes->len] = '\0';
    *length = bytes->len;
    return text;
}

int setup_finish(int fd, struct setup_reply *reply, struct error *e)
{
    Discovery__Reply *message = read_reply(fd, e);

    *reply = (struct setup_reply){0};
    (void)close(fd);
    if (message == NULL)
        return -1;
    if (message->kind_case != DISCOVERY__REPLY__KIND_SETUP) {
        discovery__reply__free_unpacked(message, NULL);
        return error_set(e, ERROR_PROTOCOL, "the discovery process sent an unexpected answer");
    }
    reply->status = message->setup->status;
    reply->output = copy_text(&message->setup->output, &reply->output_length);
    reply->errors = copy_text(&message->setup->errors, &reply->errors_length);
    discovery__reply__free_unpacked(message, NULL);
    if (reply->output != NULL && reply->errors != NULL)
        return 0;
    setup_reply_free(reply);
    return error_set(e, ERROR_MEMORY, "out of memory for the answer");
}

int setup_send(const char *socket, const struct host_id *host, bool apply, const void *bytes,
               size_t size, struct setup_reply *reply, struct error *e)
{
    int fd = setup_begin(socket, host, apply, bytes, size, e);

    return fd >= 0 ? setup_finish(fd, reply, e) : -1;
}

void setup_reply_free(struct setup_reply *reply)
{
    free(reply->output);
    free(reply->errors);
    *reply = (struct setup_reply){0};
}
