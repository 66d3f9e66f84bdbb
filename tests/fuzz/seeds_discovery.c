/* Seeds of fuzz_discovery. */
#include <string.h>

#include "daemon/lib/discovery/discovery.h"
#include "daemon/lib/discovery/signing.h"
#include "proto/discovery.pb-c.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/seeds.h"

#define BYTES_MOST 4096u

static FILE *out;
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
    Discovery__Signed letter = DISCOVERY__SIGNED__INIT;
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
    relay.letter = &letter;
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

static Discovery__Letter letter_of(void)
{
    Discovery__Letter letter = DISCOVERY__LETTER__INIT;

    letter.from = id_of(neighbour);
    letter.to = id_of(own);
    letter.setup = (ProtobufCBinaryData){sizeof setup_id, setup_id};
    return letter;
}

static void letter_seeds(void)
{
    Discovery__Letter letter = letter_of();
    Discovery__Ask ask = DISCOVERY__ASK__INIT;
    Discovery__Chunk chunk = DISCOVERY__CHUNK__INIT;
    Discovery__Missing missing = DISCOVERY__MISSING__INIT;
    Discovery__Done done = DISCOVERY__DONE__INIT;
    uint8_t bytes[896] = {1, 2, 3};
    uint32_t chunks[] = {0, 1, 2, 400};

    letter.kind_case = DISCOVERY__LETTER__KIND_ASK;
    letter.ask = &ask;
    message(3, &letter.base);
    letter.kind_case = DISCOVERY__LETTER__KIND_CHUNK;
    letter.chunk = &chunk;
    chunk.size = 1000;
    chunk.bytes = (ProtobufCBinaryData){896, bytes};
    message(3, &letter.base);
    time_passes(5);
    chunk.index = 1;
    chunk.bytes.len = 104;
    message(3, &letter.base);
    letter.kind_case = DISCOVERY__LETTER__KIND_MISSING;
    letter.missing = &missing;
    missing.n_chunks = 4;
    missing.chunks = chunks;
    message(3, &letter.base);
    letter.kind_case = DISCOVERY__LETTER__KIND_DONE;
    letter.done = &done;
    message(3, &letter.base);
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
    out = open_seed(folder, "discovery", "letters", 0);
    letter_seeds();
    time_passes(255);
    close_seed();
    out = open_seed(folder, "discovery", "keyed-letters", 1);
    letter_seeds();
    close_seed();
    out = open_seed(folder, "discovery", "closed", 2);
    letter_seeds();
    close_seed();
}
