/* libtorus: event loops, and operations that are cancelled or abandoned. */
#include <poll.h>

#include "proto/error.h"
#include "tests/support/cmocka.h"
#include "tests/unit/client_fixture.h"

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
    assert_int_equal(torus_client_start_links(both.client, &links, links_done, &both, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_USAGE);
    loop(both.client);
    assert_int_equal(both.done, 2);

    /* The daemon has gone: a client without an operation does not spin. */
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

TEST(test_deadline_in_event_loop)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, client_serve_silence);
    enum torus_error_code code = TORUS_ERROR_NONE;
    struct torus_status *status;

    torus_client_set_timeout(client, 20);
    assert_int_equal(torus_client_start_status(client, &status, note_code, &code, NULL), 0);
    loop(client);
    assert_int_equal(code, TORUS_ERROR_TIMEOUT);
    assert_null(status);
    client_end(&f, client);
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
TEST(test_cancel_from_callback)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, serve_cancelled_twice);
    struct torus_result *result;
    struct torus_status *status;
    struct torus_error e;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            torus_client_exchange(client, &client_files, cancel_accepted, NULL, &result, &e), -1);
        assert_int_equal(e.code, TORUS_ERROR_CANCELLED);
        assert_string_equal(e.exchange, "0.7.1");
    }
    assert_true(torus_client_is_open(client));
    assert_int_equal(torus_client_status(client, &status, &e), 0);
    torus_status_free(status);
    client_end(&f, client);
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

TEST(test_done_in_spite_of_cancel)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, serve_result_when_cancelled);
    struct torus_result *result;
    struct torus_error e;

    assert_int_equal(
        torus_client_exchange(client, &client_files, cancel_accepted, NULL, &result, &e), 0);
    assert_string_equal(result->id, "0.7.1");
    torus_result_free(result);
    client_end(&f, client);
}

/* A daemon that is asked to cancel, and goes away without reporting the outcome. */
TEST(test_cancelled_without_an_outcome)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, accept_and_expect_cancel);
    struct torus_result *result;
    struct torus_error e;

    assert_int_equal(
        torus_client_exchange(client, &client_files, cancel_accepted, NULL, &result, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_IN_DOUBT);
    assert_string_equal(e.exchange, "0.7.1");
    client_end(&f, client);
}

/* Only a running operation is cancelled. */
TEST(test_cancel_without_an_operation)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, client_serve_pattern);
    struct torus_result *result;
    struct torus_error e;

    torus_client_cancel(client);
    assert_int_equal(torus_client_exchange(client, &client_pattern, NULL, NULL, &result, &e), 0);
    torus_result_free(result);
    client_end(&f, client);
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

TEST(test_cancel_a_status)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, serve_cancelled_status);
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
    client_end(&f, client);
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

TEST(test_abandon)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, serve_abandoned);
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
    client_end(&f, client);
}
