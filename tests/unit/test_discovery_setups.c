/* Setups that travel over several hosts in virtual time: loss, keys, replays, limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "discovery_world.h"

/* The answer to the last setup. */
static struct {
    bool ended;
    struct error e;
    uint32_t status;
    size_t size;
    char output[256];
} answer;

static void on_done(void *context, const struct setup_answer *a)
{
    (void)context;
    assert_false(answer.ended);
    answer.ended = true;
    answer.e = a->e;
    answer.status = a->status;
    answer.size = a->size;
    memset(answer.output, 0, sizeof answer.output);
    if (a->e.code == ERROR_NONE)
        memcpy(answer.output, a->output,
               a->size < sizeof answer.output ? a->size : sizeof answer.output - 1);
}

static struct outgoing_setup *send_setup(struct world *w, unsigned from, unsigned to, bool apply,
                                         const void *bytes, size_t size)
{
    const struct host_id id = world_id(to);
    struct error e;
    struct outgoing_setup *s =
        discovery_send_setup(w->host[from].discovery, &id, apply, bytes, size, on_done, NULL, &e);

    answer.ended = false;
    answer.e.code = s != NULL ? ERROR_NONE : e.code;
    return s;
}

static bool has_ended(struct world *w)
{
    (void)w;
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

static void test_large_setup_in_spite_of_loss(void **state)
{
    static struct world w;
    uint8_t *bytes = pattern(DISCOVERY_SETUP_MOST);

    (void)state;
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

static void test_show_and_long_output(void **state)
{
    static struct world w;
    char *output = calloc(1, DISCOVERY_OUTPUT_MOST + 1001);

    (void)state;
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

static void test_own_host(void **state)
{
    static struct world w;

    (void)state;
    begin_line(&w, 2, 0);
    assert_non_null(send_setup(&w, 0, 0, true, "own", 3));
    assert_true(w.host[0].runs);
    world_command_ends(&w, 0, 7, "done");
    assert_true(answer.ended);
    assert_int_equal(answer.status, 7);
    world_end(&w);
}

/* Whoever has asked for the setup of the own host goes away while the command runs: no other setup starts before it
 * ends, and none gets its answer. */
static void test_a_setup_outlives_its_asker(void **state)
{
    static struct world w;
    struct outgoing_setup *s;

    (void)state;
    begin_line(&w, 2, 0);
    s = send_setup(&w, 0, 0, true, "own", 3);
    assert_true(w.host[0].runs);
    discovery_cancel_setup(w.host[0].discovery, s);
    assert_null(send_setup(&w, 0, 0, true, "more", 4));
    assert_int_equal(answer.e.code, ERROR_BUSY);
    assert_non_null(send_setup(&w, 1, 0, true, "next", 4));
    world_run(&w, 10 * SECONDS);
    assert_int_equal(w.host[0].runs_count, 1);
    world_command_ends(&w, 0, 7, "of the first");
    assert_true(wait_for_command(&w, 0));
    assert_int_equal(w.host[0].runs_count, 2);
    assert_false(answer.ended);
    world_command_ends(&w, 0, 0, "of the second");
    assert_true(world_run_until(&w, has_ended, 20 * SECONDS));
    assert_string_equal(answer.output, "of the second");
    world_end(&w);
}

static void test_one_command_at_a_time(void **state)
{
    static struct world w;

    (void)state;
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

/* A host with a key refuses a setup from a host without it, and one with another key. */
static void test_key_is_needed(void **state)
{
    static struct world w;

    (void)state;
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
static void test_first_setup_brings_the_key(void **state)
{
    static struct world w;

    (void)state;
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
static void test_a_host_without_its_key_is_closed(void **state)
{
    static struct world w;

    (void)state;
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
static void test_replays_are_refused(void **state)
{
    static struct world w;

    (void)state;
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

static void test_refusals_and_silence(void **state)
{
    static struct world w;
    uint8_t *bytes = pattern(DISCOVERY_SETUP_MOST + 1);

    (void)state;
    begin_line(&w, 3, 0);
    assert_null(send_setup(&w, 0, 1, true, bytes, DISCOVERY_SETUP_MOST + 1));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_setup_in_spite_of_loss),
        cmocka_unit_test(test_show_and_long_output),
        cmocka_unit_test(test_own_host),
        cmocka_unit_test(test_a_setup_outlives_its_asker),
        cmocka_unit_test(test_one_command_at_a_time),
        cmocka_unit_test(test_key_is_needed),
        cmocka_unit_test(test_first_setup_brings_the_key),
        cmocka_unit_test(test_a_host_without_its_key_is_closed),
        cmocka_unit_test(test_replays_are_refused),
        cmocka_unit_test(test_refusals_and_silence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
