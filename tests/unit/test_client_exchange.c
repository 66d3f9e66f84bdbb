/* libtorus: exchanges and barriers that succeed. */
#include <math.h>
#include <sys/socket.h>

#include "proto/error.h"
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
    uint64_t *times = malloc(MANY * sizeof *times);

    FAKE_MUST(times != NULL);
    FAKE_MUST(request->exchange->spec->repeat == MANY);
    FAKE_MUST(strcmp(request->exchange->spec->mode, "stepped") == 0);
    control__request__free_unpacked(request, NULL);
    progress.repetition = 6;
    progress.repeat = MANY;
    progress.state = (char[]){"running"};
    fake_reply(fd, CONTROL_REPLY(PROGRESS, progress, &progress));
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
    fake_reply(fd, CONTROL_REPLY(EXCHANGE, exchange, &body));
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

CLIENT_TEST(serve_files_in_pieces, test_files_in_pieces)
{
    struct torus_result *result;
    struct torus_error e;

    assert_int_equal(torus_client_exchange(client, &client_files, NULL, NULL, &result, &e), 0);
    torus_result_free(result);
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
    const unsigned last = steps->count - 1;
    const bool news = progress->exchange[0] != '\0' &&
                      (steps->count == 0 || strcmp(steps->id[last], progress->exchange) != 0 ||
                       steps->state[last] != progress->state);

    if (news && steps->count < 8) {
        (void)snprintf(steps->id[steps->count], 16, "%s", progress->exchange);
        steps->state[steps->count++] = progress->state;
    }
    return 0;
}

CLIENT_TEST(serve_barrier, test_barrier)
{
    struct torus_error e;
    struct steps steps = {0};
    struct torus_result *result;
    char name[65];

    memset(name, 'x', sizeof name);
    name[64] = '\0';
    assert_fails(torus_client_barrier(client, name, 0, NULL, NULL, NULL, &e), e, TORUS_ERROR_USAGE,
                 "");
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
}

TEST(test_false_arrivals)
{
    static void (*const servers[])(int fd) = {serve_a_node_that_does_not_exist, serve_a_node_twice};

    for (size_t i = 0; i < 2; i++) {
        struct fake f;
        struct torus_client *client = client_begin(&f, servers[i]);
        struct torus_result *result;
        struct torus_error e;
        assert_fails(torus_client_barrier(client, "", 0, NULL, NULL, &result, &e), e,
                     TORUS_ERROR_PROTOCOL, "arrivals");
        client_end(&f, client);
    }
}

/* libtorus: invalid requests, refusals, daemons that go away, invalid replies. */

/* Runs an exchange that must fail. Returns its error code. */
static enum torus_error_code failure(void (*serve)(int fd), const struct torus_request *request,
                                     struct torus_error *e)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, serve);
    struct torus_result *result = (struct torus_result *)&f;

    assert_int_equal(torus_client_exchange(client, request, NULL, NULL, &result, e), -1);
    assert_null(result);
    client_end(&f, client);
    return e->code;
}

/* ---- Exchanges that do not ------------------------------------------------------------------- */

static void serve_refusal(int fd)
{
    client_expect_request(fd);
    fake_reply_accepted(fd, "0.7.1");
    fake_reply_error(fd, ERROR_REFUSED, "node 3: no room", "");
}

static void serve_strange_refusal(int fd)
{
    client_expect_request(fd);
    fake_reply_error(fd, 4711, "moon in the wrong phase", "0.7.2");
}

TEST(test_refusals)
{
    struct torus_error e;

    assert_int_equal(failure(serve_refusal, &client_pattern, &e), TORUS_ERROR_REFUSED);
    assert_string_equal(e.text, "node 3: no room");
    assert_string_equal(e.exchange, "0.7.1");

    assert_int_equal(failure(serve_strange_refusal, &client_pattern, &e), TORUS_ERROR_PROTOCOL);
    assert_contains(e.text, "moon in the wrong phase");
    assert_string_equal(e.exchange, "0.7.2");
}

static void serve_goodbye(int fd)
{
    client_expect_request(fd);
}

static void serve_goodbye_in_mid_exchange(int fd)
{
    client_expect_request(fd);
    fake_reply_accepted(fd, "0.7.1");
    fake_reply_progress(fd, "running", 1, 2);
}

static void serve_half_a_frame(int fd)
{
    client_expect_request(fd);
    fake_write(fd, "\0\0\0\x10\0\0\0\0abc", 11);
}

TEST(test_daemon_vanishes)
{
    struct torus_error e;

    assert_int_equal(failure(serve_goodbye, &client_pattern, &e), TORUS_ERROR_LOST);
    assert_int_equal(failure(serve_half_a_frame, &client_files, &e), TORUS_ERROR_LOST);
    assert_int_equal(failure(serve_goodbye_in_mid_exchange, &client_pattern, &e), TORUS_ERROR_LOST);
    assert_string_equal(e.exchange, "0.7.1");
    assert_contains(e.text, "during the exchange");
    assert_int_equal(failure(serve_goodbye_in_mid_exchange, &client_files, &e),
                     TORUS_ERROR_IN_DOUBT);
    assert_string_equal(e.exchange, "0.7.1");
}

static int cancel_while_away(void *data, const struct torus_progress *progress)
{
    bool away = strncmp(progress->waits_for, "the daemon at ", 14) == 0;

    *(bool *)data = *(bool *)data || away;
    return away;
}

/* The client sends the request again unless the daemon may have committed something; meanwhile it can cancel. */
TEST(test_daemon_is_waited_for)
{
    struct torus_request waits = client_pattern, commits = client_files;
    struct torus_result *result;
    struct torus_error e;
    bool away = false;
    struct fake f;

    waits.wait = commits.wait = true;
    struct torus_client *client = client_begin(&f, serve_goodbye_in_mid_exchange);
    assert_int_equal(torus_client_exchange(client, &waits, cancel_while_away, &away, &result, &e),
                     -1);
    assert_int_equal(e.code, TORUS_ERROR_CANCELLED);
    assert_true(away);
    client_end(&f, client);
    assert_int_equal(failure(serve_goodbye_in_mid_exchange, &commits, &e), TORUS_ERROR_IN_DOUBT);
}

/* The daemon sends the reason, and closes without reading. */
static void serve_turned_away(int fd)
{
    fake_reply_error(fd, ERROR_REFUSED, "too many clients", "");
    (void)shutdown(fd, SHUT_RDWR);
}

TEST(test_turned_away)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, serve_turned_away);
    struct torus_status *status;
    struct torus_error e;

    fake_stop(&f); /* so that the request meets a closed connection */
    assert_fails(torus_client_status(client, &status, &e), e, TORUS_ERROR_REFUSED, "");
    torus_client_close(client);
}

/* ---- Nonsense -------------------------------------------------------------------------------- */

/* Bytes after the request, which the client refuses. */
static const struct nonsense {
    const char *bytes;
    size_t length;
} * nonsense;

static void serve_nonsense(int fd)
{
    client_expect_request(fd);
    fake_write(fd, nonsense->bytes, nonsense->length);
    client_serve_silence(fd);
}

/* Four megabytes that would unpack to hundreds. */
static void serve_bomb(int fd)
{
    uint8_t prefix[FRAME_PREFIX_SIZE];
    size_t links = 2000000, at = 0;
    uint8_t *head = malloc(links * 2 + 5);

    FAKE_MUST(head != NULL);
    head[at++] = 0x1a; /* Reply.links, this many bytes of it: */
    for (size_t n = links * 2; n > 0; n >>= 7)
        head[at++] = (uint8_t)((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
    for (size_t i = 0; i < links; i++) {
        head[at++] = 0x0a; /* Links.link, empty */
        head[at++] = 0;
    }
    client_expect_request(fd);
    frame_prefix_write(prefix, (uint32_t)at, 0);
    fake_write(fd, prefix, sizeof prefix);
    fake_write(fd, head, at);
    free(head);
    client_serve_silence(fd);
}

static void serve_other_kind(int fd)
{
    client_expect_request(fd);
    fake_reply_links(fd);
    client_serve_silence(fd);
}

TEST(test_nonsense)
{
    static uint8_t oversize[FRAME_PREFIX_SIZE], with_body[FRAME_PREFIX_SIZE];
    static const struct nonsense rows[] = {
        {(const char *)oversize, sizeof oversize}, /* its length alone */
        {(const char *)with_body, sizeof with_body},
        {"HTTP/1.1 400 Bad Request\r\n", 26},
        {"\0\0\0\x4\0\0\0\0\xff\xff\xff\xff", 12},
        {"\0\0\0\x3\0\0\0\0\xf2\x7f\0", 11}, /* a field of the future */
    };
    struct torus_error e;

    frame_prefix_write(oversize, FRAME_MAX_REPLY + 1, 0);
    frame_prefix_write(with_body, 4, 4);
    for (nonsense = rows; nonsense < rows + sizeof rows / sizeof *rows; nonsense++)
        assert_int_equal(failure(serve_nonsense, &client_pattern, &e), TORUS_ERROR_PROTOCOL);
    assert_int_equal(failure(serve_other_kind, &client_pattern, &e), TORUS_ERROR_PROTOCOL);
    assert_int_equal(failure(serve_bomb, &client_pattern, &e), TORUS_ERROR_PROTOCOL);
}

/* A result with one error, which the test chooses. */
static void (*spoil)(Control__ExchangeResult *result);

static void serve_spoilt(int fd)
{
    Control__ExchangeResult__Node a = CONTROL__EXCHANGE_RESULT__NODE__INIT,
                                  b = CONTROL__EXCHANGE_RESULT__NODE__INIT;
    Control__ExchangeResult__Node *nodes[] = {&a, &b};
    Control__ExchangeResult body = CONTROL__EXCHANGE_RESULT__INIT;

    client_expect_request(fd);
    b.rank = 1;
    body.id = (char[]){"0.7.1"};
    body.dims = (char[]){"2"};
    body.operation = (char[]){"exchange"};
    body.nodes = 2;
    body.n_node = 2;
    body.node = nodes;
    spoil(&body);
    fake_reply(fd, CONTROL_REPLY(EXCHANGE, exchange, &body));
    client_serve_silence(fd);
}

static void spoil_bound(Control__ExchangeResult *r)
{
    r->bound = NAN;
}
static void spoil_rate(Control__ExchangeResult *r)
{
    r->link_mbit = -1;
}
static void spoil_id(Control__ExchangeResult *r)
{
    r->id = (char *)(uintptr_t)protobuf_c_empty_string;
}
static void spoil_count(Control__ExchangeResult *r)
{
    r->nodes = 1;
}
static void spoil_rank(Control__ExchangeResult *r)
{
    r->node[1]->rank = 2;
}
static void spoil_times(Control__ExchangeResult *r)
{
    static uint64_t times[2];
    r->repeat = 3;
    r->n_each_nanoseconds = 2;
    r->each_nanoseconds = times;
}
static void spoil_operation(Control__ExchangeResult *r)
{
    r->operation = (char *)(uintptr_t) "reduction";
}
static void spoil_missing(Control__ExchangeResult *r)
{
    static uint32_t rank[1];
    rank[0] = r->nodes;
    r->n_missing = 1;
    r->missing = rank;
}
static void spoil_link_rates(Control__ExchangeResult *r)
{
    static Control__LinkRates links;
    control__link_rates__init(&links);
    links.equal_bound = -1;
    r->link_rates = &links;
}
static void spoil_twice(Control__ExchangeResult *r)
{
    r->node[1]->rank = 0;
}

TEST(test_senseless_results)
{
    static void (*const spoils[])(Control__ExchangeResult *) = {
        spoil_bound, spoil_rate,  spoil_id,        spoil_count,   spoil_rank,
        spoil_times, spoil_twice, spoil_operation, spoil_missing, spoil_link_rates};
    struct torus_error e;

    for (size_t i = 0; i < sizeof spoils / sizeof spoils[0]; i++) {
        spoil = spoils[i];
        assert_int_equal(failure(serve_spoilt, &client_pattern, &e), TORUS_ERROR_PROTOCOL);
        assert_contains(e.text, "is invalid");
    }
}

TEST(test_senseless_requests)
{
    static const struct torus_request requests[] = {
        {CLIENT_REQUEST, .from = "/a"},
        {CLIENT_REQUEST, .to = "/a"},
        {CLIENT_REQUEST, .from = "/a", .to = "b"},
        {CLIENT_REQUEST, .from = "/a", .to = "/b", .block_bytes = 1},
        {CLIENT_REQUEST, .missing_ok = true},
        {CLIENT_REQUEST, .block_bytes = 1, .replace = true},
        {CLIENT_REQUEST, .shrink = true, .schedule = "0123"},
        {CLIENT_REQUEST, .shrink = true, .operation = TORUS_ALLGATHER},
        {CLIENT_REQUEST, .shrink = true, .wait = true},
        {CLIENT_REQUEST, .repeat = TORUS_REPEAT_MAX + 1},
        {CLIENT_REQUEST, .from = "/a", .to = "/b", .repeat = 2},
        {CLIENT_REQUEST, .operation = TORUS_BARRIER},
        {CLIENT_REQUEST, .operation = (enum torus_operation)77},
        {CLIENT_REQUEST, .mode = (enum torus_mode)77},
        {CLIENT_REQUEST, .reserved = {1}},
        {.algorithm = "at2"},
    };
    struct torus_error e;

    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        assert_int_equal(failure(client_serve_silence, &requests[i], &e), TORUS_ERROR_USAGE);
}
