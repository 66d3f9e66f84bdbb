#include "daemon/torusd-discover/server.h"

#include <stdlib.h>
#include <unistd.h>

#include "daemon/lib/discovery/discovery.h"
#include "daemon/lib/net/framed.h"
#include "proto/borrowed.h"
#include "proto/discovery.pb-c.h"
#include "proto/elapsed.h"
#include "proto/frame.h"
#include "proto/unpack.h"

/* The reply that lists all hosts. */

_Static_assert((int)TRUST_PROVED == (int)DISCOVERY__TRUST__PROVED &&
                   (int)TRUST_OTHER_KEY == (int)DISCOVERY__TRUST__OTHER_KEY,
               "the numbers of enum trust");

/* The messages of all hosts. */
struct host_messages {
    Discovery__Host *message;
    Discovery__Host **list;
    uint8_t **report; /* packed */
    size_t count;
};

static void free_messages(struct host_messages *m)
{
    for (size_t i = 0; i < m->count; i++)
        free(m->report[i]);
    free(m->message);
    free(m->list);
    free(m->report);
}

/* Fills the messages. Returns 0, or -1 if there is no memory. */
static int fill(struct host_messages *m, const struct database *database)
{
    m->message = calloc(database->hosts + 1, sizeof m->message[0]);
    m->list = calloc(database->hosts + 1, sizeof(Discovery__Host *));
    m->report = calloc(database->hosts + 1, sizeof m->report[0]);
    if (m->message == NULL || m->list == NULL || m->report == NULL)
        return -1;
    for (uint32_t i = 0; i < database->hosts; i++) {
        const struct host_entry *h = database->host[i];
        Discovery__Host *to = m->list[i] = &m->message[i];
        size_t size;
        discovery__host__init(to);
        m->report[i] = report_pack(h->report, &size);
        m->count++;
        if (m->report[i] == NULL)
            return -1;
        to->report = borrowed(m->report[i], size);
        to->trust = (Discovery__Trust)h->trust;
        if (h->has_key_id)
            to->key_id = borrowed(h->key_id, KEY_ID_SIZE);
        to->self = host_id_is(&h->report->host, &database->own);
        to->reachable = h->reachable;
        to->distance = h->reachable ? h->distance : 0;
    }
    return 0;
}

/* Packs the reply as a frame. `setups` is the socket of torusd-setup on this host, or NULL if it does not run. Returns
 * *size malloc'ed bytes; or NULL if there is not enough memory, or the frame would be longer than FRAME_MAX_REPLY. */
static uint8_t *hosts_reply_pack(struct discovery *d, const char *setups, uint64_t now,
                                 size_t *size)
{
    const struct database *database = discovery_database(d);
    const struct secrets *secrets = discovery_secrets(d);
    Discovery__Reply reply = DISCOVERY__REPLY__INIT;
    Discovery__Hosts hosts = DISCOVERY__HOSTS__INIT;
    struct host_messages messages = {0};
    uint64_t quiet = elapsed(database->changed_at, now) / MILLISECONDS;
    uint8_t *frame = NULL;

    if (fill(&messages, database) == 0) {
        hosts.n_hosts = database->hosts;
        hosts.hosts = messages.list;
        hosts.digest = database->picture;
        hosts.quiet_ms = quiet < UINT32_MAX ? (uint32_t)quiet : UINT32_MAX;
        if (secrets->count > 0)
            hosts.key_id = borrowed(secrets->key[0].id, KEY_ID_SIZE);
        if (setups != NULL)
            hosts.setup_socket = borrowed_text(setups);
        reply.kind_case = DISCOVERY__REPLY__KIND_HOSTS;
        reply.hosts = &hosts;
        if (discovery__reply__get_packed_size(&reply) <= FRAME_MAX_REPLY)
            frame = frame_pack(&reply.base, size);
    }
    free_messages(&messages);
    return frame;
}

#define CLIENTS_MOST 32u
#define REQUEST_MOST (DISCOVERY_SETUP_MOST + 65536u)
#define UNPACKED_MOST (DISCOVERY_SETUP_MOST + 131072u)

/* The setup of a client, which is its `data`. */
struct carried {
    struct framed_client *client;
    struct outgoing_setup *setup;
};

struct discovery_server {
    struct discovery *discovery;
    const char *setups;
    struct framed_server *framed;
};

static void reply_failure(struct framed_client *client, const struct error *e)
{
    Discovery__Reply reply = DISCOVERY__REPLY__INIT;
    Discovery__Failure failure = DISCOVERY__FAILURE__INIT;

    failure.code = (uint32_t)e->code;
    failure.text = borrowed_text(e->text);
    reply.kind_case = DISCOVERY__REPLY__KIND_FAILURE;
    reply.failure = &failure;
    framed_send(&client->framed, &reply.base);
}

/* --- setups --- */

static void on_challenged(void *context, const struct setup_challenge *challenge)
{
    const struct carried *c = context;
    Discovery__Reply reply = DISCOVERY__REPLY__INIT;
    Discovery__Challenged challenged = DISCOVERY__CHALLENGED__INIT;

    challenged.setup = borrowed(challenge->id, SETUP_ID_SIZE);
    challenged.from = borrowed(challenge->from->bytes, HOST_ID_SIZE);
    challenged.key = borrowed(challenge->key, PUBLIC_KEY_SIZE);
    challenged.nonce = borrowed(challenge->nonce, NONCE_SIZE);
    reply.kind_case = DISCOVERY__REPLY__KIND_CHALLENGED;
    reply.challenged = &challenged;
    framed_send(&c->client->framed, &reply.base);
}

static void on_ended(void *context, const struct setup_end *end)
{
    struct carried *c = context;
    struct framed_client *client = c->client;
    Discovery__Reply reply = DISCOVERY__REPLY__INIT;
    Discovery__SetupReply setup = DISCOVERY__SETUP_REPLY__INIT;

    client->data = NULL;
    free(c);
    if (end->e.code != ERROR_NONE) {
        reply_failure(client, &end->e);
        return;
    }
    setup.sealed = borrowed(end->sealed, end->size);
    reply.kind_case = DISCOVERY__REPLY__KIND_SETUP;
    reply.setup = &setup;
    framed_send(&client->framed, &reply.base);
}

static void start_setup(const struct discovery_server *s, struct framed_client *client,
                        const Discovery__SetupRequest *request)
{
    struct setup_user user = {on_challenged, on_ended, NULL};
    struct carried *c = calloc(1, sizeof *c);
    struct host_id host;
    struct error e = {0};

    if (c == NULL)
        (void)error_set(&e, ERROR_MEMORY, "out of memory for the setup");
    else if (client->user != 0 && client->user != (uint32_t)geteuid())
        (void)error_set(&e, ERROR_REFUSED,
                        "permission denied: only root and the user of the discovery process may "
                        "send setups");
    else if (client->data != NULL)
        (void)error_set(&e, ERROR_USAGE, "one connection sends one setup at a time");
    else if (!host_id_read(&host, request->host.data, request->host.len))
        (void)error_set(&e, ERROR_USAGE, "the id of the host is invalid");
    else {
        *c = (struct carried){.client = client};
        user.context = c;
        c->setup = discovery_send_setup(s->discovery, &host, &user, &e);
    }
    if (e.code == ERROR_NONE) {
        client->data = c;
        return;
    }
    free(c);
    reply_failure(client, &e);
}

static void take_sealed(const struct discovery_server *s, struct framed_client *client,
                        const Discovery__SealedSetup *sealed)
{
    const struct carried *c = client->data;
    struct error e;

    if (c != NULL) {
        discovery_send_sealed(s->discovery, c->setup, sealed->bytes.data, sealed->bytes.len);
        return;
    }
    (void)error_set(&e, ERROR_USAGE, "this setup was not announced");
    reply_failure(client, &e);
}

static void forget_setup(const struct discovery_server *s, struct framed_client *client)
{
    struct carried *c = client->data;

    client->data = NULL;
    if (c != NULL)
        discovery_cancel_setup(s->discovery, c->setup);
    free(c);
}

/* --- requests --- */

static void reply_hosts(const struct discovery_server *s, struct framed_client *client)
{
    size_t size = 0;
    uint8_t *frame = hosts_reply_pack(s->discovery, s->setups, uv_hrtime(), &size);

    framed_write(&client->framed, frame, size);
}

static void on_request(void *context, struct framed_client *client, const uint8_t *bytes,
                       size_t size)
{
    const struct discovery_server *s = context;
    Discovery__Request *request =
        unpack_bounded(&discovery__request__descriptor, bytes, size, UNPACKED_MOST);
    struct error e;

    switch (request != NULL ? request->kind_case : DISCOVERY__REQUEST__KIND__NOT_SET) {
    case DISCOVERY__REQUEST__KIND_LIST:
        reply_hosts(s, client);
        break;
    case DISCOVERY__REQUEST__KIND_SETUP:
        start_setup(s, client, request->setup);
        break;
    case DISCOVERY__REQUEST__KIND_SEALED:
        take_sealed(s, client, request->sealed);
        break;
    default:
        (void)error_set(&e, ERROR_PROTOCOL,
                        "unknown request: the client and this torusd-discover have different "
                        "versions");
        reply_failure(client, &e);
        break;
    }
    if (request != NULL)
        unpack_free(request);
}

static void on_left(void *context, struct framed_client *client)
{
    forget_setup(context, client);
}

static void on_closed(void *context)
{
    free(context);
}

struct discovery_server *discovery_server_open(uv_loop_t *loop, const char *path,
                                               const char *setups, struct discovery *discovery,
                                               struct error *e)
{
    struct discovery_server *s = calloc(1, sizeof *s);
    const struct framed_server_user user = {REQUEST_MOST, CLIENTS_MOST, on_request,
                                            on_left,      on_closed,    s};

    if (s == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for the discovery socket");
        return NULL;
    }
    s->discovery = discovery;
    s->setups = setups;
    s->framed = framed_server_open(loop, path, NULL, &user, e);
    if (s->framed == NULL) {
        (void)error_wrap(e, "discovery socket %s", path);
        free(s);
        return NULL;
    }
    return s;
}

void discovery_server_close(struct discovery_server *s)
{
    for (struct framed_client *c = framed_server_clients(s->framed); c != NULL; c = c->next)
        forget_setup(s, c);
    framed_server_close(s->framed);
}
