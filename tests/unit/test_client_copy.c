/* libtorus: copies of trees. */
#include "proto/error.h"
#include "tests/support/cmocka.h"
#include "tests/unit/client_fixture.h"
#include "tests/unit/copy_replies.h"

static const char *const sources[] = {"/data/mod\xff"
                                      "el",
                                      "/data/100%%"};
static const char *const patterns[] = {"+ keep", "- *.o"};
static const uint32_t nodes[] = {1, 3, 5};

static struct torus_copy usual(void)
{
    struct torus_copy c;

    torus_copy_init(&c);
    c.node = 6;
    c.source_count = 2;
    c.source = sources;
    c.target = "/data/%r";
    c.into = true;
    return c;
}

/* ---- Requests -------------------------------------------------------------------------------- */

static bool is_text(const ProtobufCBinaryData *bytes, const char *text)
{
    return bytes->len == strlen(text) && memcmp(bytes->data, text, bytes->len) == 0;
}

static void serve_everything(int fd)
{
    Control__Request *request = fake_request(fd);
    struct copy_reply reply;

    FAKE_MUST(request != NULL && request->kind_case == CONTROL__REQUEST__KIND_COPY);
    const Torus__CopyRequest *c = request->copy;
    FAKE_MUST(c->kind == TORUS_COPY_SCATTER && c->node == 6);
    FAKE_MUST(c->n_source == 2 && is_text(&c->source[0], sources[0]));
    FAKE_MUST(is_text(&c->source[1], sources[1]) && is_text(&c->target, "/data/%r"));
    FAKE_MUST(c->n_nodes == 3 && c->nodes[0] == 1 && c->nodes[2] == 5);
    FAKE_MUST(c->n_pattern == 2 && is_text(&c->pattern[0], "+ keep"));
    FAKE_MUST(is_text(&c->pattern[1], "- *.o") && c->timeout_ms == 5000);
    FAKE_MUST(c->into && c->delete_ && c->checksum && c->dry_run && !c->verify && c->as_it_comes);
    FAKE_MUST(c->shrink && !c->wait && c->user == 0);
    control__request__free_unpacked(request, NULL);
    copy_reply_make(&reply);
    copy_reply_send(fd, &reply);
}

CLIENT_TEST(serve_everything, the_request_arrives)
{
    struct torus_copy c = usual();
    struct torus_copy_result *result;
    struct torus_error e;

    c.kind = TORUS_COPY_SCATTER;
    c.node_count = 3;
    c.nodes = nodes;
    c.pattern_count = 2;
    c.pattern = patterns;
    c.timeout_ms = 5000;
    c.remove = c.checksum = c.dry_run = c.as_it_comes = c.shrink = true;
    assert_int_equal(torus_client_copy(client, &c, NULL, NULL, &result, &e), 0);
    torus_copy_result_free(result);
    torus_copy_result_free(NULL);
}

/* Checks that a request is refused before it is sent. */
static void check_refused(struct torus_client *client, const struct torus_copy *c)
{
    struct torus_copy_result *result = (struct torus_copy_result *)&result;
    struct torus_error e;

    assert_fails(torus_client_copy(client, c, NULL, NULL, &result, &e), e, TORUS_ERROR_USAGE, "");
    assert_null(result);
}

TEST(invalid_requests_are_refused)
{
    static const char *const relative[] = {"data/model"}, *const bad[] = {"*.o"};
    static const uint32_t falling[] = {3, 1};
    const char *many[TORUS_COPY_LIST_MAX + 1];
    char *text = malloc(20000);
    struct fake f;
    struct torus_client *client = client_begin(&f, client_serve_silence);
    struct torus_copy c;

    for (size_t i = 0; i <= TORUS_COPY_LIST_MAX; i++)
        many[i] = "/a";
#define REFUSED(...)                                                                               \
    do {                                                                                           \
        c = usual();                                                                               \
        __VA_ARGS__;                                                                               \
        check_refused(client, &c);                                                                 \
    } while (0)
    REFUSED(c.struct_size = 0);
    REFUSED(c.kind = (enum torus_copy_kind)0);
    REFUSED(c.kind = (enum torus_copy_kind)9);
    REFUSED(c.source_count = 0);
    REFUSED(c.source = relative, c.source_count = 1);
    REFUSED(c.source = many, c.source_count = TORUS_COPY_LIST_MAX + 1);
    REFUSED(c.into = false); /* two sources */
    REFUSED(c.target = NULL);
    REFUSED(c.target = "x");
    REFUSED(c.pattern = bad, c.pattern_count = 1);
    REFUSED(c.nodes = falling, c.node_count = 2);
    REFUSED(c.shrink = c.wait = true);
    assert_non_null(text);
    memset(text, 'x', 19999);
    text[0] = '/';
    text[19999] = '\0';
    REFUSED(c.target = text);
    client_end(&f, client);
    free(text);
}

/* ---- Replies --------------------------------------------------------------------------------- */

static void serve_story(int fd)
{
    static uint32_t absent[] = {7, 9};
    struct copy_reply reply;

    fake_expect(fd, CONTROL__REQUEST__KIND_COPY);
    fake_reply_accepted(fd, "6.7.1");
    copy_reply_progress(fd, TORUS_COPY_READING, 12, 0, 0);
    copy_reply_progress(fd, TORUS_COPY_MOVING, 0, 1 << 20, 3 << 20);
    copy_reply_progress(fd, 99, 0, 0, 0);
    copy_reply_make(&reply);
    copy_reply_bytes(&reply.result.first_left_out, "/d\n\\\xff", 5);
    reply.result.left_out = 3;
    reply.result.n_absent = 2;
    reply.result.absent = absent;
    reply.node[0].code = ERROR_IO; /* of node 5 */
    reply.node[0].error = (char *)(uintptr_t) "no\033 room";
    reply.node[1].code = 4711; /* of node 1 */
    copy_reply_bytes(&reply.node[2].first, "a\033/b", 4);
    copy_reply_send(fd, &reply);
}

struct seen {
    unsigned phases; /* a bit each */
    uint64_t files, bytes, bytes_of;
};

static int watch(void *data, const struct torus_copy_progress *progress)
{
    struct seen *seen = data;

    seen->phases |= 1u << progress->phase;
    assert_string_equal(progress->waits_for, "");
    if (progress->phase == TORUS_COPY_READING)
        seen->files = progress->files;
    if (progress->phase == TORUS_COPY_MOVING) {
        seen->bytes = progress->bytes;
        seen->bytes_of = progress->bytes_of;
    }
    return 0;
}

static void check_story(const struct torus_copy_result *r)
{
    assert_string_equal(r->id, "6.7.1");
    assert_int_equal(r->node_count, 3);
    assert_int_equal(r->node[0]->rank, 1); /* in order */
    assert_int_equal(r->node[1]->rank, 3);
    assert_int_equal(r->node[2]->rank, 5);
    assert_int_equal(r->node[0]->code, TORUS_ERROR_PROTOCOL); /* the code is not known */
    assert_string_not_equal(r->node[0]->error, "");
    assert_int_equal(r->node[1]->code, TORUS_ERROR_NONE);
    assert_string_equal(r->node[1]->error, "");
    assert_string_equal(r->node[1]->first, "a?/b");
    assert_int_equal(r->node[2]->code, TORUS_ERROR_IO);
    assert_string_equal(r->node[2]->error, "no? room");
    assert_int_equal(r->node[2]->from, 6);
    assert_int_equal(r->node[2]->files, 10);
    assert_int_equal(r->node[2]->folders, 2);
    assert_int_equal(r->node[2]->links, 1);
    assert_int_equal(r->node[2]->added, 2);
    assert_int_equal(r->node[2]->changed, 1);
    assert_int_equal(r->node[2]->unchanged, 10);
    assert_int_equal(r->node[2]->bytes, 4 << 20);
    assert_int_equal(r->node[2]->bytes_missing, 3 << 20);
    assert_int_equal(r->bytes_sent, 3 << 20);
    assert_int_equal(r->bytes_all, 4 << 20);
    assert_int_equal(r->nanoseconds, 2000000000);
    assert_int_equal(r->compare_nanoseconds, 500000000);
    assert_int_equal(r->left_out, 3);
    assert_string_equal(r->first_left_out, "/d\\x0a\\x5c\\xff");
    assert_int_equal(r->absent_count, 2);
    assert_int_equal(r->absent[1], 9);
}

TEST(progress_and_the_result_arrive)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, serve_story);
    const struct torus_copy c = usual();
    struct seen seen = {0};
    struct torus_copy_result *result;
    struct torus_error e;

    assert_int_equal(torus_client_copy(client, &c, watch, &seen, &result, &e), 0);
    assert_true(torus_client_is_open(client));
    client_end(&f, client);
    assert_true((seen.phases & 1u << TORUS_COPY_PLACING) != 0); /* unknown ones are the last */
    assert_int_equal(seen.files, 12);
    assert_int_equal(seen.bytes, 1 << 20);
    assert_int_equal(seen.bytes_of, 3 << 20);
    check_story(result);
    torus_copy_result_free(result);
    assert_string_equal(torus_copy_phase_name(TORUS_COPY_MOVING), "moving");
    assert_string_equal(torus_copy_phase_name((enum torus_copy_phase)77), "unknown");
}

static enum torus_error_code failure(void (*serve)(int fd), torus_copy_progress_fn *progress,
                                     struct torus_error *e)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, serve);
    const struct torus_copy c = usual();
    struct torus_copy_result *result = (struct torus_copy_result *)&f;

    assert_int_equal(torus_client_copy(client, &c, progress, NULL, &result, e), -1);
    assert_null(result);
    client_end(&f, client);
    return e->code;
}

static void serve_twins(int fd)
{
    struct copy_reply reply;

    fake_expect(fd, CONTROL__REQUEST__KIND_COPY);
    copy_reply_make(&reply);
    reply.node[2].rank = reply.node[0].rank;
    copy_reply_send(fd, &reply);
}

static void serve_strange_times(int fd)
{
    struct copy_reply reply;

    fake_expect(fd, CONTROL__REQUEST__KIND_COPY);
    copy_reply_make(&reply);
    reply.result.compare_nanoseconds = reply.result.nanoseconds + 1;
    copy_reply_send(fd, &reply);
}

/* Progress of an exchange does not belong to a copy. */
static void serve_other_progress(int fd)
{
    fake_expect(fd, CONTROL__REQUEST__KIND_COPY);
    fake_reply_accepted(fd, "6.7.1");
    fake_reply_progress(fd, "running", 1, 2);
}

static void serve_goodbye(int fd)
{
    fake_expect(fd, CONTROL__REQUEST__KIND_COPY);
    copy_reply_progress(fd, TORUS_COPY_MOVING, 0, 1, 2);
}

TEST(invalid_replies_and_lost_daemons_are_errors)
{
    struct torus_error e;

    assert_int_equal(failure(serve_twins, NULL, &e), TORUS_ERROR_PROTOCOL);
    assert_int_equal(failure(serve_strange_times, NULL, &e), TORUS_ERROR_PROTOCOL);
    assert_int_equal(failure(serve_other_progress, NULL, &e), TORUS_ERROR_PROTOCOL);
    assert_int_equal(failure(serve_goodbye, NULL, &e), TORUS_ERROR_LOST);
    assert_contains(e.text, "during the copy");
}

static void serve_cancelled(int fd)
{
    fake_expect(fd, CONTROL__REQUEST__KIND_COPY);
    copy_reply_progress(fd, TORUS_COPY_MOVING, 0, 1, 2);
    fake_expect(fd, CONTROL__REQUEST__KIND_CANCEL);
    fake_reply_error(fd, ERROR_CANCELLED, "cancelled", "6.7.1");
}

static int stop(void *data, const struct torus_copy_progress *progress)
{
    return progress->phase == TORUS_COPY_MOVING;
}

TEST(the_progress_function_can_cancel)
{
    struct torus_error e;

    assert_int_equal(failure(serve_cancelled, stop, &e), TORUS_ERROR_CANCELLED);
    assert_string_equal(e.exchange, "6.7.1");
}
