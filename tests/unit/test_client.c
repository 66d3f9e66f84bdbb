/* libtorus: opening a client, status, links, schedules, time limits. */
#include <poll.h>
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
    assert_contains(e.text, "/nonexistent/control.sock");

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

    message.offset = offset;
    fake_reply(fd, CONTROL_REPLY(SCHEDULE, schedule, &message));
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
    assert_fails(torus_client_schedule(client, schedule, 0, digest, &e), e, TORUS_ERROR_USAGE, "");
    assert_int_equal(torus_client_schedule(client, schedule, SCHEDULE_BYTES, digest, &e), 0);
    assert_int_equal(torus_client_schedule(client, schedule, SCHEDULE_BYTES, same, &e), 0);
    assert_string_equal(digest, same);
    assert_fails(torus_client_schedule(client, schedule, SCHEDULE_BYTES, digest, &e), e,
                 TORUS_ERROR_BUSY, "");
    assert_true(torus_client_is_open(client));
    assert_fails(torus_client_schedule(client, schedule, SCHEDULE_BYTES, digest, &e), e,
                 TORUS_ERROR_PROTOCOL, ""); /* it would go on for ever */
    assert_contains(e.text, "an impossible length of the schedule");
    client_end(&f, client);
}

CLIENT_TEST(client_serve_silence, test_timeout)
{
    struct torus_status *status;
    struct torus_error e;

    torus_client_set_timeout(client, 20);
    assert_fails(torus_client_status(client, &status, &e), e, TORUS_ERROR_TIMEOUT, "");
    assert_fails(torus_client_status(client, &status, &e), e, TORUS_ERROR_LOST, "");
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
        assert_contains(e.text, "within 0.02 s");
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
    assert_fails(torus_client_exchange(client, &client_files, cancel_later, &calls, &result, &e), e,
                 TORUS_ERROR_CANCELLED, "");
    client_end(&f, client);
    (void)sem_destroy(&has_accepted);
}

/* ---- Requests of other versions -------------------------------------------------------------- */

/* A program that was built with a later header, whose struct is larger. */
CLIENT_TEST(client_serve_pattern, test_larger_request)
{
    struct {
        struct torus_request request;
        uint64_t added;
    } later = {.request = client_pattern};
    struct torus_result *result;
    struct torus_error e;

    later.request.struct_size = sizeof later;
    later.added = 1;
    assert_fails(torus_client_exchange(client, &later.request, NULL, NULL, &result, &e), e,
                 TORUS_ERROR_USAGE, "built for a later version");
    later.added = 0;
    assert_int_equal(torus_client_exchange(client, &later.request, NULL, NULL, &result, &e), 0);
    torus_result_free(result);
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

/* libtorus: surveys, whose answers other nodes make, so that nothing in them is certain. */

#define NODES 7u

static void pack(Control__Survey__Node *node, const Control__NodeAnswer *answer)
{
    node->outcome = TORUS_SURVEY_ANSWERED;
    node->answer.len = control__node_answer__get_packed_size(answer);
    node->answer.data = malloc(node->answer.len + 1);
    FAKE_MUST(node->answer.data != NULL);
    (void)control__node_answer__pack(answer, node->answer.data);
}

static void fill_status(Control__Status *status, Control__Calibration *calibration,
                        Control__Costs *costs, uint32_t rank)
{
    control__status__init(status);
    control__calibration__init(calibration);
    control__costs__init(costs);
    calibration->costs = costs;
    status->calibration = calibration;
    status->dims = (char *)(uintptr_t) "7";
    status->version = (char *)(uintptr_t) "1\n";
    status->rank = rank;
}

/* Node 0 is honest; 1 cannot be reached; 2 sends noise; 3 claims another rank; 4 has a status and no links, 5 facts with
 * control characters; 6 an outcome that does not exist. */
static void serve_survey(int fd)
{
    Control__Survey survey = CONTROL__SURVEY__INIT;
    Control__Survey__Node node[NODES], *list[NODES];
    Control__NodeAnswer answer = CONTROL__NODE_ANSWER__INIT;
    Control__Status status;
    Control__Calibration calibration;
    Control__Costs costs;
    Control__Links links = CONTROL__LINKS__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    for (unsigned i = 0; i < NODES; i++) {
        list[i] = &node[i];
        control__survey__node__init(&node[i]);
    }
    fill_status(&status, &calibration, &costs, 0);
    answer.host = (char *)(uintptr_t) "al\033pha";
    answer.status = &status;
    answer.links = &links;
    pack(&node[0], &answer);
    node[1].outcome = TORUS_SURVEY_UNREACHABLE;
    pack(&node[2], &answer);
    memset(node[2].answer.data, 0xff, node[2].answer.len);
    pack(&node[3], &answer);
    status.rank = 4;
    answer.links = NULL;
    pack(&node[4], &answer);
    answer.status = NULL;
    answer.facts = (char *)(uintptr_t) "a 1\nb \0332\xff\n\nc 3";
    pack(&node[5], &answer);
    node[6].outcome = 4711;
    survey.n_node = NODES;
    survey.node = list;
    survey.took_us = 1500;
    reply.kind_case = CONTROL__REPLY__KIND_SURVEY;
    reply.survey = &survey;
    fake_expect(fd, CONTROL__REQUEST__KIND_SURVEY);
    fake_reply(fd, &reply);
    for (unsigned i = 0; i < NODES; i++)
        free(node[i].answer.data);
}

CLIENT_TEST(serve_survey, answers_of_all_kinds)
{
    static const enum torus_survey_outcome expected[NODES] = {
        TORUS_SURVEY_ANSWERED,   TORUS_SURVEY_UNREACHABLE, TORUS_SURVEY_UNREADABLE,
        TORUS_SURVEY_UNREADABLE, TORUS_SURVEY_UNREADABLE,  TORUS_SURVEY_ANSWERED,
        TORUS_SURVEY_UNREADABLE};
    struct torus_survey *survey;
    struct torus_error e;

    assert_int_equal(torus_client_survey(client, TORUS_SURVEY_STATE, 0, &survey, &e), 0);
    assert_int_equal(survey->count, NODES);
    assert_int_equal(survey->took_us, 1500);
    for (uint32_t i = 0; i < NODES; i++) {
        assert_int_equal(survey->nodes[i]->rank, i);
        assert_int_equal(survey->nodes[i]->outcome, expected[i]);
        assert_true((survey->nodes[i]->status != NULL) == (i == 0));
        assert_true((survey->nodes[i]->links != NULL) == (i == 0));
    }
    assert_string_equal(survey->nodes[0]->host, "al?pha");
    assert_string_equal(survey->nodes[0]->status->version, "1?");
    assert_string_equal(survey->nodes[1]->host, "");
    assert_string_equal(survey->nodes[5]->facts, "a 1\nb ?2?\n\nc 3");
    assert_string_equal(survey->nodes[6]->facts, "");
    torus_survey_free(survey);
    torus_survey_free(NULL);
}

static void serve_old_daemon(int fd)
{
    client_expect_request(fd);
    fake_reply_error(fd, TORUS_ERROR_PROTOCOL, "unknown request", "");
}

CLIENT_TEST(serve_old_daemon, a_daemon_without_surveys)
{
    struct torus_survey *survey;
    struct torus_error e;

    assert_fails(torus_client_survey(client, TORUS_SURVEY_HOST, 100, &survey, &e), e,
                 TORUS_ERROR_PROTOCOL, "");
    assert_null(survey);
}

TEST(outcomes_have_names)
{
    assert_string_equal(torus_survey_outcome_name(TORUS_SURVEY_SILENT), "silent");
    assert_string_equal(torus_survey_outcome_name((enum torus_survey_outcome)99), "unknown");
}

/* libtorus: event loops, and operations that are cancelled or abandoned. */

/* ---- Event loops ----------------------------------------------------------------------------- */

/* Requests the links in the callback of the status. */
struct both {
    struct torus_client *client;
    struct torus_status *status;
    struct torus_links *links;
    unsigned done;
};

static void links_done(void *data, const struct torus_error *error)
{
    struct both *both = data;
    assert_null(error);
    assert_non_null(both->links);
    both->done++;
}

static void status_done(void *data, const struct torus_error *error)
{
    struct both *both = data;
    assert_null(error);
    assert_non_null(both->status);
    both->done++;
    assert_int_equal(torus_client_start_links(both->client, &both->links, links_done, both, NULL),
                     0);
}

static void serve_both(int fd)
{
    fake_expect(fd, CONTROL__REQUEST__KIND_STATUS);
    fake_reply_status(fd);
    fake_expect(fd, CONTROL__REQUEST__KIND_LINKS);
    fake_reply_links(fd);
}

/* Dispatches like an event loop until no operation is left. */
static void loop(struct torus_client *client)
{
    struct pollfd ready = {.fd = torus_client_fd(client), .events = POLLIN};
    do
        assert_int_equal(poll(&ready, 1, 60000), 1);
    while (torus_client_dispatch(client));
}

TEST(test_event_loop)
{
    struct fake f;
    struct both both = {.client = client_begin(&f, serve_both)};
    struct pollfd ready = {.fd = torus_client_fd(both.client), .events = POLLIN};
    struct torus_links *links;
    struct torus_error e;

    assert_int_equal(poll(&ready, 1, 0), 0);
    assert_int_equal(torus_client_start_status(both.client, &both.status, status_done, &both, &e),
                     0);
    assert_int_equal(both.done, 0);
    assert_fails(torus_client_start_links(both.client, &links, links_done, &both, &e), e,
                 TORUS_ERROR_USAGE, "");
    loop(both.client);
    assert_int_equal(both.done, 2);

    /* The daemon has gone: a client without an operation does not spin. */
    fake_stop(&f);
    assert_false(torus_client_dispatch(both.client));
    assert_int_equal(poll(&ready, 1, 0), 0);
    assert_int_equal(ready.fd, torus_client_fd(both.client));
    assert_fails(torus_client_links(both.client, &links, &e), e, TORUS_ERROR_LOST, "");
    assert_false(torus_client_is_open(both.client));
    assert_int_equal(poll(&ready, 1, 0), 0);
    torus_status_free(both.status);
    torus_links_free(both.links);
    torus_client_close(both.client);
}

static void note_code(void *data, const struct torus_error *error)
{
    *(enum torus_error_code *)data = error != NULL ? error->code : TORUS_ERROR_NONE;
}

CLIENT_TEST(client_serve_silence, test_deadline_in_event_loop)
{
    enum torus_error_code code = TORUS_ERROR_NONE;
    struct torus_status *status;

    torus_client_set_timeout(client, 20);
    assert_int_equal(torus_client_start_status(client, &status, note_code, &code, NULL), 0);
    loop(client);
    assert_int_equal(code, TORUS_ERROR_TIMEOUT);
    assert_null(status);
}

/* ---- Cancelling and abandoning --------------------------------------------------------------- */

static void accept_and_expect_cancel(int fd)
{
    fake_expect(fd, CONTROL__REQUEST__KIND_EXCHANGE);
    fake_reply_accepted(fd, "0.7.1");
    fake_expect(fd, CONTROL__REQUEST__KIND_CANCEL);
}

static void serve_cancelled_twice(int fd)
{
    for (int i = 0; i < 2; i++) {
        accept_and_expect_cancel(fd);
        fake_reply_progress(fd, "failing", 0, 1);
        fake_reply_error(fd, ERROR_CANCELLED, "cancelled by the client", "0.7.1");
    }
    fake_expect(fd, CONTROL__REQUEST__KIND_STATUS);
    fake_reply_status(fd);
}

static int cancel_accepted(void *data, const struct torus_progress *progress)
{
    return progress->exchange[0] != '\0';
}

/* The client can be used afterwards for another exchange and other requests. */
CLIENT_TEST(serve_cancelled_twice, test_cancel_from_callback)
{
    struct torus_result *result;
    struct torus_status *status;
    struct torus_error e;

    for (int i = 0; i < 2; i++) {
        assert_fails(
            torus_client_exchange(client, &client_files, cancel_accepted, NULL, &result, &e), e,
            TORUS_ERROR_CANCELLED, "");
        assert_string_equal(e.exchange, "0.7.1");
    }
    assert_true(torus_client_is_open(client));
    assert_int_equal(torus_client_status(client, &status, &e), 0);
    torus_status_free(status);
}

static struct torus_client *volatile to_cancel;

static void serve_cancelled_from_elsewhere(int fd)
{
    fake_expect(fd, CONTROL__REQUEST__KIND_EXCHANGE);
    fake_reply_accepted(fd, "0.7.1");
    torus_client_cancel(to_cancel); /* from another thread */
    fake_expect(fd, CONTROL__REQUEST__KIND_CANCEL);
    fake_reply_error(fd, ERROR_CANCELLED, "cancelled by the client", "0.7.1");
}

TEST(test_cancel_from_thread)
{
    struct fake f;
    struct torus_result *result;
    struct torus_error e;

    to_cancel = client_begin(&f, serve_cancelled_from_elsewhere);
    assert_int_equal(torus_client_exchange(to_cancel, &client_pattern, NULL, NULL, &result, &e),
                     -1);
    assert_int_equal(e.code, TORUS_ERROR_CANCELLED);
    client_end(&f, to_cancel);
}

static void serve_result_when_cancelled(int fd)
{
    accept_and_expect_cancel(fd);
    fake_reply_progress(fd, "committing", 1, 1);
    fake_reply_result(fd);
}

CLIENT_TEST(serve_result_when_cancelled, test_done_in_spite_of_cancel)
{
    struct torus_result *result;
    struct torus_error e;

    assert_int_equal(
        torus_client_exchange(client, &client_files, cancel_accepted, NULL, &result, &e), 0);
    assert_string_equal(result->id, "0.7.1");
    torus_result_free(result);
}

/* A daemon that is asked to cancel, and goes away without reporting the outcome. */
CLIENT_TEST(accept_and_expect_cancel, test_cancelled_without_an_outcome)
{
    struct torus_result *result;
    struct torus_error e;

    assert_fails(torus_client_exchange(client, &client_files, cancel_accepted, NULL, &result, &e),
                 e, TORUS_ERROR_IN_DOUBT, "");
    assert_string_equal(e.exchange, "0.7.1");
}

/* Only a running operation is cancelled. */
CLIENT_TEST(client_serve_pattern, test_cancel_without_an_operation)
{
    struct torus_result *result;
    struct torus_error e;

    torus_client_cancel(client);
    assert_int_equal(torus_client_exchange(client, &client_pattern, NULL, NULL, &result, &e), 0);
    torus_result_free(result);
}

/* An operation that the daemon answers at once ends as usual: the reply and the request to cancel cross.
 */
static void serve_cancelled_status(int fd)
{
    fake_expect(fd, CONTROL__REQUEST__KIND_STATUS);
    fake_expect(fd, CONTROL__REQUEST__KIND_CANCEL);
    fake_reply_status(fd);
    fake_expect(fd, CONTROL__REQUEST__KIND_LINKS);
    fake_reply_links(fd);
}

CLIENT_TEST(serve_cancelled_status, test_cancel_a_status)
{
    enum torus_error_code code = TORUS_ERROR_LOST;
    struct torus_status *status;
    struct torus_links *links;
    struct torus_error e;

    assert_int_equal(torus_client_start_status(client, &status, note_code, &code, &e), 0);
    torus_client_cancel(client);
    loop(client);
    assert_int_equal(code, TORUS_ERROR_NONE);
    torus_status_free(status);
    assert_int_equal(torus_client_links(client, &links, &e), 0);
    torus_links_free(links);
}

static void serve_abandoned(int fd)
{
    fake_expect(fd, CONTROL__REQUEST__KIND_EXCHANGE);
    fake_reply_accepted(fd, "0.7.1");
    FAKE_MUST(fake_request(fd) == NULL); /* closed without a request to cancel */
}

static int close_when_accepted(void *data, const struct torus_progress *progress)
{
    *(bool *)data = progress->exchange[0] != '\0';
    return 0;
}

static void never_done(void *data, const struct torus_error *error)
{
    fail();
}

CLIENT_TEST(serve_abandoned, test_abandon)
{
    struct pollfd ready = {.fd = torus_client_fd(client), .events = POLLIN};
    struct torus_result *result;
    struct torus_error e;
    bool accepted = false;

    assert_int_equal(torus_client_start_exchange(client, &client_files, close_when_accepted,
                                                 &result, never_done, &accepted, &e),
                     0);
    while (!accepted) {
        assert_int_equal(poll(&ready, 1, 60000), 1);
        (void)torus_client_dispatch(client);
    }
}
