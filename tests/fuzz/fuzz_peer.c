/* One node, its router and exchanges, and neighbours that say anything. Input: a byte for the torus
 * and rank, then operations: a byte with the kind and the port, and what belongs to it.
 *
 * Whatever happens: no more memory is reserved than there is, every exchange has ended once enough
 * time has passed, each client is told once, and nothing is left when the node is closed. */
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/exchange/exchange.h"
#include "daemon/exchange/pattern.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/router_fixture.h"

#define BUDGET (1u << 20)
#define CLIENTS 8u
#define DAY (UINT64_C(24) * 3600 * SECONDS)

enum action { BYTES, FRAME, HELLO, TIME, SEND, START, CANCEL, CLOSE, ACTIONS };

struct client {
    struct exchange *exchange;
};

struct node {
    struct router_fixture f;
    struct exchanges *exchanges;
    struct storage storage;
    struct client client[CLIENTS];
    unsigned clients;
    unsigned open_folders; /* sources and sinks */
};

struct end { /* a source or a sink */
    union {
        struct source source;
        struct sink sink;
    };
    struct node *node;
    struct slab_writer writer;
};

/* --- folders --- */

static uint64_t source_size(struct source *s, uint32_t destination)
{
    (void)s;
    return 7 * destination;
}

static int source_read(struct source *base, uint32_t destination, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    struct end *s = (struct end *)base;

    (void)e;
    REQUIRE(offset + most <= source_size(base, destination));
    memset(slab_writer_take(&s->writer, &s->node->f.pool, most, out), 's', most);
    return 1;
}

static int source_check(struct source *s, uint64_t *digest, struct error *e)
{
    (void)s, (void)digest, (void)e;
    return 0;
}

static void source_close(struct source *base)
{
    struct end *s = (struct end *)base;

    s->node->open_folders--;
    slab_writer_close(&s->writer);
    free(s);
}

static int sink_write(struct sink *s, uint32_t origin, uint64_t offset, const struct extent *piece,
                      struct error *e)
{
    (void)offset, (void)e;
    REQUIRE(origin < ((struct end *)s)->node->f.torus.nodes);
    for (uint32_t i = 0; i < piece->length; i++) { /* it is all there to be read */
        static volatile uint8_t sum;
        sum = (uint8_t)(sum + piece->data[i]);
    }
    return 0;
}

static uint64_t sink_none(struct sink *s)
{
    (void)s;
    return 0;
}

static bool sink_finish(struct sink *s)
{
    (void)s;
    return true;
}

static int sink_commit(struct sink *s, struct error *e)
{
    (void)s, (void)e;
    return 0;
}

static void sink_close(struct sink *base, bool keep)
{
    struct end *s = (struct end *)base;

    (void)keep;
    s->node->open_folders--;
    free(s);
}

static int open_folders(void *context, const struct folder_request *request,
                        const struct block_events *events, struct source **source,
                        struct sink **sink, struct error *e)
{
    static const struct source_ops source_ops = {source_size, source_read, source_check,
                                                 source_close};
    static const struct sink_ops sink_ops = {sink_write, sink_none,   sink_finish,
                                             sink_none,  sink_commit, sink_close};
    struct node *n = context;
    struct end *from, *to;

    (void)events;
    if (strcmp(request->from, "/refuse") == 0)
        return error_set(e, ERROR_REFUSED, "refused");
    from = calloc(1, sizeof *from);
    to = calloc(1, sizeof *to);
    REQUIRE(from != NULL && to != NULL);
    from->node = to->node = n;
    from->source.ops = &source_ops;
    to->sink.ops = &sink_ops;
    n->open_folders += 2;
    *source = &from->source;
    *sink = &to->sink;
    return 0;
}

static int record_commit(void *context, const char *id, struct error *e)
{
    (void)context, (void)id, (void)e;
    return 0;
}

static bool was_committed(void *context, const char *id)
{
    (void)context;
    return strlen(id) % 2 == 0;
}

static void forget_commit(void *context, const char *id)
{
    (void)context, (void)id;
}

static void each_in_doubt(void *context, void (*each)(void *argument, const char *id),
                          void *argument)
{
    (void)context;
    each(argument, "1-00000000-7");
}

static int resolve(void *context, const char *id, bool committed, struct error *e)
{
    (void)context, (void)id, (void)committed, (void)e;
    return 0;
}

/* --- the node --- */

static int on_frame(void *context, unsigned port, const Peer__Head *head,
                    const struct extents *body, uint32_t body_length, struct error *e)
{
    return exchanges_frame(((struct node *)context)->exchanges, port, head, body, body_length, e);
}

static struct outgoing *on_next(void *context, unsigned port)
{
    struct node *n = context;
    return n->exchanges != NULL ? exchanges_next(n->exchanges, port) : NULL;
}

static void on_topology(void *context)
{
    struct node *n = context;
    if (n->exchanges != NULL)
        exchanges_topology(n->exchanges);
}

static void open_node(struct node *n, uint8_t which)
{
    static const char *const tori[] = {"2x2", "3", "2m", "4x4"};
    const struct router_handler handler = {n, on_frame, on_next, on_topology};
    struct torus torus;

    *n = (struct node){.storage = {.context = n,
                                   .open_folders = open_folders,
                                   .record_commit = record_commit,
                                   .was_committed = was_committed,
                                   .forget_commit = forget_commit,
                                   .each_in_doubt = each_in_doubt,
                                   .resolve = resolve}};
    REQUIRE(torus_parse(&torus, tori[which % 4], NULL) == 0);
    fixture_open(&n->f, tori[which % 4], (which / 4u) % torus.nodes, &handler);
    log_set_level(LOG_LEVEL_ERROR);
    const struct exchanges_setup setup = {
        .router = n->f.router, .storage = &n->storage, .memory_budget = BUDGET, .link_mbit = 1};
    n->exchanges = exchanges_new(&setup);
    REQUIRE(n->exchanges != NULL);
    router_start(n->f.router);
}

static void tick(struct node *n)
{
    if (n->f.now >= router_deadline(n->f.router))
        router_tick(n->f.router);
    if (n->f.now >= exchanges_deadline(n->exchanges))
        exchanges_tick(n->exchanges);
}

static void pass(struct node *n, uint64_t time, int times)
{
    for (int i = 0; i < times; i++) {
        n->f.now += time;
        tick(n);
        tick(n);
    }
}

static struct fixture_connection *connection_at(struct node *n, unsigned port)
{
    if (n->f.torus.nodes == 1 || torus_neighbour(&n->f.torus, n->f.rank, port) == TORUS_NO_NODE)
        return NULL;
    if ((n->f.up[port] == NULL || n->f.up[port]->link == NULL) &&
        n->f.connections < FIXTURE_CONNECTIONS)
        n->f.up[port] = fixture_connect(&n->f, port, torus_port_direction(port) > 0);
    return n->f.up[port] != NULL && n->f.up[port]->link != NULL ? n->f.up[port] : NULL;
}

static void send_all(struct node *n)
{
    for (unsigned i = 0; i < n->f.connections; i++)
        for (unsigned frames = 0; frames < 1000 && n->f.connection[i].link != NULL; frames++) {
            Peer__Head *head = fixture_next(&n->f.connection[i], NULL, 0, NULL);
            if (head == NULL)
                break;
            peer__head__free_unpacked(head, NULL);
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
    const struct exchange_client callback = {client, on_ended};
    client->exchange =
        exchange_start(n->exchanges, &spec[which % (sizeof spec / sizeof spec[0])], &callback, &e);
}

static void run_operation(struct node *n, struct input *in)
{
    uint8_t kind = input_byte(in);
    unsigned port = (kind >> 4) % torus_ports(&n->f.torus);
    struct fixture_connection *c = connection_at(n, port);
    uint8_t frame[FRAME_PREFIX_SIZE];
    char dims[TORUS_TEXT_SIZE];
    Peer__Hello hello;
    size_t length;
    const uint8_t *bytes;

    switch ((enum action)(kind % ACTIONS)) {
    case BYTES:
        length = input_word16(in);
        bytes = input_bytes(in, &length);
        if (c != NULL)
            fixture_feed(c, bytes, length);
        break;
    case FRAME: /* lengths of head and body, then both; the prefix is right */
        length = input_byte(in);
        size_t body = input_word16(in);
        bytes = input_bytes(in, &length);
        const uint8_t *body_bytes = input_bytes(in, &body);
        frame_prefix_write(frame, (uint32_t)length, (uint32_t)body);
        if (c != NULL)
            fixture_feed(c, frame, sizeof frame);
        if (c != NULL)
            fixture_feed(c, bytes, length);
        if (c != NULL)
            fixture_feed(c, body_bytes, body);
        break;
    case HELLO:
        fixture_hello(&n->f, port, &hello, dims);
        hello.boot = input_byte(in);
        if (c != NULL)
            fixture_say_hello(c, &hello);
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
        if (n->clients > 0 && n->client[port % n->clients].exchange != NULL) {
            exchange_cancel(n->client[port % n->clients].exchange);
            n->client[port % n->clients].exchange = NULL;
        }
        break;
    case CLOSE:
        if (c != NULL) {
            struct link *link = c->link;
            c->link = NULL;
            link_closed(link, "closed");
        }
        break;
    case ACTIONS:
        break;
    }
    tick(n);
    REQUIRE(exchanges_reserved(n->exchanges) <= BUDGET);
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
    pass(&n, 200 * DAY, 5);    /* and no deadline is farther away */
    size_t known = exchanges_list(n.exchanges, info, 100);
    REQUIRE(known < 100);
    for (size_t i = 0; i < known; i++)
        REQUIRE(info[i].state >= EXCHANGE_COMMITTED);
    REQUIRE(exchanges_reserved(n.exchanges) == 0);
    REQUIRE(n.open_folders == 0);
    for (unsigned i = 0; i < n.clients; i++)
        REQUIRE(n.client[i].exchange == NULL);
    exchanges_free(n.exchanges);
    n.exchanges = NULL;
    fixture_close(&n.f);
    return 0;
}
