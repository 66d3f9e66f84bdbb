#include "daemon/discovery/process/client.h"

#include <stdlib.h>
#include <unistd.h>

#include "daemon/discovery/bounded.h"
#include "daemon/discovery/process/hosts_reply.h"
#include "proto/discovery.pb-c.h"

#define REQUEST_MOST (DISCOVERY_SETUP_MOST + 1024u)
#define UNPACKED_MOST (DISCOVERY_SETUP_MOST + 4096u)
#define WAITING_MOST (2u * 1024u * 1024u) /* bytes of replies that a client has not read */

struct reply_write {
    uv_write_t request;
    uint8_t *frame;
};

static void on_closed(uv_handle_t *handle)
{
    struct discovery_client *client = handle->data;

    frame_stream_free(&client->in);
    client->closed(client);
}

void discovery_client_close(struct discovery_client *client)
{
    if (uv_is_closing((uv_handle_t *)&client->pipe))
        return;
    if (client->setup != NULL)
        discovery_cancel_setup(client->discovery, client->setup);
    client->setup = NULL;
    uv_close((uv_handle_t *)&client->pipe, on_closed);
}

/* --- replies --- */

static void on_written(uv_write_t *request, int status)
{
    struct reply_write *w = request->data;
    struct discovery_client *client = request->handle->data;

    free(w->frame);
    free(w);
    if (status != 0)
        discovery_client_close(client);
}

/* Writes a frame, and frees it. A client without memory for its answer, or that does not read its answers, is
 * closed. */
static void write_frame(struct discovery_client *client, uint8_t *frame, size_t size)
{
    struct reply_write *w = calloc(1, sizeof *w);
    uv_buf_t buffer = uv_buf_init((char *)frame, (unsigned)size);

    if (w != NULL && frame != NULL &&
        uv_stream_get_write_queue_size((const uv_stream_t *)&client->pipe) <= WAITING_MOST) {
        w->request.data = w;
        w->frame = frame;
        if (uv_write(&w->request, (uv_stream_t *)&client->pipe, &buffer, 1, on_written) == 0)
            return;
    }
    free(frame);
    free(w);
    discovery_client_close(client);
}

static void write_reply(struct discovery_client *client, const Discovery__Reply *reply)
{
    size_t size = 0;
    uint8_t *frame = frame_pack(&reply->base, &size);

    write_frame(client, frame, size);
}

static void reply_failure(struct discovery_client *client, const struct error *e)
{
    Discovery__Reply reply = DISCOVERY__REPLY__INIT;
    Discovery__Failure failure = DISCOVERY__FAILURE__INIT;

    failure.code = (uint32_t)e->code;
    failure.text = (char *)(uintptr_t)e->text;
    reply.kind_case = DISCOVERY__REPLY__KIND_FAILURE;
    reply.failure = &failure;
    write_reply(client, &reply);
}

static void on_setup_done(void *context, const struct setup_answer *answer)
{
    struct discovery_client *client = context;
    Discovery__Reply reply = DISCOVERY__REPLY__INIT;
    Discovery__SetupReply setup = DISCOVERY__SETUP_REPLY__INIT;

    client->setup = NULL;
    if (answer->e.code != ERROR_NONE) {
        reply_failure(client, &answer->e);
        return;
    }
    setup.status = answer->status;
    setup.output = (ProtobufCBinaryData){answer->size, (uint8_t *)(uintptr_t)answer->output};
    setup.errors = (ProtobufCBinaryData){answer->errors_size, (uint8_t *)(uintptr_t)answer->errors};
    reply.kind_case = DISCOVERY__REPLY__KIND_SETUP;
    reply.setup = &setup;
    write_reply(client, &reply);
}

/* --- requests --- */

static void start_setup(struct discovery_client *client, const Discovery__SetupRequest *request)
{
    struct host_id host;
    struct error e = {0};

    if (!client->may_set_up)
        (void)error_set(&e, ERROR_REFUSED,
                        "permission denied: only root and the user of the discovery process may "
                        "send setups");
    else if (client->setup != NULL)
        (void)error_set(&e, ERROR_USAGE, "one connection sends one setup at a time");
    else if (!host_id_read(&host, request->host.data, request->host.len))
        (void)error_set(&e, ERROR_USAGE, "the id of the host is invalid");
    else
        client->setup =
            discovery_send_setup(client->discovery, &host, request->apply, request->bytes.data,
                                 request->bytes.len, on_setup_done, client, &e);
    if (e.code != ERROR_NONE)
        reply_failure(client, &e);
}

static void take_request(struct discovery_client *client, const Discovery__Request *request)
{
    size_t size = 0;
    uint8_t *frame;

    if (request != NULL && request->kind_case == DISCOVERY__REQUEST__KIND_LIST) {
        frame = hosts_reply_pack(client->discovery, uv_hrtime(), &size);
        write_frame(client, frame, size);
    } else if (request != NULL && request->kind_case == DISCOVERY__REQUEST__KIND_SETUP) {
        start_setup(client, request->setup);
    } else {
        struct error e;
        (void)error_set(&e, ERROR_PROTOCOL,
                        "unknown request: the client and this torusd have different versions");
        reply_failure(client, &e);
    }
}

static void take_requests(struct discovery_client *client)
{
    const uint8_t *head;
    size_t size;
    struct error e;
    int more;

    while ((more = frame_stream_next(&client->in, REQUEST_MOST, &head, &size, &e)) > 0 &&
           !uv_is_closing((uv_handle_t *)&client->pipe)) {
        struct bounded bounded;
        ProtobufCAllocator *allocator = bounded_begin(&bounded, UNPACKED_MOST);
        Discovery__Request *request = discovery__request__unpack(allocator, size, head);
        take_request(client, request);
        if (request != NULL)
            discovery__request__free_unpacked(request, allocator);
    }
    if (more < 0)
        discovery_client_close(client);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct discovery_client *client = handle->data;
    size_t room = 0;
    uint8_t *at = frame_stream_room(&client->in, 4096, &room);

    (void)suggested;
    *buffer = uv_buf_init((char *)at, (unsigned)(at != NULL ? room : 0));
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
    struct discovery_client *client = stream->data;

    (void)buffer;
    if (length < 0) {
        discovery_client_close(client);
        return;
    }
    frame_stream_added(&client->in, (size_t)length);
    take_requests(client);
}

int discovery_client_begin(struct discovery_client *client, uv_loop_t *loop, int fd)
{
    (void)uv_pipe_init(loop, &client->pipe, 0);
    client->pipe.data = client;
    if (uv_pipe_open(&client->pipe, fd) != 0)
        (void)close(fd);
    else if (uv_read_start((uv_stream_t *)&client->pipe, on_room, on_read) == 0)
        return 0;
    discovery_client_close(client);
    return -1;
}
