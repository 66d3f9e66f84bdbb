#include "client/cli/discovering/setup_sending.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/cli/discovering/discovery_socket.h"
#include "proto/borrowed.h"

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

/* The setup is not sealed for torusd-setup of this host: it must be what it says. */
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
    discovery__reply__free_unpacked(message, NULL);
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
    protobuf_c_message_free_unpacked(message, NULL);
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
