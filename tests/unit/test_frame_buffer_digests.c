/* Digests of pieces that go through a frame buffer. */
#include "dock_fixture.h"
#include "tests/support/cmocka.h"

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
TEST(damage_is_found_and_named)
{
    const struct block_piece piece = {2, 1, 100, 256};
    struct piece_mark good = {0}, mark;
    struct dock d;

    dock_open(&d, false);
    d.node->sink.careless = true;
    d.engine.set.digests = true;
    (void)deliver_piece(&d, &piece, 256, UINT32_MAX, 0, &good);
    assert_int_equal(engine_failed(&d.engine)->code, ERROR_DAMAGED);
    for (uint32_t bit = 0; bit <= 8 * piece.length; bit++) {
        d.engine.failure = (struct error){0};
        mark = (struct piece_mark){0};
        bool whole = bit == 8 * piece.length;
        assert_int_equal(
            deliver_piece(&d, &piece, 100, whole ? UINT32_MAX : bit, good.digest, &mark),
            whole ? 0 : -1);
        if (whole)
            continue;
        assert_int_equal(engine_failed(&d.engine)->code, ERROR_DAMAGED);
        assert_non_null(strstr(engine_failed(&d.engine)->text, "from node 2 to node 1"));
        assert_non_null(strstr(engine_failed(&d.engine)->text, "bytes 100 to 355"));
    }
    const struct block_piece others[] = {{0, 1, 100, 256}, {2, 0, 100, 256}, {2, 1, 101, 256}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct extent bytes;
        struct piece_mark other = {0};
        uint8_t *at = slab_writer_take(&d.in, &d.node->f.pool, 256, &bytes);
        for (uint32_t k = 0; k < 256; k++)
            at[k] = letter(2, 1, 100 + k);
        assert_int_equal(frame_buffer_deliver(&d.buffer, &others[i], 0, &other, &bytes), 0);
        assert_true(other.digest != good.digest);
        slab_unref(bytes.slab);
    }
    /* A small piece has no digest of its own: only the digests over all nodes differ. */
    const struct block_piece small = {2, 1, 100, 255};
    mark = (struct piece_mark){0};
    uint64_t before = d.engine.delivered_digest;
    assert_int_equal(deliver_piece(&d, &small, 255, 3, 0, &mark), 0);
    assert_int_equal(d.engine.delivered_digest, before + mark.digest);
    dock_close(&d);
}

TEST(digests_under_way_are_freed)
{
    const struct block_piece piece = {2, 1, 0, 2000};
    struct piece_mark mark[3] = {{0}};
    struct dock d;
    struct extent bytes;

    dock_open(&d, false);
    d.node->sink.careless = true;
    (void)slab_writer_take(&d.in, &d.node->f.pool, 1000, &bytes);
    for (int i = 0; i < 3; i++)
        assert_int_equal(frame_buffer_deliver(&d.buffer, &piece, 0, &mark[i], &bytes), 0);
    assert_int_equal(frame_buffer_deliver(&d.buffer, &piece, 1000, &mark[1], &bytes), 0);
    assert_null(mark[1].state);
    assert_non_null(mark[2].state);
    slab_unref(bytes.slab);
    dock_close(&d);
}
