/* Writes the corpora: seeds FOLDER makes FOLDER/decoder/..., FOLDER/peer/... Run it again when the
 * messages change. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/schedule/algorithms/registry.h"
#include "daemon/schedule/routes/passages.h"
#include "daemon/schedule/routes/plan_build.h"
#include "daemon/schedule/tree.h"
#include "proto/control.pb-c.h"
#include "proto/frame.h"
#include "proto/peer/peer_message.h"
#include "proto/program.h"
#include "proto/sha256.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/seeds.h"
#include "tests/unit/message_bytes.h"

static FILE *out;

FILE *open_seed(const char *folder, const char *target, const char *name, int first)
{
    char path[4096];

    (void)snprintf(path, sizeof path, "%s/%s", folder, target);
    REQUIRE(mkdir(path, 0777) == 0 || errno == EEXIST);
    (void)snprintf(path, sizeof path, "%s/%s/%s", folder, target, name);
    out = fopen(path, "wb");
    REQUIRE(out != NULL);
    if (first >= 0)
        (void)fputc(first, out);
    return out;
}

void close_seed(void)
{
    REQUIRE(fclose(out) == 0);
}

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

#define HANDLE 9
#define ID "0-00000000-4"

/* Without steps, if there is a window; a schedule from a file, if there is a digest. */
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

/* The port by which the words of root 0 come. */
static unsigned parent(const char *dims, uint32_t rank)
{
    struct torus t;
    struct tree_node tree;

    REQUIRE(torus_parse(&t, dims, NULL) == 0);
    tree_node(&t, 0, rank, &tree);
    return (unsigned)tree.parent;
}

static void go(unsigned port, uint64_t rounds)
{
    const struct peer_message message = {.kind = PEER_GO,
                                         .go = {.exchange = HANDLE, .rounds = rounds}};

    frame(port, &message, "");
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

/* All that the plan of `rank` expects, with one empty block after the other. */
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

#define PIECES_A_FRAME 10u /* so that a head fits, and a body */

/* All that crosses the channels to `rank` in a round without steps, each piece of that many bytes;
 * the last of a frame comes in two parts. */
static void all_pieces(const char *dims, const char *algorithm, uint32_t rank, uint32_t round,
                       bool sizes, uint32_t bytes)
{
    struct torus t;
    struct passages passages;
    char body[PIECES_A_FRAME * 256] = "";

    REQUIRE(bytes > 0 && bytes < 256);
    REQUIRE(torus_parse(&t, dims, NULL) == 0);
    REQUIRE(passages_build(&passages, &t, algorithm_find(algorithm), rank, NULL) == 0);
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

static void round_go(unsigned port, uint64_t round)
{
    const struct peer_message message = {.kind = PEER_ROUND_GO,
                                         .round_go = {.exchange = HANDLE, .round = round}};

    frame(port, &message, "");
}

static void commit(unsigned port)
{
    const struct peer_message message = {.kind = PEER_COMMIT, .commit = {.exchange = HANDLE}};

    frame(port, &message, "");
}

static void verdict(unsigned port)
{
    const struct peer_message message = {
        .kind = PEER_VERDICT,
        .verdict = {.exchange = HANDLE, .id = ID, .code = ERROR_IO, .reason = "why"}};

    frame(port, &message, "");
}

static void objection(unsigned port)
{
    const struct peer_message message = {
        .kind = PEER_OBJECTION,
        .objection = {.exchange = HANDLE, .id = ID, .code = ERROR_BUSY, .reason = "busy"}};

    frame(port, &message, "");
}

static void confirm(unsigned port, const char *obstacle)
{
    const uint32_t rank = 2;
    const struct peer_message message = {
        .kind = PEER_CONFIRM,
        .confirm = {.id = ID, .n_rank = 1, .rank = &rank, .obstacle = obstacle}};

    frame(port, &message, "");
}

static void query(unsigned port)
{
    const struct peer_message message = {.kind = PEER_OUTCOME_QUERY,
                                         .outcome_query = {.id = "1-00000000-7", .asker = 0}};

    frame(port, &message, "");
}

static void outcome(unsigned port)
{
    const struct peer_message message = {.kind = PEER_OUTCOME,
                                         .outcome = {.id = "1-00000000-7", .committed = true}};

    frame(port, &message, "");
}

/* All links of all nodes are up, as the neighbour says, so that an exchange can be started. */
static void schedule_query(unsigned port, const char *digest)
{
    const struct peer_message message = {.kind = PEER_SCHEDULE_QUERY,
                                         .schedule_query = {.digest = digest}};

    frame(port, &message, "");
}

/* The routes of a schedule, in parts that fit into a frame of the fuzzer. */
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

static void peer_seeds(const char *folder)
{
    /* Node 1 of two: the whole life of an exchange with folders. */
    (void)open_seed(folder, "peer", "commit", node(TORUS_2M, 1));
    hello(1);
    prepare(1, "2m", "direct", "/out", 0);
    operation(SEND, 0);
    go(1, 1);
    operation(SEND, 0);
    data(1, 0, 1, 0, 1, "abcdefg");
    commit(1);
    operation(SEND, 0);
    close_seed();

    (void)open_seed(folder, "peer", "verdict", node(TORUS_2M, 1));
    hello(1);
    prepare(1, "2m", "direct", "", 0);
    go(1, 1);
    verdict(1);
    close_seed();

    /* The same with a schedule that it has to fetch first. */
    static const char routes[] = "{\"schedule\":1,\"dims\":\"2m\"}\n"
                                 "{\"src\":0,\"dst\":1,\"legs\":[[0,0,1,1]]}\n"
                                 "{\"src\":1,\"dst\":0,\"legs\":[[0,0,-1,1]]}\n";
    char digest[SHA256_TEXT_SIZE];
    sha256_text(routes, strlen(routes), digest);
    (void)open_seed(folder, "peer", "schedule", node(TORUS_2M, 1));
    hello(1);
    prepare_any(1, "2m", "", digest, "/out", 0, 0);
    schedule_query(1, digest);
    schedule_parts(1, digest, routes);
    operation(SEND, 0);
    go(1, 1);
    operation(SEND, 0);
    data(1, 0, 1, 0, 1, "abcdefg");
    commit(1);
    operation(SEND, 0);
    close_seed();

    /* Node 1 of a ring of three, and of a torus: relays, waves with children, several rounds. */
    (void)open_seed(folder, "peer", "ring", node(TORUS_3, 1));
    hello(0);
    hello(1);
    prepare(1, "3", "direct", "/out", 0);
    go(1, 2);
    all_arrivals("3", "direct", 1, true);
    close_seed();

    (void)open_seed(folder, "peer", "torus", node(TORUS_4X4, 15));
    for (unsigned port = 0; port < 4; port++)
        hello(port);
    prepare(0, "4x4", "at2", "", 0);
    prepare(1, "4x4", "at2", "", 0);
    prepare(2, "4x4", "at2", "", 0);
    prepare(3, "4x4", "at2", "", 0);
    for (unsigned port = 0; port < 4; port++)
        go(port, 1);
    all_arrivals("4x4", "at2", 15, false);
    close_seed();

    /* Without steps: several rounds under way, one of them before its time; sizes along, and not.
     */
    (void)open_seed(folder, "peer", "stream", node(TORUS_3, 1));
    hello(0);
    hello(1);
    prepare_window(1, "3", "stream", "/out", 0, 2);
    all_pieces("3", "stream", 1, 0, true, 2);
    go(1, 3);
    all_pieces("3", "stream", 1, 1, true, 1);
    round_go(1, 2);
    all_pieces("3", "stream", 1, 2, true, 3);
    commit(1);
    operation(SEND, 0);
    close_seed();

    for (int sizes = 0; sizes < 2; sizes++) {
        (void)open_seed(folder, "peer", sizes ? "stream-torus-sizes" : "stream-torus",
                        node(TORUS_4X4, 15));
        for (unsigned port = 0; port < 4; port++)
            hello(port);
        prepare_window(parent("4x4", 15), "4x4", sizes ? "stream" : "direct", sizes ? "/out" : "",
                       4, 3);
        go(parent("4x4", 15), 1);
        all_pieces("4x4", sizes ? "stream" : "direct", 15, 0, sizes, sizes ? 2 : 4);
        close_seed();
    }

    /* The root itself. */
    (void)open_seed(folder, "peer", "root", node(TORUS_2M, 0));
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
    close_seed();

    (void)open_seed(folder, "peer", "doubt", node(TORUS_2X2, 1));
    for (unsigned port = 0; port < 4; port++)
        hello(port);
    link_states(0, 3, 4, 15);
    objection(0);
    confirm(0, "");
    confirm(2, "target exists");
    query(1);
    outcome(2);
    operation(TIME, 0);
    (void)fputc(60, out);
    operation(SEND, 0);
    close_seed();
}

static void frame_bytes(const uint8_t *head, size_t length, const char *body)
{
    uint8_t prefix[FRAME_PREFIX_SIZE];

    frame_prefix_write(prefix, (uint32_t)length, (uint32_t)strlen(body));
    (void)fwrite(prefix, 1, sizeof prefix, out);
    (void)fwrite(head, 1, length, out);
    (void)fputs(body, out);
}

static void peer_frame(const struct peer_message *message, const char *body)
{
    uint8_t head[512];
    size_t length = message_write(message, head, sizeof head);

    REQUIRE(length > 0);
    frame_bytes(head, length, body);
}

static void decoder_seeds(const char *folder)
{
    static const char *const names[] = {"pieces-of-2", "pieces-of-101"};
    static const uint32_t sizes[] = {1, 2, 300, 4};
    const struct peer_message heartbeat = {.kind = PEER_HEARTBEAT};
    const struct peer_message data = {.kind = PEER_STEPPED_DATA,
                                      .stepped_data = {.step = 3, .n_sizes = 4, .sizes = sizes}};
    const struct peer_message refusal = {.kind = PEER_REFUSAL, .refusal = {"no"}};

    for (int i = 0; i < 2; i++) {
        (void)open_seed(folder, "decoder", names[i], i == 0 ? 1 : 100);
        peer_frame(&heartbeat, "");
        peer_frame(&data, "the body of a frame");
        peer_frame(&refusal, "");
        close_seed();
    }
}

static void control_frame(const Control__Request *request)
{
    uint8_t head[512];

    REQUIRE(control__request__get_packed_size(request) <= sizeof head);
    frame_bytes(head, control__request__pack(request, head), "");
}

static void control_seeds(const char *folder)
{
    Control__StatusRequest status = CONTROL__STATUS_REQUEST__INIT;
    Control__LinksRequest links = CONTROL__LINKS_REQUEST__INIT;
    Control__ExchangeRequest exchange = CONTROL__EXCHANGE_REQUEST__INIT;
    Torus__Spec spec = TORUS__SPEC__INIT;
    Control__Request request = CONTROL__REQUEST__INIT;

    (void)open_seed(folder, "control", "requests", 6);
    request.kind_case = CONTROL__REQUEST__KIND_STATUS;
    request.status = &status;
    control_frame(&request);
    request.kind_case = CONTROL__REQUEST__KIND_LINKS;
    request.links = &links;
    control_frame(&request);
    spec.algorithm = (char *)(uintptr_t) "at2";
    spec.from = (char *)(uintptr_t) "/in/%r";
    spec.to = (char *)(uintptr_t) "/out/%r";
    spec.timeout_ms = 1000;
    exchange.spec = &spec;
    request.kind_case = CONTROL__REQUEST__KIND_EXCHANGE;
    request.exchange = &exchange;
    control_frame(&request);
    close_seed();
}

static void config_seeds(const char *folder)
{
    (void)open_seed(folder, "config", "whole", -1);
    (void)fputs("; a node\n[node]\ndims = 4x8m\nrank = 9\ncoordinates = 1,1\ncontrol = /tmp/sock\n"
                "state_dir = /tmp/state\ndata_roots = /tmp:/usr\nlink_mbit = 2500.5\n"
                "link_burst = 15KiB\n"
                "daemons_per_processor = 2\nmemory = 3MiB\ncongestion = cubic\n"
                "log_level = debug\n[ports]\n+0 = 10.0.0.2:7411\n-0 = 10.0.0.1:7411\n",
                out);
    close_seed();
    (void)open_seed(folder, "config", "ports", -1);
    (void)fputs("[ports]\n+0 = [fe80::b%eth0]:7411\n-0 = 10.0.0.1:7411  on eth1 ; one of two\n"
                "+1 = Host_b.cable:65535\n-1 = [fd00::1]:1 on lo\n",
                out);
    close_seed();
    (void)open_seed(folder, "config", "port", -1);
    (void)fputs("[ports]\n+0 = [fe80::b%]:99999 on\n", out);
    close_seed();
    (void)open_seed(folder, "config", "wrong", -1);
    (void)fputs("[node]\nmemory = 99999999999999999999GiB\nnonsense\n", out);
    close_seed();
    open_seed(folder, "config", "indented", -1);
    (void)fputs("\xef\xbb\xbf  [node] ; a section\r\n\tdims : 2 ;c\r\n  rank=1\r\n[ports]#\r\n",
                out);
    close_seed();
    open_seed(folder, "config", "hosts", -1);
    (void)fputs("[*]\n+0 = eth0\n-0 = eth1\n[a]\n+1 = e0 10.1.0.1/30\n[b.c]\n-1 = e1 10.1.0.2/30\n"
                "[d-e]\naddress = 10.128.0.9\n+1=x:1\n[f_0]\n-1=y@z\n",
                out);
    close_seed();
    open_seed(folder, "config", "hosts-alike", -1);
    (void)fputs("[a]\nrank = 0\n-0 = lo 127.0.0.1\n[A.]\nrank = 0\naddress = 10.0.0.255/24\n", out);
    close_seed();
    open_seed(folder, "config", "utf-16", -1);
    (void)fwrite("\xff\xfe[\0n\0o\0d\0e\0]\0\n", 1, 16, out);
    close_seed();
    open_seed(folder, "config", "xml", -1);
    (void)fputs("<?xml version=\"1.0\"?>\n<!-- a --><algo name=\"x\"/>\n[node]\n", out);
    close_seed();
    open_seed(folder, "config", "json", -1);
    (void)fputs("{\"schedule\": 1, \"dims\": \"2\"}\n[\n\"src\"]\nnum_ranks 2\n", out);
    close_seed();
}

/* --- operations of fuzz_program --- */

#define PUT(...)                                                                                   \
    do {                                                                                           \
        const uint8_t bytes[] = {__VA_ARGS__};                                                     \
        (void)fwrite(bytes, 1, sizeof bytes, out);                                                 \
    } while (0)

enum { TURN = 4 };

/* A kind, small numbers, a text of one letter. */
static void program_message(unsigned guest, uint8_t kind, uint8_t number, uint8_t text)
{
    PUT((uint8_t)(guest << 4), kind, 4, number);
    if (kind == PROGRAM_MEMORY)
        PUT(1);
    else
        PUT(4, 0);
    PUT(1, text, (uint8_t)(guest << 4 | TURN));
}

/* From and to its memory 1, where the arrays are, too. */
static void program_call(unsigned guest, uint8_t operation, uint8_t part)
{
    PUT((uint8_t)(guest << 4 | 5), operation, part, 0, 1, 1, 1, 1, 0, 10, 4, 0, 1, 3, 64, 1, 3, 128,
        (uint8_t)(guest << 4 | TURN));
}

static void program_seeds(const char *folder)
{
    (void)open_seed(folder, "program", "operations", -1);
    program_message(0, PROGRAM_OPEN, 0, 'a');
    program_message(0, PROGRAM_MEMORY, 0, 'a');
    PUT(TURN, TURN);
    for (uint8_t operation = 1; operation <= 9; operation++)
        program_call(0, operation, 3);
    PUT(7, 0, 4, 0, 4, 5); /* a word of an array */
    program_call(0, 2, 1);
    program_message(0, PROGRAM_NOTICE, 0, 'a');
    program_message(0, PROGRAM_MEMORY_FREE, 1, 'a');
    program_message(0, PROGRAM_LEAVE, 0, 'a');
    close_seed();
    (void)open_seed(folder, "program", "failures", -1);
    program_message(0, PROGRAM_OPEN, 0, 'a');
    program_message(1, PROGRAM_OPEN, 0, 'a');
    program_message(2, PROGRAM_OPEN, 0, 'b');
    PUT(6, 1); /* calls do not end */
    program_call(0, 6, 3);
    program_call(2, 6, 3);
    PUT(6, 8, TURN, 2 << 4 | TURN);
    program_call(2, 6, 3);
    PUT(3 << 4 | 1, 0, 9, 'n', 'o', 'n', 's', 'e', 'n', 's', 'e', '!', 3 << 4 | TURN);
    program_message(0, PROGRAM_OPEN, 0, 'a');
    PUT(2, 0, 0, 200, 0, 0, 0, 3, TURN, 8); /* the ring jumps */
    close_seed();
}

/* --- operations of fuzz_challenge and fuzz_third --- */

static void challenge_seeds(const char *folder)
{
    enum { DIALS = 1, PARTNER_HAS_KEY = 4, ENCRYPT = 96 };
    enum { GENUINE, ALTERED, REFLECTED = 3, REPLAYED, TO_PARTNER };

    (void)open_seed(folder, "challenge", "listener", -1);
    PUT(PARTNER_HAS_KEY | ENCRYPT, GENUINE, TO_PARTNER, TO_PARTNER, GENUINE);
    close_seed();
    (void)open_seed(folder, "challenge", "dialler", -1);
    PUT(DIALS | PARTNER_HAS_KEY, TO_PARTNER, GENUINE, GENUINE, TO_PARTNER);
    close_seed();
    (void)open_seed(folder, "challenge", "replay", -1);
    PUT(PARTNER_HAS_KEY, REPLAYED, REPLAYED + 6, REFLECTED);
    close_seed();
    (void)open_seed(folder, "challenge", "altered", -1);
    PUT(PARTNER_HAS_KEY, GENUINE, TO_PARTNER, TO_PARTNER, ALTERED, 10, 1);
    close_seed();
}

static void third_seeds(const char *folder)
{
    enum { PASS, ASK, LIE, TIMES, SAY, REPEAT, PLAIN };

    (void)open_seed(folder, "third", "exchanges", -1);
    PUT(0);
    for (uint8_t which = 0; which < 24; which += 3)
        PUT(ASK, which, PASS, 50, TIMES, 6, SAY, 7, 0, which, 3, PASS, 70);
    close_seed();
    (void)open_seed(folder, "third", "lies", -1);
    PUT(3);
    for (uint8_t which = 0; which < 120; which += 8)
        PUT(LIE, 0, which, which, ASK, which, PASS, 60);
    close_seed();
    (void)open_seed(folder, "third", "bytes", -1);
    PUT(1, ASK, 2, PASS, 20, REPEAT, 12, 0, 0, 9, PASS, 100, PLAIN, 8, 0, 0, 0, 2, 0, 0, 0, 0);
    close_seed();
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    decoder_seeds(argv[1]);
    control_seeds(argv[1]);
    config_seeds(argv[1]);
    peer_seeds(argv[1]);
    program_seeds(argv[1]);
    challenge_seeds(argv[1]);
    third_seeds(argv[1]);
    msccl_seeds(argv[1]);
    return EXIT_SUCCESS;
}
