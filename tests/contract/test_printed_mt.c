/* mt against sections 3 and 5.2 of Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for
 * All-to-All Personalized Communication on Multidimensional Tori, written out independently: on
 * tori of three dimensions every block must be in the combined message in which the paper sends it.
 * And the exchange on lines of k nodes, for which the paper only gives the cost.
 *
 * Readings: those of run_ar1() (printed.h). The nodes of a logical ring are numbered by a third of
 * their coordinates. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/algorithms/rings.h"
#include "tests/contract/contract.h"
#include "tests/contract/printed.h"
#include "tests/support/cmocka.h"
#include <string.h>

/* Two steps of phase 2, as printed for x. */
static void run_line(struct block *b, unsigned dim, uint32_t step)
{
    static const int first[3] = {1, 1, -2}, second[3] = {2, -1, -1}; /* index: x mod 3 */
    int at = b->at[dim] % 3, to = b->to[dim] % 3;

    if (at + first[at] == to)
        send(b, step, dim, first[at]);
    else if (at + second[at] == to)
        send(b, step + 1, dim, second[at]);
    assert_int_equal(b->at[dim], b->to[dim]);
}

static uint32_t ring_startups(int p)
{
    return p == 2 ? 1 : (uint32_t)((p + 3) / 4 + 1);
}

/* Section 5.2. */
static struct block printed(const struct torus *t, uint32_t source, uint32_t destination)
{
    static const unsigned axis[3][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}}; /* by group, by step */
    struct block b = {.legs = 0};
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], ring = 0;

    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < 3; i++) {
        b.size[i] = (int)t->size[i];
        b.at[i] = (int)from[i];
        b.to[i] = (int)to[i];
        if (ring_startups(b.size[i] / 3) > ring)
            ring = ring_startups(b.size[i] / 3);
    }
    int group = (b.at[0] + b.at[1] + b.at[2]) % 3;
    for (uint32_t round = 0; round < 3; round++)
        run_ar1(&b, axis[group][round], 3, round * ring, (round + 1) * ring - 1);
    for (unsigned i = 0; i < 3; i++)
        run_line(&b, i, 3 * ring + 2 * i);
    return b;
}

static void check_same(const struct block *b, const struct leg *legs, uint32_t count)
{
    assert_int_equal(b->legs, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(b->leg[i].step, legs[i].step);
        assert_int_equal(b->leg[i].dim, legs[i].dim);
        assert_int_equal(b->leg[i].hops, legs[i].hops);
        assert_int_equal(b->leg[i].direction, legs[i].direction);
    }
}

TEST(mt_is_section_5_2)
{
    static const char *const tori[] = {"6x6x6", "12x6x6", "6x18x6", "12x12x12", "24x6x12"};
    const struct algorithm *a = algorithm_find("mt");

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i]);
        for (uint32_t s = 0; s<t.nodes; s += t.nodes> 500 ? 11 : 1) { /* all groups */
            for (uint32_t d = 0; d < t.nodes; d++) {
                struct leg legs[MOST_LEGS];
                struct block b = printed(&t, s, d);
                if (s != d)
                    check_same(&b, legs, algorithm_route(a, &t, s, d, 0, legs));
            }
        }
    }
}

TEST(ar1_is_figure_2)
{
    const struct algorithm *a = algorithm_find("ar1");

    for (uint32_t p = 4; p <= 40; p += 2) {
        struct torus t = contract_rectangle(1, p);
        for (int s = 0; s < (int)p; s++) {
            for (int d = 0; d < (int)p; d++) {
                struct leg legs[MOST_LEGS];
                struct block b = {.size = {1, (int)p, 1}, .at = {0, s, 0}, .to = {0, d, 0}};
                if (s == d)
                    continue;
                run_ar1(&b, 1, 1, 0, (p + 3) / 4);
                check_same(&b, legs, algorithm_route(a, &t, (uint32_t)s, (uint32_t)d, 0, legs));
            }
        }
    }
}

/* ---- Lines of k nodes ------------------------------------------------------------------------ */

enum { LONGEST_LINE = 10 };

/* One step on a line: blocks by channel (from node i up, from node i + 1 down), and for each node
 * where its message goes and from where it receives one (counted from 1; 0: none). */
struct step {
    uint32_t blocks[LONGEST_LINE][2];
    int owner[LONGEST_LINE][2]; /* the node whose message uses the channel */
    int to[LONGEST_LINE], from[LONGEST_LINE];
};

static void note_leg(struct step *step, int k, int at, const struct leg *leg)
{
    int end = at + leg->direction * leg->hops;

    assert_in_range(end, 0, k - 1);
    assert_true(step->to[at] == 0 || step->to[at] == end + 1);      /* one message is sent, */
    assert_true(step->from[end] == 0 || step->from[end] == at + 1); /* and one received */
    step->to[at] = end + 1;
    step->from[end] = at + 1;
    for (int x = at; x != end; x += leg->direction) {
        int low = leg->direction > 0 ? x : x - 1, down = leg->direction < 0;
        assert_true(step->owner[low][down] == 0 || step->owner[low][down] == at + 1);
        step->owner[low][down] = at + 1;
        step->blocks[low][down]++;
    }
}

/* k-1 startups, floor(k^2/4) blocks, one port, no two messages on a channel. */
TEST(lines_cost_what_the_paper_says)
{
    for (int k = 2; k <= LONGEST_LINE; k++) {
        struct step steps[LONGEST_LINE];
        uint64_t transmission = 0;

        memset(steps, 0, sizeof steps);
        for (int from = 0; from < k; from++) {
            for (int to = 0; to < k; to++) {
                struct leg legs[LONGEST_LINE];
                uint32_t count =
                    line_one_port_route((uint32_t)k, 3, 5, (uint32_t)from, (uint32_t)to, legs);
                int at = from;
                assert_in_range(count, from != to, line_one_port_legs((uint32_t)k));
                for (uint32_t i = 0; i < count; i++) {
                    assert_int_equal(legs[i].dim, 3);
                    assert_in_range(legs[i].step, 5, 5 + k - 2);
                    assert_true(i == 0 || legs[i].step > legs[i - 1].step);
                    note_leg(&steps[legs[i].step - 5], k, at, &legs[i]);
                    at += legs[i].direction * legs[i].hops;
                }
                assert_int_equal(at, to);
            }
        }
        assert_int_equal(line_one_port_steps((uint32_t)k), k - 1);
        for (int i = 0; i < k - 1; i++) {
            uint32_t most = 0;
            for (int x = 0; x < k; x++) {
                assert_int_not_equal(steps[i].to[x], 0); /* every node sends in every step */
                for (int down = 0; down < 2; down++)
                    if (steps[i].blocks[x][down] > most)
                        most = steps[i].blocks[x][down];
            }
            transmission += most;
        }
        assert_int_equal(transmission, k * k / 4);
    }
}

/* mt as a whole, in as many dimensions as can be enumerated. */
TEST(no_contention_and_one_port)
{
    static const char *const tori[] = {"4x4",       "8x12",    "6x6x6", "12x6x18",        "8x8x8x8",
                                       "2x2x2x2x2", "4x4x4x4", "20",    "2x2x2x2x2x2x2x2"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i]);
        struct schedule_report r = contract_verify(&t, "mt");
        assert_int_equal(r.contended_steps, 0);
        assert_true(r.one_port_kept);
    }
}
