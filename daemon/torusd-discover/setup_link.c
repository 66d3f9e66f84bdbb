#include "daemon/torusd-discover/setup_link.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/discovery/seal.h"
#include "daemon/lib/net/access.h"
#include "daemon/lib/net/framed.h"
#include "daemon/lib/net/unix_socket.h"
#include "proto/borrowed.h"
#include "proto/discovery.pb-c.h"
#include "proto/unpack.h"

#define RETRY_MS 200
#define EVENT_MOST (DISCOVERY_OUTPUT_MOST + DISCOVERY_ERRORS_MOST + 65536u)
#define UNPACKED_MOST (2 * EVENT_MOST)

struct setup_link {
    const char *path;
    struct setup_link_user user;
    uv_loop_t *loop;
    uv_timer_t retry;
    struct framed framed;
    bool connected, closing;
    bool complained; /* that nobody serves the socket */
    bool handed;     /* a setup that has not ended */
    uint8_t id[SETUP_ID_SIZE];
};

/* --- events --- */

static bool has_size(const ProtobufCBinaryData *bytes, size_t size)
{
    return bytes->len == size;
}

/* Returns whether the state is valid. */
static bool read_state(struct host_facts *f, const Discovery__HostState *s)
{
    *f = (struct host_facts){.accepts_setups = s->accepts_setups,
                             .have_rank = s->rank > 0,
                             .rank = s->rank > 0 ? s->rank - 1 : 0};
    if (!has_size(&s->public_key, PUBLIC_KEY_SIZE) || !has_size(&s->secret_key, SECRET_KEY_SIZE) ||
        !has_size(&s->nonce, NONCE_SIZE) || s->n_keys > SECRETS_MOST ||
        strlen(s->dims) >= sizeof f->dims)
        return false;
    memcpy(f->identity.public_key, s->public_key.data, PUBLIC_KEY_SIZE);
    memcpy(f->identity.secret_key, s->secret_key.data, SECRET_KEY_SIZE);
    f->identity.id = host_id_of(f->identity.public_key);
    memcpy(f->nonce, s->nonce.data, NONCE_SIZE);
    (void)strcpy(f->dims, s->dims);
    for (size_t i = 0; i < s->n_keys; i++) {
        const Discovery__DiscoveryKey *from = s->keys[i];
        struct key *to = &f->secrets.key[i];
        if (!has_size(&from->key_id, KEY_ID_SIZE) || !has_size(&from->bytes, KEY_SIZE))
            return false;
        memcpy(to->id, from->key_id.data, KEY_ID_SIZE);
        memcpy(to->bytes, from->bytes.data, KEY_SIZE);
    }
    f->secrets.count = (unsigned)s->n_keys;
    return true;
}

static void take_state(struct setup_link *l, const Discovery__HostState *state)
{
    struct host_facts facts;

    if (read_state(&facts, state))
        l->user.told(l->user.context, &facts);
    else
        log_error("what torusd-setup says at %s is not understood: it has another version",
                  l->path);
    sodium_memzero(&facts, sizeof facts);
}

static void end_handed(struct setup_link *l, const struct setup_end *end)
{
    l->handed = false;
    l->user.ended(l->user.context, end);
}

static void refuse_handed(struct setup_link *l, const char *why)
{
    struct setup_end end = {0};

    (void)error_set(&end.e, ERROR_REFUSED, "%s", why);
    end_handed(l, &end);
}

static void take_end(struct setup_link *l, const Discovery__SetupEnd *end)
{
    if (!l->handed || !has_size(&end->setup, SETUP_ID_SIZE) ||
        memcmp(end->setup.data, l->id, SETUP_ID_SIZE) != 0)
        return; /* of an earlier connection */
    if (end->sealed.len == 0)
        refuse_handed(l, end->refusal);
    else
        end_handed(l, &(struct setup_end){.sealed = end->sealed.data, .size = end->sealed.len});
}

static void on_event(struct framed *framed, const uint8_t *bytes, size_t size)
{
    struct setup_link *l = framed->context;
    Discovery__SetupEvent *event =
        unpack_bounded(&discovery__setup_event__descriptor, bytes, size, UNPACKED_MOST);

    if (event == NULL) {
        framed_close(framed);
        return;
    }
    if (event->kind_case == DISCOVERY__SETUP_EVENT__KIND_STATE)
        take_state(l, event->state);
    else if (event->kind_case == DISCOVERY__SETUP_EVENT__KIND_END)
        take_end(l, event->end);
    unpack_free(event);
}

/* --- calls --- */

static void call(struct setup_link *l, const Discovery__SetupCall *message)
{
    if (l->connected)
        framed_send(&l->framed, &message->base);
}

void setup_link_hand_over(struct setup_link *l, const uint8_t id[SETUP_ID_SIZE],
                          const struct host_id *from, const uint8_t *sealed, size_t size)
{
    Discovery__SetupCall message = DISCOVERY__SETUP_CALL__INIT;
    Discovery__ReceivedSetup received = DISCOVERY__RECEIVED_SETUP__INIT;

    l->handed = true;
    memcpy(l->id, id, SETUP_ID_SIZE);
    received.setup = borrowed(id, SETUP_ID_SIZE);
    received.from = borrowed(from->bytes, HOST_ID_SIZE);
    received.sealed = borrowed(sealed, size);
    message.kind_case = DISCOVERY__SETUP_CALL__KIND_RECEIVED;
    message.received = &received;
    /* Without a connection, the next attempt to connect reports the error. */
    call(l, &message);
}

void setup_link_say_appeared(struct setup_link *l, const char *interface)
{
    Discovery__SetupCall message = DISCOVERY__SETUP_CALL__INIT;
    Discovery__AppearedInterface appeared = DISCOVERY__APPEARED_INTERFACE__INIT;

    appeared.name = borrowed_text(interface);
    message.kind_case = DISCOVERY__SETUP_CALL__KIND_APPEARED;
    message.appeared = &appeared;
    call(l, &message);
}

static void watch(struct setup_link *l)
{
    Discovery__SetupCall message = DISCOVERY__SETUP_CALL__INIT;
    Discovery__Watch empty = DISCOVERY__WATCH__INIT;

    message.kind_case = DISCOVERY__SETUP_CALL__KIND_WATCH;
    message.watch = &empty;
    call(l, &message);
}

/* --- the connection --- */

/* Returns a connection to root or to the user of this process, or -1 with *e. */
static int connect_to(const char *path, struct error *e)
{
    const int fd = local_connect(path, SOCK_STREAM);
    uint32_t user;

    if (fd < 0)
        return error_set(e, ERROR_IO, "%s", strerror(-fd));
    user = access_user(fd);
    if (user == 0 || user == (uint32_t)geteuid())
        return fd;
    (void)close(fd);
    return error_set(e, ERROR_REFUSED, "it is served by user %u, not by root", user);
}

static void on_retry(uv_timer_t *timer);

static void free_if_closed(struct setup_link *l)
{
    if (!l->closing || l->connected || l->retry.data != NULL)
        return;
    l->user.closed(l->user.context);
    free(l);
}

static void on_lost(struct framed *framed)
{
    struct setup_link *l = framed->context;

    l->connected = false;
    if (!l->closing) {
        log_warning("torusd-setup has closed the connection; it is tried again");
        if (l->handed)
            refuse_handed(l, "torusd-setup has ended there");
        (void)uv_timer_start(&l->retry, on_retry, 0, 0);
    }
    free_if_closed(l);
}

static void on_retry(uv_timer_t *timer)
{
    struct setup_link *l = timer->data;
    struct error e;
    int fd;

    if (l->handed)
        refuse_handed(l, "torusd-setup does not run there");
    fd = connect_to(l->path, &e);
    if (fd < 0) {
        if (!l->complained)
            log_warning("torusd-setup does not serve %s (%s); it is tried again and again", l->path,
                        e.text);
        l->complained = true;
        (void)uv_timer_start(&l->retry, on_retry, RETRY_MS, 0);
        return;
    }
    l->complained = false;
    l->framed =
        (struct framed){.most = EVENT_MOST, .took = on_event, .closed = on_lost, .context = l};
    l->connected = true;
    if (framed_open(&l->framed, l->loop, fd) == 0)
        watch(l);
}

struct setup_link *setup_link_open(uv_loop_t *loop, const char *path,
                                   const struct setup_link_user *user)
{
    struct setup_link *l = calloc(1, sizeof *l);

    if (l == NULL)
        return NULL;
    l->path = path;
    l->user = *user;
    l->loop = loop;
    (void)uv_timer_init(loop, &l->retry);
    l->retry.data = l;
    (void)uv_timer_start(&l->retry, on_retry, 0, 0);
    return l;
}

static void on_retry_closed(uv_handle_t *handle)
{
    struct setup_link *l = handle->data;

    handle->data = NULL;
    free_if_closed(l);
}

void setup_link_close(struct setup_link *l)
{
    l->closing = true;
    if (l->connected)
        framed_close(&l->framed);
    uv_close((uv_handle_t *)&l->retry, on_retry_closed);
}
