/* libtorus: opening a client, status, links, schedules, time limits. */
#include <semaphore.h>
#include <sys/socket.h>

#include "proto/error.h"
#include "tests/support/cmocka.h"
#include "tests/unit/client_fixture.h"

/* ---- Opening --------------------------------------------------------------------------------- */

TEST(test_no_daemon)
{
    struct torus_error e;
    char path[300];
    struct fake f;

    assert_null(torus_client_open("/nonexistent/control.sock", &e));
    assert_int_equal(e.code, TORUS_ERROR_NO_DAEMON);
    assert_non_null(strstr(e.text, "/nonexistent/control.sock"));

    fake_start(&f, NULL);
    (void)shutdown(f.listener, SHUT_RDWR);
    assert_null(torus_client_open(f.path, &e));
    assert_int_equal(e.code, TORUS_ERROR_NO_DAEMON);
    fake_stop(&f);

    memset(path, 'a', sizeof path);
    path[sizeof path - 1] = '\0';
    assert_null(torus_client_open(path, &e));
    assert_int_equal(e.code, TORUS_ERROR_USAGE);
    assert_null(torus_client_open(path, NULL));
    torus_client_close(NULL);
}

TEST(test_default_socket)
{
    (void)unsetenv("TORUS_SOCKET");
    assert_string_equal(torus_default_socket(), TORUS_DEFAULT_SOCKET);
    (void)setenv("TORUS_SOCKET", "", 1);
    assert_string_equal(torus_default_socket(), TORUS_DEFAULT_SOCKET);
    (void)setenv("TORUS_SOCKET", "/tmp/x.sock", 1);
    assert_string_equal(torus_default_socket(), "/tmp/x.sock");
    (void)unsetenv("TORUS_SOCKET");
}

/* ---- Status and links ------------------------------------------------------------------------ */

static void serve_status_and_links(int fd)
{
    client_expect_request(fd);
    fake_reply_status(fd);
    client_expect_request(fd);
    fake_reply_error(fd, ERROR_LINK, "no links yet", "");
    client_expect_request(fd);
    fake_reply_links(fd);
}

static void check_groups(const struct torus_status *status)
{
    assert_int_equal(status->group_count, 2);
    assert_string_equal(status->groups[0]->name, "job?1");
    assert_string_equal(status->groups[0]->id, "6.1.2");
    assert_true(status->groups[0]->open);
    assert_int_equal(status->groups[0]->pid, 4321);
    assert_int_equal(status->groups[0]->calls, 12);
    assert_int_equal(status->groups[0]->calls_done, 11);
    assert_int_equal(status->groups[0]->bytes_sent, 4096);
    assert_int_equal(status->groups[0]->bytes_received, 8192);
    assert_int_equal(status->groups[0]->early_bytes, 100);
    assert_int_equal(status->groups[0]->reserved_bytes, 65536);
    assert_string_equal(status->groups[0]->avoids, "link 3:+0?");
    assert_string_equal(status->groups[1]->avoids, "");
    assert_string_equal(status->groups[1]->name, "default");
    assert_false(status->groups[1]->open);
}

TEST(test_status_and_links)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, serve_status_and_links);
    struct torus_status *status;
    struct torus_links *links;
    struct torus_error e;

    assert_int_equal(torus_client_status(client, &status, &e), 0);
    assert_string_equal(status->dims, "4x4m");
    assert_int_equal(status->rank, 6);
    assert_int_equal(status->coordinate_count, 2);
    assert_int_equal(status->coordinates[1], 2);
    assert_false(status->whole);
    assert_int_equal(status->fault_count, 1);
    assert_string_equal(status->faults[0], "link +0 of ?[31mnode 3?is down ?");
    assert_int_equal(status->exchange_count, 1);
    assert_int_equal(status->exchanges[0]->state, TORUS_STATE_COMMITTED);
    assert_int_equal(status->exchanges[0]->coordinator, 6);
    assert_string_equal(status->exchanges[0]->reason, "");
    assert_string_equal(status->data_roots[0], "/data");
    check_groups(status);
    assert_int_equal(status->unconfirmed_count, 1);
    assert_string_equal(status->unconfirmed[0]->id, "6.1.0");
    assert_int_equal(status->unconfirmed[0]->count, 70);
    assert_int_equal(status->unconfirmed[0]->node_count, 2);
    assert_int_equal(status->unconfirmed[0]->nodes[1], 9);
    assert_string_equal(status->unconfirmed[0]->reason, "committed, but node 3?");

    /* A refusal leaves the connection as it is. */
    assert_int_equal(torus_client_links(client, &links, &e), -1);
    assert_null(links);
    assert_int_equal(e.code, TORUS_ERROR_LINK);

    assert_int_equal(torus_client_links(client, &links, &e), 0);
    assert_int_equal(links->count, 2);
    assert_int_equal(links->heartbeat_ms, 250);
    assert_int_equal(links->silence_ms, 1000);
    assert_string_equal(links->link[0]->name, "+0");
    assert_int_equal(links->link[0]->state, TORUS_LINK_UP);
    assert_int_equal(links->link[1]->neighbour, TORUS_RANK_NONE);
    client_end(&f, client);

    /* Results outlive the client. */
    assert_int_equal(status->memory_budget, 1 << 20);
    torus_status_free(status);
    torus_links_free(links);
    torus_status_free(NULL);
    torus_links_free(NULL);
}

/* ---- Schedules ------------------------------------------------------------------------------- */

#define SCHEDULE_BYTES 70000u
static char schedule[SCHEDULE_BYTES];

static void reply_have(int fd, uint32_t offset)
{
    Control__Schedule message = CONTROL__SCHEDULE__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    message.offset = offset;
    reply.kind_case = CONTROL__REPLY__KIND_SCHEDULE;
    reply.schedule = &message;
    fake_reply(fd, &reply);
}

/* Takes a part, which must begin at this offset and have this length. */
static void expect_part(int fd, uint32_t offset, size_t length)
{
    Control__Request *request = fake_request(fd);

    FAKE_MUST(request != NULL && request->kind_case == CONTROL__REQUEST__KIND_SCHEDULE);
    FAKE_MUST(strlen(request->schedule->digest) == TORUS_DIGEST_SIZE - 1);
    FAKE_MUST(request->schedule->total == SCHEDULE_BYTES);
    FAKE_MUST(request->schedule->offset == offset && request->schedule->part.len == length);
    FAKE_MUST(length == 0 || memcmp(request->schedule->part.data, schedule + offset, length) == 0);
    control__request__free_unpacked(request, NULL);
}

/* The daemon already has some of the schedule; then all; then less than before; then more than there is. */
static void serve_schedules(int fd)
{
    expect_part(fd, 0, 0);
    reply_have(fd, 1000);
    expect_part(fd, 1000, FRAME_SCHEDULE_PART);
    reply_have(fd, 1000 + FRAME_SCHEDULE_PART);
    expect_part(fd, 1000 + FRAME_SCHEDULE_PART, FRAME_SCHEDULE_PART);
    reply_have(fd, 1000 + 2 * FRAME_SCHEDULE_PART);
    expect_part(fd, 1000 + 2 * FRAME_SCHEDULE_PART,
                SCHEDULE_BYTES - 1000 - 2 * FRAME_SCHEDULE_PART);
    reply_have(fd, SCHEDULE_BYTES);
    expect_part(fd, 0, 0);
    reply_have(fd, SCHEDULE_BYTES);
    expect_part(fd, 0, 0);
    fake_reply_error(fd, ERROR_BUSY, "no room", "");
    expect_part(fd, 0, 0);
    reply_have(fd, 0);
    expect_part(fd, 0, FRAME_SCHEDULE_PART);
    reply_have(fd, 0);
}

TEST(test_schedules)
{
    char digest[TORUS_DIGEST_SIZE] = "", same[TORUS_DIGEST_SIZE];
    struct torus_client *client;
    struct torus_error e;
    struct fake f;

    for (unsigned i = 0; i < SCHEDULE_BYTES; i++)
        schedule[i] = (char)(i * 7);
    client = client_begin(&f, serve_schedules);
    assert_int_equal(torus_client_schedule(client, schedule, 0, digest, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_USAGE);
    assert_int_equal(torus_client_schedule(client, schedule, SCHEDULE_BYTES, digest, &e), 0);
    assert_int_equal(torus_client_schedule(client, schedule, SCHEDULE_BYTES, same, &e), 0);
    assert_string_equal(digest, same);
    assert_int_equal(torus_client_schedule(client, schedule, SCHEDULE_BYTES, digest, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_BUSY);
    assert_true(torus_client_is_open(client));
    assert_int_equal(torus_client_schedule(client, schedule, SCHEDULE_BYTES, digest, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_PROTOCOL); /* it would go on for ever */
    assert_non_null(strstr(e.text, "an impossible length of the schedule"));
    client_end(&f, client);
}

TEST(test_timeout)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, client_serve_silence);
    struct torus_status *status;
    struct torus_error e;

    torus_client_set_timeout(client, 20);
    assert_int_equal(torus_client_status(client, &status, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_TIMEOUT);
    assert_int_equal(torus_client_status(client, &status, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_LOST);
    client_end(&f, client);
}

/* However long an exchange may take, a daemon that does not even accept the request counts as hanging. */
TEST(test_never_accepted)
{
    struct fake f;
    struct torus_client *client;
    struct torus_result *result;
    struct torus_error e;

    for (int barrier = 0; barrier < 2; barrier++) {
        client = client_begin(&f, client_serve_silence);
        torus_client_set_timeout(client, 20);
        if (barrier)
            assert_int_equal(torus_client_barrier(client, NULL, 0, NULL, NULL, &result, &e), -1);
        else
            assert_int_equal(torus_client_exchange(client, &client_files, NULL, NULL, &result, &e),
                             -1);
        assert_int_equal(e.code, TORUS_ERROR_TIMEOUT);
        assert_non_null(strstr(e.text, "within 0.02 s"));
        client_end(&f, client);
    }
}

static sem_t has_accepted;

static void serve_accepted_early(int fd)
{
    fake_reply_accepted(fd, "0.7.1");
    (void)sem_post(&has_accepted);
    fake_expect(fd, CONTROL__REQUEST__KIND_EXCHANGE);
    fake_expect(fd, CONTROL__REQUEST__KIND_CANCEL);
    fake_reply_error(fd, ERROR_CANCELLED, "cancelled by the client", "0.7.1");
}

/* Cancels at the third report, which a timer causes. */
static int cancel_later(void *data, const struct torus_progress *progress)
{
    int *calls = data;

    return ++*calls >= 3;
}

TEST(test_accepted_takes_its_time)
{
    struct fake f;
    struct torus_client *client;
    struct torus_result *result;
    struct torus_error e;
    int calls = 0;

    assert_int_equal(sem_init(&has_accepted, 0, 0), 0);
    client = client_begin(&f, serve_accepted_early);
    while (sem_wait(&has_accepted) != 0)
        ;
    torus_client_set_timeout(client, 1);
    assert_int_equal(
        torus_client_exchange(client, &client_files, cancel_later, &calls, &result, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_CANCELLED);
    client_end(&f, client);
    (void)sem_destroy(&has_accepted);
}

/* ---- Requests of other versions -------------------------------------------------------------- */

/* A program that was built with a later header, whose struct is larger. */
TEST(test_larger_request)
{
    struct {
        struct torus_request request;
        uint64_t added;
    } later = {.request = client_pattern};
    struct torus_result *result;
    struct torus_error e;
    struct fake f;
    struct torus_client *client = client_begin(&f, client_serve_pattern);

    later.request.struct_size = sizeof later;
    later.added = 1;
    assert_int_equal(torus_client_exchange(client, &later.request, NULL, NULL, &result, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_USAGE);
    assert_non_null(strstr(e.text, "built for a later version"));
    later.added = 0;
    assert_int_equal(torus_client_exchange(client, &later.request, NULL, NULL, &result, &e), 0);
    torus_result_free(result);
    client_end(&f, client);
}

TEST(test_init)
{
    struct torus_request request;
    struct torus_costs costs;

    memset(&request, 0xff, sizeof request);
    memset(&costs, 0xff, sizeof costs);
    torus_request_init(&request);
    torus_costs_init(&costs);
    assert_int_equal(request.struct_size, sizeof request);
    assert_null(request.algorithm);
    assert_int_equal(request.operation, TORUS_EXCHANGE);
    assert_int_equal(costs.struct_size, sizeof costs);
    assert_true(costs.bytes_per_second == 0);
}

/* ---- Names ----------------------------------------------------------------------------------- */

TEST(test_names)
{
    assert_string_equal(torus_operation_name(TORUS_ALLGATHER), "allgather");
    assert_string_equal(torus_operation_name((enum torus_operation)77), "unknown");
    assert_string_equal(torus_mode_name(TORUS_MODE_STREAMING), "streaming");
    assert_string_equal(torus_check_name(TORUS_CHECK_DIGESTS), "digests");
    assert_string_equal(torus_state_name(TORUS_STATE_IN_DOUBT), "in doubt");
    assert_string_equal(torus_state_name((enum torus_state)77), "unknown");
    assert_string_equal(torus_link_state_name(TORUS_LINK_HELLO), "hello");
    assert_string_equal(torus_error_name(TORUS_ERROR_IN_DOUBT), "in doubt");
    assert_string_equal(torus_error_name(TORUS_ERROR_BUSY), "busy");
    assert_string_equal(torus_version(), TORUSD_VERSION);
}
