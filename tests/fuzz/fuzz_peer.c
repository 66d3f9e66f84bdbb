/* One node with its router and exchanges, and neighbours that send anything. Input: a byte for the torus and
 * rank, then operations: a byte with the kind and the port, and its arguments. With KEYED the node and its
 * neighbours have a cluster key: each connection begins with a correct handshake, and only what follows is
 * fuzzed.
 *
 * Invariants: reserved memory stays within the budget, every exchange ends after enough time, each client is told
 * once, and nothing is left when the node is closed. */
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/core/core.h"
#include "daemon/torusd/engine/generated_blocks.h"
#include "daemon/torusd/router/outgoing.h"
#include "proto/frame.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/storage.h"
#include "tests/unit/router_fixture.h"

#define BUDGET (1u << 20)
#define CLIENTS 8u
#define WORKS 1000u
#define DAY (UINT64_C(24) * 3600 * SECONDS)

enum action { BYTES, FRAME, HELLO, TIME, SEND, START, CANCEL, CLOSE, ACTIONS };

struct client {
    struct job *exchange;
};

struct node {
    struct router_fixture f;
    struct core *core;
    struct survey_request survey;
    struct fuzz_storage storage;
    struct work *work[WORKS]; /* run, not done() */
    unsigned works;
    struct client client[CLIENTS];
    unsigned clients;
};

static int submit(void *context, struct work *work)
{
    struct node *n = context;

    if (n->works == WORKS)
        return -1;
    work->run(work);
    n->work[n->works++] = work;
    return 0;
}

/* --- the node --- */

#ifdef KEYED
static const bool keyed = true;
#else
static const bool keyed = false;
#endif

static const struct secrets *cluster_key(void)
{
    static const uint8_t bytes[KEY_SIZE] = "of all nodes that are fuzzed";
    static struct secrets secrets;

    secrets = (struct secrets){.count = 1};
    key_set(&secrets.key[0], bytes);
    return &secrets;
}

static void on_survey(void *context, enum survey_kind kind)
{
    static const uint8_t bytes[SURVEY_PART + 10] = "answer";

    survey_tell(core_survey(((struct node *)context)->core), kind, bytes, sizeof bytes);
}

/* The node makes one survey after another, so that answers may arrive. */
static void make_survey(struct node *n);

static void on_surveyed(void *context, const struct survey_node *nodes, uint64_t took)
{
    make_survey(context);
}

static void make_survey(struct node *n)
{
    struct error e;

    n->survey = (struct survey_request){.context = n, .done = on_surveyed};
    if (survey_start(core_survey(n->core), SURVEY_STATE, 10 * SECONDS, &n->survey, &e) != 0)
        REQUIRE(e.code == ERROR_REFUSED); /* a neighbour has an older version */
}

static void open_node(struct node *n, uint8_t which)
{
    static const char *const tori[] = {"2x2", "3", "2m", "4x4"};
    struct torus torus;

    *n = (struct node){0};
    fuzz_storage_open(&n->storage, &n->f);
    REQUIRE(torus_parse(&torus, tori[which % 4], NULL) == 0);
    const struct router_io io = fixture_begin(&n->f, tori[which % 4], (which / 4u) % torus.nodes);
    const struct core_setup setup = {.torus = &n->f.torus,
                                     .rank = n->f.rank,
                                     .io = io,
                                     .secrets = keyed ? cluster_key() : NULL,
                                     .pool = &n->f.pool,
                                     .storage = &n->storage.storage,
                                     .workers = {n, submit},
                                     .memory_budget = BUDGET,
                                     .link_mbit = 1};
    struct error e;
    n->core = core_new(&setup, &e);
    REQUIRE(n->core != NULL);
    n->f.router = core_router(n->core);
    survey_set_source(core_survey(n->core), &(struct survey_source){n, on_survey});
    core_start(n->core);
    make_survey(n);
}

static void run_works(struct node *n)
{
    while (n->works > 0) {
        struct work *work = n->work[--n->works];
        work->done(work);
    }
}

static void tick(struct node *n)
{
    struct error e;

    run_works(n);
    fuzz_storage_run(&n->storage);
    core_tick(n->core);
    if (core_check(n->core, &e) != 0) {
        (void)fprintf(stderr, "%s\n", e.text);
        REQUIRE(false);
    }
}

static void pass(struct node *n, uint64_t time, int times)
{
    for (int i = 0; i < times; i++) {
        n->f.now += time;
        tick(n);
        tick(n);
    }
}

static void say_to(void *context, const struct peer_message *head)
{
    struct fixture_connection *c = context;

    if (c->link != NULL)
        fixture_say(c, head, NULL, 0);
}

static void any_bytes(void *context, void *buffer, size_t size)
{
    memset(buffer, 'c', size);
}

/* The neighbour's side of the handshake. */
static void shake_hands(struct node *n, struct fixture_connection *c, unsigned port)
{
    const struct handshake_config place = {.torus = &n->f.torus,
                                           .secrets = cluster_key(),
                                           .address = "node",
                                           .rank = torus_neighbour(&n->f.torus, n->f.rank, port),
                                           .neighbour = n->f.rank,
                                           .port = torus_port_opposite(&n->f.torus, port),
                                           .boot = 77,
                                           .minor = PROTOCOL_MINOR,
                                           .random = any_bytes,
                                           .say = say_to,
                                           .say_context = c};
    struct handshake theirs;
    struct error e;
    struct peer_message *head;

    handshake_begin(&theirs, &place, torus_port_direction(&n->f.torus, port) < 0);
    while (theirs.state != HANDSHAKE_DONE && (head = fixture_next(c, NULL, 0, NULL)) != NULL) {
        REQUIRE(handshake_heard(&theirs, &place, head, &e) == 0);
        message_forget(head);
    }
    /* Unless the link is held because it flaps. */
    REQUIRE(theirs.state == HANDSHAKE_DONE || c->link == NULL);
    handshake_forget(&theirs);
}

static struct fixture_connection *connection_at(struct node *n, unsigned port)
{
    if (n->f.torus.nodes == 1 || torus_neighbour(&n->f.torus, n->f.rank, port) == TORUS_NO_NODE)
        return NULL;
    if ((n->f.up[port] == NULL || n->f.up[port]->link == NULL) &&
        n->f.connections < FIXTURE_CONNECTIONS) {
        n->f.up[port] = fixture_connect(&n->f, port, torus_port_direction(&n->f.torus, port) > 0);
        if (keyed && n->f.up[port]->link != NULL)
            shake_hands(n, n->f.up[port], port);
        if (keyed && n->f.up[port]->link != NULL)
            fixture_pass_probe(n->f.up[port]);
    }
    return n->f.up[port] != NULL && n->f.up[port]->link != NULL ? n->f.up[port] : NULL;
}

static void send_all(struct node *n)
{
    for (unsigned i = 0; i < n->f.connections; i++)
        for (unsigned frames = 0; frames < 1000 && n->f.connection[i].link != NULL; frames++) {
            struct peer_message *head = fixture_next(&n->f.connection[i], NULL, 0, NULL);
            if (head == NULL)
                break;
            message_forget(head);
        }
}

static void on_ended(void *context, const struct exchange_result *result, const struct error *e)
{
    struct client *client = context;

    REQUIRE(client->exchange != NULL);
    REQUIRE((result == NULL) != (e == NULL));
    client->exchange = NULL;
}

static void start(struct node *n, uint8_t which)
{
    static const struct spec spec[] = {
        {.algorithm = "direct", .block_bytes = 0, .from = "", .to = ""},
        {.algorithm = "direct", .block_bytes = 10, .from = "", .to = ""},
        {.algorithm = "at2", .block_bytes = 300000, .from = "", .to = ""},
        {.algorithm = "direct", .from = "/in", .to = "/out", .timeout_ns = SECONDS},
        {.algorithm = "ar", .block_bytes = 100, .from = "", .to = "", .timeout_ns = UINT64_MAX / 4},
        {.algorithm = "direct", .from = "/refuse", .to = "/out"},
        {.algorithm = "stream", .block_bytes = 300000, .from = "", .to = ""},
        {.algorithm = "stream", .from = "/in", .to = "/out"},
    };
    struct error e;

    if (n->clients == CLIENTS)
        return;
    struct client *client = &n->client[n->clients++];
    const struct exchange_client callback = {.context = client, .ended = on_ended};
    client->exchange = exchange_start(core_exchanges(n->core),
                                      &spec[which % (sizeof spec / sizeof spec[0])], &callback, &e);
}

static void leave(struct client *client, bool waits)
{
    if (client->exchange == NULL)
        return;
    if (waits) {
        exchange_cancel(client->exchange);
    } else {
        exchange_abandon(client->exchange);
        client->exchange = NULL;
    }
}

/* Bytes of the input; the first two are their number. */
static void feed_bytes(struct fixture_connection *c, struct input *in)
{
    size_t length = input_word16(in);
    const uint8_t *bytes = input_bytes(in, &length);

    if (c != NULL)
        fixture_feed(c, bytes, length);
}

/* The lengths of head and body, then both. The prefix and the head's check are made right. */
static void feed_frame(struct fixture_connection *c, struct input *in)
{
    uint8_t frame[FRAME_PREFIX_SIZE + UINT8_MAX + HEAD_CHECK_SIZE];
    size_t length = input_byte(in), body = input_word16(in);
    const uint8_t *bytes = input_bytes(in, &length), *body_bytes = input_bytes(in, &body);

    if (length > 0)
        memcpy(frame + FRAME_PREFIX_SIZE, bytes, length);
    length = head_check_write(frame, (uint32_t)length, (uint32_t)body);
    if (c != NULL)
        fixture_feed(c, frame, FRAME_PREFIX_SIZE);
    if (c != NULL)
        fixture_feed(c, frame + FRAME_PREFIX_SIZE, length - FRAME_PREFIX_SIZE);
    if (c != NULL)
        fixture_feed(c, body_bytes, body);
}

/* With a key, the hello was sent before; a byte of the input is used in any case. */
static void say_hello(struct node *n, unsigned port, struct fixture_connection *c, struct input *in)
{
    char dims[TORUS_TEXT_SIZE];
    struct peer_hello hello;
    uint8_t boot = input_byte(in);

    if (keyed)
        return;
    fixture_hello(&n->f, port, &hello, dims);
    hello.boot = boot;
    if (c != NULL)
        fixture_say_hello(c, &hello);
}

static void close_connection(struct fixture_connection *c)
{
    struct link *link = c->link;

    c->link = NULL;
    link_closed(link, "closed");
}

static void run_operation(struct node *n, struct input *in)
{
    uint8_t kind = input_byte(in);
    unsigned port = (kind >> 4) % torus_ports(&n->f.torus);
    struct fixture_connection *c = connection_at(n, port);

    switch ((enum action)(kind % ACTIONS)) {
    case BYTES:
        feed_bytes(c, in);
        break;
    case FRAME:
        feed_frame(c, in);
        break;
    case HELLO:
        say_hello(n, port, c, in);
        break;
    case TIME:
        pass(n, (uint64_t)input_byte(in) * 50 * MILLISECONDS, 1);
        break;
    case SEND:
        send_all(n);
        break;
    case START:
        start(n, input_byte(in));
        break;
    case CANCEL:
        if (n->clients > 0)
            leave(&n->client[port % n->clients], port % 2 == 0);
        break;
    case CLOSE:
        if (c != NULL)
            close_connection(c);
        break;
    case ACTIONS:
        break;
    }
    tick(n);
    REQUIRE(exchanges_reserved(core_exchanges(n->core)) <= BUDGET);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct node n;
    struct input in = {data, size};
    struct exchange_info info[100];

    open_node(&n, input_byte(&in));
    for (int i = 0; i < 300 && in.size > 0; i++)
        run_operation(&n, &in);
    pass(&n, 1 * SECONDS, 15); /* all links fall silent */
    pass(&n, 200 * DAY, 5);    /* and all deadlines pass */
    size_t known = exchanges_list(core_exchanges(n.core), info, 100);
    REQUIRE(known < 100);
    for (size_t i = 0; i < known; i++)
        REQUIRE(exchange_has_ended(info[i].state));
    REQUIRE(exchanges_reserved(core_exchanges(n.core)) == 0);
    REQUIRE(n.storage.open_folders == 0);
    for (unsigned i = 0; i < n.clients; i++)
        REQUIRE(n.client[i].exchange == NULL);
    n.storage.calls = 0;
    core_free(n.core);
    run_works(&n);
    fixture_end(&n.f);
    return 0;
}
