/* Setups that travel over several hosts in virtual time: loss, keys, replays, limits. */
#include "daemon/lib/discovery/signing.h"
#include "discovery_world.h"
#include "proto/discovery.pb-c.h"
#include "tests/support/cmocka.h"

/* The last setup, and its answer. */
static struct {
    struct outgoing_setup *setup;
    struct world_host *from;
    struct host_id to;
    bool apply;
    const void *bytes;
    size_t bytes_size;
    struct reply_keys keys;
    bool ended;
    struct error e;
    uint32_t status;
    size_t size;
    char output[256];
} answer;

/* As torusctl does it. */
static void on_challenged(void *context, const struct setup_challenge *c)
{
    const struct setup_frame frame = {c->id, c->from, &answer.to, c->nonce};
    size_t size;
    struct error e;
    uint8_t *sealed;

    memset(answer.keys.secret_key, 5, sizeof answer.keys.secret_key);
    reply_keys_make(&answer.keys);
    sealed = seal_setup(&frame, &answer.from->secrets, c->key, &answer.keys, answer.apply,
                        answer.bytes, answer.bytes_size, &size, &e);
    assert_non_null(sealed);
    discovery_send_sealed(answer.from->discovery, answer.setup, sealed, size);
    free(sealed);
}

static void on_ended(void *context, const struct setup_end *end)
{
    struct setup_answer a;
    char *storage = NULL;

    assert_false(answer.ended);
    answer.ended = true;
    answer.e = end->e;
    if (end->e.code != ERROR_NONE)
        return;
    assert_int_equal(open_result(&answer.keys, end->sealed, end->size, &a, &storage, &answer.e), 0);
    answer.e = a.e;
    answer.status = a.status;
    answer.size = a.size;
    memset(answer.output, 0, sizeof answer.output);
    memcpy(answer.output, a.output,
           a.size < sizeof answer.output ? a.size : sizeof answer.output - 1);
    free(storage);
}

/* The bytes must stay until the setup has ended. */
static struct outgoing_setup *send_setup(struct world *w, unsigned from, unsigned to, bool apply,
                                         const void *bytes, size_t size)
{
    const struct setup_user user = {on_challenged, on_ended, NULL};
    struct error e;

    answer.from = &w->host[from];
    answer.to = world_id(to);
    answer.apply = apply;
    answer.bytes = bytes;
    answer.bytes_size = size;
    answer.setup = discovery_send_setup(w->host[from].discovery, &answer.to, &user, &e);
    answer.ended = false;
    answer.e.code = answer.setup != NULL ? ERROR_NONE : e.code;
    return answer.setup;
}

static bool has_ended(struct world *w)
{
    return answer.ended;
}

static unsigned watched; /* the host of command_runs() */

static bool command_runs(struct world *w)
{
    return w->host[watched].runs;
}

static bool wait_for_command(struct world *w, unsigned host)
{
    watched = host;
    return world_run_until(w, command_runs, 60 * SECONDS);
}

/* A line of hosts that all accept setups, and know each other. */
static void begin_line(struct world *w, unsigned hosts, unsigned key)
{
    world_begin(w, hosts, 2, 11);
    for (unsigned h = 0; h < hosts; h++) {
        w->host[h].accepts = true;
        world_set_key(w, h, key);
    }
    for (unsigned h = 0; h + 1 < hosts; h++)
        (void)world_cable(w, h, 0, h + 1, 1);
    world_start_all(w);
    assert_true(world_run_until(w, world_is_known, 30 * SECONDS));
}

/* LINE_TEST(HOSTS, KEY, NAME) { ... }: a test in such a line. */
#define LINE_TEST(hosts, key, name)                                                                \
    TEST_BETWEEN(struct world, w, begin_line(&fixture, hosts, key), world_end(&fixture), name)

/* The setup that was sent ends with this code. */
static void ends(struct world *w, enum error_code code)
{
    assert_true(world_run_until(w, has_ended, 60 * SECONDS));
    assert_int_equal(answer.e.code, code);
}

/* A setup is sent; its command runs. */
static void starts(struct world *w, unsigned from, unsigned to, const char *text)
{
    assert_non_null(send_setup(w, from, to, true, text, strlen(text)));
    assert_true(wait_for_command(w, to));
    assert_memory_equal(w->host[to].setup, text, strlen(text));
}

/* Its command ends well, and so does the setup. */
static void finishes(struct world *w, unsigned host)
{
    world_command_ends(w, host, 0, "");
    ends(w, ERROR_NONE);
}

/* A setup is sent, and ends with this code. */
static void fails(struct world *w, unsigned from, unsigned to, enum error_code code)
{
    assert_non_null(send_setup(w, from, to, true, "bad", 3));
    ends(w, code);
}

static uint8_t *pattern(size_t size)
{
    uint8_t *bytes = malloc(size);

    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    return bytes;
}

LINE_TEST(7, 0, test_large_setup_in_spite_of_loss)
{
    uint8_t *bytes = pattern(DISCOVERY_SETUP_MOST);

    w->loss = 0.1; /* on each of six cables */
    assert_non_null(send_setup(w, 0, 6, true, bytes, DISCOVERY_SETUP_MOST));
    assert_true(wait_for_command(w, 6));
    assert_true(w->host[6].applied);
    assert_int_equal(w->host[6].setup_size, DISCOVERY_SETUP_MOST);
    assert_memory_equal(w->host[6].setup, bytes, DISCOVERY_SETUP_MOST);
    world_run(w, 60 * SECONDS); /* the command takes its time */
    assert_false(answer.ended);
    world_command_ends(w, 6, 3, "three things are wrong");
    ends(w, ERROR_NONE);
    assert_int_equal(answer.status, 3);
    assert_string_equal(answer.output, "three things are wrong");
    for (unsigned h = 0; h < 7; h++)
        assert_int_equal(w->host[h].runs_count, h == 6);
    free(bytes);
}

LINE_TEST(3, 0, test_show_and_long_output)
{
    char *output = calloc(1, DISCOVERY_OUTPUT_MOST + 1001);

    memset(output, 'x', DISCOVERY_OUTPUT_MOST + 1000);
    assert_non_null(send_setup(w, 2, 0, false, "", 0));
    assert_true(wait_for_command(w, 0));
    assert_false(w->host[0].applied);
    assert_int_equal(w->host[0].setup_size, 0);
    world_command_ends(w, 0, 0, output);
    assert_true(world_run_until(w, has_ended, 20 * SECONDS));
    assert_int_equal(answer.size, DISCOVERY_OUTPUT_MOST);
    free(output);
}

/* Setups of the own host do not travel. */
LINE_TEST(2, 0, test_own_host)
{
    assert_null(send_setup(w, 0, 0, true, "own", 3));
    assert_int_equal(answer.e.code, ERROR_USAGE);
}

/* Whoever sends a setup goes away while its command runs: no other setup starts before it ends, and none gets its
 * answer. */
LINE_TEST(3, 0, test_a_setup_outlives_its_sender)
{
    struct outgoing_setup *s;

    s = send_setup(w, 2, 1, true, "first", 5);
    assert_true(wait_for_command(w, 1));
    discovery_cancel_setup(w->host[2].discovery, s);
    assert_non_null(send_setup(w, 0, 1, true, "next", 4));
    world_run(w, 10 * SECONDS);
    assert_int_equal(w->host[1].runs_count, 1);
    world_command_ends(w, 1, 7, "of the first");
    assert_true(wait_for_command(w, 1));
    assert_int_equal(w->host[1].runs_count, 2);
    assert_false(answer.ended);
    world_command_ends(w, 1, 0, "of the second");
    assert_true(world_run_until(w, has_ended, 20 * SECONDS));
    assert_string_equal(answer.output, "of the second");
}

/* The sealed setup is for one host: another one cannot open it, and none that has a changed byte can be opened. */
TEST(test_a_seal_is_for_one_host)
{
    const uint8_t id[SETUP_ID_SIZE] = {1}, nonce[NONCE_SIZE] = {2}, other_nonce[NONCE_SIZE] = {3},
                  seeds[2][SEED_SIZE] = {{1}, {2}}, key[KEY_SIZE] = {7};
    struct identity host[2];
    struct opener opener[2] = {{.open = true}, {.open = true}};
    struct reply_keys keys = {.secret_key = {9}};
    struct secrets secrets = {.count = 1};
    struct opened_setup opened;
    struct error e;
    size_t size;
    uint8_t *sealed;

    for (unsigned i = 0; i < 2; i++)
        identity_make(&host[i], seeds[i], opener[i].opening_key);
    reply_keys_make(&keys);
    key_set(&secrets.key[0], key);
    struct setup_frame frame = {id, &host[0].id, &host[1].id, nonce};
    sealed = seal_setup(&frame, &secrets, host[1].public_key, &keys, true, "secret", 6, &size, &e);
    assert_non_null(sealed);
    assert_null(memmem(sealed, size, "secret", 6));
    assert_int_equal(open_setup(&frame, &opener[0], sealed, size, &opened, &e), -1);
    assert_int_equal(open_setup(&frame, &opener[1], sealed, size, &opened, &e), 0);
    assert_memory_equal(opened.bytes, "secret", 6);
    free(opened.bytes);
    for (size_t i = 0; i < size; i++) {
        sealed[i] ^= 1;
        assert_int_equal(open_setup(&frame, &opener[1], sealed, size, &opened, &e), -1);
        sealed[i] ^= 1;
    }
    frame.nonce = other_nonce;
    assert_int_equal(open_setup(&frame, &opener[1], sealed, size, &opened, &e), -1);
    /* A host with a key takes the hosts and the id into account, which the proof covers. */
    frame.nonce = nonce;
    opener[1].secrets = secrets;
    assert_int_equal(open_setup(&frame, &opener[1], sealed, size, &opened, &e), 0);
    free(opened.bytes);
    frame.from = &host[1].id;
    assert_int_equal(open_setup(&frame, &opener[1], sealed, size, &opened, &e), -1);
    free(sealed);
}

/* Somebody who has the derived key cannot make a proof for a setup. */
TEST(test_the_derived_key_opens_nothing)
{
    const uint8_t id[SETUP_ID_SIZE] = {1}, nonce[NONCE_SIZE] = {2}, seed[SEED_SIZE] = {1},
                  key[KEY_SIZE] = {7};
    struct identity host;
    struct opener opener = {.secrets.count = 1};
    struct reply_keys keys = {.secret_key = {9}};
    struct secrets derived = {.count = 1};
    struct opened_setup opened;
    struct error e;
    size_t size;
    uint8_t *sealed;

    identity_make(&host, seed, opener.opening_key);
    reply_keys_make(&keys);
    key_set(&opener.secrets.key[0], key);
    discovery_key_make(&derived.key[0], &opener.secrets.key[0]);
    const struct setup_frame frame = {id, &host.id, &host.id, nonce};
    sealed = seal_setup(&frame, &derived, host.public_key, &keys, true, "bad", 3, &size, &e);
    assert_fails(open_setup(&frame, &opener, sealed, size, &opened, &e), e, ERROR_REFUSED, "");
    free(sealed);
}

LINE_TEST(3, 0, test_one_command_at_a_time)
{
    starts(w, 0, 1, "first");
    assert_non_null(send_setup(w, 2, 1, true, "second", 6));
    world_run(w, 10 * SECONDS);
    assert_int_equal(w->host[1].runs_count, 1);
    finishes(w, 1);
    answer.ended = false;
    assert_true(wait_for_command(w, 1));
    assert_memory_equal(w->host[1].setup, "second", 6);
    finishes(w, 1);
}

static void ignore_challenge(void *context, const struct setup_challenge *c)
{
}

static void ignore_end(void *context, const struct setup_end *end)
{
}

/* Strangers on a switch announce setups that never come, as many as they can. They do not keep the owner out, whether
 * the hosts have a key or are new. */
TEST(test_strangers_do_not_take_all_places)
{
    static struct world w;
    const struct setup_user nobody = {ignore_challenge, ignore_end, NULL};
    const struct host_id victim = world_id(1);
    struct error e;

    for (unsigned key = 0; key < 2; key++) {
        world_begin(&w, 8, 3, 21 + key);
        for (unsigned h = 0; h < 8; h++)
            w.host[h].accepts = true;
        for (unsigned h = 0; h < 2; h++)
            world_set_key(&w, h, key);
        (void)world_cable(&w, 0, 0, 1, 1);
        for (unsigned h = 2; h < 8; h++)
            world_plug(&w, h, 0, w.segments);
        world_plug(&w, 1, 2, w.segments++);
        world_start_all(&w);
        assert_true(world_run_until(&w, world_is_known, 30 * SECONDS));
        for (unsigned h = 2; h < 8; h++)
            for (unsigned i = 0; i < SETUPS_OUT_MOST; i++)
                assert_non_null(discovery_send_setup(w.host[h].discovery, &victim, &nobody, &e));
        world_run(&w, 2 * SECONDS);
        starts(&w, 0, 1, "owner");
        finishes(&w, 1);
        world_end(&w);
    }
}

/* A host with a key refuses a setup from a host without it, and one with another key. */
LINE_TEST(3, 5, test_key_is_needed)
{
    world_set_key(w, 0, 0);
    world_run(w, 5 * SECONDS);
    fails(w, 0, 2, ERROR_REFUSED);
    assert_int_equal(w->host[2].runs_count, 0);
    world_set_key(w, 0, 6);
    world_run(w, 5 * SECONDS);
    fails(w, 0, 2, ERROR_REFUSED);
    assert_int_equal(w->host[2].runs_count, 0);
    /* The receiver's key is changed while a setup is under way. */
    world_set_key(w, 0, 5);
    world_run(w, 5 * SECONDS);
    assert_non_null(send_setup(w, 0, 2, true, "bad", 3));
    world_set_key(w, 2, 6);
    ends(w, ERROR_REFUSED);
    assert_int_equal(w->host[2].runs_count, 0);
    world_set_key(w, 2, 5);
    world_run(w, 5 * SECONDS);
    starts(w, 0, 2, "good");
    finishes(w, 2);
}

/* A host without a key accepts a setup, which brings the key; then it needs the key. */
LINE_TEST(2, 0, test_first_setup_brings_the_key)
{
    world_set_key(w, 0, 9);
    world_run(w, 5 * SECONDS);
    starts(w, 0, 1, "key");
    world_command_ends(w, 1, 0, "");
    world_set_key(w, 1, 9);
    ends(w, ERROR_NONE);
    world_run(w, 5 * SECONDS);
    assert_int_equal(world_entry(w, 0, 1)->trust, TRUST_PROVED);
    world_set_key(w, 0, 0);
    world_run(w, 5 * SECONDS);
    fails(w, 0, 1, ERROR_REFUSED);
    assert_int_equal(w->host[1].runs_count, 1);
}

/* A host that was set up before, and has no key now, takes setups from nobody. */
LINE_TEST(2, 0, test_a_host_without_its_key_is_closed)
{
    assert_true(world_entry(w, 0, 1)->report->accepts_setups);
    w->host[1].closed = true;
    world_set_key(w, 1, 0);
    /* The sender does not know it yet. */
    fails(w, 0, 1, ERROR_REFUSED);
    world_run(w, 5 * SECONDS);
    assert_false(world_entry(w, 0, 1)->report->accepts_setups);
    assert_null(send_setup(w, 0, 1, true, "second", 6));
    assert_int_equal(answer.e.code, ERROR_REFUSED);
    assert_int_equal(w->host[1].runs_count, 0);
    world_set_key(w, 1, 3);
    world_set_key(w, 0, 3);
    world_run(w, 5 * SECONDS);
    starts(w, 0, 1, "third");
    finishes(w, 1);
}

/* Packets of a setup that are sent again run nothing: neither at once, nor when they answer a new challenge. */
LINE_TEST(2, 3, test_replays_are_refused)
{
    w->record = true;
    starts(w, 0, 1, "once");
    world_replay(w, 1);
    finishes(w, 1);
    world_run(w, 5 * SECONDS);
    w->record = false;
    for (int i = 0; i < 3; i++) {
        world_replay(w, 1);
        world_run(w, SECONDS);
    }
    world_run(w, 40 * SECONDS);
    assert_int_equal(w->host[1].runs_count, 1);
}

LINE_TEST(3, 0, test_refusals_and_silence)
{
    uint8_t *bytes = pattern(2 * DISCOVERY_SETUP_MOST);

    assert_non_null(send_setup(w, 0, 1, true, bytes, 2 * DISCOVERY_SETUP_MOST));
    ends(w, ERROR_USAGE);
    assert_null(send_setup(w, 0, 50, true, "x", 1));
    assert_int_equal(answer.e.code, ERROR_LINK);
    /* The host dies while the setup is under way. */
    assert_non_null(send_setup(w, 0, 2, true, bytes, 100000));
    world_stop(w, 2, false);
    ends(w, ERROR_TIMEOUT);
    /* A client that goes away gets no answer. */
    struct outgoing_setup *s = send_setup(w, 0, 1, true, "x", 1);
    discovery_cancel_setup(w->host[0].discovery, s);
    world_run(w, 60 * SECONDS);
    assert_false(answer.ended);
    w->host[2].accepts = false;
    world_start(w, 2);
    world_run(w, 10 * SECONDS);
    assert_null(send_setup(w, 0, 2, true, "x", 1));
    assert_int_equal(answer.e.code, ERROR_REFUSED);
    free(bytes);
}

/* What strangers and hostile neighbours can do to discovery: they cost neither memory, nor hosts, nor cables. */

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

/* STRANGER_TEST(KEY, NAME) { ... }: a test with a stranger. */
#define STRANGER_TEST(key, name)                                                                   \
    TEST_BETWEEN(struct world, w, begin(&fixture, key), world_end(&fixture), name)

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

STRANGER_TEST(0, test_invented_hosts_are_bounded_and_forgotten)
{
    const struct secrets none = {.count = 0};
    uint8_t bytes[PACKET_MOST];

    for (unsigned i = 0; i < 3000; i++) {
        receive(w, bytes, report_packet(bytes, NULL, "phantom", 1, i, &none));
        assert_true(discovery_database(w->host[2].discovery)->hosts <= DATABASE_HOSTS_MOST);
        if (i % 100 == 0)
            world_run(w, 10 * MILLISECONDS);
    }
    assert_int_equal(discovery_database(w->host[2].discovery)->hosts, DATABASE_HOSTS_MOST);
    assert_true(is_whole(w));
    assert_int_equal(discovery_database(w->host[0].discovery)->hosts,
                     3); /* they are not passed on */
    world_run(w, DISCOVERY_LOST_LIFE + SECONDS);
    assert_int_equal(discovery_database(w->host[2].discovery)->hosts, 3);
}

/* Signatures are checked at a limited rate, so that a flood does not take the processor. */
STRANGER_TEST(0, test_floods_are_limited)
{
    const struct secrets none = {.count = 0};
    uint8_t bytes[PACKET_MOST];
    uint32_t hosts;

    for (unsigned i = 0; i < 2 * DISCOVERY_BURST; i++) {
        receive(w, bytes, report_packet(bytes, NULL, "a b", 1, i, &none)); /* no valid name */
    }
    for (unsigned i = 0; i < 10; i++) {
        receive(w, bytes, report_packet(bytes, NULL, "phantom", 1, i, &none));
    }
    hosts = discovery_database(w->host[2].discovery)->hosts;
    assert_int_equal(hosts, 3);
    world_run(w, SECONDS);
    receive(w, bytes, report_packet(bytes, NULL, "phantom", 1, 5, &none));
    assert_int_equal(discovery_database(w->host[2].discovery)->hosts, 4);
    assert_true(is_whole(w));
}

/* Reports of one host that follow each other at once are not taken, and so not passed on to all. */
STRANGER_TEST(0, test_reports_of_one_host_are_spaced)
{
    const struct secrets none = {.count = 0};
    uint8_t bytes[PACKET_MOST];
    const struct host_id id = stranger_identity(1).id;

    for (uint64_t i = 1; i <= 100; i++)
        receive(w, bytes, report_packet(bytes, NULL, "busy", i, 1, &none));
    assert_int_equal(database_find(discovery_database(w->host[2].discovery), &id)->report->sequence,
                     1);
    world_run(w, DISCOVERY_REPORT_SPACING);
    receive(w, bytes, report_packet(bytes, NULL, "busy", 101, 1, &none));
    assert_int_equal(database_find(discovery_database(w->host[2].discovery), &id)->report->sequence,
                     101);
}

/* Only a host itself signs with the key from which its id follows: nobody else can report in its name, whether the host
 * is reachable or not, with the cluster key or without. */
STRANGER_TEST(4, test_reports_in_the_name_of_others)
{
    struct secrets secrets = {.count = 0};
    uint8_t bytes[PACKET_MOST], key_bytes[KEY_SIZE] = {4};
    struct key key;
    const struct host_id id = world_id(0);

    key_set(&key, key_bytes);
    discovery_key_make(&secrets.key[0], &key);
    for (secrets.count = 0; secrets.count < 2; secrets.count++) {
        receive(w, bytes, report_packet(bytes, &id, "liar", REPORT_SEQUENCE_MOST, 1, &secrets));
        assert_string_equal(world_entry(w, 2, 0)->report->name, "host0");
        assert_true(is_whole(w));
    }
    world_plug(w, 0, 0, WORLD_NO_SEGMENT);
    world_plug(w, 1, 1, WORLD_NO_SEGMENT);
    world_run(w, DISCOVERY_LOST_LIFE + 3 * SECONDS);
    assert_null(world_entry(w, 2, 0));
    receive(w, bytes, report_packet(bytes, &id, "liar", REPORT_SEQUENCE_MOST, 1, &secrets));
    assert_null(world_entry(w, 2, 0));
}

/* A process whose clock has gone back numbers its reports lower than those of the process before. */
STRANGER_TEST(0, test_a_host_overtakes_its_former_reports)
{
    uint64_t now;

    now = w->now;
    world_stop(w, 0, false);
    w->now = 0; /* while it starts */
    world_start(w, 0);
    w->now = now;
    assert_true(world_entry(w, 2, 0)->report->sequence > 100);
    world_run(w, 5 * SECONDS);
    assert_true(is_whole(w));
    world_set_key(w, 0, 1);
    world_run(w, 5 * SECONDS);
    assert_int_equal(world_entry(w, 2, 0)->trust, TRUST_OTHER_KEY); /* its new reports are taken */
}

/* A host with another release: it is not understood, and that is said. */
STRANGER_TEST(0, test_another_version)
{
    const uint8_t other[] = {8, DISCOVERY_VERSION + 1};

    for (unsigned i = 0; i < 8; i++) {
        receive(w, other, sizeof other);
        world_run(w, SECONDS);
    }
    assert_true(world_entry(w, 2, 2)->report->interface[0].unanswered);
    assert_int_equal(discovery_database(w->host[2].discovery)->hosts, 3);
    assert_true(is_whole(w));
    world_run(w, 60 * SECONDS);
    assert_false(world_entry(w, 2, 2)->report->interface[0].unanswered);
}

STRANGER_TEST(4, test_keys_are_shown)
{
    assert_int_equal(world_entry(w, 0, 2)->trust, TRUST_PROVED);
    world_set_key(w, 2, 0);
    world_run(w, 3 * DISCOVERY_LOST_LIFE);
    assert_int_equal(world_entry(w, 0, 2)->trust, TRUST_OPEN);
    world_set_key(w, 2, 8);
    world_run(w, 3 * DISCOVERY_LOST_LIFE);
    assert_int_equal(world_entry(w, 0, 2)->trust, TRUST_OTHER_KEY);
    world_set_key(w, 2, 4);
    world_run(w, 3 * DISCOVERY_LOST_LIFE);
    assert_int_equal(world_entry(w, 0, 2)->trust, TRUST_PROVED);
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
STRANGER_TEST(0, test_damaged_packets)
{
    uint8_t bytes[PACKET_MOST];
    uint64_t random = 12345;

    w->record = true;
    world_run(w, 3 * SECONDS);
    w->record = false;
    for (const struct world_packet *p = w->recorded; p != NULL; p = p->next)
        for (int i = 0; i < 40 && p->size <= sizeof bytes; i++) {
            size_t size = p->size;
            memcpy(bytes, p->bytes, size);
            for (int n = 0; n < 3; n++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                bytes[(random >> 33) % size] ^= (uint8_t)(1 << (random >> 20) % 8);
            }
            if (i % 4 == 0)
                size = (random >> 40) % size;
            discovery_receive(w->host[p->host].discovery, p->interface + 1, &p->from, bytes, size);
        }
    world_run(w, 3 * SECONDS);
    assert_true(is_whole(w));
}

STRANGER_TEST(0, test_invalid_reports)
{
    static const char *const names[] = {"", "a b", "a/b", "-x", ".x", "\xff", "x\n"};
    const struct secrets none = {.count = 0};
    uint8_t bytes[PACKET_MOST];

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        receive(w, bytes, report_packet(bytes, NULL, names[i], 1, i, &none));
    }
    receive(w, bytes, report_packet(bytes, NULL, "phantom", REPORT_SEQUENCE_MOST + 1, 1, &none));
    assert_int_equal(discovery_database(w->host[2].discovery)->hosts, 3);
    receive(w, bytes, report_packet(bytes, NULL, "phantom", REPORT_SEQUENCE_MOST, 1, &none));
    assert_int_equal(discovery_database(w->host[2].discovery)->hosts, 4);
}
