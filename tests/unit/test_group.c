/* The table of algorithms that the first member of a group sends to the others: a member accepts only tables that it
 * could have made itself (proto/peer-trust.md). */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/torusd/group/algorithm_table.h"
#include "daemon/torusd/group/digests.h"
#include "daemon/torusd/group/early_frames.h"
#include "proto/peer.pb-c.h"
#include "tests/support/cmocka.h"

struct sent_table {
    const char *algorithm, *mode;
    uint32_t octave;
    unsigned exchange, gather, broadcast; /* choices */
    uint64_t long_reduction;
    bool taken;
};

static void pack_table(const Peer__GroupTable *table, uint8_t bytes[TABLE_BYTES])
{
    size_t size = peer__group_table__get_packed_size(table);

    memset(bytes, 0, TABLE_BYTES);
    bytes[0] = (uint8_t)(size >> 8);
    bytes[1] = (uint8_t)size;
    if (size <= TABLE_BYTES - 2)
        (void)peer__group_table__pack(table, bytes + 2);
}

/* An algorithm by which an allgather can be done on this torus. */
static const char *gathering_algorithm(const struct torus *t)
{
    const char *name = NULL;

    for (size_t i = 0; i < algorithm_count(); i++)
        if (algorithm_at(i)->operation == OPERATION_ALLGATHER &&
            algorithm_accepts(algorithm_at(i), t, NULL) == 0)
            name = algorithm_at(i)->name;
    assert_non_null(name);
    return name;
}

static void write_table(const struct sent_table *sent, const struct torus *t,
                        uint8_t bytes[TABLE_BYTES])
{
    Peer__GroupTable table = PEER__GROUP_TABLE__INIT;
    Peer__GroupTable__Choice exchange = PEER__GROUP_TABLE__CHOICE__INIT, gather = exchange;
    Peer__GroupTable__Choice *list[2][CHOICES_MOST + 1];

    for (unsigned k = 0; k <= CHOICES_MOST; k++) {
        list[0][k] = &exchange;
        list[1][k] = &gather;
    }
    exchange.algorithm = (char *)(uintptr_t)sent->algorithm;
    exchange.mode = (char *)(uintptr_t)sent->mode;
    exchange.octave = gather.octave = sent->octave;
    gather.algorithm = (char *)(uintptr_t)gathering_algorithm(t);
    gather.mode = (char *)(uintptr_t) "streaming";
    table.exchange = list[0];
    table.n_exchange = sent->exchange;
    table.gather = list[1];
    table.n_gather = sent->gather;
    table.broadcast = list[1];
    table.n_broadcast = sent->broadcast;
    table.long_reduction = sent->long_reduction;
    pack_table(&table, bytes);
}

TEST(lies_in_the_table_of_a_group)
{
    static const struct sent_table tables[] = {
        {"direct", "streaming", 0, 1, 1, 1, 0, true},
        {"direct", "streaming", 0, 0, 1, 1, 0, false},
        {"direct", "streaming", 0, 1, 0, 1, 0, false},
        {"direct", "streaming", 0, 1, 1, 0, 0, false},
        {"direct", "streaming", 0, CHOICES_MOST, 1, 1, 0, true},
        {"direct", "streaming", 0, 1, CHOICES_MOST, 1, 0, true},
        {"direct", "streaming", 0, 1, 1, CHOICES_MOST, 0, true},
        {"direct", "streaming", 0, CHOICES_MOST + 1, 1, 1, 0, false},
        {"direct", "streaming", 0, 1, CHOICES_MOST + 1, 1, 0, false},
        {"direct", "streaming", 0, 1, 1, CHOICES_MOST + 1, 0, false},
        {"direct", "streaming", UINT32_MAX, 2, 2, 2, UINT64_MAX, true},
        {"disjoint", "streaming", 0, 1, 1, 1, 0, false}, /* not for exchanges */
        {"ar1", "stepped", 0, 1, 1, 1, 0, false},        /* one port */
        {"", "streaming", 0, 1, 1, 1, 0, false},
        {"no-such-algorithm", "streaming", 0, 1, 1, 1, 0, false},
        {"direct", "", 0, 1, 1, 1, 0, false},
        {"direct", "no-such-mode", 0, 1, 1, 1, 0, false},
    };
    struct torus t;

    assert_int_equal(torus_parse(&t, "4", NULL), 0);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        uint8_t bytes[TABLE_BYTES];
        struct algorithm_table d;
        struct error e;
        write_table(&tables[i], &t, bytes);
        bool taken = algorithm_table_unpack(&d, bytes, &t, &e) == 0;
        if (taken != tables[i].taken)
            fail_msg("table %zu: %s", i, taken ? "taken" : e.text);
        for (unsigned octave = 0; taken && octave < 64; octave++) /* whatever is looked up in it */
            assert_non_null(algorithm_table_find(&d.exchange, UINT64_C(1) << octave)->algorithm);
        bytes[0] = bytes[1] = 0xff; /* longer than it can be */
        assert_int_equal(algorithm_table_unpack(&d, bytes, &t, &e), -1);
    }
}

/* On other networks a table has no exchanges, and names the trees of allgathers and broadcasts. */
TEST(trees_in_the_table_of_a_network)
{
    static const struct {
        const char *gather, *mode;
        unsigned choices;
        bool taken;
    } tables[] = {
        {"trees", "streaming", 1, true},
        {"disjoint", "streaming", 1, true},
        {"disjoint", "streaming", CHOICES_MOST, true},
        {"trees", "streaming", 0, true},
        {"disjoint", "streaming", CHOICES_MOST + 1, false},
        {"disjoint", "", 1, false},
        {"balanced", "streaming", 1, false}, /* for tori */
        {"stream", "streaming", 1, false},   /* for exchanges */
        {"spread", "streaming", 1, false},
    };
    struct torus t;

    assert_int_equal(torus_parse(&t, "complete:4", NULL), 0);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        Peer__GroupTable table = PEER__GROUP_TABLE__INIT;
        Peer__GroupTable__Choice choice = PEER__GROUP_TABLE__CHOICE__INIT;
        Peer__GroupTable__Choice *list[CHOICES_MOST + 1];
        uint8_t bytes[TABLE_BYTES];
        struct algorithm_table d;
        struct error e;
        for (unsigned k = 0; k <= CHOICES_MOST; k++)
            list[k] = &choice;
        choice.algorithm = (char *)(uintptr_t)tables[i].gather;
        choice.mode = (char *)(uintptr_t)tables[i].mode;
        table.gather = table.broadcast = list;
        table.n_gather = table.n_broadcast = tables[i].choices;
        pack_table(&table, bytes);
        bool taken = algorithm_table_unpack(&d, bytes, &t, &e) == 0;
        if (taken != tables[i].taken)
            fail_msg("table %zu: %s", i, taken ? "taken" : e.text);
        assert_int_equal(taken ? d.broadcast.count : 0, taken ? tables[i].choices : 0);
        table.exchange = list;
        table.n_exchange = tables[i].choices;
        pack_table(&table, bytes);
        assert_int_equal(algorithm_table_unpack(&d, bytes, &t, &e),
                         tables[i].choices > 0 ? -1 : 0); /* none of them is for exchanges */
    }
}

/* Digests of blocks that pass in pieces. */

#define MOST 70000u

static uint8_t block[MOST], scratch[MOST];

static uint64_t whole(const uint8_t *data, uint64_t size, uint64_t seed)
{
    struct passing_digest d = {0};
    return digest_finish(&d, data, size, seed);
}

static void fill(unsigned seed)
{
    srandom(seed);
    for (size_t i = 0; i < MOST; i++)
        block[i] = (uint8_t)random();
}

/* Cut at random; some pieces pass twice, some only at the end, from memory. */
static uint64_t in_pieces(uint64_t size, uint64_t seed)
{
    uint64_t cut[40] = {0}, cuts = 1;
    struct passing_digest d = {0};

    while (cut[cuts - 1] < size && cuts < 39) {
        cut[cuts] = cut[cuts - 1] + 1 + (uint64_t)random() % (random() % 2 == 0 ? 100 : 20000);
        if (cut[cuts] > size)
            cut[cuts] = size;
        cuts++;
    }
    for (unsigned i = 0; i < 3 * cuts; i++) {
        uint64_t k = (uint64_t)random() % (cuts - (cuts > 1));
        uint64_t length = cuts > 1 ? cut[k + 1] - cut[k] : 0;
        /* Pieces are read from other memory; the block's own memory is read only at the end. */
        memcpy(scratch, block + cut[k], length);
        digest_pass(&d, scratch, cut[k], length, size, seed);
    }
    return digest_finish(&d, block, size, seed);
}

TEST(it_is_the_same_in_any_pieces)
{
    static const uint64_t sizes[] = {0, 1, 2047, 2048, 2049, 4096, 16384, 30001, MOST};

    for (unsigned round = 0; round < 50; round++) {
        fill(round);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            assert_int_equal(in_pieces(sizes[i], round), whole(block, sizes[i], round));
    }
}

/* The digest is that of the passed bytes, not of the memory at the end. */
TEST(pieces_are_read_as_they_pass)
{
    struct passing_digest d = {0};

    fill(1);
    uint64_t right = whole(block, 8192, 7);
    digest_pass(&d, block, 0, 8192, 8192, 7);
    memset(block, 0, 8192);
    assert_int_equal(digest_finish(&d, block, 8192, 7), right);
}

TEST(every_change_changes_it)
{
    fill(2);
    uint64_t right = whole(block, 10000, 7);
    assert_true(whole(block, 10000, 8) != right);
    assert_true(whole(block, 9999, 7) != right);
    for (unsigned bit = 0; bit < 80000; bit += 97) {
        block[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(whole(block, 10000, 7) != right);
        block[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    /* Pages that are exchanged. */
    memcpy(scratch, block, 2048);
    memcpy(block, block + 4096, 2048);
    memcpy(block + 4096, scratch, 2048);
    assert_true(whole(block, 10000, 7) != right);
}

/* The memory of an abandoned digest is freed (sanitizers check that). */
TEST(it_can_be_dropped)
{
    struct passing_digest d = {0};

    digest_drop(&d);
    digest_pass(&d, block, 0, 4096, 8192, 1);
    assert_non_null(d.added);
    digest_drop(&d);
    assert_null(d.added);
}

/* Frames that arrive before the call of a group that they belong to. */

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
