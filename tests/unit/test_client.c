/* libtorus against a daemon that answers as it should, or does not. */
#include <math.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include <torus/torus.h>

#include "proto/error.h"
#include "tests/unit/test_client_fake.h"

/* What torus_request_init() sets, in an initializer. */
#define REQUEST .struct_size = sizeof(struct torus_request), .algorithm = "at2"

static const struct torus_request pattern = {REQUEST, .block_bytes = 65536};
static const struct torus_request files = {REQUEST, .from = "/data/out", .to = "/data/in/%r",
                                           .missing_ok = true, .replace = true};

/* Takes the request that must be there. */
static void expect_request(int fd)
{
    Control__Request *request = fake_request(fd);
    FAKE_MUST(request != NULL);
    control__request__free_unpacked(request, NULL);
}

static struct torus_client *begin(struct fake *f, void (*serve)(int fd))
{
    struct torus_error e;
    struct torus_client *client;

    fake_start(f, serve);
    client = torus_client_open(f->path, &e);
    assert_non_null(client);
    return client;
}

static void end(struct fake *f, struct torus_client *client)
{
    torus_client_close(client);
    fake_stop(f);
}

/* Runs an exchange that must fail, and returns the code that it fails with. */
static enum torus_error_code failure(void (*serve)(int fd), const struct torus_request *request,
                                     struct torus_error *e)
{
    struct fake f;
    struct torus_client *client = begin(&f, serve);
    struct torus_result *result = (struct torus_result *)&f;

    assert_int_equal(torus_client_exchange(client, request, NULL, NULL, &result, e), -1);
    assert_null(result);
    end(&f, client);
    return e->code;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static void test_no_daemon(void **state)
{
    struct torus_error e;
    char path[300];
    struct fake f;

    (void)state;
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

static void test_default_socket(void **state)
{
    (void)state;
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
    expect_request(fd);
    fake_reply_status(fd);
    expect_request(fd);
    fake_reply_error(fd, ERROR_LINK, "no links yet", "");
    expect_request(fd);
    fake_reply_links(fd);
}

static void test_status_and_links(void **state)
{
    struct fake f;
    struct torus_client *client = begin(&f, serve_status_and_links);
    struct torus_status *status;
    struct torus_links *links;
    struct torus_error e;

    (void)state;
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
    assert_int_equal(status->group_count, 2);
    assert_string_equal(status->groups[0]->name, "job?1");
    assert_string_equal(status->groups[0]->id, "6.1.2");
    assert_true(status->groups[0]->open);
    assert_int_equal(status->groups[0]->pid, 4321);
    assert_int_equal(status->groups[0]->calls, 12);
    assert_int_equal(status->groups[0]->calls_done, 11);
    assert_int_equal(status->groups[0]->bytes_sent, 4096);
    assert_int_equal(status->groups[0]->bytes_received, 8192);
    assert_int_equal(status->groups[0]->parked_bytes, 100);
    assert_int_equal(status->groups[0]->reserved_bytes, 65536);
    assert_string_equal(status->groups[0]->around, "link 3:+0?");
    assert_int_equal(status->unconfirmed_count, 1);
    assert_string_equal(status->unconfirmed[0]->id, "6.1.0");
    assert_int_equal(status->unconfirmed[0]->count, 70);
    assert_int_equal(status->unconfirmed[0]->node_count, 2);
    assert_int_equal(status->unconfirmed[0]->nodes[1], 9);
    assert_string_equal(status->unconfirmed[0]->reason, "committed, but node 3?");
    assert_string_equal(status->groups[1]->around, "");
    assert_string_equal(status->groups[1]->name, "default");
    assert_false(status->groups[1]->open);

    /* A refusal leaves the connection as it is. */
    assert_int_equal(torus_client_links(client, &links, &e), -1);
    assert_null(links);
    assert_int_equal(e.code, TORUS_ERROR_LINK);
    assert_string_equal(e.text, "no links yet");

    assert_int_equal(torus_client_links(client, &links, &e), 0);
    assert_int_equal(links->count, 2);
    assert_int_equal(links->heartbeat_ms, 250);
    assert_int_equal(links->silence_ms, 1000);
    assert_string_equal(links->link[0]->name, "+0");
    assert_int_equal(links->link[0]->state, TORUS_LINK_UP);
    assert_int_equal(links->link[1]->neighbour, TORUS_RANK_NONE);
    end(&f, client);

    /* Results outlive the client. */
    assert_int_equal(status->memory_budget, 1 << 20);
    torus_status_free(status);
    torus_links_free(links);
    torus_status_free(NULL);
    torus_links_free(NULL);
}

static void serve_silence(int fd)
{
    Control__Request *request;
    while ((request = fake_request(fd)) != NULL)
        control__request__free_unpacked(request, NULL);
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

/* Takes a part that must begin there and be so long. */
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

/* It has some of it already; then all; then less than before; then more than there is. */
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

static void test_schedules(void **state)
{
    char digest[TORUS_DIGEST_SIZE] = "", same[TORUS_DIGEST_SIZE];
    struct torus_client *client;
    struct torus_error e;
    struct fake f;

    (void)state;
    for (unsigned i = 0; i < SCHEDULE_BYTES; i++)
        schedule[i] = (char)(i * 7);
    client = begin(&f, serve_schedules);
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
    assert_non_null(strstr(e.text, "how much of a schedule it has"));
    end(&f, client);
}

static void test_timeout(void **state)
{
    struct fake f;
    struct torus_client *client = begin(&f, serve_silence);
    struct torus_status *status;
    struct torus_error e;

    (void)state;
    torus_client_set_timeout(client, 20);
    assert_int_equal(torus_client_status(client, &status, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_TIMEOUT);
    assert_int_equal(torus_client_status(client, &status, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_LOST);
    end(&f, client);
}

/* However long an exchange may take: a daemon that does not even accept it hangs. */
static void test_never_accepted(void **state)
{
    struct fake f;
    struct torus_client *client;
    struct torus_result *result;
    struct torus_error e;

    (void)state;
    for (int barrier = 0; barrier < 2; barrier++) {
        client = begin(&f, serve_silence);
        torus_client_set_timeout(client, 20);
        if (barrier)
            assert_int_equal(torus_client_barrier(client, NULL, 0, NULL, NULL, &result, &e), -1);
        else
            assert_int_equal(torus_client_exchange(client, &files, NULL, NULL, &result, &e), -1);
        assert_int_equal(e.code, TORUS_ERROR_TIMEOUT);
        assert_non_null(strstr(e.text, "within 0.02 s"));
        end(&f, client);
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

/* Cancels at the third report, which comes with the clock. */
static int cancel_later(void *data, const struct torus_progress *progress)
{
    int *calls = data;

    (void)progress;
    return ++*calls >= 3;
}

static void test_accepted_takes_its_time(void **state)
{
    struct fake f;
    struct torus_client *client;
    struct torus_result *result;
    struct torus_error e;
    int calls = 0;

    (void)state;
    assert_int_equal(sem_init(&has_accepted, 0, 0), 0);
    client = begin(&f, serve_accepted_early);
    while (sem_wait(&has_accepted) != 0)
        ;
    torus_client_set_timeout(client, 1);
    assert_int_equal(torus_client_exchange(client, &files, cancel_later, &calls, &result, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_CANCELLED);
    end(&f, client);
    (void)sem_destroy(&has_accepted);
}

/* ---- Repetitions ----------------------------------------------------------------------------- */

#define MANY TORUS_REPEAT_MAX

/* As many times as there can be, each as long on the wire as it can be. */
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

static void test_repetitions(void **state)
{
    static const struct torus_request request = {REQUEST, .block_bytes = 1, .repeat = MANY,
                                                 .mode = TORUS_MODE_STEPPED};
    struct fake f;
    struct torus_client *client = begin(&f, serve_repetitions);
    struct torus_result *result;
    struct torus_error e;
    int seen = 0;

    (void)state;
    assert_int_equal(torus_client_exchange(client, &request, watch_repetitions, &seen, &result, &e),
                     0);
    assert_true(seen > 0);
    assert_int_equal(result->repeat, MANY);
    assert_int_equal(result->each_count, MANY);
    for (size_t i = 0; i < MANY; i++)
        assert_true(result->each[i] == UINT64_MAX - i);
    assert_int_equal(result->all_nanoseconds, 12345);
    end(&f, client);
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

static void test_exchange(void **state)
{
    struct fake f;
    struct torus_client *client = begin(&f, serve_exchange);
    struct torus_result *result;
    struct torus_error e;
    struct seen seen = {0};

    (void)state;
    assert_int_equal(torus_client_exchange(client, &pattern, watch, &seen, &result, &e), 0);
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
    end(&f, client);
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

static void test_files_in_pieces(void **state)
{
    struct fake f;
    struct torus_client *client = begin(&f, serve_files_in_pieces);
    struct torus_result *result;
    struct torus_error e;

    (void)state;
    assert_int_equal(torus_client_exchange(client, &files, NULL, NULL, &result, &e), 0);
    torus_result_free(result);
    end(&f, client);
}

/* ---- Exchanges that do not ------------------------------------------------------------------- */

static void serve_refusal(int fd)
{
    expect_request(fd);
    fake_reply_accepted(fd, "0.7.1");
    fake_reply_error(fd, ERROR_REFUSED, "node 3: no room", "");
}

static void serve_strange_refusal(int fd)
{
    expect_request(fd);
    fake_reply_error(fd, 4711, "moon in the wrong phase", "0.7.2");
}

static void test_refusals(void **state)
{
    struct torus_error e;

    (void)state;
    assert_int_equal(failure(serve_refusal, &pattern, &e), TORUS_ERROR_REFUSED);
    assert_string_equal(e.text, "node 3: no room");
    assert_string_equal(e.exchange, "0.7.1");

    assert_int_equal(failure(serve_strange_refusal, &pattern, &e), TORUS_ERROR_PROTOCOL);
    assert_non_null(strstr(e.text, "moon in the wrong phase"));
    assert_string_equal(e.exchange, "0.7.2");
}

static void serve_goodbye(int fd)
{
    expect_request(fd);
}

static void serve_goodbye_in_mid_exchange(int fd)
{
    expect_request(fd);
    fake_reply_accepted(fd, "0.7.1");
    fake_reply_progress(fd, "running", 1, 2);
}

static void serve_half_a_frame(int fd)
{
    expect_request(fd);
    fake_write(fd, "\0\0\0\x10\0\0\0\0abc", 11);
}

static void test_daemon_vanishes(void **state)
{
    struct torus_error e;

    (void)state;
    assert_int_equal(failure(serve_goodbye, &pattern, &e), TORUS_ERROR_LOST);
    assert_int_equal(failure(serve_half_a_frame, &files, &e), TORUS_ERROR_LOST);
    assert_int_equal(failure(serve_goodbye_in_mid_exchange, &pattern, &e), TORUS_ERROR_LOST);
    assert_string_equal(e.exchange, "0.7.1");
    assert_non_null(strstr(e.text, "during the exchange"));
    assert_int_equal(failure(serve_goodbye_in_mid_exchange, &files, &e), TORUS_ERROR_IN_DOUBT);
    assert_string_equal(e.exchange, "0.7.1");
}

static int cancel_while_away(void *data, const struct torus_progress *progress)
{
    bool away = strncmp(progress->waits_for, "the daemon at ", 14) == 0;

    *(bool *)data = *(bool *)data || away;
    return away;
}

/* It is asked again unless it may have committed something; until then the client can cancel. */
static void test_daemon_is_waited_for(void **state)
{
    struct torus_request waits = pattern, commits = files;
    struct torus_result *result;
    struct torus_error e;
    bool away = false;
    struct fake f;

    (void)state;
    waits.wait = commits.wait = true;
    struct torus_client *client = begin(&f, serve_goodbye_in_mid_exchange);
    assert_int_equal(torus_client_exchange(client, &waits, cancel_while_away, &away, &result, &e),
                     -1);
    assert_int_equal(e.code, TORUS_ERROR_CANCELLED);
    assert_true(away);
    end(&f, client);
    assert_int_equal(failure(serve_goodbye_in_mid_exchange, &commits, &e), TORUS_ERROR_IN_DOUBT);
}

/* Says why, and closes without ever reading. */
static void serve_turned_away(int fd)
{
    fake_reply_error(fd, ERROR_REFUSED, "too many clients", "");
    (void)shutdown(fd, SHUT_RDWR);
}

static void test_turned_away(void **state)
{
    struct fake f;
    struct torus_client *client = begin(&f, serve_turned_away);
    struct torus_status *status;
    struct torus_error e;

    (void)state;
    fake_stop(&f); /* so that the request meets a closed connection */
    assert_int_equal(torus_client_status(client, &status, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_REFUSED);
    assert_string_equal(e.text, "too many clients");
    torus_client_close(client);
}

/* ---- Nonsense -------------------------------------------------------------------------------- */

static void serve_oversize(int fd)
{
    uint8_t prefix[FRAME_PREFIX_SIZE];
    expect_request(fd);
    frame_prefix_write(prefix, FRAME_MAX_REPLY + 1, 0);
    fake_write(fd, prefix, sizeof prefix);
    serve_silence(fd); /* it is refused by its length alone */
}

static void serve_body(int fd)
{
    uint8_t prefix[FRAME_PREFIX_SIZE];
    expect_request(fd);
    frame_prefix_write(prefix, 4, 4);
    fake_write(fd, prefix, sizeof prefix);
    serve_silence(fd);
}

static void serve_http(int fd)
{
    expect_request(fd);
    fake_write(fd, "HTTP/1.1 400 Bad Request\r\n", 26);
    serve_silence(fd);
}

static void serve_garbage(int fd)
{
    expect_request(fd);
    fake_write(fd, "\0\0\0\x4\0\0\0\0\xff\xff\xff\xff", 12);
    serve_silence(fd);
}

static void serve_nothing_known(int fd)
{
    expect_request(fd);
    fake_write(fd, "\0\0\0\x3\0\0\0\0\xf2\x7f\0", 11); /* a field of the future */
    serve_silence(fd);
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
    expect_request(fd);
    frame_prefix_write(prefix, (uint32_t)at, 0);
    fake_write(fd, prefix, sizeof prefix);
    fake_write(fd, head, at);
    free(head);
    serve_silence(fd);
}

static void serve_other_kind(int fd)
{
    expect_request(fd);
    fake_reply_links(fd);
    serve_silence(fd);
}

static void test_nonsense(void **state)
{
    static void (*const serve[])(int fd) = {serve_oversize, serve_body,          serve_http,
                                            serve_garbage,  serve_nothing_known, serve_other_kind,
                                            serve_bomb};
    struct torus_error e;

    (void)state;
    for (size_t i = 0; i < sizeof serve / sizeof serve[0]; i++)
        assert_int_equal(failure(serve[i], &pattern, &e), TORUS_ERROR_PROTOCOL);
}

/* A result with one thing wrong in it, to be chosen by the test. */
static void (*spoil)(Control__ExchangeResult *result);

static void serve_spoilt(int fd)
{
    Control__ExchangeResult__Node a = CONTROL__EXCHANGE_RESULT__NODE__INIT,
                                  b = CONTROL__EXCHANGE_RESULT__NODE__INIT;
    Control__ExchangeResult__Node *nodes[] = {&a, &b};
    Control__ExchangeResult body = CONTROL__EXCHANGE_RESULT__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    expect_request(fd);
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
    serve_silence(fd);
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

static void test_senseless_results(void **state)
{
    static void (*const spoils[])(Control__ExchangeResult *) = {
        spoil_bound, spoil_rate,  spoil_id,        spoil_count,  spoil_rank,
        spoil_times, spoil_twice, spoil_operation, spoil_missing};
    struct torus_error e;

    (void)state;
    for (size_t i = 0; i < sizeof spoils / sizeof spoils[0]; i++) {
        spoil = spoils[i];
        assert_int_equal(failure(serve_spoilt, &pattern, &e), TORUS_ERROR_PROTOCOL);
        assert_non_null(strstr(e.text, "makes no sense"));
    }
}

static void test_senseless_requests(void **state)
{
    static const struct torus_request requests[] = {
        {REQUEST, .from = "/a"},
        {REQUEST, .to = "/a"},
        {REQUEST, .from = "/a", .to = "b"},
        {REQUEST, .from = "/a", .to = "/b", .block_bytes = 1},
        {REQUEST, .missing_ok = true},
        {REQUEST, .block_bytes = 1, .replace = true},
        {REQUEST, .shrink = true, .schedule = "0123"},
        {REQUEST, .shrink = true, .operation = TORUS_ALLGATHER},
        {REQUEST, .shrink = true, .wait = true},
        {REQUEST, .repeat = TORUS_REPEAT_MAX + 1},
        {REQUEST, .from = "/a", .to = "/b", .repeat = 2},
        {REQUEST, .operation = TORUS_BARRIER},
        {REQUEST, .operation = (enum torus_operation)77},
        {REQUEST, .mode = (enum torus_mode)77},
        {REQUEST, .reserved = {1}},
        {.algorithm = "at2"},
    };
    struct torus_error e;

    (void)state;
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        assert_int_equal(failure(serve_silence, &requests[i], &e), TORUS_ERROR_USAGE);
}

/* ---- Requests of other versions -------------------------------------------------------------- */

static void serve_pattern(int fd)
{
    fake_expect(fd, CONTROL__REQUEST__KIND_EXCHANGE);
    fake_reply_accepted(fd, "0.7.1");
    fake_reply_result(fd);
}

/* A program that was built with a header in which the struct has grown. */
static void test_larger_request(void **state)
{
    struct {
        struct torus_request request;
        uint64_t added;
    } later = {.request = pattern};
    struct torus_result *result;
    struct torus_error e;
    struct fake f;
    struct torus_client *client = begin(&f, serve_pattern);

    (void)state;
    later.request.struct_size = sizeof later;
    later.added = 1;
    assert_int_equal(torus_client_exchange(client, &later.request, NULL, NULL, &result, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_USAGE);
    assert_non_null(strstr(e.text, "later libtorus"));
    later.added = 0;
    assert_int_equal(torus_client_exchange(client, &later.request, NULL, NULL, &result, &e), 0);
    torus_result_free(result);
    end(&f, client);
}

static void test_init(void **state)
{
    struct torus_request request;
    struct torus_costs costs;

    (void)state;
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
    fake_reply_accepted(fd, "0.7.1"); /* it has become that of node 0 */
    fake_reply_progress(fd, "waiting", 0, 0);
    fake_reply_result(fd);
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

static void test_barrier(void **state)
{
    struct fake f;
    struct torus_client *client = begin(&f, serve_barrier);
    struct torus_error e;
    struct steps steps = {0};
    char name[65];

    (void)state;
    memset(name, 'x', sizeof name);
    name[64] = '\0';
    assert_int_equal(torus_client_barrier(client, name, 0, NULL, NULL, NULL, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_USAGE);
    assert_int_equal(torus_client_barrier(client, "here", 5000, note_step, &steps, NULL, &e), 0);
    assert_true(steps.count >= 4);
    assert_string_equal(steps.id[0], "3.7.1");
    assert_int_equal(steps.state[0], TORUS_STATE_UNKNOWN);
    assert_int_equal(steps.state[1], TORUS_STATE_ENTERED);
    assert_string_equal(steps.id[2], "0.7.1");
    assert_int_equal(steps.state[3], TORUS_STATE_WAITING);
    end(&f, client);
}

/* ---- Names ----------------------------------------------------------------------------------- */

static void test_names(void **state)
{
    (void)state;
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

/* ---- Event loops ----------------------------------------------------------------------------- */

/* Asks for the links once the status is there, from the callback. */
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

/* Dispatches as an event loop does, until nothing is under way. */
static void loop(struct torus_client *client)
{
    struct pollfd ready = {.fd = torus_client_fd(client), .events = POLLIN};
    do
        assert_int_equal(poll(&ready, 1, 60000), 1);
    while (torus_client_dispatch(client));
}

static void test_event_loop(void **state)
{
    struct fake f;
    struct both both = {.client = begin(&f, serve_both)};
    struct pollfd ready = {.fd = torus_client_fd(both.client), .events = POLLIN};
    struct torus_links *links;
    struct torus_error e;

    (void)state;
    assert_int_equal(poll(&ready, 1, 0), 0);
    assert_int_equal(torus_client_start_status(both.client, &both.status, status_done, &both, &e),
                     0);
    assert_int_equal(both.done, 0);
    assert_int_equal(torus_client_start_links(both.client, &links, links_done, &both, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_USAGE);
    loop(both.client);
    assert_int_equal(both.done, 2);

    /* The daemon has gone; that keeps nobody busy who has asked for nothing. */
    fake_stop(&f);
    assert_false(torus_client_dispatch(both.client));
    assert_int_equal(poll(&ready, 1, 0), 0);
    assert_int_equal(ready.fd, torus_client_fd(both.client));
    assert_int_equal(torus_client_links(both.client, &links, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_LOST);
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

static void test_deadline_in_event_loop(void **state)
{
    struct fake f;
    struct torus_client *client = begin(&f, serve_silence);
    enum torus_error_code code = TORUS_ERROR_NONE;
    struct torus_status *status;

    (void)state;
    torus_client_set_timeout(client, 20);
    assert_int_equal(torus_client_start_status(client, &status, note_code, &code, NULL), 0);
    loop(client);
    assert_int_equal(code, TORUS_ERROR_TIMEOUT);
    assert_null(status);
    end(&f, client);
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
    (void)data;
    return progress->exchange[0] != '\0';
}

/* The client can be used afterwards: for another exchange, and for anything else. */
static void test_cancel_from_callback(void **state)
{
    struct fake f;
    struct torus_client *client = begin(&f, serve_cancelled_twice);
    struct torus_result *result;
    struct torus_status *status;
    struct torus_error e;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(torus_client_exchange(client, &files, cancel_accepted, NULL, &result, &e),
                         -1);
        assert_int_equal(e.code, TORUS_ERROR_CANCELLED);
        assert_string_equal(e.text, "cancelled by the client");
        assert_string_equal(e.exchange, "0.7.1");
    }
    assert_true(torus_client_is_open(client));
    assert_int_equal(torus_client_status(client, &status, &e), 0);
    torus_status_free(status);
    end(&f, client);
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

static void test_cancel_from_thread(void **state)
{
    struct fake f;
    struct torus_result *result;
    struct torus_error e;

    (void)state;
    to_cancel = begin(&f, serve_cancelled_from_elsewhere);
    assert_int_equal(torus_client_exchange(to_cancel, &pattern, NULL, NULL, &result, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_CANCELLED);
    end(&f, to_cancel);
}

static void serve_result_when_cancelled(int fd)
{
    accept_and_expect_cancel(fd);
    fake_reply_progress(fd, "committing", 1, 1);
    fake_reply_result(fd);
}

static void test_done_in_spite_of_cancel(void **state)
{
    struct fake f;
    struct torus_client *client = begin(&f, serve_result_when_cancelled);
    struct torus_result *result;
    struct torus_error e;

    (void)state;
    assert_int_equal(torus_client_exchange(client, &files, cancel_accepted, NULL, &result, &e), 0);
    assert_string_equal(result->id, "0.7.1");
    torus_result_free(result);
    end(&f, client);
}

/* A daemon that is cancelled, and goes away without saying how it has ended. */
static void test_cancelled_without_an_outcome(void **state)
{
    struct fake f;
    struct torus_client *client = begin(&f, accept_and_expect_cancel);
    struct torus_result *result;
    struct torus_error e;

    (void)state;
    assert_int_equal(torus_client_exchange(client, &files, cancel_accepted, NULL, &result, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_IN_DOUBT);
    assert_string_equal(e.exchange, "0.7.1");
    end(&f, client);
}

/* Only what is under way is cancelled. */
static void test_cancel_without_an_operation(void **state)
{
    struct fake f;
    struct torus_client *client = begin(&f, serve_pattern);
    struct torus_result *result;
    struct torus_error e;

    (void)state;
    torus_client_cancel(client);
    assert_int_equal(torus_client_exchange(client, &pattern, NULL, NULL, &result, &e), 0);
    torus_result_free(result);
    end(&f, client);
}

/* What the daemon answers at once ends as it would have: the reply and the request to cancel cross.
 */
static void serve_cancelled_status(int fd)
{
    fake_expect(fd, CONTROL__REQUEST__KIND_STATUS);
    fake_expect(fd, CONTROL__REQUEST__KIND_CANCEL);
    fake_reply_status(fd);
    fake_expect(fd, CONTROL__REQUEST__KIND_LINKS);
    fake_reply_links(fd);
}

static void test_cancel_a_status(void **state)
{
    struct fake f;
    struct torus_client *client = begin(&f, serve_cancelled_status);
    enum torus_error_code code = TORUS_ERROR_LOST;
    struct torus_status *status;
    struct torus_links *links;
    struct torus_error e;

    (void)state;
    assert_int_equal(torus_client_start_status(client, &status, note_code, &code, &e), 0);
    torus_client_cancel(client);
    loop(client);
    assert_int_equal(code, TORUS_ERROR_NONE);
    torus_status_free(status);
    assert_int_equal(torus_client_links(client, &links, &e), 0);
    torus_links_free(links);
    end(&f, client);
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
    (void)data, (void)error;
    fail();
}

static void test_abandon(void **state)
{
    struct fake f;
    struct torus_client *client = begin(&f, serve_abandoned);
    struct pollfd ready = {.fd = torus_client_fd(client), .events = POLLIN};
    struct torus_result *result;
    struct torus_error e;
    bool accepted = false;

    (void)state;
    assert_int_equal(torus_client_start_exchange(client, &files, close_when_accepted, &result,
                                                 never_done, &accepted, &e),
                     0);
    while (!accepted) {
        assert_int_equal(poll(&ready, 1, 60000), 1);
        (void)torus_client_dispatch(client);
    }
    end(&f, client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_daemon),
        cmocka_unit_test(test_default_socket),
        cmocka_unit_test(test_status_and_links),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_never_accepted),
        cmocka_unit_test(test_accepted_takes_its_time),
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_repetitions),
        cmocka_unit_test(test_files_in_pieces),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_daemon_vanishes),
        cmocka_unit_test(test_daemon_is_waited_for),
        cmocka_unit_test(test_turned_away),
        cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_senseless_results),
        cmocka_unit_test(test_senseless_requests),
        cmocka_unit_test(test_larger_request),
        cmocka_unit_test(test_init),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_event_loop),
        cmocka_unit_test(test_deadline_in_event_loop),
        cmocka_unit_test(test_cancel_from_callback),
        cmocka_unit_test(test_cancel_from_thread),
        cmocka_unit_test(test_done_in_spite_of_cancel),
        cmocka_unit_test(test_cancelled_without_an_outcome),
        cmocka_unit_test(test_cancel_without_an_operation),
        cmocka_unit_test(test_cancel_a_status),
        cmocka_unit_test(test_abandon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
