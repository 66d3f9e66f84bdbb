/* What strangers and hostile neighbours can do to discovery: they cost neither memory, nor hosts, nor cables. */
#include "daemon/lib/discovery/signing.h"
#include "discovery_world.h"
#include "proto/discovery.pb-c.h"
#include "tests/support/cmocka.h"

#define PACKET_MOST 4096u

static const struct discovery_address stranger = {{0xfe, 0x80, [15] = 99}};

/* A line of three hosts that know each other; the stranger has the cable at port 0 of host 2. */
static void begin(struct world *w, unsigned key)
{
    world_begin(w, 3, 2, 21);
    for (unsigned h = 0; h < 3; h++)
        world_set_key(w, h, key);
    (void)world_cable(w, 0, 0, 1, 1);
    (void)world_cable(w, 1, 0, 2, 1);
    w->host[2].interface[0].carrier = true;
    world_start_all(w);
    world_run(w, 3 * SECONDS);
}

static bool is_whole(struct world *w)
{
    for (unsigned a = 0; a < 3; a++)
        for (unsigned b = 0; b < 3; b++) {
            const struct host_entry *h = world_entry(w, a, b);
            if (h == NULL || !h->reachable ||
                memcmp(h->key, world_entry(w, b, b)->key, PUBLIC_KEY_SIZE) != 0)
                return false;
        }
    return true;
}

/* The key pair of a stranger. */
static struct identity stranger_identity(unsigned number)
{
    const uint8_t seed[SEED_SIZE] = {(uint8_t)number, (uint8_t)(number >> 8), 77};
    struct identity identity;

    identity_make(&identity, seed, NULL);
    return identity;
}

/* Makes a packet with one report that a stranger has signed, about itself or (not NULL) about another host. Returns its
 * size. */
static size_t report_packet(uint8_t out[PACKET_MOST], const struct host_id *host, const char *name,
                            uint64_t sequence, unsigned number, const struct secrets *secrets)
{
    const struct identity identity = stranger_identity(number);
    uint8_t *content;
    uint8_t packed[PACKET_MOST];
    struct report *report = report_new(1);
    struct signed_parts parts;
    Discovery__Signed s;
    Discovery__Packet packet = DISCOVERY__PACKET__INIT;
    Discovery__Reports reports = DISCOVERY__REPORTS__INIT;
    ProtobufCBinaryData list;
    size_t size;

    assert_non_null(report);
    report->host = host != NULL ? *host : identity.id;
    (void)snprintf(report->name, sizeof report->name, "%s", name);
    report->sequence = sequence;
    (void)strcpy(report->interface[0].name, "eth0");
    content = report_pack(report, &size);
    assert_non_null(content);
    signing_sign(&identity, secrets, SIGNED_REPORT, content, size, &parts, &s);
    list = (ProtobufCBinaryData){discovery__signed__pack(&s, packed), packed};
    reports.n_reports = 1;
    reports.reports = &list;
    packet.version = DISCOVERY_VERSION;
    packet.kind_case = DISCOVERY__PACKET__KIND_REPORTS;
    packet.reports = &reports;
    size = discovery__packet__pack(&packet, out);
    free(content);
    free(report);
    return size;
}

static void receive(struct world *w, const uint8_t *bytes, size_t size)
{
    discovery_receive(w->host[2].discovery, 1, &stranger, bytes, size);
}

TEST(test_invented_hosts_are_bounded_and_forgotten)
{
    static struct world w;
    const struct secrets none = {.count = 0};
    uint8_t bytes[PACKET_MOST];

    begin(&w, 0);
    for (unsigned i = 0; i < 3000; i++) {
        receive(&w, bytes, report_packet(bytes, NULL, "phantom", 1, i, &none));
        assert_true(discovery_database(w.host[2].discovery)->hosts <= DATABASE_HOSTS_MOST);
        if (i % 100 == 0)
            world_run(&w, 10 * MILLISECONDS);
    }
    assert_int_equal(discovery_database(w.host[2].discovery)->hosts, DATABASE_HOSTS_MOST);
    assert_true(is_whole(&w));
    assert_int_equal(discovery_database(w.host[0].discovery)->hosts,
                     3); /* they are not passed on */
    world_run(&w, DISCOVERY_LOST_LIFE + SECONDS);
    assert_int_equal(discovery_database(w.host[2].discovery)->hosts, 3);
    world_end(&w);
}

/* Signatures are checked at a limited rate, so that a flood does not take the processor. */
TEST(test_floods_are_limited)
{
    static struct world w;
    const struct secrets none = {.count = 0};
    uint8_t bytes[PACKET_MOST];
    uint32_t hosts;

    begin(&w, 0);
    for (unsigned i = 0; i < 2 * DISCOVERY_BURST; i++) {
        receive(&w, bytes, report_packet(bytes, NULL, "a b", 1, i, &none)); /* no valid name */
    }
    for (unsigned i = 0; i < 10; i++) {
        receive(&w, bytes, report_packet(bytes, NULL, "phantom", 1, i, &none));
    }
    hosts = discovery_database(w.host[2].discovery)->hosts;
    assert_int_equal(hosts, 3);
    world_run(&w, SECONDS);
    receive(&w, bytes, report_packet(bytes, NULL, "phantom", 1, 5, &none));
    assert_int_equal(discovery_database(w.host[2].discovery)->hosts, 4);
    assert_true(is_whole(&w));
    world_end(&w);
}

/* Reports of one host that follow each other at once are not taken, and so not passed on to all. */
TEST(test_reports_of_one_host_are_spaced)
{
    static struct world w;
    const struct secrets none = {.count = 0};
    uint8_t bytes[PACKET_MOST];
    const struct host_id id = stranger_identity(1).id;

    begin(&w, 0);
    for (uint64_t i = 1; i <= 100; i++)
        receive(&w, bytes, report_packet(bytes, NULL, "busy", i, 1, &none));
    assert_int_equal(database_find(discovery_database(w.host[2].discovery), &id)->report->sequence,
                     1);
    world_run(&w, DISCOVERY_REPORT_SPACING);
    receive(&w, bytes, report_packet(bytes, NULL, "busy", 101, 1, &none));
    assert_int_equal(database_find(discovery_database(w.host[2].discovery), &id)->report->sequence,
                     101);
    world_end(&w);
}

/* Only a host itself signs with the key from which its id follows: nobody else can report in its name, whether the host
 * is reachable or not, with the cluster key or without. */
TEST(test_reports_in_the_name_of_others)
{
    static struct world w;
    struct secrets secrets = {.count = 0};
    uint8_t bytes[PACKET_MOST], key_bytes[KEY_SIZE] = {4};
    struct key key;
    const struct host_id id = world_id(0);

    begin(&w, 4);
    key_set(&key, key_bytes);
    discovery_key_make(&secrets.key[0], &key);
    for (secrets.count = 0; secrets.count < 2; secrets.count++) {
        receive(&w, bytes, report_packet(bytes, &id, "liar", REPORT_SEQUENCE_MOST, 1, &secrets));
        assert_string_equal(world_entry(&w, 2, 0)->report->name, "host0");
        assert_true(is_whole(&w));
    }
    world_plug(&w, 0, 0, WORLD_NO_SEGMENT);
    world_plug(&w, 1, 1, WORLD_NO_SEGMENT);
    world_run(&w, DISCOVERY_LOST_LIFE + 3 * SECONDS);
    assert_null(world_entry(&w, 2, 0));
    receive(&w, bytes, report_packet(bytes, &id, "liar", REPORT_SEQUENCE_MOST, 1, &secrets));
    assert_null(world_entry(&w, 2, 0));
    world_end(&w);
}

/* A process whose clock has gone back numbers its reports lower than those of the process before. */
TEST(test_a_host_overtakes_its_former_reports)
{
    static struct world w;
    uint64_t now;

    begin(&w, 0);
    now = w.now;
    world_stop(&w, 0, false);
    w.now = 0; /* while it starts */
    world_start(&w, 0);
    w.now = now;
    assert_true(world_entry(&w, 2, 0)->report->sequence > 100);
    world_run(&w, 5 * SECONDS);
    assert_true(is_whole(&w));
    world_set_key(&w, 0, 1);
    world_run(&w, 5 * SECONDS);
    assert_int_equal(world_entry(&w, 2, 0)->trust, TRUST_OTHER_KEY); /* its new reports are taken */
    world_end(&w);
}

/* A host with another release: it is not understood, and that is said. */
TEST(test_another_version)
{
    static struct world w;
    const uint8_t other[] = {8, DISCOVERY_VERSION + 1};

    begin(&w, 0);
    for (unsigned i = 0; i < 8; i++) {
        receive(&w, other, sizeof other);
        world_run(&w, SECONDS);
    }
    assert_true(world_entry(&w, 2, 2)->report->interface[0].unanswered);
    assert_int_equal(discovery_database(w.host[2].discovery)->hosts, 3);
    assert_true(is_whole(&w));
    world_run(&w, 60 * SECONDS);
    assert_false(world_entry(&w, 2, 2)->report->interface[0].unanswered);
    world_end(&w);
}

TEST(test_keys_are_shown)
{
    static struct world w;

    begin(&w, 4);
    assert_int_equal(world_entry(&w, 0, 2)->trust, TRUST_PROVED);
    world_set_key(&w, 2, 0);
    world_run(&w, 3 * DISCOVERY_LOST_LIFE);
    assert_int_equal(world_entry(&w, 0, 2)->trust, TRUST_OPEN);
    world_set_key(&w, 2, 8);
    world_run(&w, 3 * DISCOVERY_LOST_LIFE);
    assert_int_equal(world_entry(&w, 0, 2)->trust, TRUST_OTHER_KEY);
    world_set_key(&w, 2, 4);
    world_run(&w, 3 * DISCOVERY_LOST_LIFE);
    assert_int_equal(world_entry(&w, 0, 2)->trust, TRUST_PROVED);
    world_end(&w);
}

/* A signature of one kind, of another content, or a changed bit is worth nothing. */
TEST(test_signatures)
{
    uint8_t seed[SEED_SIZE] = {1}, content[] = "content";
    struct secrets secrets = {.count = 1};
    struct identity identity;
    struct signed_parts parts;
    Discovery__Signed s;

    key_set(&secrets.key[0], seed);
    identity_make(&identity, seed, NULL);
    signing_sign(&identity, &secrets, SIGNED_HELLO, content, sizeof content, &parts, &s);
    assert_true(signing_check(SIGNED_HELLO, &s, &identity.id));
    assert_int_equal(signing_trust(&secrets, SIGNED_HELLO, &s), TRUST_PROVED);
    assert_false(signing_check(SIGNED_REPORT, &s, &identity.id));
    const struct host_id other = stranger_identity(5).id;
    assert_false(signing_check(SIGNED_HELLO, &s, &other));
    assert_int_equal(signing_trust(&secrets, SIGNED_REPORT, &s), TRUST_OTHER_KEY);
    for (size_t bit = 0; bit < 8 * sizeof content; bit++) {
        content[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(signing_check(SIGNED_HELLO, &s, &identity.id));
        assert_int_equal(signing_trust(&secrets, SIGNED_HELLO, &s), TRUST_OTHER_KEY);
        content[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    s.signature.len--;
    assert_false(signing_check(SIGNED_HELLO, &s, &identity.id));
}

/* Recorded packets with changed bytes, and cut ones: nothing crashes, and all hosts stay known. */
TEST(test_damaged_packets)
{
    static struct world w;
    uint8_t bytes[PACKET_MOST];
    uint64_t random = 12345;

    begin(&w, 0);
    w.record = true;
    world_run(&w, 3 * SECONDS);
    w.record = false;
    for (const struct world_packet *p = w.recorded; p != NULL; p = p->next)
        for (int i = 0; i < 40 && p->size <= sizeof bytes; i++) {
            size_t size = p->size;
            memcpy(bytes, p->bytes, size);
            for (int n = 0; n < 3; n++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                bytes[(random >> 33) % size] ^= (uint8_t)(1 << (random >> 20) % 8);
            }
            if (i % 4 == 0)
                size = (random >> 40) % size;
            discovery_receive(w.host[p->host].discovery, p->interface + 1, &p->from, bytes, size);
        }
    world_run(&w, 3 * SECONDS);
    assert_true(is_whole(&w));
    world_end(&w);
}

TEST(test_invalid_reports)
{
    static struct world w;
    static const char *const names[] = {"", "a b", "a/b", "-x", ".x", "\xff", "x\n"};
    const struct secrets none = {.count = 0};
    uint8_t bytes[PACKET_MOST];

    begin(&w, 0);
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        receive(&w, bytes, report_packet(bytes, NULL, names[i], 1, i, &none));
    }
    receive(&w, bytes, report_packet(bytes, NULL, "phantom", REPORT_SEQUENCE_MOST + 1, 1, &none));
    assert_int_equal(discovery_database(w.host[2].discovery)->hosts, 3);
    receive(&w, bytes, report_packet(bytes, NULL, "phantom", REPORT_SEQUENCE_MOST, 1, &none));
    assert_int_equal(discovery_database(w.host[2].discovery)->hosts, 4);
    world_end(&w);
}
