/* Exchanges in steps at the lower bound: the theorem of client/doc/exchange-in-steps.md, checked by counting from its
 * statement alone, and that stream and orders follow it. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

enum { STEPS = 64, MOST_DIMS = 4, MOST_ORDERS = 24 };

/* A torus as the statement has it, and an order of its dimensions in each row. */
struct box {
    unsigned dims, orders;
    unsigned size[MOST_DIMS];
    unsigned order[MOST_ORDERS][MOST_DIMS];
};

/* Writes all orders, by placing one dimension after another at each place. */
static void all_orders(struct box *b)
{
    b->orders = 1;
    for (unsigned dim = 0; dim < b->dims; dim++) {
        unsigned had = b->orders;
        for (unsigned i = had; i-- > 0;) {
            unsigned old[MOST_DIMS];
            memcpy(old, b->order[i], sizeof old);
            for (unsigned place = 0; place <= dim; place++) {
                unsigned *made = b->order[place * had + i];
                memcpy(made, old, place * sizeof *made);
                made[place] = dim;
                memcpy(made + place + 1, old + place, (dim - place) * sizeof *made);
            }
        }
        b->orders = had * (dim + 1);
    }
}

/* The parts that one node sends over its channels, by step, dimension and direction: on a torus all nodes do the same,
 * so a channel carries what all parts of one node send over channels of its kind. */
struct loads {
    uint64_t of[STEPS][MOST_DIMS][2];
};

/* Moves the two parts of an order that one node has for the node at these offsets. */
static void move(const struct box *b, const unsigned *order, const unsigned *offset,
                 struct loads *l)
{
    for (unsigned half = 0; half < 2; half++) {
        unsigned step = 0;
        for (unsigned turn = 0; turn < b->dims; turn++) {
            unsigned dim = order[turn], forth = offset[dim], back = b->size[dim] - forth;
            bool negative = forth == back ? half == 1 : back < forth;
            for (unsigned hops = forth < back ? forth : back; hops > 0; hops--)
                l->of[step++][dim][negative]++;
        }
    }
}

/* The cost of all steps, in parts, of which a block has 2 * b->orders. */
static uint64_t cost(const struct box *b, unsigned *steps)
{
    struct loads l = {0};
    unsigned offset[MOST_DIMS] = {0}, dim;
    uint64_t sum = 0;

    do {
        for (unsigned i = 0; i < b->orders; i++)
            move(b, b->order[i], offset, &l);
        for (dim = 0; dim < b->dims && ++offset[dim] == b->size[dim]; dim++)
            offset[dim] = 0;
    } while (dim < b->dims);
    for (*steps = 0; *steps < STEPS; (*steps)++) {
        uint64_t most = 0;
        for (dim = 0; dim < 2 * b->dims; dim++)
            if (l.of[*steps][dim / 2][dim % 2] > most)
                most = l.of[*steps][dim / 2][dim % 2];
        if (most == 0)
            break;
        sum += most;
    }
    return sum;
}

/* The theorem: the sum of floor(n_i/2) steps cost N/n * floor(n^2/4)/2 blocks, n the largest size. */
static void check_statement(struct box *b)
{
    unsigned steps, longest = 0, largest = 0, nodes = 1;

    all_orders(b);
    for (unsigned i = 0; i < b->dims; i++) {
        nodes *= b->size[i];
        longest += b->size[i] / 2;
        largest = b->size[i] > largest ? b->size[i] : largest;
    }
    assert_int_equal(cost(b, &steps),
                     (uint64_t)nodes / largest * (largest * largest / 4) * b->orders);
    assert_int_equal(steps, longest);
}

TEST(statement_two_dimensions)
{
    for (unsigned r = 1; r <= 32; r++)
        for (unsigned c = 1; c <= 32; c++)
            check_statement(&(struct box){.dims = 2, .size = {r, c}});
}

TEST(statement_more_dimensions)
{
    for (unsigned a = 1; a <= 8; a++)
        for (unsigned b = 1; b <= 8; b++)
            for (unsigned c = 1; c <= 8; c++)
                check_statement(&(struct box){.dims = 3, .size = {a, b, c}});
    for (unsigned a = 1; a <= 4; a++)
        for (unsigned b = 1; b <= 4; b++)
            for (unsigned c = 1; c <= 4; c++)
                for (unsigned d = 1; d <= 4; d++)
                    check_statement(&(struct box){.dims = 4, .size = {a, b, c, d}});
}

/* With fewer orders the bound is missed: two opposite orders of three dimensions, or the three cyclic ones of unequal
 * sizes. On equal sizes the cyclic ones suffice. */
TEST(fewer_orders)
{
    unsigned steps;
    struct box cube = {.dims = 3, .orders = 2, .size = {3, 3, 3}, .order = {{0, 1, 2}, {2, 1, 0}}};
    struct box cyclic = {
        .dims = 3, .orders = 3, .size = {3, 3, 3}, .order = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}}};

    assert_int_equal(cost(&cube, &steps), 13 * 4);
    assert_int_equal(cost(&cyclic, &steps), 9 * 6);
    cyclic.size[0] = cyclic.size[1] = 4;
    assert_int_equal(cost(&cyclic, &steps), 154); /* bound: 24 * 6 */
}

static void check_algorithm(const char *name, const struct torus *t, bool every_pair)
{
    const struct algorithm *a = algorithm_find(name);
    struct schedule_report r = contract_verify(t, name);
    char text[TORUS_TEXT_SIZE];

    if (every_pair) {
        contract_check(t, a);
        contract_check_no_gaps(t, name);
    }
    double blocks = r.transmission / a->segments, path = r.critical_path / a->segments;
    if (blocks != r.bound || path != r.bound)
        fail_msg("%s on %s: transmission %g, critical path %g, bound %g", name,
                 torus_format(t, text), blocks, path, r.bound);
    assert_int_equal(r.startups, torus_diameter(t));
    assert_int_equal(r.hops, r.startups);
    assert_int_equal(r.contended_steps, 0);
    assert_true(r.minimal);
}

TEST(two_dimensions_take_the_bound)
{
    for (uint32_t rows = 1; rows <= 32; rows++) {
        for (uint32_t columns = 1; columns <= 32; columns++) {
            struct torus t = contract_rectangle(rows, columns);
            check_algorithm("stream", &t, false);
            if (rows <= 12 && columns <= 12)
                check_algorithm("orders", &t, rows <= 7 && columns <= 7);
        }
    }
}

TEST(more_dimensions_take_the_bound)
{
    static const char *const tori[] = {"7",     "2x2x2", "3x3x3", "4x4x3",  "3x4x5",   "2x7x3",
                                       "6x6x6", "5x6x7", "8x8x8", "4x6x10", "3x1x5x2", "5x5x5"};
    static const char *const four[] = {"2x2x2x2", "3x3x3x3", "2x3x4x5", "4x4x4x4", "4x1x3x3x2"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i]);
        check_algorithm("orders", &t, t.nodes <= 64);
    }
    for (size_t i = 0; i < sizeof four / sizeof four[0]; i++) {
        struct torus t = contract_torus(four[i]);
        check_algorithm("orders-s48", &t, t.nodes <= 32);
    }
}

TEST(orders_refuses)
{
    contract_refused("orders", "4x4m");
    contract_refused("orders", "3x3x3x3");
    contract_refused("orders-s48", "3x3x3");
    contract_refused("orders-s48", "2x2x2x2x2");
    contract_refused("orders", "3 x complete:3");
}
