#include <math.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "failing_memory.h"
#include "reducing_fixture.h"
#include "tests/support/cmocka.h"

static struct net *open_net; /* there is one at a time */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t any(struct net *net, uint64_t below)
{
    return mix(net->random += UINT64_C(0x9e3779b97f4a7c15)) % below;
}

uint64_t net_size(const struct net *net, uint32_t owner)
{
    uint64_t elements = net->how.elements;

    if (net->how.varied)
        elements = elements * (owner % 4) / 3;
    return elements * net->element;
}

/* --- vectors --- */

/* Floating-point numbers of so many magnitudes that the order of sums matters. */
static void make_element(const struct net *net, uint8_t *at, uint64_t bits)
{
    const double x = ldexp((double)(int32_t)bits, (int)(bits >> 58) - 32), doubles[2] = {x, -x / 3};
    const float floats[2] = {(float)x, (float)(-x / 3)};
    const bool is_double =
        net->how.type == REDUCTION_FLOAT64 || net->how.type == REDUCTION_COMPLEX128;
    const bool is_float =
        net->how.type == REDUCTION_FLOAT32 || net->how.type == REDUCTION_COMPLEX64;

    memcpy(at,
           is_double  ? (const void *)doubles
           : is_float ? (const void *)floats
                      : (const void *)&bits,
           net->element);
}

static void make_vectors(struct net *net, struct member *m)
{
    uint32_t nodes = net->torus.nodes;

    m->vector = calloc(nodes, sizeof *m->vector);
    m->result = calloc(nodes, sizeof *m->result);
    m->written = calloc(nodes, sizeof *m->written);
    m->read = calloc(nodes, sizeof *m->read);
    assert_true(m->vector && m->result && m->written && m->read);
    for (uint32_t owner = 0; owner < nodes; owner++) {
        uint64_t size = net_size(net, owner);
        m->vector[owner] = calloc(1, size + 1);
        m->result[owner] = calloc(1, size + 1);
        m->written[owner] = calloc(1, size + 1);
        assert_true(m->vector[owner] && m->result[owner] && m->written[owner]);
        for (uint64_t i = 0; i < size; i += net->element)
            make_element(net, m->vector[owner] + i,
                         mix(mix(owner * UINT64_C(1000003) + m->trees.rank) + i));
    }
}

static uint64_t source_size(struct source *s, uint32_t owner)
{
    const struct member *m =
        (const struct member *)(const void *)((const char *)s - offsetof(struct member, source));
    return net_size(m->net, owner);
}

static int source_read(struct source *s, uint32_t owner, uint64_t offset, uint32_t most,
                       struct extent *out, struct error *e)
{
    struct member *m = (struct member *)(void *)((char *)s - offsetof(struct member, source));
    struct net *net = m->net;

    assert_true(most > 0 && offset + most <= net_size(net, owner));
    if (m->trees.segments == 1)
        assert_true(offset == m->read[owner]); /* once, front to back */
    if (net->how.late && any(net, 3) == 0) {
        m->asked = true;
        return 0;
    }
    if (net->how.late)
        most = 1 + (uint32_t)any(net, most < 2000 ? most : 2000);
    most = most < SLAB_SIZE ? most : SLAB_SIZE;
    uint8_t *at = slab_writer_take(&m->source_writer, &m->f.pool, most, out);
    if (at == NULL)
        return error_set(e, ERROR_MEMORY, "source");
    memcpy(at, m->vector[owner] + offset, most);
    m->read[owner] += most;
    return 1;
}

static int sink_write(struct sink *s, uint32_t owner, uint64_t offset, const struct extent *piece,
                      struct error *e)
{
    struct member *m = (struct member *)(void *)((char *)s - offsetof(struct member, sink));

    assert_true(piece->length > 0 && piece->length % m->net->element == 0);
    assert_true(offset + piece->length <= net_size(m->net, owner));
    for (uint32_t i = 0; i < piece->length; i++) /* once */
        if (m->written[owner][offset + i])
            fail_msg("byte %u of the block for node %u is written again", (unsigned)(offset + i),
                     owner);
    assert_true(m->trees.segments > 1 || offset == 0 || m->written[owner][offset - 1]);
    memset(m->written[owner] + offset, true, piece->length);
    memcpy(m->result[owner] + offset, piece->data, piece->length);
    return 0;
}

static uint64_t sink_pending(struct sink *s)
{
    return ((struct member *)(void *)((char *)s - offsetof(struct member, sink)))->full;
}

/* --- opening --- */

/* Where a member and its ports are, if the torus is a part of another one. */
static uint32_t whole_rank(const struct net *net, uint32_t rank)
{
    return net->how.whole != NULL ? net->torus.nodes + rank : rank;
}

static unsigned whole_port(const struct net *net, unsigned port)
{
    return net->how.whole != NULL ? port + 2 : port;
}

static int build_trees(struct reduction_trees *trees, const struct net *net, uint32_t rank,
                       struct error *e)
{
    const struct how *how = &net->how;
    const struct algorithm *a =
        how->algorithm != NULL ? algorithm_find(how->algorithm) : how->other;

    if (a == NULL)
        return reduction_build_single(trees, &net->torus, how->root, rank, e);
    return how->rooted ? reduction_build_rooted(trees, &net->torus, a, how->root, rank, e)
                       : reduction_build(trees, &net->torus, a, rank, e);
}

static void open_member(struct net *net, uint32_t rank)
{
    static const struct source_ops source_ops = {.size = source_size, .read = source_read};
    static const struct sink_ops sink_ops = {.write = sink_write, .pending = sink_pending};
    const struct how *how = &net->how;
    struct member *m = &net->member[rank];
    struct error e;

    m->net = net;
    fixture_open(&m->f, how->whole != NULL ? how->whole : how->dims, whole_rank(net, rank), NULL);
    m->source.ops = &source_ops;
    m->sink.ops = &sink_ops;
    assert_success(build_trees(&m->trees, net, rank, &e), e);
    make_vectors(net, m);
    m->part.torus = net->torus;
    for (unsigned port = 0; port < torus_ports(&net->torus); port++)
        m->part.port[port] = (uint8_t)whole_port(net, port);
    uint64_t whole = how->per_round > 0 ? how->per_round : how->elements;
    m->setup = (struct engine_setup){.router = m->f.router,
                                     .handle = NET_HANDLE,
                                     .part = how->whole != NULL ? &m->part : NULL,
                                     .call = how->call,
                                     .source = &m->source,
                                     .sink = &m->sink,
                                     .round_bytes = (uint32_t)(whole * net->element),
                                     .segments = m->trees.segments,
                                     .window = how->window > 0 ? how->window : 1};
    memory_counts_here(true);
    m->engine = reducing_new(&m->setup, &m->trees, &net->options, &e);
    memory_counts_here(false);
    if (m->engine == NULL && e.code != ERROR_MEMORY)
        fail_msg("%s", e.text);
}

struct net *net_open(const struct how *how, uint64_t seed)
{
    struct net *net = calloc(1, sizeof *net);

    assert_non_null(net);
    open_net = net;
    net->how = *how;
    net->random = seed;
    net->element = reduction_size(how->type);
    net->options = (struct reducing_options){.type = how->type,
                                             .operation = how->operation,
                                             .everywhere = how->everywhere,
                                             .unchecked = how->unchecked};
    assert_int_equal(torus_parse(&net->torus, how->dims, NULL), 0);
    net->options.members = net->torus.nodes;
    net->rounds = how->per_round > 0 ? (how->elements + how->per_round - 1) / how->per_round : 1;
    net->member = calloc(net->torus.nodes, sizeof *net->member);
    assert_non_null(net->member);
    for (uint32_t rank = 0; rank < net->torus.nodes; rank++)
        open_member(net, rank);
    return net;
}

static void free_packet(struct packet *p)
{
    message_forget(p->head);
    free(p->body);
    free(p);
}

static struct packet *take_packet(struct member *m, unsigned port)
{
    struct packet *p = m->first[port];

    if (p != NULL)
        m->first[port] = p->next;
    return p;
}

static void close_member(struct net *net, struct member *m)
{
    struct packet *p;

    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        while ((p = take_packet(m, port)) != NULL)
            free_packet(p);
    engine_free(m->engine);
    slab_writer_close(&m->source_writer);
    slab_writer_close(&m->writer);
    reduction_free(&m->trees);
    for (uint32_t owner = 0; owner < net->torus.nodes; owner++) {
        free(m->vector[owner]);
        free(m->result[owner]);
        free(m->written[owner]);
    }
    free(m->vector);
    free(m->result);
    free(m->written);
    free(m->read);
    fixture_close(&m->f);
}

void net_close(struct net *net)
{
    for (uint32_t rank = 0; rank < net->torus.nodes; rank++)
        close_member(net, &net->member[rank]);
    free(net->member);
    free(net);
    open_net = NULL;
}

/* --- events --- */

void __wrap_router_wake(struct router *r, unsigned port);
void __wrap_router_wake(struct router *r, unsigned port)
{
    for (uint32_t rank = 0; open_net != NULL && rank < open_net->torus.nodes; rank++)
        if (open_net->member[rank].f.router == r)
            open_net->member[rank].awake[port - whole_port(open_net, 0)] = true;
}

static void damage(struct net *net, struct packet *p, uint32_t rank, unsigned port)
{
    if (++net->packets != net->damage)
        return;
    net->damaged_at = rank;
    net->damaged_port = port;
    if (any(net, 8) == 0)
        ((uint32_t *)(uintptr_t)p->head->streamed_data.pieces)[0] ^= 1u << any(net, 3);
    else
        p->body[any(net, p->length)] ^= (uint8_t)(1u << any(net, 8));
}

static bool send_next(struct net *net, uint32_t rank, unsigned port)
{
    struct member *m = &net->member[rank];
    struct outgoing *frame = NULL;
    struct frame_prefix prefix;
    struct extent_cursor cursor = {0};
    struct extent run;

    memory_counts_here(true);
    if (m->awake[port])
        frame = engine_next(m->engine, port);
    memory_counts_here(false);
    if (frame == NULL) {
        bool was_awake = m->awake[port];
        m->awake[port] = false;
        return was_awake; /* perhaps the source had no bytes: then it must call wake now */
    }
    uint32_t to = torus_neighbour(&net->torus, rank, port), at = 0;
    unsigned there = torus_port_opposite(&net->torus, port);
    struct packet *p = calloc(1, sizeof *p);
    assert_true(to != TORUS_NO_NODE && p != NULL);
    assert_int_equal(frame_prefix_read(frame->head, FRAME_MAX_HEAD, FRAME_MAX_BODY, &prefix, NULL),
                     0);
    p->head = message_read(frame->head + FRAME_PREFIX_SIZE, prefix.head);
    p->length = prefix.body;
    p->body = malloc(p->length + 1);
    assert_true(p->head != NULL && p->body != NULL);
    assert_int_equal(p->length, frame->body_length);
    assert_true(frame->body.count <= OUTGOING_MAX_EXTENTS);
    for (; extents_take(&frame->body, &cursor, UINT32_MAX, &run) > 0; at += run.length)
        memcpy(p->body + at, run.data, run.length);
    assert_int_equal(at, p->length);
    outgoing_free(router_outgoing(m->f.router), frame);
    net->bodies += p->length;
    damage(net, p, to, there);
    if (net->member[to].first[there] == NULL)
        net->member[to].first[there] = p;
    else
        net->member[to].last[there]->next = p;
    net->member[to].last[there] = p;
    return true;
}

int net_feed(struct net *net, uint32_t rank, unsigned port, const struct peer_message *head,
             const uint8_t *body, uint32_t length, struct error *e)
{
    struct member *m = &net->member[rank];
    struct extents extents = {0};

    for (uint32_t at = 0; at < length;) { /* in runs of any length, at odd places */
        uint32_t n = any(net, 4) > 0 ? length - at : 1 + (uint32_t)any(net, length - at);
        struct extent gap, run;
        assert_non_null(slab_writer_take(&m->writer, &m->f.pool, 1 + (uint32_t)any(net, 9), &gap));
        uint8_t *to = slab_writer_take(&m->writer, &m->f.pool, n, &run);
        assert_non_null(to);
        memcpy(to, body + at, n);
        assert_int_equal(extents_add(&extents, run.slab, run.data, n), 0);
        slab_unref(gap.slab);
        slab_unref(run.slab);
        at += n;
    }
    memory_counts_here(true);
    int result = engine_frame(m->engine, port, head, &extents, length, e);
    memory_counts_here(false);
    extents_free(&extents);
    return result;
}

static bool deliver(struct net *net, uint32_t rank, unsigned port)
{
    struct member *m = &net->member[rank];
    struct packet *p = m->deaf ? NULL : take_packet(m, port);
    struct error e;

    if (p == NULL)
        return false;
    if (net_feed(net, rank, port, p->head, p->body, p->length, &e) != 0)
        fail_msg("node %u refused a frame: %s", rank, e.text);
    free_packet(p);
    return true;
}

/* As far as the window allows. */
static bool admit(struct net *net, uint32_t rank)
{
    struct member *m = &net->member[rank];
    uint64_t slowest = UINT64_MAX;

    for (uint32_t i = 0; i < net->torus.nodes; i++)
        if (net->member[i].engine->rounds_finished < slowest)
            slowest = net->member[i].engine->rounds_finished;
    if (m->admitted == net->rounds || m->admitted >= slowest + m->setup.window)
        return false;
    memory_counts_here(true);
    engine_admit(m->engine, m->admitted++);
    memory_counts_here(false);
    return true;
}

static bool wake(struct net *net, uint32_t rank)
{
    struct member *m = &net->member[rank];

    if (!m->asked)
        return false;
    m->asked = false;
    memory_counts_here(true);
    engine_wake(m->engine);
    memory_counts_here(false);
    return true;
}

static bool try_event(struct net *net, uint64_t event)
{
    unsigned ports = torus_ports(&net->torus);
    uint32_t rank = (uint32_t)(event % net->torus.nodes);
    uint64_t kind = event / net->torus.nodes;

    if (kind < ports)
        return send_next(net, rank, (unsigned)kind);
    if (kind < 2 * ports)
        return deliver(net, rank, (unsigned)kind - ports);
    return kind == 2 * ports ? admit(net, rank) : wake(net, rank);
}

void net_run(struct net *net)
{
    uint64_t events = (uint64_t)net->torus.nodes * (2 * torus_ports(&net->torus) + 2), idle = 0;

    while (idle < events) {
        uint64_t event = any(net, events);
        for (idle = 0; idle < events && !try_event(net, (event + idle) % events);)
            idle++;
    }
}

/* The expected results of reductions, for reducing_fixture.h. */

/* The vector that a node passes on in the tree of one segment, as if the segment were the whole block. */
static void reduce(const struct net *net, uint32_t node, uint32_t index, uint32_t owner,
                   uint8_t *into)
{
    const struct member *m = &net->member[node];
    const struct reduction_tree *tree = &m->trees.tree[index];
    uint64_t size = net_size(net, owner);
    uint8_t *part = malloc(size + 1);

    assert_non_null(part);
    memcpy(into, m->vector[owner], size);
    for (uint32_t i = tree->first; i < tree->first + tree->children; i++) {
        unsigned port = m->trees.child[i].port;
        reduce(net, torus_neighbour(&net->torus, node, port), index, owner, part);
        for (uint64_t at = 0; at < size; at += net->element)
            reduction_combine(net->how.type, net->how.operation, into + at, part + at, 1);
    }
    free(part);
}

/* The segment that an element belongs to. */
static uint32_t segment_of(const struct net *net, uint32_t owner, uint64_t element)
{
    uint64_t elements = net_size(net, owner) / net->element;
    uint64_t round = net->how.per_round > 0 ? net->how.per_round : elements;
    uint64_t first = element / round * round, segments = net->member[0].trees.segments;
    uint64_t here = elements - first < round ? elements - first : round;

    return (uint32_t)((element - first) / ((here + segments - 1) / segments));
}

static void check_result(const struct net *net, const struct member *m, uint32_t owner, bool has,
                         bool whole, uint8_t *const *segment)
{
    for (uint64_t i = 0; i < net_size(net, owner); i += net->element) {
        bool written = m->written[owner][i] != 0; /* elements are not split */
        bool right = !written || memcmp(m->result[owner] + i,
                                        segment[segment_of(net, owner, i / net->element)] + i,
                                        net->element) == 0;
        if ((has && whole && !written) || (!has && written) || !right)
            fail_msg("byte %u of the block for node %u is %s", (unsigned)i, owner,
                     !right    ? "wrong"
                     : written ? "written where it is not known"
                               : "missing");
    }
}

static void check_results(const struct net *net, bool whole)
{
    uint32_t segments = net->member[0].trees.segments;
    uint8_t **segment = calloc(segments, sizeof *segment);

    assert_non_null(segment);
    for (uint32_t i = 0; i < net->member[0].trees.count; i += segments) {
        uint32_t owner = net->member[0].trees.tree[i].owner;
        for (uint32_t j = 0; j < segments; j++) {
            segment[j] = malloc(net_size(net, owner) + 1);
            assert_non_null(segment[j]);
            reduce(net, owner, i + j, owner, segment[j]);
            reduction_finish(net->how.type, net->how.operation, segment[j],
                             net_size(net, owner) / net->element, net->torus.nodes);
        }
        for (uint32_t rank = 0; rank < net->torus.nodes; rank++)
            check_result(net, &net->member[rank], owner, rank == owner || net->how.everywhere,
                         whole, segment);
        for (uint32_t j = 0; j < segments; j++)
            free(segment[j]);
    }
    free(segment);
}

void net_check(const struct net *net)
{
    for (uint32_t rank = 0; rank < net->torus.nodes; rank++) {
        const struct engine *engine = net->member[rank].engine;
        char text[200];
        engine_describe(engine, text, sizeof text);
        if (engine_failed(engine) != NULL)
            fail_msg("node %u: %s", rank, engine_failed(engine)->text);
        if (engine->rounds_finished != net->rounds)
            fail_msg("node %u has finished %u rounds of %u: %s", rank,
                     (unsigned)engine->rounds_finished, (unsigned)net->rounds, text);
        assert_string_equal(text, "all sent and received");
    }
    check_results(net, true);
}

bool net_check_part(const struct net *net)
{
    bool failed = false;

    for (uint32_t rank = 0; rank < net->torus.nodes; rank++)
        failed = failed || net->member[rank].engine == NULL ||
                 engine_failed(net->member[rank].engine) != NULL;
    check_results(net, false);
    return failed;
}
