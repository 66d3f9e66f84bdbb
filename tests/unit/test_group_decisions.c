/* The table of algorithms that the first member of a group sends to the others: a member accepts only tables that it
 * could have made itself (proto/peer-trust.md). */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/torusd/group/algorithm_table.h"
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
