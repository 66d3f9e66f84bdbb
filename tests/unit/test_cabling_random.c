/* Networks with up to two faults at random: the moves that are found mend them, and are no more than the faults. */
#include "tests/support/cmocka.h"
#include "tests/unit/cabling_fixture.h"

static const char *const networks[] = {
    "3",     "4",     "5",     "8",      "9",     "5m",         "7m",     "3x3",
    "3x4",   "4x4",   "5x5",   "7x8",    "8x8",   "2x2",        "2x3",    "2x8",
    "4x3m",  "3mx3m", "4mx5m", "8mx8m",  "8x8m",  "2m^3",       "4x2m",   "6x2m",
    "2mx8m", "3x3x3", "4x4x4", "3x4x2m", "2x2x2", "complete:4", "star:5", "complete:5",
};

/* What is known besides the cables. */
enum known { KNOWN_NOTHING, KNOWN_DIMENSIONS, KNOWN_PLACES };

static uint32_t make_fault(struct world *w, int fault)
{
    if (fault == FAULT_HOST_DOWN && (w->hosts < 4 || w->torus.graphs > 0))
        return 0; /* the other hosts may not hear each other at all */
    for (unsigned i = 0; i < 20 && fault >= 0; i++)
        if (world_break(w, (enum world_fault)fault))
            return 1;
    return 0;
}

static void try_one(const char *dims, int fault, int other, enum known known, uint64_t seed)
{
    struct world *w = world_make(dims, 1 + (uint32_t)(seed % 2), false, seed);
    struct cabling_result r;
    struct error e;
    uint32_t made = make_fault(w, fault);

    made += make_fault(w, other);
    assert_int_equal(
        cabling_find(&r, world_input(w, known != KNOWN_NOTHING, known == KNOWN_PLACES), &e), 0);
    if ((r.finding != CABLING_FITS && r.finding != CABLING_NEAR) || r.moves > made) {
        print_message("%s, faults %d and %d, seed %llu, known %d: %u faults, %u moves\n", dims,
                      fault, other, (unsigned long long)seed, (int)known, made, r.moves);
        world_print(w, &r);
        fail();
    }
    world_repair(w, &r);
    cabling_free(&r);
    world_free(w);
}

/* TORUS_CABLING_SEEDS: how often each is tried, beginning with seed TORUS_CABLING_FIRST. */
static uint64_t number_from(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);

    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

TEST(moves_mend_what_is_broken)
{
    uint64_t first = number_from("TORUS_CABLING_FIRST", 1);
    uint64_t seeds = number_from("TORUS_CABLING_SEEDS", 1);

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        for (int fault = -1; fault < WORLD_FAULTS; fault++)
            for (int other = fault; other < WORLD_FAULTS; other++)
                for (uint64_t seed = first; seed < first + seeds; seed++)
                    for (unsigned known = KNOWN_NOTHING; known <= KNOWN_PLACES; known++)
                        try_one(networks[i], fault, other, (enum known)known, seed * 100 + i);
}

/* Far more is wrong than two cables: there is an answer, and it is true. */
TEST(many_faults_are_survived)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct world *w = world_make(networks[seed % 28], 2, false, seed);
        struct cabling_result r;
        struct error e;
        for (unsigned i = 0; i < 3 + seed % 20 && w->cables > 1; i++)
            (void)world_break(w, (enum world_fault)world_random(w, WORLD_FAULTS));
        assert_int_equal(cabling_find(&r, world_input(w, seed % 2 == 0, false), &e), 0);
        assert_int_not_equal(r.text[0], '\0');
        if (r.finding == CABLING_FITS || r.finding == CABLING_NEAR)
            world_repair(w, &r);
        cabling_free(&r);
        world_free(w);
    }
}
