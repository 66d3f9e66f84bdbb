/* Frames that arrive before the call of a group that they belong to. */
#include "daemon/torusd/group/early_frames.h"
#include "tests/support/cmocka.h"
#include <stdio.h>
#include <string.h>

/* Early frames are kept; not only their bodies take memory. */
TEST(heads_without_bodies_are_not_kept_without_end)
{
    enum { SIZES = 1000, EARLY = 1 << 20, FRAMES = 10000 };
    static uint32_t size[SIZES];
    static struct session session = {.name = "g"};
    struct part part = {.session = &session, .limits = {.early = EARLY}};
    const struct extents nothing = {0};
    const struct peer_message message = {
        .kind = PEER_STREAMED_DATA,
        .streamed_data = {.has_call = true, .n_sizes = SIZES, .sizes = size}};
    unsigned kept = 0;
    struct error e;

    while (kept < FRAMES && early_frames_keep(&part, 0, &message, &nothing, 0, &e) == 0)
        kept++;
    assert_true(kept > 0 && kept < FRAMES);
    assert_true(kept * sizeof size < 3 * (size_t)EARLY);
    assert_int_equal(e.code, ERROR_MEMORY);
    early_frames_free(&part);
    assert_int_equal(part.early_heads, 0);
}

static uint32_t came[16];
static unsigned cames;

static int on_came(struct engine *engine, unsigned port, const struct peer_message *message,
                   const struct extents *body, uint32_t body_length, struct error *e)
{
    assert_true(cames < sizeof came / sizeof came[0]);
    came[cames++] = message->streamed_data.round;
    return 0;
}

/* Frames of a call are returned in the order of arrival, whichever frames were taken out before. */
TEST(early_frames_are_given_in_order)
{
    static const struct engine_ops ops = {.frame = on_came};
    static const char *const arrivals[] = {"1", "12", "1221", "12112", "2111", "1212121"};
    static struct session session = {.name = "g"};
    struct engine engine = {.ops = &ops};
    struct error e;

    for (size_t i = 0; i < sizeof arrivals / sizeof *arrivals; i++)
        for (uint32_t first = 1; first <= 2; first++) {
            struct part part = {.session = &session, .limits = {.early = 1 << 20}};
            uint32_t expected = 0;
            cames = 0;
            for (uint32_t turn = 0; turn < 2;
                 turn++) { /* more come when some have been taken out */
                for (const char *c = arrivals[i]; *c != '\0'; c++) {
                    const struct extents nothing = {0};
                    const struct peer_message message = {
                        .kind = PEER_STREAMED_DATA,
                        .streamed_data = {.round = (uint32_t)(c - arrivals[i]),
                                          .has_call = true,
                                          .call = {.number = (uint32_t)(*c - '0')}}};
                    assert_int_equal(early_frames_keep(&part, 0, &message, &nothing, 0, &e), 0);
                }
                assert_true(early_frames_agree(&part));
                cames = 0;
                assert_int_equal(early_frames_give(&part, first, &engine, &e), 0);
                assert_true(early_frames_agree(&part));
                for (unsigned k = 1; k < cames; k++)
                    assert_true(came[k - 1] < came[k]);
                expected += (uint32_t)strlen(arrivals[i]) - cames;
            }
            for (cames = 0; part.early != NULL && cames == 0;)
                assert_int_equal(early_frames_give(&part, 3 - first, &engine, &e), 0);
            assert_int_equal(cames, expected);
            assert_null(part.early);
            early_frames_free(&part);
        }
}
