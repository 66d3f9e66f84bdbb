/* Writes the corpora: seeds FOLDER makes FOLDER/decoder/..., FOLDER/peer/... Run it again when the
 * messages change. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/control.pb-c.h"
#include "proto/frame.h"
#include "proto/peer/peer_message.h"
#include "proto/program.h"
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

/* A kind, small numbers, and a text of one letter. */
static void program_message(unsigned guest, uint8_t kind, uint8_t number, uint8_t text)
{
    PUT((uint8_t)(guest << 4), kind, 4, number);
    if (kind == PROGRAM_MEMORY)
        PUT(1);
    else
        PUT(4, 0);
    PUT(1, text, (uint8_t)(guest << 4 | TURN));
}

/* From and to its memory 1, which also holds the arrays. */
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
    discovery_seeds(argv[1]);
    manifest_seeds(argv[1]);
    msccl_seeds(argv[1]);
    return EXIT_SUCCESS;
}
