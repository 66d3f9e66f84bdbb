/* Writes the corpora of messages: seeds FOLDER makes FOLDER/decoder/..., FOLDER/peer/... Run it again when the messages
 * change. Other corpora (cabling, config, msccl, schedule) are texts, which are only there. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/lib/discovery/discovery.h"
#include "daemon/lib/discovery/signing.h"
#include "daemon/torusd/tree/digests.h"
#include "proto/control.pb-c.h"
#include "proto/discovery.pb-c.h"
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
    peer_seeds(argv[1]);
    program_seeds(argv[1]);
    challenge_seeds(argv[1]);
    third_seeds(argv[1]);
    discovery_seeds(argv[1]);
    manifest_seeds(argv[1]);
    return EXIT_SUCCESS;
}

/* Seeds of fuzz_discovery. */

#define BYTES_MOST 4096u

static uint8_t own[HOST_ID_SIZE], neighbour[HOST_ID_SIZE], third[HOST_ID_SIZE] = {3};
static uint8_t setup_id[16] = {4};

static void find_id(uint8_t number, uint8_t id[HOST_ID_SIZE])
{
    const uint8_t seed[SEED_SIZE] = {number};
    struct identity identity;

    identity_make(&identity, seed, NULL);
    memcpy(id, identity.id.bytes, HOST_ID_SIZE);
}

static ProtobufCBinaryData id_of(uint8_t *bytes)
{
    return (ProtobufCBinaryData){HOST_ID_SIZE, bytes};
}

static void part(int kind, const void *bytes, size_t size)
{
    (void)fputc(kind, out);
    (void)fputc((int)(size >> 8), out);
    (void)fputc((int)(size & 0xff), out);
    (void)fwrite(bytes, 1, size, out);
}

static void message(int kind, const ProtobufCMessage *m)
{
    uint8_t bytes[BYTES_MOST];

    REQUIRE(protobuf_c_message_get_packed_size(m) <= sizeof bytes);
    part(kind, bytes, protobuf_c_message_pack(m, bytes));
}

static void time_passes(uint8_t tenths)
{
    part(4, &tenths, 1);
}

static void packet_seeds(void)
{
    Discovery__Packet packet = DISCOVERY__PACKET__INIT;
    Discovery__Summary summary = DISCOVERY__SUMMARY__INIT;
    Discovery__Known known = DISCOVERY__KNOWN__INIT, *list = &known;
    Discovery__Want want = DISCOVERY__WANT__INIT;
    Discovery__Relay relay = DISCOVERY__RELAY__INIT;
    Discovery__Signed setup_message = DISCOVERY__SIGNED__INIT;
    ProtobufCBinaryData wanted[2] = {id_of(own), id_of(third)};
    uint8_t last[HOST_ID_SIZE];

    memset(last, 0xff, sizeof last);
    packet.version = DISCOVERY_VERSION;
    known.host = id_of(third);
    known.sequence = 9;
    summary.first = id_of(own);
    summary.last = id_of(last);
    summary.n_known = 1;
    summary.known = &list;
    packet.kind_case = DISCOVERY__PACKET__KIND_SUMMARY;
    packet.summary = &summary;
    message(0, &packet.base);
    want.n_hosts = 2;
    want.hosts = wanted;
    packet.kind_case = DISCOVERY__PACKET__KIND_WANT;
    packet.want = &want;
    message(0, &packet.base);
    relay.to = id_of(neighbour);
    relay.hops = 2;
    relay.setup_message = &setup_message;
    packet.kind_case = DISCOVERY__PACKET__KIND_RELAY;
    packet.relay = &relay;
    message(0, &packet.base);
}

static void hello_and_report(void)
{
    Discovery__Hello hello = DISCOVERY__HELLO__INIT;
    struct report *report = report_new(2);
    uint8_t *bytes;
    size_t size;

    hello.host = id_of(neighbour);
    hello.interface = (char *)(uintptr_t) "eth8";
    hello.hold_ms = 4000;
    hello.digest = 5;
    message(1, &hello.base);
    REQUIRE(report != NULL);
    memcpy(report->host.bytes, third, HOST_ID_SIZE);
    (void)strcpy(report->name, "third");
    (void)strcpy(report->release, "1.0");
    (void)strcpy(report->dims, "3x3");
    report->sequence = 9;
    report->have_rank = true;
    report->rank = 4;
    (void)strcpy(report->interface[0].name, "eth0");
    (void)strcpy(report->interface[1].name, "eth1");
    report->interface[1].heards = 1;
    (void)strcpy(report->interface[1].heard[0].interface, "eth9");
    memcpy(report->interface[1].heard[0].host.bytes, neighbour, HOST_ID_SIZE);
    bytes = report_pack(report, &size);
    REQUIRE(bytes != NULL);
    part(2, bytes, size);
    free(bytes);
    free(report);
}

static Discovery__SetupMessage setup_message_of(void)
{
    Discovery__SetupMessage setup_message = DISCOVERY__SETUP_MESSAGE__INIT;

    setup_message.from = id_of(neighbour);
    setup_message.to = id_of(own);
    setup_message.setup = (ProtobufCBinaryData){sizeof setup_id, setup_id};
    return setup_message;
}

static void setup_message_seeds(void)
{
    Discovery__SetupMessage setup_message = setup_message_of();
    Discovery__Ask ask = DISCOVERY__ASK__INIT;
    Discovery__Chunk chunk = DISCOVERY__CHUNK__INIT;
    Discovery__Missing missing = DISCOVERY__MISSING__INIT;
    Discovery__Done done = DISCOVERY__DONE__INIT;
    uint8_t bytes[896] = {1, 2, 3};
    uint32_t chunks[] = {0, 1, 2, 400};

    setup_message.kind_case = DISCOVERY__SETUP_MESSAGE__KIND_ASK;
    setup_message.ask = &ask;
    message(3, &setup_message.base);
    setup_message.kind_case = DISCOVERY__SETUP_MESSAGE__KIND_CHUNK;
    setup_message.chunk = &chunk;
    chunk.size = 1000;
    chunk.bytes = (ProtobufCBinaryData){896, bytes};
    message(3, &setup_message.base);
    time_passes(5);
    chunk.index = 1;
    chunk.bytes.len = 104;
    message(3, &setup_message.base);
    setup_message.kind_case = DISCOVERY__SETUP_MESSAGE__KIND_MISSING;
    setup_message.missing = &missing;
    missing.n_chunks = 4;
    missing.chunks = chunks;
    message(3, &setup_message.base);
    setup_message.kind_case = DISCOVERY__SETUP_MESSAGE__KIND_DONE;
    setup_message.done = &done;
    message(3, &setup_message.base);
}

void discovery_seeds(const char *folder)
{
    find_id(FUZZ_OWN_SEED, own);
    find_id(FUZZ_NEIGHBOUR_SEED, neighbour);
    out = open_seed(folder, "discovery", "packets", 0);
    packet_seeds();
    close_seed();
    out = open_seed(folder, "discovery", "reports", 1);
    hello_and_report();
    time_passes(100);
    packet_seeds();
    close_seed();
    out = open_seed(folder, "discovery", "setup-messages", 0);
    setup_message_seeds();
    time_passes(255);
    close_seed();
    out = open_seed(folder, "discovery", "keyed-setup-messages", 1);
    setup_message_seeds();
    close_seed();
    out = open_seed(folder, "discovery", "closed", 2);
    setup_message_seeds();
    close_seed();
}

/* Inputs of fuzz_manifest: documents without their digests. */

static void put_document(const char *folder, const char *name, int kind, int file, uint64_t size)
{
    uint8_t *bytes = malloc(size);

    REQUIRE(bytes != NULL && pread(file, bytes, size, 0) == (ssize_t)size);
    REQUIRE(fwrite(bytes, 1, size - 16, open_seed(folder, "manifest", name, kind)) == size - 16);
    close_seed();
    free(bytes);
    (void)close(file);
}

static void put_manifest(const char *folder, const char *name, const struct entry *entry,
                         size_t count)
{
    struct error e = {0};
    uint64_t size, stream;
    int file = memfd_create("seed", MFD_CLOEXEC);
    struct manifest_maker *m = manifest_maker_new(file, &e);

    REQUIRE(m != NULL);
    for (size_t i = 0; i < count; i++) {
        struct entry copy = entry[i];
        copy.path_length = strlen(copy.path);
        copy.mode = 0644;
        copy.modified = (struct timespec){1700000000, 123456789};
        REQUIRE(manifest_maker_add(m, &copy, &e) == 0);
    }
    REQUIRE(manifest_maker_finish(m, &size, &stream, &e) == 0);
    manifest_maker_free(m);
    put_document(folder, name, 0, file, size);
}

static void put_digests(const char *folder, bool fast)
{
    const struct chunk_digests how = {.fast = fast, .seed = 5};
    const struct chunk chunk[] = {
        {.length = 60000, .digest = {1}}, {.length = 40000, .digest = {2}}, {.length = 5}};
    struct error e = {0};
    uint64_t size;
    int file = memfd_create("seed", MFD_CLOEXEC);
    struct digests_maker *m = digests_maker_new(file, &how, &e);

    REQUIRE(m != NULL && digests_maker_file(m, 0, &e) == 0);
    REQUIRE(digests_maker_chunk(m, &chunk[0], &e) == 0 &&
            digests_maker_chunk(m, &chunk[1], &e) == 0);
    REQUIRE(digests_maker_file(m, 2, &e) == 0 && digests_maker_chunk(m, &chunk[2], &e) == 0);
    REQUIRE(digests_maker_finish(m, &size, &e) == 0);
    digests_maker_free(m);
    put_document(folder, fast ? "fast-digests" : "digests", 1, file, size);
}

static void put_texts(const char *folder, const char *name, int kind, const char *text)
{
    (void)fputs(text, open_seed(folder, "manifest", name, kind));
    close_seed();
}

void manifest_seeds(const char *folder)
{
    static const struct extent_of_file extents[] = {{0, 4096}, {8192, 5}};
    static const uint8_t attributes[] = "user.a\0\3\0\0\0xyzuser.b\0\0\0\0"; /* with the last 0 */
    const struct entry tree[] = {
        {.kind = ENTRY_FOLDER, .path = "a"},
        {.kind = ENTRY_FILE, .path = "a/b", .size = 7, .has_digest = true},
        {.kind = ENTRY_FILE, .path = "a/s", .size = 9000, .extent = extents, .extents = 2},
        {.kind = ENTRY_FILE,
         .path = "a-b",
         .attributes = attributes,
         .attributes_length = sizeof attributes},
        {.kind = ENTRY_SYMLINK, .path = "l", .link = "../x"},
        {.kind = ENTRY_HARDLINK, .path = "m", .link = "a/b", .linked = 1},
    };
    const struct entry folder_entry[] = {{.kind = ENTRY_FOLDER, .path = ""},
                                         {.kind = ENTRY_FOLDER, .path = "x"},
                                         {.kind = ENTRY_FOLDER, .path = "x/y"}};
    const struct entry file_entry[] = {{.kind = ENTRY_FILE, .path = "", .size = 1}};

    put_manifest(folder, "tree", tree, sizeof tree / sizeof *tree);
    put_manifest(folder, "folders", folder_entry, 3);
    put_manifest(folder, "file", file_entry, 1);
    put_manifest(folder, "nothing", NULL, 0);
    put_digests(folder, true);
    put_digests(folder, false);
    put_texts(folder, "wanted", 2, "\1\2\x80\2\3\xff\xff\3");
    put_texts(folder, "pattern", 3, "- a*[b-d]?/**/x/***a_long_name/with/x/s");
    put_texts(folder, "anchored", 3, "- /[[:digit:]!]*.ob1/2/some.o  ");
}
