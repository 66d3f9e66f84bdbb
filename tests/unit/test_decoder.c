/* However a stream of frames is cut, it gives the same frames. */
#include "daemon/torusd/router/decoder.h"
#include "daemon/torusd/router/outgoing.h"
#include "failing_memory.h"
#include "message_bytes.h"
#include "tests/support/cmocka.h"

#define MAX_HEAD 20000u
#define MAX_BODY 1000u
#define SIZES 700u /* more than the arena for heads holds */

struct stream {
    uint8_t bytes[16384];
    size_t length;
};

static void add_frame(struct stream *s, const struct peer_message *head, const uint8_t *body,
                      uint32_t length)
{
    size_t room = sizeof s->bytes - s->length - FRAME_PREFIX_SIZE - HEAD_CHECK_SIZE - length;
    uint32_t size = (uint32_t)message_write(head, s->bytes + s->length + FRAME_PREFIX_SIZE, room);

    assert_true(size > 0);
    s->length += head_check_write(s->bytes + s->length, size, length);
    if (length > 0)
        memcpy(s->bytes + s->length, body, length);
    s->length += length;
}

static uint8_t body_byte(uint32_t step, uint32_t i)
{
    return (uint8_t)(step * 31 + i);
}

static void add_data(struct stream *s, uint32_t step, uint32_t sizes, uint32_t length)
{
    struct peer_stepped_data data = {0};
    uint32_t size[SIZES];
    uint8_t body[MAX_BODY];

    for (uint32_t i = 0; i < sizes; i++)
        size[i] = 1000 * i;
    for (uint32_t i = 0; i < length; i++)
        body[i] = body_byte(step, i);
    data.step = step;
    data.n_sizes = sizes;
    data.sizes = size;
    const struct peer_message head = {.kind = PEER_STEPPED_DATA, .stepped_data = data};
    add_frame(s, &head, body, length);
}

static void add_heartbeat(struct stream *s)
{
    const struct peer_message head = {.kind = PEER_HEARTBEAT};

    add_frame(s, &head, NULL, 0);
}

/* Checks the decoded frames, which are: data 1, heartbeat, data 2, ... */
struct seen {
    unsigned frames;
    int fail_at; /* frame() fails at this one; -1: never */
    bool any;    /* frames are counted only */
};

static int on_frame(void *context, const struct peer_message *message, const struct extents *body,
                    uint32_t body_length, struct error *e)
{
    static const uint32_t lengths[] = {100, 0, 0, 1, MAX_BODY};
    static const uint32_t sizes[] = {0, 0, 3, 0, SIZES};
    struct seen *seen = context;
    uint32_t n = 0, index = seen->frames++;

    if ((int)index == seen->fail_at)
        return error_set(e, ERROR_REFUSED, "enough");
    if (seen->any)
        return 0;
    assert_in_range(index, 0, 4);
    assert_int_equal(body_length, lengths[index]);
    if (index == 1) {
        assert_int_equal(message->kind, PEER_HEARTBEAT);
        return 0;
    }
    assert_int_equal(message->kind, PEER_STEPPED_DATA);
    assert_int_equal(message->stepped_data.step, index);
    assert_int_equal(message->stepped_data.n_sizes, sizes[index]);
    for (uint32_t i = 0; i < sizes[index]; i++)
        assert_int_equal(message->stepped_data.sizes[i], 1000 * i);
    for (uint32_t i = 0; i < body->count; i++)
        for (uint32_t k = 0; k < body->item[i].length; k++)
            assert_int_equal(body->item[i].data[k], body_byte(index, n++));
    assert_int_equal(n, body_length);
    return 0;
}

static void make_stream(struct stream *s)
{
    s->length = 0;
    add_data(s, 0, 0, 100);
    add_heartbeat(s);
    add_data(s, 2, 3, 0);
    add_data(s, 3, 0, 1);
    add_data(s, 4, SIZES, MAX_BODY);
}

/* Feeds pieces that lie in slabs of their own, as after reads that filled a slab each. */
static int feed(struct decoder *d, struct slab_pool *pool, const uint8_t *bytes, size_t length,
                struct seen *seen, struct error *e)
{
    struct slab *slab = slab_get(pool);

    memcpy(slab->data, bytes, length);
    int result = decoder_feed(d, slab, slab->data, length, on_frame, seen, e);
    slab_unref(slab);
    return result;
}

/* Feeds the first bytes of a stream in pieces, the first of which may have another length. Returns how many frames they
 * had. Afterwards the pool holds nothing. */
static unsigned frames_of(const struct stream *s, size_t length, size_t first, size_t piece)
{
    struct slab_pool pool;
    struct decoder d;
    struct seen seen = {.fail_at = -1};

    slab_pool_init(&pool, 4 * SLAB_SIZE);
    decoder_init(&d, MAX_HEAD, MAX_BODY);
    for (size_t at = 0, next = first; at < length; at += next, next = piece) {
        next = length - at < next ? length - at : next;
        assert_int_equal(feed(&d, &pool, s->bytes + at, next, &seen, NULL), 0);
    }
    if (length == s->length)
        assert_int_equal(pool.in_use, 0); /* nothing is held between frames */
    decoder_free(&d);
    assert_int_equal(slab_pool_close(&pool), 0);
    return seen.frames;
}

TEST(a_stream_may_be_cut_anywhere)
{
    struct stream s;

    make_stream(&s);
    for (size_t cut = 0; cut <= s.length; cut++)
        assert_int_equal(frames_of(&s, s.length, cut, s.length), 5);
    for (size_t piece = 1; piece < 40; piece++)
        assert_int_equal(frames_of(&s, s.length, piece, piece), 5);
}

TEST(a_decoder_can_be_freed_at_any_point)
{
    struct stream s;

    make_stream(&s);
    for (size_t cut = 0; cut <= s.length; cut++)
        (void)frames_of(&s, cut, 97, 97);
}

TEST(the_handler_may_refuse_a_frame)
{
    struct stream s;
    struct slab_pool pool;

    make_stream(&s);
    slab_pool_init(&pool, 4 * SLAB_SIZE);
    for (size_t piece = 10; piece <= s.length; piece += s.length - 10)
        for (int fail_at = 0; fail_at < 5; fail_at++) {
            struct decoder d;
            struct error e = {0};
            struct seen seen = {.fail_at = fail_at};
            int result = 0;
            decoder_init(&d, MAX_HEAD, MAX_BODY);
            for (size_t at = 0; at < s.length && result == 0; at += piece)
                result = feed(&d, &pool, s.bytes + at,
                              s.length - at < piece ? s.length - at : piece, &seen, &e);
            assert_fails(result, e, ERROR_REFUSED, "");
            assert_int_equal(seen.frames, fail_at + 1);
            decoder_free(&d);
            assert_int_equal(pool.in_use, 0);
        }
    assert_int_equal(slab_pool_close(&pool), 0);
}

static void check_refused(const uint8_t *bytes, size_t length, const char *text)
{
    struct slab_pool pool;
    slab_pool_init(&pool, 0);
    for (size_t cut = 0; cut < length; cut++) {
        struct decoder d;
        struct error e = {0};
        struct seen seen = {.fail_at = -1};
        decoder_init(&d, MAX_HEAD, MAX_BODY);
        int result = feed(&d, &pool, bytes, cut, &seen, &e);
        if (result == 0)
            result = feed(&d, &pool, bytes + cut, length - cut, &seen, &e);
        assert_fails(result, e, ERROR_PROTOCOL, text);
        assert_int_equal(seen.frames, 0);
        decoder_free(&d);
    }
    assert_int_equal(slab_pool_close(&pool), 0);
}

TEST(bytes_that_are_no_frame_are_refused)
{
    uint8_t frame[FRAME_PREFIX_SIZE + 32] = {0};

    frame_prefix_write(frame, 0, 0);
    check_refused(frame, FRAME_PREFIX_SIZE, "without a head");
    frame_prefix_write(frame, MAX_HEAD + 1, 0);
    check_refused(frame, FRAME_PREFIX_SIZE, "frame head of 20001 bytes");
    frame_prefix_write(frame, UINT32_MAX, 0);
    check_refused(frame, FRAME_PREFIX_SIZE, "frame head of");
    frame_prefix_write(frame, 1, MAX_BODY + 1);
    check_refused(frame, FRAME_PREFIX_SIZE, "frame body of 1001 bytes");
    for (uint32_t head = 1; head < HEAD_CHECK_SIZE; head++) {
        frame_prefix_write(frame, head, 0);
        check_refused(frame, FRAME_PREFIX_SIZE + head, "head is damaged");
    }
    memcpy(frame + FRAME_PREFIX_SIZE, "\xff\xff\xff", 3);
    check_refused(frame, head_check_write(frame, 3, 0), "not a message");
    /* A kind from the future: field 1000, empty. */
    memcpy(frame + FRAME_PREFIX_SIZE, "\xc2\x3e\x00", 3);
    check_refused(frame, head_check_write(frame, 3, 0), "unknown kind");
    check_refused(frame, head_check_write(frame, 3, 4) + 4, "unknown kind");
}

/* With any flipped bit of the lengths or the head, no frame is accepted. */
TEST(damaged_frames_are_refused)
{
    struct stream s = {.length = 0};
    size_t first;

    add_data(&s, 3, 17, 20);
    first = s.length - 20;
    for (size_t bit = 0; bit < 8 * first; bit++) {
        struct seen seen = {.fail_at = -1};
        struct stream damaged = s;
        struct slab_pool pool;
        struct decoder d;
        damaged.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        add_data(&damaged, 3, 17, 900); /* more bytes: the decoder may wait for them */
        slab_pool_init(&pool, 0);
        decoder_init(&d, MAX_HEAD, MAX_BODY);
        (void)feed(&d, &pool, damaged.bytes, damaged.length, &seen, NULL);
        if (seen.frames > 0)
            fail_msg("bit %zu", bit);
        decoder_free(&d);
        assert_int_equal(slab_pool_close(&pool), 0);
    }
}

TEST(caps_may_be_reached)
{
    struct stream s = {.length = 0};
    struct slab_pool pool;
    struct decoder d;
    struct seen seen = {.fail_at = -1};

    add_data(&s, 0, 0, 100);
    slab_pool_init(&pool, 0);
    decoder_init(&d, (uint32_t)(s.length - FRAME_PREFIX_SIZE - 100), 100);
    assert_int_equal(feed(&d, &pool, s.bytes, s.length, &seen, NULL), 0);
    assert_int_equal(seen.frames, 1);
    decoder_free(&d);
    assert_int_equal(slab_pool_close(&pool), 0);
}

/* A link state with many empty entries: two bytes each on the wire, and large structs in memory. */
static uint8_t *empty_entries(uint32_t count, uint32_t body, uint32_t *length)
{
    uint32_t list = 2 * count, head = 1 + 4 + list;
    uint8_t *bytes = malloc(FRAME_PREFIX_SIZE + head + HEAD_CHECK_SIZE + body);
    uint8_t *at = bytes + FRAME_PREFIX_SIZE;

    assert_non_null(bytes);
    *at++ = 5 << 3 | 2; /* Head.link_state */
    for (unsigned i = 0; i < 4; i++)
        *at++ = (uint8_t)((list >> 7 * i & 0x7f) | (i < 3 ? 0x80 : 0));
    for (uint32_t i = 0; i < count; i++) {
        *at++ = 1 << 3 | 2; /* LinkState.entry */
        *at++ = 0;
    }
    memset(at + HEAD_CHECK_SIZE, 0, body);
    *length = head_check_write(bytes, head, body) + body;
    return bytes;
}

static int feed_entries(struct decoder *d, uint32_t count, uint32_t body, uint32_t withheld,
                        uint32_t piece, struct error *e)
{
    struct seen seen = {.fail_at = -1, .any = true};
    struct slab_pool pool;
    uint32_t length;
    uint8_t *bytes = empty_entries(count, body, &length);
    int result = 0;

    slab_pool_init(&pool, 0);
    for (uint32_t at = 0; at < length - withheld && result == 0; at += piece) {
        uint32_t left = length - withheld - at;
        result = feed(d, &pool, bytes + at, left < piece ? left : piece, &seen, e);
    }
    assert_int_equal(seen.frames, result == 0 && withheld == 0);
    if (withheld > 0) /* holds no more memory than the received bytes */
        assert_true(d->unpacked == NULL || d->prefix.head <= 16 * 1024);
    decoder_free(d);
    assert_int_equal(slab_pool_close(&pool), 0);
    free(bytes);
    return result;
}

/* A head does not take many times its length in memory. */
TEST(empty_messages_are_bounded)
{
    static const uint32_t pieces[] = {1000, 60000};
    struct decoder d;
    struct error e;

    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        for (uint32_t body = 0; body <= 100; body += 100) {
            decoder_init(&d, FRAME_MAX_HEAD, FRAME_MAX_BODY);
            assert_int_equal(feed_entries(&d, 1000, body, 0, pieces[i], &e), 0);
            decoder_init(&d, FRAME_MAX_HEAD, FRAME_MAX_BODY);
            assert_fails(feed_entries(&d, 200000, body, 0, pieces[i], &e), e, ERROR_PROTOCOL, "");
            decoder_init(&d, FRAME_MAX_HEAD, FRAME_MAX_BODY);
            d.max_more = 200000 * 200;
            assert_int_equal(feed_entries(&d, 200000, body, 0, pieces[i], &e), 0);
        }
        decoder_init(&d, FRAME_MAX_HEAD, FRAME_MAX_BODY);
        assert_int_equal(feed_entries(&d, 200000, 100, 1, pieces[i], &e), 0);
        decoder_init(&d, FRAME_MAX_HEAD, FRAME_MAX_BODY);
        assert_int_equal(feed_entries(&d, 100, 100, 1, pieces[i], &e), 0);
    }
}

TEST(memory_may_run_out_at_any_moment)
{
    struct stream s;
    struct slab_pool pool;

    make_stream(&s);
    slab_pool_init(&pool, 8 * SLAB_SIZE);
    for (size_t piece = 30; piece < 1000; piece += 70) {
        bool fired = true;
        for (unsigned after = 0; fired; after++) {
            struct decoder d;
            struct error e = {0};
            struct seen seen = {.fail_at = -1};
            int result = 0;
            decoder_init(&d, MAX_HEAD, MAX_BODY);
            memory_fails(after);
            for (size_t at = 0; at < s.length && result == 0; at += piece)
                result = feed(&d, &pool, s.bytes + at,
                              s.length - at < piece ? s.length - at : piece, &seen, &e);
            fired = memory_failed();
            assert_int_equal(result, fired ? -1 : 0);
            decoder_free(&d);
            assert_int_equal(pool.in_use, 0);
        }
    }
    assert_int_equal(slab_pool_close(&pool), 0);
}
