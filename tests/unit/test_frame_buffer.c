/* The frame buffer of all engines, with pieces that are copied and pieces that stay in the slab into which they were
 * read. */
#include "daemon/torusd/engine/frame_buffer.h"
#include "engine_fixture.h"
#include "failing_memory.h"
#include "tests/support/cmocka.h"

enum { HOLDS = 20, PIECE = 48 };

struct dock {
    struct node *node;
    struct engine engine;
    struct frame_buffer buffer;
    uint8_t *room;
    struct hold hold[HOLDS];
    struct slab_writer in;
};

/* `copies`: pieces are so small that holds have copies of them. */
static void dock_open(struct dock *d, bool copies)
{
    *d = (struct dock){.node = node_open("3", 1, PIECE)};
    d->engine.set = d->node->setup;
    frame_buffer_init(&d->buffer, &d->engine, copies ? PIECE : FRAME_BUFFER_COPIED_MOST + 1);
    assert_int_equal(frame_buffer_room(&d->buffer, HOLDS, &d->room), 0);
    assert_int_equal(d->room != NULL, copies);
    for (size_t i = 0; i < HOLDS; i++)
        d->hold[i] = frame_buffer_hold(&d->buffer, d->room, i);
}

/* Fails the test if memory has leaked. */
static void dock_close(struct dock *d)
{
    frame_buffer_close(&d->buffer);
    free(d->room);
    slab_writer_close(&d->in);
    node_close(d->node); /* and nothing has leaked */
}

/* A test with a dock that does not copy, `d`. */
#define DOCK_TEST(name)                                                                            \
    TEST_BETWEEN(struct dock, d, dock_open(&fixture, false), dock_close(&fixture), name)

static struct outgoing *dock_frame(struct dock *d)
{
    struct outgoing *frame = frame_buffer_new_frame(&d->buffer);
    assert_non_null(frame);
    return frame;
}

static void dock_free_frame(struct dock *d, struct outgoing *frame)
{
    outgoing_free(router_outgoing(d->node->f.router), frame);
}

/* Byte `i` of the bytes that wait in a hold. */
static uint8_t byte_of(size_t hold, uint32_t i)
{
    return (uint8_t)(37 * hold + i);
}

/* `length` bytes arrive for the hold, in a slab. */
static void put(struct dock *d, size_t hold, uint32_t offset, uint32_t length)
{
    struct extent piece;
    uint8_t *at = slab_writer_take(&d->in, &d->node->f.pool, length, &piece);

    for (uint32_t i = 0; i < length; i++)
        at[i] = byte_of(hold, offset + i);
    frame_buffer_put(&d->buffer, &d->hold[hold], offset, &piece);
    slab_unref(piece.slab);
}

/* A rest that would be a small frame of its own is added to the frame, up to a sixteenth of a full frame. */
TEST(a_rest_of_a_few_bytes_comes_along)
{
    struct outgoing frame = {.body_length = 0};

    assert_int_equal(frame_buffer_fits(&frame, 1600, 1000), 1000);
    assert_int_equal(frame_buffer_fits(&frame, 1600, 1600), 1600);
    assert_int_equal(frame_buffer_fits(&frame, 1600, 1700), 1700);
    assert_int_equal(frame_buffer_fits(&frame, 1600, 1701), 1600);
    assert_int_equal(frame_buffer_fits(&frame, 1600, UINT32_MAX), 1600);
    frame.body_length = 1599;
    assert_int_equal(frame_buffer_fits(&frame, 1600, 101), 101);
    assert_int_equal(frame_buffer_fits(&frame, 1600, 102), 1);
    frame.body_length = 1650; /* bytes have already come with it */
    assert_int_equal(frame_buffer_fits(&frame, 1600, 50), 50);
    assert_int_equal(frame_buffer_fits(&frame, 1600, 51), 0);
    frame.body_length = UINT32_MAX - 5;
    assert_int_equal(frame_buffer_fits(&frame, 1600, 10), 0);
}

/* Checks the frame's bytes from `at` on. */
static void check_body(const struct outgoing *frame, uint32_t at, size_t hold, uint32_t offset,
                       uint32_t length)
{
    struct extent_cursor cursor = {0};
    struct extent piece;
    uint32_t seen = 0;

    while (extents_take(&frame->body, &cursor, 1, &piece) > 0) {
        if (seen >= at && seen < at + length)
            assert_int_equal(*piece.data, byte_of(hold, offset + seen - at));
        seen++;
    }
    assert_true(seen >= at + length);
    assert_int_equal(seen, frame->body_length);
}

/* A piece may arrive and leave in any parts. */
TEST(bytes_leave_as_they_came)
{
    for (int copies = 0; copies < 2; copies++)
        for (uint32_t in = 1; in <= PIECE; in++)
            for (uint32_t out = 1; out <= PIECE; out += 5) {
                struct dock d;
                dock_open(&d, copies);
                for (uint32_t came = 0; came < PIECE; came += in)
                    for (size_t h = 0; h < 2; h++)
                        put(&d, h, came, in < PIECE - came ? in : PIECE - came);
                struct outgoing *frame = dock_frame(&d);
                for (uint32_t gone = 0; gone < PIECE; gone += out)
                    for (size_t h = 0; h < 2; h++) {
                        uint32_t at = frame->body_length;
                        uint32_t n = out < PIECE - gone ? out : PIECE - gone;
                        assert_int_equal(
                            frame_buffer_load(&d.buffer, &d.hold[h], gone, NULL, n, frame), n);
                        assert_int_equal(frame->body_length, at + n);
                        check_body(frame, at, h, gone, n);
                    }
                dock_free_frame(&d, frame);
                assert_null(engine_failed(&d.engine));
                dock_close(&d);
            }
}

/* Bytes leave while others still arrive; no slab is held any longer. */
TEST(a_hold_gives_back_what_has_left)
{
    for (int copies = 0; copies < 2; copies++) {
        struct dock d;
        dock_open(&d, copies);
        for (uint32_t round = 0; round < 1000; round++) {
            struct outgoing *frame = dock_frame(&d);
            put(&d, 3, 0, 10);
            assert_int_equal(frame_buffer_load(&d.buffer, &d.hold[3], 0, NULL, 6, frame), 6);
            put(&d, 3, 10, 5);
            assert_int_equal(frame_buffer_load(&d.buffer, &d.hold[3], 6, NULL, 9, frame), 9);
            check_body(frame, 0, 3, 0, 15);
            dock_free_frame(&d, frame);
        }
        assert_in_range(d.buffer.waiting.room, 0, 256);
        slab_writer_close(&d.in);
        slab_writer_close(&d.buffer.body);
        slab_writer_close(&d.buffer.kept);
        assert_int_equal(d.node->f.pool.in_use, 0);
        dock_close(&d);
    }
}

/* An allgather's block leaves by several ports, each at its own pace. */
TEST(several_readers_of_a_hold)
{
    for (int copies = 0; copies < 2; copies++) {
        struct hold_place place[2] = {{0}};
        struct dock d;
        dock_open(&d, copies);
        for (uint32_t came = 0; came < PIECE; came += 12)
            for (size_t h = 4; h < 6; h++) /* in turn, so that they are several parcels */
                put(&d, h, came, 12);
        struct outgoing *a = dock_frame(&d), *b = dock_frame(&d);
        for (uint32_t gone = 0; gone < PIECE; gone += 8) {
            assert_int_equal(frame_buffer_load(&d.buffer, &d.hold[4], gone, &place[0], 8, a), 8);
            if (gone % 24 == 0)
                assert_int_equal(frame_buffer_load(&d.buffer, &d.hold[4], gone, &place[1], 24, b),
                                 24);
        }
        check_body(a, 0, 4, 0, PIECE);
        check_body(b, 0, 4, 0, PIECE);
        frame_buffer_drop(&d.buffer, &d.hold[4]);
        frame_buffer_drop(&d.buffer, &d.hold[4]); /* does no harm */
        dock_free_frame(&d, a);
        dock_free_frame(&d, b);
        dock_close(&d); /* with hold 5 still full */
    }
}

/* A frame has a bounded number of extents; copies are one run. */
TEST(a_frame_takes_what_it_has_extents_for)
{
    for (int copies = 0; copies < 2; copies++) {
        uint32_t loaded = 0;
        struct dock d;
        dock_open(&d, copies);
        struct outgoing *frame = dock_frame(&d);
        for (unsigned i = 0; i < 2 * OUTGOING_MAX_EXTENTS; i++) {
            put(&d, i % HOLDS, 0, 1);
            put(&d, (i + 1) % HOLDS, 0, 1); /* between two of the frame */
            loaded += frame_buffer_load(&d.buffer, &d.hold[i % HOLDS], 0, NULL, 1, frame);
            frame_buffer_drop(&d.buffer, &d.hold[(i + 1) % HOLDS]);
        }
        assert_int_equal(loaded, copies ? 2 * OUTGOING_MAX_EXTENTS : OUTGOING_MAX_EXTENTS);
        assert_int_equal(frame->body.count, copies ? 1 : OUTGOING_MAX_EXTENTS);
        assert_int_equal(frame->body_length, loaded);
        dock_free_frame(&d, frame);
        dock_close(&d);
    }
}

TEST(our_own_blocks_come_from_the_source)
{
    const struct block_piece to_2 = {1, 2, 0, PIECE}, to_0 = {1, 0, 0, PIECE};

    for (int copies = 0; copies < 2; copies++) {
        struct dock d;
        dock_open(&d, copies);
        struct outgoing *frame = dock_frame(&d);
        d.node->source.sleeps_soon = 30;
        assert_int_equal(frame_buffer_load_own(&d.buffer, &to_2, 0, NULL, 20, frame), 20);
        assert_int_equal(frame_buffer_load_own(&d.buffer, &to_2, 20, NULL, PIECE - 20, frame), 10);
        assert_int_equal(frame_buffer_load_own(&d.buffer, &to_2, 30, NULL, PIECE - 30, frame), 0);
        d.node->source.sleeps_soon = UINT32_MAX;
        assert_int_equal(frame_buffer_load_own(&d.buffer, &to_2, 30, NULL, PIECE - 30, frame),
                         PIECE - 30);
        assert_int_equal(frame->body_length, PIECE);
        struct extent_cursor cursor = {0};
        struct extent piece;
        for (uint32_t i = 0; i < PIECE; i++) {
            assert_int_equal(extents_take(&frame->body, &cursor, 1, &piece), 1);
            assert_int_equal(*piece.data, letter(1, 2, i));
        }
        d.node->source.failing = true;
        assert_int_equal(frame_buffer_load_own(&d.buffer, &to_0, 0, NULL, PIECE, frame), 0);
        assert_int_equal(engine_failed(&d.engine)->code, SOURCE_FAILS);
        dock_free_frame(&d, frame);
        dock_close(&d);
    }
}

TEST(our_block_for_ourselves_is_delivered)
{
    const struct cut cut = {
        .uniform = true, .block_bytes = PIECE, .round_bytes = 32, .segments = 1};

    for (int copies = 0; copies < 2; copies++) {
        struct dock d;
        dock_open(&d, copies);
        for (uint64_t round = 0; round < 2; round++) {
            const struct cut_round r = cut_round(&cut, round);
            uint32_t length = round == 0 ? 32 : 16;
            struct own_block own = {.at = r.begin};
            d.node->source.sleeps_soon = 7;
            frame_buffer_deliver_own(&d.buffer, 1, &r, &own);
            assert_false(own.delivered);
            assert_int_equal(own.at, r.begin + 7);
            d.node->source.sleeps_soon = UINT32_MAX;
            frame_buffer_deliver_own(&d.buffer, 1, &r, &own);
            assert_true(own.delivered);
            assert_int_equal(d.node->sink.bytes[1], r.begin + length);
        }
        assert_int_equal(d.engine.counts.bytes_delivered, 0); /* not from another node */
        dock_close(&d);
    }
}

DOCK_TEST(delivered_bytes_are_counted)
{
    const struct block_piece from_2 = {2, 1, 0, 4};
    struct extent piece;

    uint8_t *at = slab_writer_take(&d->in, &d->node->f.pool, 2, &piece);
    at[0] = letter(2, 1, 0);
    at[1] = letter(2, 1, 1);
    assert_int_equal(frame_buffer_deliver(&d->buffer, &from_2, 0, NULL, &piece), 0);
    frame_buffer_deliver_nothing(&d->buffer, 0, 0);
    assert_int_equal(d->engine.counts.bytes_delivered, 2);
    assert_int_equal(d->node->sink.bytes[2], 2);
    assert_int_equal(d->node->sink.writes[0], 1);
    d->node->sink.failing = true;
    assert_int_equal(frame_buffer_deliver(&d->buffer, &from_2, 2, NULL, &piece), -1);
    assert_int_equal(d->engine.counts.bytes_delivered, 2);
    assert_int_equal(engine_failed(&d->engine)->code, SINK_FAILS);
    d->node->sink.failing = false;
    frame_buffer_deliver_nothing(&d->buffer, 0, 0); /* nothing more after a failure */
    assert_int_equal(d->node->sink.writes[0], 1);
    slab_unref(piece.slab);
}

DOCK_TEST(a_frame_leaves_loaded_or_not_at_all)
{
    struct peer_stepped_data data = {0};
    const struct error e = {.code = ERROR_IO, .text = "failed"};
    const struct peer_message head = {.kind = PEER_STEPPED_DATA, .stepped_data = data};
    put(d, 0, 0, 9);
    struct outgoing *frame = dock_frame(d);
    assert_int_equal(frame_buffer_load(&d->buffer, &d->hold[0], 0, NULL, 9, frame), 9);
    assert_ptr_equal(frame_buffer_ship(&d->buffer, MINUS, frame, &head, true), frame);
    assert_true(frame->head_length > FRAME_PREFIX_SIZE);
    assert_int_equal(d->engine.counts.port[MINUS].tx_bytes, 9);
    dock_free_frame(d, frame);
    assert_null(frame_buffer_ship(&d->buffer, MINUS, dock_frame(d), &head, false));
    (void)engine_fail(&d->engine, &e);
    assert_null(frame_buffer_ship(&d->buffer, MINUS, dock_frame(d), &head, true));
    assert_int_equal(d->engine.counts.port[MINUS].tx_bytes, 9);
}

/* Every allocation fails once: the engine fails, whatever happens then. */
static bool run_out_of_memory(bool copies, unsigned after)
{
    struct peer_stepped_data data = {0};
    struct slab *slab;
    struct dock d;

    const struct peer_message head = {.kind = PEER_STEPPED_DATA, .stepped_data = data};
    dock_open(&d, copies);
    slab = slab_get(&d.node->f.pool);
    const struct extent piece = {slab, slab->data, 4}, far = {slab, slab->data + 1000, 4};
    memory_fails_everywhere(after);
    for (uint32_t i = 0; i < 300; i++) { /* more than the first parcels */
        struct hold one = i < HOLDS ? d.hold[i] : frame_buffer_hold(&d.buffer, d.room, i % HOLDS);
        frame_buffer_put(&d.buffer, &one, 0, &piece);
        frame_buffer_put(&d.buffer, &one, 4, &far);
        if (i < HOLDS)
            d.hold[i] = one;
    }
    struct outgoing *frame = frame_buffer_new_frame(&d.buffer);
    for (size_t h = 0; frame != NULL && engine_failed(&d.engine) == NULL && h < HOLDS; h++)
        (void)frame_buffer_load(&d.buffer, &d.hold[h], 0, NULL, 8, frame);
    if (frame != NULL)
        frame = frame_buffer_ship(&d.buffer, PLUS, frame, &head, true);
    bool failed = memory_failed();
    assert_int_equal(frame == NULL, failed);
    assert_int_equal(engine_failed(&d.engine) != NULL, failed);
    if (failed)
        assert_int_equal(engine_failed(&d.engine)->code, ERROR_MEMORY);
    if (frame != NULL)
        dock_free_frame(&d, frame);
    slab_unref(slab);
    dock_close(&d);
    return failed;
}

TEST(memory_may_be_over_at_any_moment)
{
    for (int copies = 0; copies < 2; copies++) {
        unsigned after = 0;
        while (run_out_of_memory(copies, after))
            after++;
        assert_in_range(after, 3, 50);
    }
}

/* A neighbour that sends single bytes, with much other traffic in between. */
DOCK_TEST(bytes_that_wait_do_not_keep_slabs)
{
    for (uint32_t i = 0; i < 1000; i++) {
        struct slab *slab = slab_get(&d->node->f.pool);
        const struct extent bytes = {slab, slab->data + 7, 1};
        slab->data[7] = byte_of(0, i);
        frame_buffer_put(&d->buffer, &d->hold[0], i, &bytes);
        slab_unref(slab);
    }
    assert_in_range(d->node->f.pool.in_use, 1, 3);
    struct outgoing *frame = dock_frame(d);
    assert_int_equal(frame_buffer_load(&d->buffer, &d->hold[0], 0, NULL, 1000, frame), 1000);
    check_body(frame, 0, 0, 0, 1000);
    dock_free_frame(d, frame);
}

/* Digests of pieces that pass through a frame buffer. */

/* A block of 600 bytes from node 2 for this node arrives in `run`s; its piece is bytes 100 to 599. `flip`: a bit that
 * is flipped, or UINT32_MAX. Returns the outcome. */
static int deliver_piece(struct dock *d, const struct block_piece *piece, uint32_t run,
                         uint32_t flip, uint64_t sent, struct piece_mark *mark)
{
    struct extent bytes;
    uint8_t *at = slab_writer_take(&d->in, &d->node->f.pool, piece->length, &bytes);

    for (uint32_t i = 0; i < piece->length; i++)
        at[i] = letter(piece->source, 1, piece->begin + i);
    if (flip != UINT32_MAX)
        at[flip / 8] ^= (uint8_t)(1u << flip % 8);
    for (uint32_t done = 0; done < piece->length; done += run) {
        struct extent next = {bytes.slab, bytes.data + done, run};
        if (next.length > piece->length - done)
            next.length = piece->length - done;
        assert_int_equal(frame_buffer_deliver(&d->buffer, piece, done, mark, &next), 0);
    }
    slab_unref(bytes.slab);
    return frame_buffer_compare(&d->buffer, piece, mark, sent);
}

TEST(digests_are_the_same_however_a_piece_is_cut)
{
    static const uint32_t runs[] = {500, 499, 250, 64, 7, 1};
    const struct block_piece piece = {1, 1, 100, 500};

    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct piece_mark sent = {0}, came = {0};
        struct dock d;
        dock_open(&d, false);
        struct outgoing *frame = dock_frame(&d);
        d.node->source.size[1] = 600;
        d.node->source.in_order = false;
        d.node->sink.careless = true;
        uint32_t moved = 0;
        while (moved < piece.length) { /* the source gives the bytes that it has */
            d.node->source.sleeps_soon = runs[i];
            moved +=
                frame_buffer_load_own(&d.buffer, &piece, moved, &sent, piece.length - moved, frame);
        }
        dock_free_frame(&d, frame);
        assert_int_equal(d.engine.sent_digest, sent.digest);
        for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
            came = (struct piece_mark){0};
            assert_int_equal(deliver_piece(&d, &piece, runs[k], UINT32_MAX, sent.digest, &came), 0);
            assert_int_equal(came.digest, sent.digest);
        }
        assert_int_equal(d.engine.delivered_digest,
                         sizeof runs / sizeof *runs * d.engine.sent_digest);
        dock_close(&d);
    }
}

/* Flips each bit of the piece and of its name. */
DOCK_TEST(damage_is_found_and_named)
{
    const struct block_piece piece = {2, 1, 100, 256};
    struct piece_mark good = {0}, mark;

    d->node->sink.careless = true;
    d->engine.set.digests = true;
    (void)deliver_piece(d, &piece, 256, UINT32_MAX, 0, &good);
    assert_int_equal(engine_failed(&d->engine)->code, ERROR_DAMAGED);
    for (uint32_t bit = 0; bit <= 8 * piece.length; bit++) {
        d->engine.failure = (struct error){0};
        mark = (struct piece_mark){0};
        bool whole = bit == 8 * piece.length;
        assert_int_equal(
            deliver_piece(d, &piece, 100, whole ? UINT32_MAX : bit, good.digest, &mark),
            whole ? 0 : -1);
        if (whole)
            continue;
        assert_int_equal(engine_failed(&d->engine)->code, ERROR_DAMAGED);
        assert_contains(engine_failed(&d->engine)->text, "from node 2 to node 1");
        assert_contains(engine_failed(&d->engine)->text, "bytes 100 to 355");
    }
    const struct block_piece others[] = {{0, 1, 100, 256}, {2, 0, 100, 256}, {2, 1, 101, 256}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct extent bytes;
        struct piece_mark other = {0};
        uint8_t *at = slab_writer_take(&d->in, &d->node->f.pool, 256, &bytes);
        for (uint32_t k = 0; k < 256; k++)
            at[k] = letter(2, 1, 100 + k);
        assert_int_equal(frame_buffer_deliver(&d->buffer, &others[i], 0, &other, &bytes), 0);
        assert_true(other.digest != good.digest);
        slab_unref(bytes.slab);
    }
    /* A small piece has no digest of its own: only the digests over all nodes differ. */
    const struct block_piece small = {2, 1, 100, 255};
    mark = (struct piece_mark){0};
    uint64_t before = d->engine.delivered_digest;
    assert_int_equal(deliver_piece(d, &small, 255, 3, 0, &mark), 0);
    assert_int_equal(d->engine.delivered_digest, before + mark.digest);
}

DOCK_TEST(digests_under_way_are_freed)
{
    const struct block_piece piece = {2, 1, 0, 2000};
    struct piece_mark mark[3] = {{0}};
    struct extent bytes;

    d->node->sink.careless = true;
    (void)slab_writer_take(&d->in, &d->node->f.pool, 1000, &bytes);
    for (int i = 0; i < 3; i++)
        assert_int_equal(frame_buffer_deliver(&d->buffer, &piece, 0, &mark[i], &bytes), 0);
    assert_int_equal(frame_buffer_deliver(&d->buffer, &piece, 1000, &mark[1], &bytes), 0);
    assert_null(mark[1].state);
    assert_non_null(mark[2].state);
    slab_unref(bytes.slab);
}
