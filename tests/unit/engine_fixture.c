#include "engine_fixture.h"

#include "tests/support/cmocka.h"

static struct plan_block blocks[] = {
    {.source = 1, .destination = 2, .slot = PLAN_NO_SLOT},
    {.source = 0, .destination = 1, .slot = PLAN_NO_SLOT},
    {.source = 0, .destination = 2, .slot = 0},
    {.source = 0, .destination = 2, .slot = 0},
    {.source = 2, .destination = 1, .slot = PLAN_NO_SLOT},
};
static struct plan_message sent[] = {
    {.step = 0, .blocks = 1, .first = 0, .hops = 1, .left = 1, .port = PLUS},
    {.step = 1, .blocks = 1, .first = 3, .hops = 1, .left = 1, .port = PLUS},
};
static struct plan_message arrivals[] = {
    {.step = 0, .blocks = 1, .hops = 2, .left = 1, .port = PLUS},
    {.step = 0, .blocks = 2, .first = 1, .hops = 1, .left = 0, .port = MINUS},
    {.step = 1, .blocks = 1, .first = 4, .hops = 1, .left = 0, .port = PLUS},
};
const struct plan engine_fixture_plan = {
    .rank = 1,
    .steps = 2,
    .sends = 2,
    .send = sent,
    .arrivals = 3,
    .arrival = arrivals,
    .blocks = 5,
    .block = blocks,
    .slots = 1,
    .peak_transit = 1,
};

uint8_t letter(uint32_t source, uint32_t destination, uint64_t offset)
{
    uint8_t small = (uint8_t)('a' + (3 * source + destination) % 26);
    return offset % 2 == 0 ? small : (uint8_t)(small - 'a' + 'A');
}

uint64_t letters(char *out, uint32_t source, uint32_t destination, uint64_t begin, uint32_t length)
{
    const struct block_piece piece = {source, destination, begin, length};
    const struct extent bytes = {.data = (const uint8_t *)out, .length = length};
    struct piece_states none = {0};
    struct piece_mark mark = {0};

    for (uint32_t i = 0; i < length; i++)
        out[i] = (char)letter(source, destination, begin + i);
    out[length] = '\0';
    assert_int_equal(piece_pass(&none, &mark, &piece, 0, &bytes), 0);
    return mark.digest;
}

static uint64_t source_size(struct source *s, uint32_t destination)
{
    return ((struct test_source *)s)->size[destination];
}

static int source_read(struct source *base, uint32_t destination, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    struct test_source *s = (struct test_source *)base;

    if (s->failing)
        return error_set(e, SOURCE_FAILS, "source");
    if (s->naps > 0) {
        s->naps--;
        return 0;
    }
    if (s->asleep || s->asleep_for == destination || s->sleeps_soon == 0)
        return 0;
    assert_true(most > 0 && offset + most <= s->size[destination]);
    most = most > 3 && s->size[destination] < 100 ? 3 : most; /* small blocks in small pieces */
    if (s->sleeps_soon != UINT32_MAX) {
        most = most < s->sleeps_soon ? most : s->sleeps_soon;
        s->sleeps_soon -= most;
    }
    uint8_t *at = slab_writer_take(&s->writer, s->pool, most, out);
    if (at == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    for (uint64_t i = offset; i < offset + most; i++) {
        assert_false(s->read[destination][i]); /* once */
        assert_true(!s->in_order || i == 0 || s->read[destination][i - 1]);
        s->read[destination][i] = true;
        *at++ = letter(s->rank, destination, i);
    }
    return 1;
}

static int sink_write(struct sink *base, uint32_t origin, uint64_t offset,
                      const struct extent *piece, struct error *e)
{
    struct test_sink *s = (struct test_sink *)base;

    if (s->failing)
        return error_set(e, SINK_FAILS, "sink");
    if (s->damaged)
        return error_set(e, ERROR_DAMAGED, "damaged");
    s->writes[origin]++;
    if (s->careless)
        return 0;
    for (uint32_t i = 0; i < piece->length; i++) {
        uint64_t at = offset + i;
        assert_in_range(at, 0, BLOCK_MOST - 1);
        assert_int_equal(piece->data[i], letter(origin, s->rank, at));
        assert_false(s->got[origin][at]);
        assert_true(!s->in_order || at == 0 || s->got[origin][at - 1]);
        s->got[origin][at] = true;
    }
    s->bytes[origin] += piece->length;
    return 0;
}

static uint64_t sink_pending(struct sink *base)
{
    return ((struct test_sink *)base)->pending;
}

static int on_frame(void *context, unsigned port, const struct peer_message *head,
                    const struct extents *body, uint32_t body_length, struct error *e)
{
    struct node *node = context;
    return engine_frame(node->engine, port, head, body, body_length, e);
}

static struct outgoing *on_next(void *context, unsigned port)
{
    struct node *node = context;
    return node->engine != NULL ? engine_next(node->engine, port) : NULL;
}

static void on_places(void *context, unsigned port, const struct peer_message *head,
                      uint32_t body_length, uint32_t offset, struct places *places)
{
    struct node *node = context;

    places->count = 0;
    if (node->engine != NULL)
        engine_places(node->engine, port, head, body_length, offset, places);
}

static void on_topology(void *context)
{
}

struct node *node_open(const char *dims, uint32_t rank, uint64_t block)
{
    static const struct source_ops source_ops = {.size = source_size, .read = source_read};
    static const struct sink_ops sink_ops = {.write = sink_write, .pending = sink_pending};
    static struct node node; /* large */
    const struct router_handler handler = {&node,     on_frame,    on_next, NULL,
                                           on_places, on_topology, NULL};

    memset(&node, 0, sizeof node);
    fixture_open(&node.f, dims, rank, &handler);
    assert_in_range(node.f.torus.nodes, 1, NODES_MOST);
    node.source.base.ops = &source_ops;
    node.source.pool = &node.f.pool;
    node.source.rank = node.sink.rank = rank;
    node.source.asleep_for = NODES_MOST;
    node.source.sleeps_soon = UINT32_MAX;
    node.source.in_order = node.sink.in_order = true;
    for (uint32_t i = 0; i < node.f.torus.nodes; i++)
        node.source.size[i] = block;
    node.sink.base.ops = &sink_ops;
    node.setup = (struct engine_setup){
        .router = node.f.router,
        .handle = HANDLE,
        .source = &node.source.base,
        .sink = &node.sink.base,
        .uniform = true,
        .block_bytes = block,
        .round_bytes = (uint32_t)block,
        .segments = 1,
        .window = 1,
    };
    return &node;
}

void node_connect(struct node *node)
{
    const struct torus *t = &node->f.torus;

    for (unsigned port = 0; port < torus_ports(t); port++)
        if (torus_neighbour(t, node->f.rank, port) != TORUS_NO_NODE)
            fixture_link_up(&node->f, port);
}

void node_close(struct node *node)
{
    engine_free(node->engine);
    node->engine = NULL;
    slab_writer_close(&node->source.writer);
    fixture_close(&node->f);
}

void send_head(struct node *node, unsigned port, const struct peer_message *head, const char *body)
{
    fixture_say(node->f.up[port], head, body, (uint32_t)strlen(body));
}

void send_frame(struct node *node, const struct frame *frame)
{
    const struct peer_message stepped = {.kind = PEER_STEPPED_DATA,
                                         .stepped_data = {.exchange = HANDLE,
                                                          .round = frame->round,
                                                          .step = frame->step,
                                                          .hops = frame->hops,
                                                          .left = frame->left,
                                                          .n_sizes = frame->sizes,
                                                          .n_digests = frame->digests,
                                                          .sizes = frame->size,
                                                          .digests = frame->digest}};
    const struct peer_message streamed = {.kind = PEER_STREAMED_DATA,
                                          .streamed_data = {.exchange = HANDLE,
                                                            .round = frame->round,
                                                            .n_pieces = frame->pieces,
                                                            .n_sizes = frame->sizes,
                                                            .n_digests = frame->digests,
                                                            .pieces = frame->piece,
                                                            .sizes = frame->size,
                                                            .digests = frame->digest}};

    send_head(node, frame->port, frame->streamed ? &streamed : &stepped, frame->body);
}

struct frame frame_of(unsigned port, const char *text)
{
    struct frame frame = {.port = port, .streamed = true};
    const char *end;

    for (; (end = strchr(text, ' ')) != NULL; text = end + 1) {
        uint32_t *const number = *text == 'r'   ? &frame.round
                                 : *text == 's' ? &frame.step
                                 : *text == 'h' ? &frame.hops
                                 : *text == 'l' ? &frame.left
                                 : *text == '=' ? &frame.size[frame.sizes++]
                                                : &frame.piece[frame.pieces++];
        char *after;
        frame.streamed = frame.streamed && strchr("shl", *text) == NULL;
        *number = (uint32_t)strtoul(text + (strchr("rshl=", *text) != NULL), &after, 10);
        if (*after == '=')
            frame.size[frame.sizes++] = (uint32_t)strtoul(after + 1, &after, 10);
        assert_ptr_equal(after, end);
    }
    frame.body = strcmp(text, "-") == 0 ? "" : text;
    return frame;
}

const char *in_round(uint32_t round, const char *text)
{
    static char texts[8][80];
    static unsigned last;
    char *out = texts[last++ % 8];

    assert_in_range(snprintf(out, sizeof texts[0], "r%u %s", round, text), 1, 79);
    return out;
}

void sends(struct node *node, unsigned port, const char *text)
{
    const struct frame frame = frame_of(port, text);

    accepts(node, &frame);
}

void expect(struct node *node, unsigned port, const char *text)
{
    const struct frame frame = frame_of(port, text != NULL ? text : "");

    expect_frame(node, port, text != NULL ? &frame : NULL);
}

void refused(struct node *node, const struct frame *frame, const char *reason)
{
    send_frame(node, frame);
    assert_null(node->f.up[frame->port]->link);
    assert_contains(node->f.up[frame->port]->last, reason);
    assert_null(engine_failed(node->engine));
}

void sends_bad(struct node *node, unsigned port, const char *text, const char *reason)
{
    const struct frame frame = frame_of(port, text);

    refused(node, &frame, reason);
}

void expect_described(const struct node *node, const char *text)
{
    char described[100];

    engine_describe(node->engine, described, sizeof described);
    assert_string_equal(described, text);
}

void accepts(struct node *node, const struct frame *frame)
{
    send_frame(node, frame);
    if (node->f.up[frame->port]->link == NULL)
        fail_msg("refused: %s", node->f.up[frame->port]->last);
}

struct peer_message *next_data(struct node *node, unsigned port, uint8_t *body, uint32_t *length)
{
    struct peer_message *head = fixture_next(node->f.up[port], body, BODY_MOST, length);

    while (head != NULL && head->kind == PEER_LINK_STATE) {
        message_forget(head);
        head = fixture_next(node->f.up[port], body, BODY_MOST, length);
    }
    if (head != NULL) {
        struct engine_data data = {0};
        assert_true(engine_data(head, &data));
        assert_int_equal(data.exchange, HANDLE);
    }
    return head;
}

static void check_stepped(const struct peer_message *head, const struct frame *expected)
{
    const struct peer_stepped_data *data = &head->stepped_data;

    assert_int_equal(head->kind, PEER_STEPPED_DATA);
    assert_int_equal(data->round, expected->round);
    assert_int_equal(data->step, expected->step);
    assert_int_equal(data->hops, expected->hops);
    assert_int_equal(data->left, expected->left);
    assert_int_equal(data->n_sizes, expected->sizes);
    assert_memory_equal(data->sizes, expected->size, expected->sizes * sizeof data->sizes[0]);
    assert_int_equal(data->n_digests, expected->digests);
    assert_memory_equal(data->digests, expected->digest,
                        expected->digests * sizeof data->digests[0]);
}

static void check_streamed(const struct peer_message *head, const struct frame *expected)
{
    const struct peer_streamed_data *data = &head->streamed_data;

    assert_int_equal(head->kind, PEER_STREAMED_DATA);
    assert_int_equal(data->round, expected->round);
    assert_int_equal(data->n_pieces, expected->pieces);
    assert_memory_equal(data->pieces, expected->piece, expected->pieces * sizeof data->pieces[0]);
    assert_int_equal(data->n_sizes, expected->sizes);
    assert_memory_equal(data->sizes, expected->size, expected->sizes * sizeof data->sizes[0]);
    assert_int_equal(data->n_digests, expected->digests);
    assert_memory_equal(data->digests, expected->digest,
                        expected->digests * sizeof data->digests[0]);
}

void expect_frame(struct node *node, unsigned port, const struct frame *expected)
{
    static uint8_t body[BODY_MOST];
    uint32_t length;
    struct peer_message *head = next_data(node, port, body, &length);

    if (expected == NULL) {
        assert_null(head);
        return;
    }
    assert_non_null(head);
    if (expected->streamed)
        check_streamed(head, expected);
    else
        check_stepped(head, expected);
    assert_int_equal(length, strlen(expected->body));
    assert_memory_equal(body, expected->body, length);
    message_forget(head);
}

void node_drain(struct node *node, unsigned port)
{
    static uint8_t body[BODY_MOST];
    uint32_t length;
    struct peer_message *head;

    while ((head = next_data(node, port, body, &length)) != NULL)
        message_forget(head);
}
