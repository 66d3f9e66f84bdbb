/* libtorus: invalid requests, refusals, daemons that go away, invalid replies. */
#include <math.h>
#include <sys/socket.h>

#include "proto/error.h"
#include "tests/support/cmocka.h"
#include "tests/unit/client_fixture.h"

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
    assert_non_null(strstr(e.text, "moon in the wrong phase"));
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
    assert_non_null(strstr(e.text, "during the exchange"));
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
    assert_int_equal(torus_client_status(client, &status, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_REFUSED);
    torus_client_close(client);
}

/* ---- Nonsense -------------------------------------------------------------------------------- */

static void serve_oversize(int fd)
{
    uint8_t prefix[FRAME_PREFIX_SIZE];
    client_expect_request(fd);
    frame_prefix_write(prefix, FRAME_MAX_REPLY + 1, 0);
    fake_write(fd, prefix, sizeof prefix);
    client_serve_silence(fd); /* it is refused by its length alone */
}

static void serve_body(int fd)
{
    uint8_t prefix[FRAME_PREFIX_SIZE];
    client_expect_request(fd);
    frame_prefix_write(prefix, 4, 4);
    fake_write(fd, prefix, sizeof prefix);
    client_serve_silence(fd);
}

static void serve_http(int fd)
{
    client_expect_request(fd);
    fake_write(fd, "HTTP/1.1 400 Bad Request\r\n", 26);
    client_serve_silence(fd);
}

static void serve_garbage(int fd)
{
    client_expect_request(fd);
    fake_write(fd, "\0\0\0\x4\0\0\0\0\xff\xff\xff\xff", 12);
    client_serve_silence(fd);
}

static void serve_nothing_known(int fd)
{
    client_expect_request(fd);
    fake_write(fd, "\0\0\0\x3\0\0\0\0\xf2\x7f\0", 11); /* a field of the future */
    client_serve_silence(fd);
}

/* Four megabytes that would unpack to hundreds. */
static void serve_bomb(int fd)
{
    uint8_t prefix[FRAME_PREFIX_SIZE];
    size_t links = 2000000, at = 0;
    uint8_t *head = malloc(links * 2 + 5);

    FAKE_MUST(head != NULL);
    head[at++] = 0x1a; /* Reply.links, so many bytes of it: */
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
    static void (*const serve[])(int fd) = {serve_oversize, serve_body,          serve_http,
                                            serve_garbage,  serve_nothing_known, serve_other_kind,
                                            serve_bomb};
    struct torus_error e;

    for (size_t i = 0; i < sizeof serve / sizeof serve[0]; i++)
        assert_int_equal(failure(serve[i], &client_pattern, &e), TORUS_ERROR_PROTOCOL);
}

/* A result with one error, which the test chooses. */
static void (*spoil)(Control__ExchangeResult *result);

static void serve_spoilt(int fd)
{
    Control__ExchangeResult__Node a = CONTROL__EXCHANGE_RESULT__NODE__INIT,
                                  b = CONTROL__EXCHANGE_RESULT__NODE__INIT;
    Control__ExchangeResult__Node *nodes[] = {&a, &b};
    Control__ExchangeResult body = CONTROL__EXCHANGE_RESULT__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    client_expect_request(fd);
    b.rank = 1;
    body.id = (char[]){"0.7.1"};
    body.dims = (char[]){"2"};
    body.operation = (char[]){"exchange"};
    body.nodes = 2;
    body.n_node = 2;
    body.node = nodes;
    spoil(&body);
    reply.kind_case = CONTROL__REPLY__KIND_EXCHANGE;
    reply.exchange = &body;
    fake_reply(fd, &reply);
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
static void spoil_twice(Control__ExchangeResult *r)
{
    r->node[1]->rank = 0;
}

TEST(test_senseless_results)
{
    static void (*const spoils[])(Control__ExchangeResult *) = {
        spoil_bound, spoil_rate,  spoil_id,        spoil_count,  spoil_rank,
        spoil_times, spoil_twice, spoil_operation, spoil_missing};
    struct torus_error e;

    for (size_t i = 0; i < sizeof spoils / sizeof spoils[0]; i++) {
        spoil = spoils[i];
        assert_int_equal(failure(serve_spoilt, &client_pattern, &e), TORUS_ERROR_PROTOCOL);
        assert_non_null(strstr(e.text, "is invalid"));
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
