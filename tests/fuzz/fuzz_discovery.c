/* Packets of a neighbour to a discovery process. Input: a byte with flags (1: there is a cluster key; 2: the host was
 * set up before), then
 * packets: a byte for the kind, two for the length, and the bytes. Kind 0 is a packet as it is. The others are
 * contents that the neighbour signs: 1 a hello, 2 a report, 3 a setup message. Kind 4 lets time pass. */
#include <string.h>

#include "daemon/lib/discovery/discovery.h"
#include "daemon/lib/discovery/seal.h"
#include "daemon/lib/discovery/signing.h"
#include "tests/fuzz/fuzz.h"

#define PACKET_MOST 8192u

static struct {
    uint64_t now, random;
    size_t sent, bytes_sent;
    bool runs, closed;
} world;

static struct host_id own;
static const struct discovery_address address = {{0xfe, 0x80, [15] = 2}};
static struct identity identity; /* the neighbour's */
static struct secrets secrets;   /* derived */
static struct opener opener;
static const uint8_t nonce[NONCE_SIZE] = {1};

static uint64_t io_now(void *context)
{
    return world.now;
}

static void io_random(void *context, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        world.random = world.random * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)bytes)[i] = (uint8_t)(world.random >> 40);
    }
}

static void io_send(void *context, unsigned interface, const struct discovery_address *to,
                    const uint8_t *bytes, size_t size)
{
    REQUIRE(interface == 1 || interface == 2);
    REQUIRE(bytes != NULL && size > 0 && size <= DISCOVERY_PACKET_MOST);
    world.sent++;
    world.bytes_sent += size;
}

/* No input opens a setup of a host that is not open: none is authenticated by the key. */
static void io_apply(void *context, const uint8_t id[SETUP_ID_SIZE], const struct host_id *from,
                     const uint8_t *sealed, size_t size)
{
    const struct setup_frame frame = {id, from, &own, nonce};
    struct opened_setup opened;
    struct error e;

    REQUIRE(!world.runs && sealed != NULL && size <= DISCOVERY_SETUP_MOST + 65536);
    world.runs = true;
    if (open_setup(&frame, &opener, sealed, size, &opened, &e) == 0) {
        REQUIRE(!world.closed);
        free(opened.bytes);
    }
}

/* Sends a packet with content that the neighbour has signed. */
static void receive_signed(struct discovery *d, enum signed_kind kind, const uint8_t *content,
                           size_t size)
{
    Discovery__Packet packet = DISCOVERY__PACKET__INIT;
    Discovery__Reports reports = DISCOVERY__REPORTS__INIT;
    Discovery__Relay relay = DISCOVERY__RELAY__INIT;
    struct signed_parts parts;
    Discovery__Signed s;
    ProtobufCBinaryData list;
    static uint8_t packed[PACKET_MOST + 512], bytes[PACKET_MOST + 1024];

    signing_sign(&identity, &secrets, kind, content, size, &parts, &s);
    packet.version = DISCOVERY_VERSION;
    if (kind == SIGNED_HELLO) {
        packet.kind_case = DISCOVERY__PACKET__KIND_HELLO;
        packet.hello = &s;
    } else if (kind == SIGNED_REPORT) {
        list = (ProtobufCBinaryData){discovery__signed__pack(&s, packed), packed};
        reports.n_reports = 1;
        reports.reports = &list;
        packet.kind_case = DISCOVERY__PACKET__KIND_REPORTS;
        packet.reports = &reports;
    } else {
        relay.to = (ProtobufCBinaryData){HOST_ID_SIZE, (uint8_t *)(uintptr_t)own.bytes};
        relay.hops = 3;
        relay.setup_message = &s;
        packet.kind_case = DISCOVERY__PACKET__KIND_RELAY;
        packet.relay = &relay;
    }
    discovery_receive(d, 1, &address, bytes, discovery__packet__pack(&packet, bytes));
}

/* The neighbour becomes one: its report and its hello arrive. */
static void introduce(struct discovery *d)
{
    const struct host_entry *h = database_find(discovery_database(d), &own);
    struct report *report = report_new(1);
    Discovery__Hello hello = DISCOVERY__HELLO__INIT;
    uint8_t *content, bytes[256];
    size_t size;

    REQUIRE(report != NULL && h != NULL);
    report->host = identity.id;
    report->sequence = 1;
    (void)strcpy(report->name, "neighbour");
    (void)strcpy(report->interface[0].name, "eth9");
    report->interface[0].heards = 1;
    report->interface[0].heard[0] = (struct heard){.host = own, .interface = "eth1"};
    content = report_pack(report, &size);
    REQUIRE(content != NULL);
    receive_signed(d, SIGNED_REPORT, content, size);
    free(content);
    free(report);
    hello.host = (ProtobufCBinaryData){HOST_ID_SIZE, identity.id.bytes};
    hello.interface = (char *)(uintptr_t) "eth9";
    hello.hold_ms = 60000;
    size = discovery__hello__pack(&hello, bytes);
    receive_signed(d, SIGNED_HELLO, bytes, size);
    world.now += DISCOVERY_REPORT_PAUSE;
    discovery_tick(d);
    h = database_find(discovery_database(d), &identity.id);
    REQUIRE(h != NULL && h->reachable);
}

static struct discovery *begin(uint8_t flags)
{
    static const struct interface_state interfaces[] = {
        {.index = 1, .name = "eth1", .mtu = 1500, .up = true, .carrier = true, .ipv6 = true},
        {.index = 2, .name = "eth2", .mtu = 1500, .up = true, .carrier = true, .ipv6 = true}};
    static const uint8_t seed[SEED_SIZE] = {FUZZ_NEIGHBOUR_SEED}, key[KEY_SIZE] = {8};
    static const uint8_t own_seed[SEED_SIZE] = {FUZZ_OWN_SEED};
    static struct identity own_identity;
    static uint8_t opening_key[SEALING_KEY_SIZE];
    struct discovery_setup setup = {.io = {io_now, io_random, io_send, io_apply, NULL},
                                    .name = "own",
                                    .release = "1",
                                    .identity = &own_identity};
    struct discovery *d;

    memset(&world, 0, sizeof world);
    world.now = SECONDS;
    world.closed = (flags & 3) != 0;
    opener = (struct opener){.secrets.count = flags & 1, .open = (flags & 2) == 0};
    key_set(&opener.secrets.key[0], key);
    secrets.count = opener.secrets.count;
    discovery_key_make(&secrets.key[0], &opener.secrets.key[0]);
    if (identity.public_key[0] == 0) { /* it takes long to make keys */
        identity_make(&identity, seed, NULL);
        identity_make(&own_identity, own_seed, opening_key);
    }
    memcpy(opener.opening_key, opening_key, sizeof opening_key);
    d = discovery_new(&setup);
    REQUIRE(d != NULL);
    own = *discovery_id(d);
    discovery_set_secrets(d, &secrets);
    discovery_set_setups(d, !world.closed || secrets.count > 0, nonce);
    discovery_set_interfaces(d, interfaces, 2);
    discovery_tick(d);
    introduce(d);
    return d;
}

static void let_time_pass(struct discovery *d, uint32_t tenths)
{
    const uint64_t end = world.now + tenths * 100 * MILLISECONDS;
    const struct setup_end done = {.sealed = (const uint8_t *)"out", .size = 3};

    for (uint64_t at; (at = discovery_deadline(d)) <= end;) {
        world.now = at > world.now ? at : world.now;
        discovery_tick(d);
        REQUIRE(discovery_deadline(d) > world.now);
    }
    world.now = end;
    if (world.runs) {
        world.runs = false;
        discovery_setup_ended(d, &done);
    }
}

static void take(struct discovery *d, uint8_t kind, const uint8_t *bytes, size_t size)
{
    if (size > PACKET_MOST)
        size = PACKET_MOST;
    switch (kind % 5) {
    case 0:
        discovery_receive(d, 1, &address, bytes, size);
        break;
    case 1:
        receive_signed(d, SIGNED_HELLO, bytes, size);
        break;
    case 2:
        receive_signed(d, SIGNED_REPORT, bytes, size);
        break;
    case 3:
        receive_signed(d, SIGNED_SETUP_MESSAGE, bytes, size);
        break;
    default:
        let_time_pass(d, size > 0 ? bytes[0] : 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct discovery *d = begin(input_byte(&in));

    while (in.size > 0) {
        uint8_t kind = input_byte(&in);
        size_t length = input_word16(&in), before = world.bytes_sent;
        const uint8_t *bytes = input_bytes(&in, &length);
        /* A copy of the bytes of the input, so that reads beyond their end are found. */
        uint8_t *copy = malloc(length + 1);
        REQUIRE(copy != NULL);
        memcpy(copy, bytes, length);
        take(d, kind, copy, length);
        free(copy);
        /* A packet brings a bounded number of answers. */
        REQUIRE(kind % 5 == 4 || world.bytes_sent - before <= 200 * 1024);
        REQUIRE(discovery_database(d)->hosts <= DATABASE_HOSTS_MOST);
    }
    let_time_pass(d, 20);
    discovery_free(d);
    return 0;
}
