/* Setups that travel over several hosts in virtual time: loss, keys, replays, limits. */
#include "discovery_world.h"
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

static uint8_t *pattern(size_t size)
{
    uint8_t *bytes = malloc(size);

    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    return bytes;
}

TEST(test_large_setup_in_spite_of_loss)
{
    static struct world w;
    uint8_t *bytes = pattern(DISCOVERY_SETUP_MOST);

    begin_line(&w, 7, 0);
    w.loss = 0.1; /* on each of six cables */
    assert_non_null(send_setup(&w, 0, 6, true, bytes, DISCOVERY_SETUP_MOST));
    assert_true(wait_for_command(&w, 6));
    assert_true(w.host[6].applied);
    assert_int_equal(w.host[6].setup_size, DISCOVERY_SETUP_MOST);
    assert_memory_equal(w.host[6].setup, bytes, DISCOVERY_SETUP_MOST);
    world_run(&w, 60 * SECONDS); /* the command takes its time */
    assert_false(answer.ended);
    world_command_ends(&w, 6, 3, "three things are wrong");
    assert_true(world_run_until(&w, has_ended, 60 * SECONDS));
    assert_int_equal(answer.e.code, ERROR_NONE);
    assert_int_equal(answer.status, 3);
    assert_string_equal(answer.output, "three things are wrong");
    for (unsigned h = 0; h < 7; h++)
        assert_int_equal(w.host[h].runs_count, h == 6);
    free(bytes);
    world_end(&w);
}

TEST(test_show_and_long_output)
{
    static struct world w;
    char *output = calloc(1, DISCOVERY_OUTPUT_MOST + 1001);

    memset(output, 'x', DISCOVERY_OUTPUT_MOST + 1000);
    begin_line(&w, 3, 0);
    assert_non_null(send_setup(&w, 2, 0, false, "", 0));
    assert_true(wait_for_command(&w, 0));
    assert_false(w.host[0].applied);
    assert_int_equal(w.host[0].setup_size, 0);
    world_command_ends(&w, 0, 0, output);
    assert_true(world_run_until(&w, has_ended, 20 * SECONDS));
    assert_int_equal(answer.size, DISCOVERY_OUTPUT_MOST);
    free(output);
    world_end(&w);
}

/* Setups of the own host do not travel. */
TEST(test_own_host)
{
    static struct world w;

    begin_line(&w, 2, 0);
    assert_null(send_setup(&w, 0, 0, true, "own", 3));
    assert_int_equal(answer.e.code, ERROR_USAGE);
    world_end(&w);
}

/* Whoever sends a setup goes away while its command runs: no other setup starts before it ends, and none gets its
 * answer. */
TEST(test_a_setup_outlives_its_sender)
{
    static struct world w;
    struct outgoing_setup *s;

    begin_line(&w, 3, 0);
    s = send_setup(&w, 2, 1, true, "first", 5);
    assert_true(wait_for_command(&w, 1));
    discovery_cancel_setup(w.host[2].discovery, s);
    assert_non_null(send_setup(&w, 0, 1, true, "next", 4));
    world_run(&w, 10 * SECONDS);
    assert_int_equal(w.host[1].runs_count, 1);
    world_command_ends(&w, 1, 7, "of the first");
    assert_true(wait_for_command(&w, 1));
    assert_int_equal(w.host[1].runs_count, 2);
    assert_false(answer.ended);
    world_command_ends(&w, 1, 0, "of the second");
    assert_true(world_run_until(&w, has_ended, 20 * SECONDS));
    assert_string_equal(answer.output, "of the second");
    world_end(&w);
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

/* Who has the derived key cannot make a proof for a setup. */
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
    assert_int_equal(open_setup(&frame, &opener, sealed, size, &opened, &e), -1);
    assert_int_equal(e.code, ERROR_REFUSED);
    free(sealed);
}

TEST(test_one_command_at_a_time)
{
    static struct world w;

    begin_line(&w, 3, 0);
    assert_non_null(send_setup(&w, 0, 1, true, "first", 5));
    assert_true(wait_for_command(&w, 1));
    assert_non_null(send_setup(&w, 2, 1, true, "second", 6));
    world_run(&w, 10 * SECONDS);
    assert_int_equal(w.host[1].runs_count, 1);
    world_command_ends(&w, 1, 0, "");
    assert_true(world_run_until(&w, has_ended, 10 * SECONDS));
    answer.ended = false;
    assert_true(wait_for_command(&w, 1));
    assert_memory_equal(w.host[1].setup, "second", 6);
    world_command_ends(&w, 1, 0, "");
    assert_true(world_run_until(&w, has_ended, 10 * SECONDS));
    world_end(&w);
}

static void ignore_challenge(void *context, const struct setup_challenge *c)
{
}

static void ignore_end(void *context, const struct setup_end *end)
{
}

/* Strangers on a switch announce setups that never come, as many as they can. They do not keep the owner out, whether the
 * hosts have a key or are new. */
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
        assert_non_null(send_setup(&w, 0, 1, true, "owner", 5));
        assert_true(wait_for_command(&w, 1));
        assert_memory_equal(w.host[1].setup, "owner", 5);
        world_command_ends(&w, 1, 0, "");
        assert_true(world_run_until(&w, has_ended, 20 * SECONDS));
        assert_int_equal(answer.e.code, ERROR_NONE);
        world_end(&w);
    }
}

/* A host with a key refuses a setup from a host without it, and one with another key. */
TEST(test_key_is_needed)
{
    static struct world w;

    begin_line(&w, 3, 5);
    world_set_key(&w, 0, 0);
    world_run(&w, 5 * SECONDS);
    assert_non_null(send_setup(&w, 0, 2, true, "bad", 3));
    assert_true(world_run_until(&w, has_ended, 20 * SECONDS));
    assert_int_equal(answer.e.code, ERROR_REFUSED);
    assert_int_equal(w.host[2].runs_count, 0);
    world_set_key(&w, 0, 6);
    world_run(&w, 5 * SECONDS);
    assert_non_null(send_setup(&w, 0, 2, true, "bad", 3));
    assert_true(world_run_until(&w, has_ended, 20 * SECONDS));
    assert_int_equal(answer.e.code, ERROR_REFUSED);
    assert_int_equal(w.host[2].runs_count, 0);
    /* The receiver's key is changed while a setup is under way. */
    world_set_key(&w, 0, 5);
    world_run(&w, 5 * SECONDS);
    assert_non_null(send_setup(&w, 0, 2, true, "bad", 3));
    world_set_key(&w, 2, 6);
    assert_true(world_run_until(&w, has_ended, 20 * SECONDS));
    assert_int_equal(answer.e.code, ERROR_REFUSED);
    assert_int_equal(w.host[2].runs_count, 0);
    world_set_key(&w, 2, 5);
    world_run(&w, 5 * SECONDS);
    assert_non_null(send_setup(&w, 0, 2, true, "good", 4));
    assert_true(wait_for_command(&w, 2));
    world_command_ends(&w, 2, 0, "");
    assert_true(world_run_until(&w, has_ended, 20 * SECONDS));
    assert_int_equal(answer.e.code, ERROR_NONE);
    world_end(&w);
}

/* A host without a key accepts a setup, which brings the key; then it needs the key. */
TEST(test_first_setup_brings_the_key)
{
    static struct world w;

    begin_line(&w, 2, 0);
    world_set_key(&w, 0, 9);
    world_run(&w, 5 * SECONDS);
    assert_non_null(send_setup(&w, 0, 1, true, "key", 3));
    assert_true(wait_for_command(&w, 1));
    world_command_ends(&w, 1, 0, "");
    world_set_key(&w, 1, 9);
    assert_true(world_run_until(&w, has_ended, 20 * SECONDS));
    assert_int_equal(answer.e.code, ERROR_NONE);
    world_run(&w, 5 * SECONDS);
    assert_int_equal(world_entry(&w, 0, 1)->trust, TRUST_PROVED);
    world_set_key(&w, 0, 0);
    world_run(&w, 5 * SECONDS);
    assert_non_null(send_setup(&w, 0, 1, true, "no key", 6));
    assert_true(world_run_until(&w, has_ended, 20 * SECONDS));
    assert_int_equal(answer.e.code, ERROR_REFUSED);
    assert_int_equal(w.host[1].runs_count, 1);
    world_end(&w);
}

/* A host that was set up before, and has no key now, takes setups from nobody. */
TEST(test_a_host_without_its_key_is_closed)
{
    static struct world w;

    begin_line(&w, 2, 0);
    assert_true(world_entry(&w, 0, 1)->report->accepts_setups);
    w.host[1].closed = true;
    world_set_key(&w, 1, 0);
    /* The sender does not know it yet. */
    assert_non_null(send_setup(&w, 0, 1, true, "first", 5));
    assert_true(world_run_until(&w, has_ended, 20 * SECONDS));
    assert_int_equal(answer.e.code, ERROR_REFUSED);
    world_run(&w, 5 * SECONDS);
    assert_false(world_entry(&w, 0, 1)->report->accepts_setups);
    assert_null(send_setup(&w, 0, 1, true, "second", 6));
    assert_int_equal(answer.e.code, ERROR_REFUSED);
    assert_int_equal(w.host[1].runs_count, 0);
    world_set_key(&w, 1, 3);
    world_set_key(&w, 0, 3);
    world_run(&w, 5 * SECONDS);
    assert_non_null(send_setup(&w, 0, 1, true, "third", 5));
    assert_true(wait_for_command(&w, 1));
    world_command_ends(&w, 1, 0, "");
    assert_true(world_run_until(&w, has_ended, 20 * SECONDS));
    world_end(&w);
}

/* Packets of a setup that are sent again run nothing: neither at once, nor when they answer a new challenge. */
TEST(test_replays_are_refused)
{
    static struct world w;

    begin_line(&w, 2, 3);
    w.record = true;
    assert_non_null(send_setup(&w, 0, 1, true, "once", 4));
    assert_true(wait_for_command(&w, 1));
    world_replay(&w, 1);
    world_command_ends(&w, 1, 0, "");
    assert_true(world_run_until(&w, has_ended, 20 * SECONDS));
    world_run(&w, 5 * SECONDS);
    w.record = false;
    for (int i = 0; i < 3; i++) {
        world_replay(&w, 1);
        world_run(&w, SECONDS);
    }
    world_run(&w, 40 * SECONDS);
    assert_int_equal(w.host[1].runs_count, 1);
    world_end(&w);
}

TEST(test_refusals_and_silence)
{
    static struct world w;
    uint8_t *bytes = pattern(2 * DISCOVERY_SETUP_MOST);

    begin_line(&w, 3, 0);
    assert_non_null(send_setup(&w, 0, 1, true, bytes, 2 * DISCOVERY_SETUP_MOST));
    assert_true(world_run_until(&w, has_ended, 60 * SECONDS));
    assert_int_equal(answer.e.code, ERROR_USAGE);
    assert_null(send_setup(&w, 0, 50, true, "x", 1));
    assert_int_equal(answer.e.code, ERROR_LINK);
    /* The host dies while the setup is under way. */
    assert_non_null(send_setup(&w, 0, 2, true, bytes, 100000));
    world_stop(&w, 2, false);
    assert_true(world_run_until(&w, has_ended, 60 * SECONDS));
    assert_int_equal(answer.e.code, ERROR_TIMEOUT);
    /* A client that goes away gets no answer. */
    struct outgoing_setup *s = send_setup(&w, 0, 1, true, "x", 1);
    discovery_cancel_setup(w.host[0].discovery, s);
    world_run(&w, 60 * SECONDS);
    assert_false(answer.ended);
    w.host[2].accepts = false;
    world_start(&w, 2);
    world_run(&w, 10 * SECONDS);
    assert_null(send_setup(&w, 0, 2, true, "x", 1));
    assert_int_equal(answer.e.code, ERROR_REFUSED);
    free(bytes);
    world_end(&w);
}
