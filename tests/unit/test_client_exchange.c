/* libtorus: exchanges and barriers that succeed. */
#include "tests/support/cmocka.h"
#include "tests/unit/client_fixture.h"

/* ---- Repetitions ----------------------------------------------------------------------------- */

#define MANY TORUS_REPEAT_MAX

/* The most times that a result can have, each with its longest encoding. */
static void serve_repetitions(int fd)
{
    Control__Request *request = fake_request(fd);
    Control__ExchangeResult body = CONTROL__EXCHANGE_RESULT__INIT;
    Control__Progress progress = CONTROL__PROGRESS__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;
    uint64_t *times = malloc(MANY * sizeof *times);

    FAKE_MUST(times != NULL);
    FAKE_MUST(request->exchange->spec->repeat == MANY);
    FAKE_MUST(strcmp(request->exchange->spec->mode, "stepped") == 0);
    control__request__free_unpacked(request, NULL);
    progress.repetition = 6;
    progress.repeat = MANY;
    progress.state = (char[]){"running"};
    reply.kind_case = CONTROL__REPLY__KIND_PROGRESS;
    reply.progress = &progress;
    fake_reply(fd, &reply);
    for (size_t i = 0; i < MANY; i++)
        times[i] = UINT64_MAX - i;
    body.id = (char[]){"0.7.1"};
    body.dims = (char[]){"2"};
    body.operation = (char[]){"exchange"};
    body.nodes = 2;
    body.repeat = MANY;
    body.n_each_nanoseconds = MANY;
    body.each_nanoseconds = times;
    body.all_nanoseconds = 12345;
    reply.kind_case = CONTROL__REPLY__KIND_EXCHANGE;
    reply.exchange = &body;
    fake_reply(fd, &reply);
    free(times);
}

static int watch_repetitions(void *data, const struct torus_progress *progress)
{
    if (progress->repeat > 0) {
        assert_int_equal(progress->repetition, 6);
        assert_int_equal(progress->repeat, MANY);
        ++*(int *)data;
    }
    return 0;
}

TEST(test_repetitions)
{
    static const struct torus_request request = {CLIENT_REQUEST, .block_bytes = 1, .repeat = MANY,
                                                 .mode = TORUS_MODE_STEPPED};
    struct fake f;
    struct torus_client *client = client_begin(&f, serve_repetitions);
    struct torus_result *result;
    struct torus_error e;
    int seen = 0;

    assert_int_equal(torus_client_exchange(client, &request, watch_repetitions, &seen, &result, &e),
                     0);
    assert_true(seen > 0);
    assert_int_equal(result->repeat, MANY);
    assert_int_equal(result->each_count, MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_true(result->each[i] == UINT64_MAX - i);
    assert_int_equal(result->all_nanoseconds, 12345);
    client_end(&f, client);
    torus_result_free(result);
}

/* ---- Exchanges that end well ----------------------------------------------------------------- */

static void serve_exchange(int fd)
{
    Control__Request *request = fake_request(fd);
    FAKE_MUST(request != NULL);
    FAKE_MUST(request->kind_case == CONTROL__REQUEST__KIND_EXCHANGE);
    FAKE_MUST(strcmp(request->exchange->spec->algorithm, "at2") == 0);
    FAKE_MUST(request->exchange->spec->block_bytes == 65536);
    FAKE_MUST(strcmp(request->exchange->spec->from, "") == 0);
    control__request__free_unpacked(request, NULL);

    fake_reply_accepted(fd, "0.7.1");
    fake_reply_progress(fd, "running", 50, 100);
    fake_reply_result(fd);
}

struct seen {
    unsigned calls;
    struct torus_progress last;
    char exchange[16];
};

static int watch(void *data, const struct torus_progress *progress)
{
    struct seen *seen = data;
    seen->calls++;
    seen->last = *progress;
    (void)snprintf(seen->exchange, sizeof seen->exchange, "%s", progress->exchange);
    return 0;
}

TEST(test_exchange)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, serve_exchange);
    struct torus_result *result;
    struct torus_error e;
    struct seen seen = {0};

    assert_int_equal(torus_client_exchange(client, &client_pattern, watch, &seen, &result, &e), 0);
    assert_true(seen.calls >= 2);
    assert_string_equal(seen.exchange, "0.7.1");
    assert_int_equal(seen.last.state, TORUS_STATE_RUNNING);
    assert_int_equal(seen.last.done_bytes, 50);
    assert_int_equal(seen.last.total_bytes, 100);
    assert_string_equal(result->id, "0.7.1");
    assert_true(result->bound == 8);
    assert_int_equal(result->check, TORUS_CHECK_BYTES);
    assert_int_equal(result->operation, TORUS_EXCHANGE);
    assert_int_equal(result->mode, TORUS_MODE_STEPPED);
    assert_int_equal(result->node_count, 2);
    assert_int_equal(result->node[0]->rank, 0);
    assert_int_equal(result->node[1]->rank, 1);
    assert_int_equal(result->node[0]->port[0]->rx_bytes, 131073);
    assert_int_equal(result->node[1]->port_count, 0);
    client_end(&f, client);
    torus_result_free(result);
    torus_result_free(NULL);
}

static void serve_files_in_pieces(int fd)
{
    Control__Request *request = fake_request(fd);
    Control__Accepted body = CONTROL__ACCEPTED__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;
    size_t length;
    uint8_t *frame;

    FAKE_MUST(strcmp(request->exchange->spec->from, "/data/out") == 0);
    FAKE_MUST(strcmp(request->exchange->spec->to, "/data/in/%r") == 0);
    FAKE_MUST(request->exchange->spec->missing_ok != 0);
    FAKE_MUST(request->exchange->spec->replace != 0);
    control__request__free_unpacked(request, NULL);

    body.id = (char[]){"0.7.1"};
    reply.kind_case = CONTROL__REPLY__KIND_ACCEPTED;
    reply.accepted = &body;
    frame = frame_pack(&reply.base, &length);
    for (size_t i = 0; i < length; i++)
        fake_write(fd, frame + i, 1);
    free(frame);
    fake_reply_result(fd);
}

TEST(test_files_in_pieces)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, serve_files_in_pieces);
    struct torus_result *result;
    struct torus_error e;

    assert_int_equal(torus_client_exchange(client, &client_files, NULL, NULL, &result, &e), 0);
    torus_result_free(result);
    client_end(&f, client);
}

/* ---- Barriers -------------------------------------------------------------------------------- */

static void serve_barrier(int fd)
{
    Control__Request *request = fake_request(fd);
    FAKE_MUST(request->kind_case == CONTROL__REQUEST__KIND_EXCHANGE);
    FAKE_MUST(request->exchange->spec->operation == TORUS_BARRIER);
    FAKE_MUST(strcmp(request->exchange->spec->barrier, "here") == 0);
    FAKE_MUST(request->exchange->spec->timeout_ms == 5000);
    control__request__free_unpacked(request, NULL);
    fake_reply_accepted(fd, "3.7.1");
    fake_reply_progress(fd, "entered", 0, 0);
    fake_reply_accepted(fd, "0.7.1"); /* the barrier has become an exchange of node 0 */
    fake_reply_progress(fd, "waiting", 0, 0);
    fake_reply_barrier(fd, (uint32_t[]){0, 3, 15}, 3);
}

static void serve_a_node_that_does_not_exist(int fd)
{
    control__request__free_unpacked(fake_request(fd), NULL);
    fake_reply_barrier(fd, (uint32_t[]){0, 16}, 2);
}

static void serve_a_node_twice(int fd)
{
    control__request__free_unpacked(fake_request(fd), NULL);
    fake_reply_barrier(fd, (uint32_t[]){3, 3}, 2);
}

struct steps {
    unsigned count;
    char id[8][16];
    enum torus_state state[8];
};

static int note_step(void *data, const struct torus_progress *progress)
{
    struct steps *steps = data;
    if (steps->count < 8) {
        (void)snprintf(steps->id[steps->count], 16, "%s", progress->exchange);
        steps->state[steps->count++] = progress->state;
    }
    return 0;
}

TEST(test_barrier)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, serve_barrier);
    struct torus_error e;
    struct steps steps = {0};
    struct torus_result *result;
    char name[65];

    memset(name, 'x', sizeof name);
    name[64] = '\0';
    assert_int_equal(torus_client_barrier(client, name, 0, NULL, NULL, NULL, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_USAGE);
    assert_int_equal(torus_client_barrier(client, "here", 5000, note_step, &steps, &result, &e), 0);
    assert_int_equal(result->operation, TORUS_BARRIER);
    assert_int_equal(result->waited_nanoseconds, 2500000);
    assert_int_equal(result->arrival_count, 3);
    assert_int_equal(result->arrival[1]->rank, 3);
    assert_int_equal(result->arrival[2]->rank, 15);
    assert_int_equal(result->arrival[2]->after_nanoseconds, 2000000);
    torus_result_free(result);
    assert_true(steps.count >= 4);
    assert_string_equal(steps.id[0], "3.7.1");
    assert_int_equal(steps.state[0], TORUS_STATE_UNKNOWN);
    assert_int_equal(steps.state[1], TORUS_STATE_ENTERED);
    assert_string_equal(steps.id[2], "0.7.1");
    assert_int_equal(steps.state[3], TORUS_STATE_WAITING);
    client_end(&f, client);
}

TEST(test_false_arrivals)
{
    static void (*const servers[])(int fd) = {serve_a_node_that_does_not_exist, serve_a_node_twice};

    for (size_t i = 0; i < 2; i++) {
        struct fake f;
        struct torus_client *client = client_begin(&f, servers[i]);
        struct torus_result *result;
        struct torus_error e;
        assert_int_equal(torus_client_barrier(client, "", 0, NULL, NULL, &result, &e), -1);
        assert_int_equal(e.code, TORUS_ERROR_PROTOCOL);
        assert_non_null(strstr(e.text, "arrivals"));
        client_end(&f, client);
    }
}
