/* Inputs of fuzz_peer: operations, many of which are frames of a neighbour. */
#include <string.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/passages.h"
#include "daemon/lib/schedule/plan.h"
#include "daemon/lib/schedule/tree.h"
#include "proto/sha256.h"
#include "proto/spec.pb-c.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/seeds.h"
#include "tests/unit/message_bytes.h"

static FILE *out;

static void put16(uint32_t v)
{
    (void)fputc((int)(v >> 8 & 0xff), out);
    (void)fputc((int)(v & 0xff), out);
}

/* --- operations of fuzz_peer --- */

enum action { BYTES, FRAME, HELLO, TIME, SEND, START, CANCEL, CLOSE };

static void operation(enum action kind, unsigned port)
{
    (void)fputc((int)(port << 4 | (unsigned)kind), out);
}

static void hello(unsigned port)
{
    operation(HELLO, port);
    (void)fputc(1, out);
}

static void frame(unsigned port, const struct peer_message *message, const char *body)
{
    uint8_t bytes[255];
    size_t length = message_write(message, bytes, sizeof bytes);

    REQUIRE(length > 0);
    operation(FRAME, port);
    (void)fputc((int)length, out);
    put16((uint32_t)strlen(body));
    (void)fwrite(bytes, 1, length, out);
    (void)fputs(body, out);
}

/* A frame with a message of this kind and these fields. */
#define FRAME_OF(port, named, member, ...)                                                         \
    frame(port, &(struct peer_message){.kind = (named), .member = {__VA_ARGS__}}, "")

#define HANDLE 9
#define ID "0-00000000-4"

/* Streaming if there is a window; a schedule from a file if there is a digest. */
static void prepare_any(unsigned port, const char *dims, const char *algorithm, const char *digest,
                        const char *to, uint64_t block, uint32_t window)
{
    Torus__Spec spec = TORUS__SPEC__INIT;

    spec.algorithm = (char *)(uintptr_t)algorithm;
    spec.schedule = (char *)(uintptr_t)digest;
    spec.mode = (char *)(uintptr_t)(window > 0 ? "streaming" : "stepped");
    spec.from = (char *)(uintptr_t)(to[0] != '\0' ? "/in" : "");
    spec.to = (char *)(uintptr_t)to;
    spec.block_bytes = block;
    spec.timeout_ms = 1000;
    const struct peer_message message = {.kind = PEER_PREPARE,
                                         .prepare = {.exchange = HANDLE,
                                                     .id = ID,
                                                     .dims = dims,
                                                     .spec = &spec,
                                                     .round_bytes = 10,
                                                     .window = window > 0 ? window : 1}};
    frame(port, &message, "");
}

static void prepare_window(unsigned port, const char *dims, const char *algorithm, const char *to,
                           uint64_t block, uint32_t window)
{
    prepare_any(port, dims, algorithm, "", to, block, window);
}

static void prepare(unsigned port, const char *dims, const char *algorithm, const char *to,
                    uint64_t block)
{
    prepare_window(port, dims, algorithm, to, block, 0);
}

/* The port at which messages of root 0 arrive. */
static unsigned parent(const char *dims, uint32_t rank)
{
    struct torus t;
    struct tree_node tree;

    REQUIRE(torus_parse(&t, dims, NULL) == 0);
    tree_node(&t, 0, rank, &tree);
    return (unsigned)tree.parent;
}

static void data(unsigned port, uint32_t step, uint32_t hops, uint32_t left, size_t sizes,
                 const char *body)
{
    const uint32_t size[] = {(uint32_t)strlen(body), 0, 0, 0};
    const struct peer_message message = {.kind = PEER_STEPPED_DATA,
                                         .stepped_data = {.exchange = HANDLE,
                                                          .step = step,
                                                          .hops = hops,
                                                          .left = left,
                                                          .n_sizes = sizes,
                                                          .sizes = size}};

    frame(port, &message, body);
}

/* All messages that the plan of `rank` expects, with empty blocks. */
static void all_arrivals(const char *dims, const char *algorithm, uint32_t rank, bool sizes)
{
    struct torus t;
    struct plan plan;

    REQUIRE(torus_parse(&t, dims, NULL) == 0);
    REQUIRE(plan_build(&plan, &t, algorithm_find(algorithm), rank, NULL) == 0);
    for (uint32_t i = 0; i < plan.arrivals; i++) {
        const struct plan_message *m = &plan.arrival[i];
        data(m->port, m->step, m->hops, m->left, sizes ? m->blocks : 0, "");
        operation(SEND, 0);
    }
    plan_free(&plan);
}

#define PIECES_A_FRAME 10u /* leaves room for a head and a body */

/* All pieces that cross the channels to `rank` in a streaming round, each of `bytes` bytes; the last piece of a
 * frame comes in two parts. */
static void all_pieces(const char *dims, const char *algorithm, uint32_t rank, uint32_t round,
                       bool sizes, uint32_t bytes)
{
    struct torus t;
    struct passages passages;
    char body[PIECES_A_FRAME * 256] = "";

    REQUIRE(bytes > 0 && bytes < 256);
    REQUIRE(torus_parse(&t, dims, NULL) == 0);
    REQUIRE(passages_build(&passages, &t, algorithm_find(algorithm), rank, TORUS_NO_NODE, NULL) ==
            0);
    for (unsigned port = 0; port < torus_ports(&t); port++) {
        for (uint32_t i = 0; i < passages.arrivals[port]; i += PIECES_A_FRAME) {
            uint32_t left = passages.arrivals[port] - i, piece[PIECES_A_FRAME],
                     size[PIECES_A_FRAME], pieces = left < PIECES_A_FRAME ? left : PIECES_A_FRAME;
            struct peer_message message = {.kind = PEER_STREAMED_DATA,
                                           .streamed_data = {.exchange = HANDLE,
                                                             .round = round,
                                                             .n_pieces = pieces,
                                                             .n_sizes = sizes ? pieces : 0,
                                                             .pieces = piece,
                                                             .sizes = size}};
            for (uint32_t k = 0; k < pieces; k++) {
                piece[k] = i + k;
                size[k] = bytes;
            }
            memset(body, 'b', sizeof body);
            body[pieces * bytes - 1] = '\0';
            frame(port, &message, body);
            message.streamed_data.pieces = &piece[pieces - 1];
            message.streamed_data.n_pieces = 1;
            message.streamed_data.n_sizes = 0;
            frame(port, &message, "b");
        }
        operation(SEND, 0);
    }
    passages_free(&passages);
}

/* The routes of a schedule, in parts that fit into a frame of fuzz_peer. */
static void schedule_parts(unsigned port, const char *digest, const char *text)
{
    const size_t length = strlen(text), most = 100;

    for (size_t at = 0; at < length; at += most) {
        const struct peer_bytes part = {(const uint8_t *)text + at,
                                        length - at < most ? length - at : most};
        const struct peer_message message = {
            .kind = PEER_SCHEDULE_PART,
            .schedule_part = {
                .digest = digest, .total = (uint32_t)length, .offset = (uint32_t)at, .part = part}};
        frame(port, &message, "");
    }
}

/* A survey of another node, and the answer of a third one to it. */
static void survey(unsigned port, uint32_t initiator, uint32_t node)
{
    const struct peer_message messages[] = {
        {.kind = PEER_SURVEY_QUERY, .survey_query = {.initiator = initiator, .id = 7, .left = 3}},
        {.kind = PEER_SURVEY_ANSWER,
         .survey_answer = {.initiator = initiator,
                           .id = 7,
                           .node = node,
                           .parts = 1,
                           .bytes = {(const uint8_t *)"abc", 3},
                           .left = 3}}};

    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        frame(port, &messages[i], "");
}

/* Another node calls all nodes to copy /a to /b, and then says that it has given up. */
static void copy_calls(unsigned port, uint32_t initiator)
{
    static const uint8_t request[] = {8, 1, 16, 0, 26, 2, '/', 'a', 34, 2, '/', 'b'};
    const struct peer_message messages[] = {
        {.kind = PEER_COPY_CALL, .copy_call = {initiator, 8, 1, 1, {request, sizeof request}, 3}},
        {.kind = PEER_COPY_REFUSAL, .copy_refusal = {initiator, 8, 1, 2, ERROR_BUSY, "busy", 3}},
        {.kind = PEER_COPY_CALL, .copy_call = {initiator, 8, 1, 2, {NULL, 0}, 3}}};

    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++)
        frame(port, &messages[i], "");
}

/* The neighbour reports that all links of all nodes are up, so that an exchange can start. */
static void link_states(unsigned port, uint32_t neighbour, uint32_t nodes, uint32_t up)
{
    struct peer_link_state_entry entry[16];
    const struct peer_message message = {.kind = PEER_LINK_STATE, .link_state = {nodes, entry}};

    for (uint32_t rank = 0; rank < nodes; rank++)
        entry[rank] = (struct peer_link_state_entry){
            .rank = rank, .hops = rank == neighbour ? 0 : 2, .up = up};
    frame(port, &message, "");
}

enum { TORUS_2X2, TORUS_3, TORUS_2M, TORUS_4X4 };

static int node(int torus, int rank)
{
    return torus + 4 * rank;
}

/* --- the seeds --- */

/* Node 1 of two: the whole life of an exchange with folders. */
static void commit_seed(void)
{
    hello(1);
    prepare(1, "2m", "direct", "/out", 0);
    operation(SEND, 0);
    FRAME_OF(1, PEER_GO, go, .exchange = HANDLE, .rounds = 1);
    operation(SEND, 0);
    data(1, 0, 1, 0, 1, "abcdefg");
    FRAME_OF(1, PEER_COMMIT, commit, .exchange = HANDLE);
    operation(SEND, 0);
}

/* Node 1 of a ring of three: answers a survey of node 0, and passes it on. */
static void survey_seed(void)
{
    hello(0);
    hello(1);
    survey(1, 0, 2);
    operation(SEND, 0);
    survey(0, 1, 2);
    operation(SEND, 0);
}

/* Node 1 of a ring of three: takes part in copies that nodes 0 and 2 were asked for. */
static void copy_seed(void)
{
    hello(0);
    hello(1);
    copy_calls(1, 0);
    operation(SEND, 0);
    copy_calls(0, 2);
    operation(SEND, 0);
}

static void abort_seed(void)
{
    hello(1);
    prepare(1, "2m", "direct", "", 0);
    FRAME_OF(1, PEER_GO, go, .exchange = HANDLE, .rounds = 1);
    FRAME_OF(1, PEER_ABORT, abort, .exchange = HANDLE, .id = ID, .code = ERROR_IO, .reason = "why");
}

/* The same as "commit", with a schedule that the node must fetch first. */
static void schedule_seed(void)
{
    static const char routes[] = "{\"schedule\":1,\"dims\":\"2m\"}\n"
                                 "{\"src\":0,\"dst\":1,\"legs\":[[0,0,1,1]]}\n"
                                 "{\"src\":1,\"dst\":0,\"legs\":[[0,0,-1,1]]}\n";
    char digest[SHA256_TEXT_SIZE];

    sha256_text(routes, strlen(routes), digest);
    hello(1);
    prepare_any(1, "2m", "", digest, "/out", 0, 0);
    FRAME_OF(1, PEER_SCHEDULE_QUERY, schedule_query, .digest = digest);
    schedule_parts(1, digest, routes);
    operation(SEND, 0);
    FRAME_OF(1, PEER_GO, go, .exchange = HANDLE, .rounds = 1);
    operation(SEND, 0);
    data(1, 0, 1, 0, 1, "abcdefg");
    FRAME_OF(1, PEER_COMMIT, commit, .exchange = HANDLE);
    operation(SEND, 0);
}

/* Node 1 of a ring of three, and below of a torus: relays, waves with children, several rounds. */
static void ring_seed(void)
{
    hello(0);
    hello(1);
    prepare(1, "3", "direct", "/out", 0);
    FRAME_OF(1, PEER_GO, go, .exchange = HANDLE, .rounds = 2);
    all_arrivals("3", "direct", 1, true);
    FRAME_OF(1, PEER_GROUP_MESSAGE, group_message, .exchange = HANDLE, .kind = 1, .from = 1,
             .size = 5, .until = 5);
}

static void torus_seed(void)
{
    for (unsigned port = 0; port < 4; port++)
        hello(port);
    prepare(0, "4x4", "at2", "", 0);
    prepare(1, "4x4", "at2", "", 0);
    prepare(2, "4x4", "at2", "", 0);
    prepare(3, "4x4", "at2", "", 0);
    for (unsigned port = 0; port < 4; port++)
        FRAME_OF(port, PEER_GO, go, .exchange = HANDLE, .rounds = 1);
    all_arrivals("4x4", "at2", 15, false);
}

/* Streaming, with several overlapping rounds, one of them too early; with sizes, and below without sizes. */
static void stream_seed(void)
{
    hello(0);
    hello(1);
    prepare_window(1, "3", "stream", "/out", 0, 2);
    all_pieces("3", "stream", 1, 0, true, 2);
    FRAME_OF(1, PEER_GO, go, .exchange = HANDLE, .rounds = 3);
    all_pieces("3", "stream", 1, 1, true, 1);
    FRAME_OF(1, PEER_ROUND_GO, round_go, .exchange = HANDLE, .round = 2);
    all_pieces("3", "stream", 1, 2, true, 3);
    FRAME_OF(1, PEER_COMMIT, commit, .exchange = HANDLE);
    operation(SEND, 0);
}

static void stream_torus(const char *algorithm, const char *to, uint32_t bytes)
{
    unsigned up = parent("4x4", 15);

    for (unsigned port = 0; port < 4; port++)
        hello(port);
    prepare_window(up, "4x4", algorithm, to, 4, 3);
    FRAME_OF(up, PEER_GO, go, .exchange = HANDLE, .rounds = 1);
    all_pieces("4x4", algorithm, 15, 0, to[0] != '\0', bytes);
}

static void stream_torus_seed(void)
{
    stream_torus("direct", "", 4);
}

static void stream_torus_sizes_seed(void)
{
    stream_torus("stream", "/out", 2);
}

/* The root itself. */
static void root_seed(void)
{
    hello(0);
    link_states(0, 1, 2, 2);
    for (int i = 0; i < 8; i++) {
        operation(START, 0);
        (void)fputc(i, out);
        operation(SEND, 0);
    }
    operation(CANCEL, 0);
    operation(TIME, 0);
    (void)fputc(30, out);
    operation(CLOSE, 0);
}

static void doubt_seed(void)
{
    for (unsigned port = 0; port < 4; port++)
        hello(port);
    link_states(0, 3, 4, 15);
    FRAME_OF(0, PEER_NACK, nack, .exchange = HANDLE, .id = ID, .code = ERROR_BUSY,
             .reason = "busy");
    FRAME_OF(0, PEER_CONFIRM, confirm, .id = ID, .n_rank = 1, .rank = &(uint32_t){2},
             .obstacle = "");
    FRAME_OF(2, PEER_CONFIRM, confirm, .id = ID, .n_rank = 1, .rank = &(uint32_t){2},
             .obstacle = "target exists");
    FRAME_OF(1, PEER_OUTCOME_QUERY, outcome_query, .id = "1-00000000-7", .initiator = 0);
    FRAME_OF(2, PEER_OUTCOME, outcome, .id = "1-00000000-7", .committed = true);
    operation(TIME, 0);
    (void)fputc(60, out);
    operation(SEND, 0);
}

void peer_seeds(const char *folder)
{
    static const struct {
        const char *name;
        int torus, rank; /* the rank of the receiving node */
        void (*write)(void);
    } seeds[] = {
        {"commit", TORUS_2M, 1, commit_seed},
        {"abort", TORUS_2M, 1, abort_seed},
        {"survey", TORUS_3, 1, survey_seed},
        {"copy", TORUS_3, 1, copy_seed},
        {"schedule", TORUS_2M, 1, schedule_seed},
        {"ring", TORUS_3, 1, ring_seed},
        {"torus", TORUS_4X4, 15, torus_seed},
        {"stream", TORUS_3, 1, stream_seed},
        {"stream-torus", TORUS_4X4, 15, stream_torus_seed},
        {"stream-torus-sizes", TORUS_4X4, 15, stream_torus_sizes_seed},
        {"root", TORUS_2M, 0, root_seed},
        {"doubt", TORUS_2X2, 1, doubt_seed},
    };

    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        out = open_seed(folder, "peer", seeds[i].name, node(seeds[i].torus, seeds[i].rank));
        seeds[i].write();
        close_seed();
    }
}
