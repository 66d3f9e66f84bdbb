#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/discovery/discovery.h"
#include "daemon/lib/discovery/interfaces.h"
#include "daemon/lib/discovery/seal.h"
#include "daemon/lib/net/framed.h"
#include "daemon/lib/service/service.h"
#include "daemon/torusd-setup/command.h"
#include "daemon/torusd-setup/host_state.h"
#include "proto/borrowed.h"
#include "proto/descriptors.h"
#include "proto/discovery.pb-c.h"
#include "proto/unpack.h"

/* The part of discovery that runs as root. It keeps the keys of the host, opens setups, runs the command that applies
 * them, and sets up the interfaces of a new host. Its only input are messages of the discovery process and of root at a
 * Unix socket. */

struct keeper;

#define RETRY_MS 5000 /* between two attempts to read what could not be read */
#define CLIENTS_MOST 16u
#define CALL_MOST (DISCOVERY_SETUP_MOST + 65536u)
#define UNPACKED_MOST (DISCOVERY_SETUP_MOST + 131072u)
#define USED_MOST 1024u /* setups with one nonce */
#define SET_UP_MOST 256u

/* The setup whose command runs, or that waits for the end of another one. */
struct received {
    struct framed_client *client; /* NULL: it has gone */
    uint8_t id[SETUP_ID_SIZE];
    struct host_id from;
    uint8_t reply_key[REPLY_KEY_SIZE];
    bool own;        /* of this host itself */
    uint8_t *sealed; /* the setup that waits; NULL if none does */
    size_t size;
};

struct keeper {
    const struct setup_options *options;
    struct host_state *state;
    struct identity identity;
    struct opener opener;
    struct setup_settings settings;
    uint8_t nonce[NONCE_SIZE];
    uint8_t used[USED_MOST][SETUP_ID_SIZE]; /* setups that were opened with the nonce */
    unsigned used_count;
    unsigned set_up[SET_UP_MOST]; /* indexes of interfaces */
    unsigned set_up_count;
    struct framed_server *server;
    struct command command;
    struct received running, waiting;
    bool applies; /* the command that runs may replace the key */
    uv_timer_t retry;
    struct signals signals;
};

/* --- the state of the host, for the discovery process --- */

static bool accepts(const struct keeper *k)
{
    return k->settings.open || k->settings.secrets.count > 0;
}

static void send_state(const struct keeper *k, struct framed_client *client)
{
    Discovery__SetupEvent event = DISCOVERY__SETUP_EVENT__INIT;
    Discovery__HostState state = DISCOVERY__HOST_STATE__INIT;
    Discovery__DiscoveryKey key[SECRETS_MOST], *keys[SECRETS_MOST];
    struct key derived[SECRETS_MOST];

    for (unsigned i = 0; i < k->settings.secrets.count; i++) {
        discovery_key_make(&derived[i], &k->settings.secrets.key[i]);
        discovery__discovery_key__init(&key[i]);
        key[i].key_id = borrowed(derived[i].id, KEY_ID_SIZE);
        key[i].bytes = borrowed(derived[i].bytes, KEY_SIZE);
        keys[i] = &key[i];
    }
    state.public_key = borrowed(k->identity.public_key, PUBLIC_KEY_SIZE);
    state.secret_key = borrowed(k->identity.secret_key, SECRET_KEY_SIZE);
    state.nonce = borrowed(k->nonce, NONCE_SIZE);
    state.accepts_setups = accepts(k);
    state.n_keys = k->settings.secrets.count;
    state.keys = keys;
    state.dims = borrowed_text(k->settings.dims);
    state.rank = k->settings.have_rank ? k->settings.rank + 1 : 0;
    event.kind_case = DISCOVERY__SETUP_EVENT__KIND_STATE;
    event.state = &state;
    framed_send(&client->framed, &event.base);
    sodium_memzero(derived, sizeof derived);
}

static void tell_watchers(const struct keeper *k)
{
    for (struct framed_client *c = framed_server_clients(k->server); c != NULL; c = c->next)
        if (c->data != NULL)
            send_state(k, c);
}

/* Setups that were sealed for the previous nonce cannot be opened any more. */
static void change_nonce(struct keeper *k)
{
    randombytes_buf(k->nonce, sizeof k->nonce);
    k->used_count = 0;
}

static void read_settings(struct keeper *k, bool log)
{
    settings_read(&k->settings, k->options, k->state, log);
    k->opener.secrets = k->settings.secrets;
    k->opener.open = k->settings.open;
}

/* Reads the settings and keys again, and tells the discovery process. */
static void keeper_read_settings(struct keeper *k)
{
    read_settings(k, true);
    tell_watchers(k);
}

/* What could not be read may be there now: a disk was mounted. */
static void on_retry(uv_timer_t *timer)
{
    struct keeper *k = timer->data;

    if (!k->settings.failed)
        return;
    read_settings(k, false);
    if (!k->settings.failed)
        keeper_read_settings(k);
}

/* --- answers --- */

static void send_failure(struct framed_client *client, const struct error *e)
{
    Discovery__SetupEvent event = DISCOVERY__SETUP_EVENT__INIT;
    Discovery__Failure failure = DISCOVERY__FAILURE__INIT;

    failure.code = (uint32_t)e->code;
    failure.text = borrowed_text(e->text);
    event.kind_case = DISCOVERY__SETUP_EVENT__KIND_FAILURE;
    event.failure = &failure;
    framed_send(&client->framed, &event.base);
}

/* Ends a setup of another host: with its sealed result, or with a refusal (sealed NULL). */
static void send_end(struct framed_client *client, const uint8_t *id, const uint8_t *sealed,
                     size_t size, const char *refusal)
{
    Discovery__SetupEvent event = DISCOVERY__SETUP_EVENT__INIT;
    Discovery__SetupEnd end = DISCOVERY__SETUP_END__INIT;

    end.setup = borrowed(id, SETUP_ID_SIZE);
    if (sealed != NULL)
        end.sealed = borrowed(sealed, size);
    else
        end.refusal = borrowed_text(refusal);
    event.kind_case = DISCOVERY__SETUP_EVENT__KIND_END;
    event.end = &end;
    framed_send(&client->framed, &event.base);
}

static void send_own_result(struct framed_client *client, const struct setup_answer *answer)
{
    Discovery__SetupEvent event = DISCOVERY__SETUP_EVENT__INIT;
    Discovery__Result result = DISCOVERY__RESULT__INIT;

    if (answer->e.code != ERROR_NONE) {
        send_failure(client, &answer->e);
        return;
    }
    result.status = answer->status;
    result.output = borrowed(answer->output, answer->size);
    result.errors = borrowed(answer->errors, answer->errors_size);
    event.kind_case = DISCOVERY__SETUP_EVENT__KIND_RESULT;
    event.result = &result;
    framed_send(&client->framed, &event.base);
}

static void answer_received(const struct received *r, const struct setup_answer *answer)
{
    size_t size = 0;
    uint8_t *sealed;

    if (r->client == NULL)
        return;
    if (r->own) {
        send_own_result(r->client, answer);
        return;
    }
    sealed = seal_result(r->reply_key, answer, &size);
    send_end(r->client, r->id, sealed, size, "out of memory for the answer");
    free(sealed);
}

/* --- running the command --- */

static int start(struct keeper *k, const struct received *r, bool apply, const uint8_t *bytes,
                 size_t size, struct error *e)
{
    if (command_start(&k->command, apply, bytes, size, e) != 0)
        return -1;
    k->running = *r;
    k->running.sealed = NULL;
    k->applies = apply;
    return 0;
}

static bool is_used(const struct keeper *k, const uint8_t *id)
{
    for (unsigned i = 0; i < k->used_count; i++)
        if (memcmp(k->used[i], id, SETUP_ID_SIZE) == 0)
            return true;
    return false;
}

/* Opens a setup of another host, and starts the command. Returns 0, or -1 with *e. */
static int open_and_start(struct keeper *k, struct received *r, const uint8_t *sealed, size_t size,
                          struct error *e)
{
    const struct setup_frame frame = {r->id, &r->from, &k->identity.id, k->nonce};
    struct opened_setup opened;
    int rc;

    if (is_used(k, r->id))
        return error_set(e, ERROR_REFUSED, "the setup has been here before: it is a replay");
    if (open_setup(&frame, &k->opener, sealed, size, &opened, e) != 0)
        return -1;
    memcpy(k->used[k->used_count++], r->id, SETUP_ID_SIZE);
    memcpy(r->reply_key, opened.reply_key, REPLY_KEY_SIZE);
    rc = start(k, r, opened.apply, opened.bytes, opened.size, e);
    sodium_memzero(opened.bytes, opened.size);
    free(opened.bytes);
    if (k->used_count == USED_MOST) {
        change_nonce(k);
        tell_watchers(k);
    }
    return rc;
}

static void refuse_received(const struct received *r, const struct error *e)
{
    send_end(r->client, r->id, NULL, 0, e->text);
}

static void start_waiting(struct keeper *k)
{
    struct received r = k->waiting;
    struct error e;

    k->waiting = (struct received){0};
    if (r.sealed != NULL && r.client != NULL && open_and_start(k, &r, r.sealed, r.size, &e) != 0)
        refuse_received(&r, &e);
    free(r.sealed);
}

static void on_command_ended(void *context, const struct setup_answer *answer)
{
    struct keeper *k = context;
    const struct received r = k->running;

    if (answer->e.code != ERROR_NONE)
        log_warning("the setup failed: %s", answer->e.text);
    else
        log_info("the setup's command ended with status %u", answer->status);
    k->running = (struct received){0};
    if (k->applies)
        keeper_read_settings(k);
    answer_received(&r, answer);
    start_waiting(k);
}

/* --- calls --- */

static void take_received(struct keeper *k, struct framed_client *client,
                          const Discovery__ReceivedSetup *call)
{
    struct received r = {.client = client, .size = call->sealed.len};
    struct error e;

    if (call->setup.len != SETUP_ID_SIZE ||
        !host_id_read(&r.from, call->from.data, call->from.len)) {
        framed_close(&client->framed);
        return;
    }
    memcpy(r.id, call->setup.data, SETUP_ID_SIZE);
    if (k->command.run == NULL) {
        if (open_and_start(k, &r, call->sealed.data, call->sealed.len, &e) != 0)
            refuse_received(&r, &e);
        return;
    }
    r.sealed = k->waiting.sealed == NULL ? malloc(r.size + 1) : NULL;
    if (r.sealed == NULL) {
        (void)error_set(&e, ERROR_BUSY, "too many setups wait here: try again");
        refuse_received(&r, &e);
        return;
    }
    memcpy(r.sealed, call->sealed.data, r.size);
    k->waiting = r;
}

static void take_own(struct keeper *k, struct framed_client *client,
                     const Discovery__OwnSetup *call)
{
    const struct received r = {.client = client, .own = true};
    struct error e = {0};

    if (client->user != 0 && client->user != (uint32_t)geteuid())
        (void)error_set(&e, ERROR_REFUSED, "only root may set up this host");
    else if (call->bytes.len > DISCOVERY_SETUP_MOST)
        (void)error_set(&e, ERROR_USAGE, "the setup has %zu bytes, at most %u are possible",
                        call->bytes.len, DISCOVERY_SETUP_MOST);
    else if (k->command.run != NULL)
        (void)error_set(&e, ERROR_BUSY, "another setup is being applied on this host: try again");
    else
        (void)start(k, &r, call->apply, call->bytes.data, call->bytes.len, &e);
    if (e.code != ERROR_NONE)
        send_failure(client, &e);
}

/* Sets an interface up that has just appeared, while this host is new: later it is down because somebody wants that. */
static void take_appeared(struct keeper *k, const char *name)
{
    struct interface_state list[DISCOVERY_INTERFACES_MOST];

    if (!k->settings.open || k->set_up_count == SET_UP_MOST || !interface_name_is_valid(name) ||
        interfaces_read(name, list) != 1 || list[0].up)
        return;
    for (unsigned i = 0; i < k->set_up_count; i++)
        if (k->set_up[i] == list[0].index)
            return;
    k->set_up[k->set_up_count++] = list[0].index;
    if (interface_set_up(name) == 0)
        log_info("interface %s was down, and is set up", name);
    else
        log_warning("interface %s is down, and cannot be set up: %s", name, strerror(errno));
}

static void take_call(struct keeper *k, struct framed_client *client,
                      const Discovery__SetupCall *call)
{
    switch (call->kind_case) {
    case DISCOVERY__SETUP_CALL__KIND_WATCH:
        client->data = k;
        send_state(k, client);
        break;
    case DISCOVERY__SETUP_CALL__KIND_RECEIVED:
        take_received(k, client, call->received);
        break;
    case DISCOVERY__SETUP_CALL__KIND_APPEARED:
        take_appeared(k, call->appeared->name);
        break;
    case DISCOVERY__SETUP_CALL__KIND_OWN:
        take_own(k, client, call->own);
        break;
    default:
        framed_close(&client->framed); /* another version */
        break;
    }
}

static void on_call(void *context, struct framed_client *client, const uint8_t *bytes, size_t size)
{
    struct keeper *k = context;
    Discovery__SetupCall *call;

    if (client->user != 0 && client->user != k->options->reader &&
        client->user != (uint32_t)geteuid()) {
        framed_close(&client->framed);
        return;
    }
    call = unpack_bounded(&discovery__setup_call__descriptor, bytes, size, UNPACKED_MOST);
    if (call == NULL) {
        framed_close(&client->framed);
        return;
    }
    take_call(k, client, call);
    if (call->kind_case == DISCOVERY__SETUP_CALL__KIND_OWN)
        sodium_memzero(call->own->bytes.data, call->own->bytes.len);
    unpack_free(call);
}

static void on_left(void *context, struct framed_client *client)
{
    struct keeper *k = context;

    if (k->running.client == client)
        k->running.client = NULL;
    if (k->waiting.client == client) {
        free(k->waiting.sealed);
        k->waiting = (struct received){0};
    }
}

/* --- start and end --- */

static void on_server_closed(void *context)
{
    struct keeper *k = context;

    uv_close((uv_handle_t *)&k->retry, NULL);
}

/* Begins to serve the socket. Returns 0, or -1 with *e and nothing left open. */
static int serve(struct keeper *k, uv_loop_t *loop, struct error *e)
{
    const struct framed_server_user user = {CALL_MOST, CLIENTS_MOST,     on_call,
                                            on_left,   on_server_closed, k};
    char id[HOST_ID_TEXT_SIZE];

    k->command.loop = loop;
    k->command.ended = on_command_ended;
    k->command.context = k;
    identity_make(&k->identity, k->state->seed, k->opener.opening_key);
    change_nonce(k);
    if (command_parse(&k->command, k->options->command, e) == 0)
        k->server = framed_server_open(loop, k->options->socket, NULL, &user, e);
    if (k->server == NULL)
        return -1;
    (void)uv_timer_init(loop, &k->retry);
    k->retry.data = k;
    (void)uv_timer_start(&k->retry, on_retry, RETRY_MS, RETRY_MS);
    read_settings(k, true);
    log_info("host id %s; setups at %s", host_id_text(&k->identity.id, id), k->options->socket);
    return 0;
}

static void on_signal(void *context, const char *name)
{
    struct keeper *k = context;

    log_info("torusd-setup stops: it received %s", name);
    signals_close(&k->signals);
    (void)uv_timer_stop(&k->retry);
    command_abandon(&k->command); /* a command that runs goes on */
    framed_server_close(k->server);
}

static void on_hangup(void *context)
{
    keeper_read_settings(context);
}

static int fail(const char *what, const char *why)
{
    log_error("%s: %s", what, why);
    return EXIT_FAILURE;
}

static int run(const struct setup_options *o, struct host_state *state)
{
    struct keeper k = {.options = o, .state = state};
    uv_loop_t loop;
    struct error e;
    int result = uv_loop_init(&loop);

    if (result != 0)
        return fail("torusd-setup cannot start", uv_strerror(result));
    k.signals = (struct signals){.stop = on_signal, .reload = on_hangup, .context = &k};
    result = serve(&k, &loop, &e);
    if (result == 0) {
        signals_open(&k.signals, &loop);
        (void)uv_run(&loop, UV_RUN_DEFAULT);
    }
    sodium_memzero(&k, sizeof k);
    if (uv_loop_close(&loop) != 0)
        log_error("some handles were not closed: this is a bug");
    if (result != 0)
        return fail("torusd-setup cannot start", e.text);
    log_info("ended");
    return EXIT_SUCCESS;
}

/* Makes this host a new one, if nothing else says that it is set up. */
static int open_again(const struct setup_options *o, struct host_state *state)
{
    struct setup_settings settings;
    struct error e;
    int result = EXIT_SUCCESS;

    settings_read(&settings, o, state, false);
    if (settings.why_closed[0] != '\0')
        result = fail("this host stays closed", settings.why_closed);
    else if (host_state_mark(state, false, &e) != 0)
        result = fail("this host stays closed", e.text);
    else
        (void)printf(
            "This host now accepts a first setup from every machine that its cables reach. "
            "A process that runs learns it by SIGHUP (systemctl reload torusd-setup).\n");
    sodium_memzero(&settings, sizeof settings);
    return result;
}

static int prepare_and_run(const struct setup_options *o)
{
    struct host_state state = {0};
    struct error e;
    int result;

    if (sodium_init() < 0)
        return fail("torusd-setup cannot start", "libsodium cannot be used on this system");
    if (host_state_read(&state, o->state, &e) != 0)
        return fail("torusd-setup cannot start", e.text);
    result = o->open ? open_again(o, &state) : run(o, &state);
    host_state_forget(&state);
    return result;
}

int main(int argc, char **argv)
{
    struct setup_options options;
    int exit_code;

    signals_hold();
    descriptors_fill_standard();
    if (setup_options_read(argc, argv, &options, &exit_code) != 0)
        return exit_code;
    (void)signal(SIGPIPE, SIG_IGN);
    log_begin();
    exit_code = prepare_and_run(&options);
    log_end();
    return exit_code;
}
