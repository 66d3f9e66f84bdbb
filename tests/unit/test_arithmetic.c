/* The arithmetic of reductions, compared with arithmetic in integers of 128 bits, one element at a time. */
#include <math.h>

#include "daemon/lib/base/arithmetic.h"
#include "tests/support/cmocka.h"

enum { MOST = 67, GUARD = 32, ROOM = 8 * MOST + 2 * GUARD };

static const struct kind {
    uint32_t type, size;
    bool is_signed, is_float;
} kinds[] = {
    {REDUCTION_INT8, 1, true, false},    {REDUCTION_INT16, 2, true, false},
    {REDUCTION_INT32, 4, true, false},   {REDUCTION_INT64, 8, true, false},
    {REDUCTION_UINT8, 1, false, false},  {REDUCTION_UINT16, 2, false, false},
    {REDUCTION_UINT32, 4, false, false}, {REDUCTION_UINT64, 8, false, false},
    {REDUCTION_FLOAT32, 4, false, true}, {REDUCTION_FLOAT64, 8, false, true},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static uint64_t random_state = 1;

static uint64_t any(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* --- the reference --- */

/* Works on any byte order, through a variable of this size. */
static uint64_t bits_at(const uint8_t *at, uint32_t size)
{
    uint8_t x8;
    uint16_t x16;
    uint32_t x32;
    uint64_t x64;

    switch (size) {
    case 1:
        memcpy(&x8, at, 1);
        return x8;
    case 2:
        memcpy(&x16, at, 2);
        return x16;
    case 4:
        memcpy(&x32, at, 4);
        return x32;
    default:
        memcpy(&x64, at, 8);
        return x64;
    }
}

static void put_bits(uint8_t *at, uint32_t size, uint64_t bits)
{
    const uint8_t x8 = (uint8_t)bits;
    const uint16_t x16 = (uint16_t)bits;
    const uint32_t x32 = (uint32_t)bits;

    memcpy(at,
           size == 1   ? (const void *)&x8
           : size == 2 ? (const void *)&x16
           : size == 4 ? (const void *)&x32
                       : (const void *)&bits,
           size);
}

static __int128 number(uint64_t bits, const struct kind *k)
{
    __int128 x = bits;
    __int128 one = 1;

    if (k->is_signed && (bits >> (8 * k->size - 1)) != 0)
        x -= one << 8 * k->size;
    return x;
}

static uint64_t whole(uint64_t a, uint64_t b, uint32_t operation, const struct kind *k)
{
    __int128 x = number(a, k), y = number(b, k);

    switch (operation) {
    case REDUCTION_SUM:
        return (uint64_t)(x + y);
    case REDUCTION_PRODUCT:
        return (uint64_t)((unsigned __int128)x * (unsigned __int128)y);
    case REDUCTION_MIN:
        return (uint64_t)(y < x ? y : x);
    case REDUCTION_MAX:
        return (uint64_t)(y > x ? y : x);
    case REDUCTION_AND:
        return a & b;
    case REDUCTION_OR:
        return a | b;
    default:
        return (a | b) & ~(a & b);
    }
}

static bool is_nan(uint64_t bits, uint32_t size)
{
    return size == 4 ? (bits & 0x7fffffff) > 0x7f800000
                     : (bits & INT64_MAX) > UINT64_C(0x7ff0000000000000);
}

/* Whether bits are the result for two floating-point numbers. */
static bool is_fraction_of(uint64_t bits, uint64_t a, uint64_t b, uint32_t operation, uint32_t size)
{
    volatile double x, y, z;
    volatile float single;
    float f;
    uint32_t half;

    if (is_nan(a, size) || is_nan(b, size)) /* always the same one */
        return bits == (size == 4 ? 0x7fc00000 : UINT64_C(0x7ff8000000000000));
    if (size == 4) {
        half = (uint32_t)a;
        memcpy(&f, &half, 4);
        x = f;
        half = (uint32_t)b;
        memcpy(&f, &half, 4);
        y = f;
    } else {
        memcpy((void *)(uintptr_t)&x, &a, 8);
        memcpy((void *)(uintptr_t)&y, &b, 8);
    }
    if (operation == REDUCTION_MIN || operation == REDUCTION_MAX) {
        bool first = operation == REDUCTION_MIN ? x < y : x > y;
        return bits == (first ? a : b);
    }
    z = operation == REDUCTION_SUM ? x + y : x * y;
    if (size == 8) {
        uint64_t expected;
        double w = z;
        memcpy(&expected, &w, 8);
        return w != w ? bits == UINT64_C(0x7ff8000000000000) : bits == expected;
    }
    single = (float)z; /* rounded twice, which for two floats gives the same as rounding once */
    f = single;
    memcpy(&half, &f, 4);
    return f != f ? bits == 0x7fc00000 : bits == half;
}

/* --- operands --- */

static uint64_t fraction(uint32_t size)
{
    static const uint32_t singles[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                       0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 1,
                                       0x7f7fffff, 0x00800000, 0x807fffff};
    static const uint64_t doubles[] = {0,
                                       UINT64_C(0x8000000000000000),
                                       UINT64_C(0x3ff0000000000000),
                                       UINT64_C(0xbff0000000000000),
                                       UINT64_C(0x7ff0000000000000),
                                       UINT64_C(0xfff0000000000000),
                                       UINT64_C(0x7ff8000000000000),
                                       UINT64_C(0xfff8000000012345),
                                       UINT64_C(0x7ff0000000000001),
                                       1,
                                       UINT64_C(0x7fefffffffffffff),
                                       UINT64_C(0x0010000000000000),
                                       UINT64_C(0x800fffffffffffff)};
    uint64_t choice = any() % 26;

    if (choice >= 13)
        return size == 4 ? any() & 0xffffffff : any();
    return size == 4 ? singles[choice] : doubles[choice];
}

static uint64_t operand(const struct kind *k)
{
    uint64_t top = UINT64_C(1) << (8 * k->size - 1);
    const uint64_t extremes[] = {0, 1, 2, top, top - 1, top + 1, 2 * top - 1, 2 * top - 2};

    if (k->is_float)
        return fraction(k->size);
    return any() % 2 == 0 ? any() : extremes[any() % 8];
}

static void check(const struct kind *k, uint32_t operation, uint32_t count, uint32_t x, uint32_t y)
{
    uint8_t into[ROOM], from[ROOM], before[ROOM];
    uint64_t mask = k->size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * k->size) - 1;

    for (uint32_t i = 0; i < ROOM; i++) {
        into[i] = (uint8_t)any();
        from[i] = (uint8_t)any();
    }
    for (uint32_t i = 0; i < count; i++) {
        put_bits(into + x + i * k->size, k->size, operand(k));
        put_bits(from + y + i * k->size, k->size, operand(k));
    }
    memcpy(before, into, sizeof before);
    reduction_combine((enum reduction_type)k->type, (enum reduction_operator)operation, into + x,
                      from + y, count);
    assert_memory_equal(into, before, x);
    assert_memory_equal(into + x + count * k->size, before + x + count * k->size,
                        ROOM - x - count * k->size);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t a = bits_at(before + x + i * k->size, k->size);
        uint64_t b = bits_at(from + y + i * k->size, k->size);
        uint64_t got = bits_at(into + x + i * k->size, k->size);
        bool right = k->is_float ? is_fraction_of(got, a, b, operation, k->size)
                                 : got == (whole(a, b, operation, k) & mask);
        if (!right)
            fail_msg("type %u, operator %u: %#llx with %#llx gives %#llx", k->type, operation,
                     (unsigned long long)a, (unsigned long long)b, (unsigned long long)got);
    }
}

TEST(every_type_with_every_operator)
{
    for (uint32_t kind = 0; kind < KINDS; kind++)
        for (uint32_t op = REDUCTION_SUM; op <= REDUCTION_XOR; op++)
            for (uint32_t count = 0; count <= MOST && reduction_allowed(kinds[kind].type, op);
                 count++)
                for (uint32_t shift = 0; shift < 16; shift++)
                    check(&kinds[kind], op, count, shift, (uint32_t)(any() % 16));
}

/* ---- Half precision, truth values, complex numbers ------------------------------------------- */

static double half_value(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, rest = bits & 1023;
    const double size = exponent == 31  ? (rest == 0 ? INFINITY : (double)NAN)
                        : exponent == 0 ? ldexp(rest, -24)
                                        : ldexp(1024 + rest, exponent - 25);

    return bits >> 15 != 0 ? -size : size;
}

/* The nearest half, of two the even one. */
static uint16_t nearest_half(double x)
{
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    int exponent;

    if (x != x)
        return 0x7e00;
    x = fabs(x);
    if (x >= 65520)
        return sign | 0x7c00;
    if (x == 0)
        return sign;
    (void)frexp(x, &exponent);
    exponent = exponent - 11 > -24 ? exponent - 11 : -24;
    /* Rounding that carries into the next power of two gives the right bits, too. */
    const int units = (int)nearbyint(ldexp(x, -exponent));
    return sign | (uint16_t)(((exponent + 24) << 10) + units);
}

/* The result for two halves: exact in double, then rounded once. */
static uint16_t expected_half(uint16_t a, uint16_t b, enum reduction_operator operation)
{
    const double x = half_value(a), y = half_value(b);

    if (x != x || y != y)
        return 0x7e00;
    switch (operation) {
    case REDUCTION_SUM:
        return nearest_half(x + y);
    case REDUCTION_PRODUCT:
        return nearest_half(x * y);
    case REDUCTION_MIN:
        return x < y ? a : b;
    default:
        return x > y ? a : b;
    }
}

/* Every half, with several others. */
TEST(halves)
{
    static const uint16_t others[] = {0,      0x8000, 0x3c00, 0xbc00, 0x0001, 0x03ff,
                                      0x0400, 0x3800, 0x7bff, 0xfbff, 0x7c00, 0xfc00,
                                      0x7e00, 0x7c01, 0x1234, 0xb555};

    for (unsigned i = 0; i < 2 * sizeof others / sizeof *others; i++)
        for (uint32_t bits = 0; bits < 65536; bits++)
            for (enum reduction_operator op = REDUCTION_SUM; op <= REDUCTION_MAX; op++) {
                uint16_t into = (uint16_t)bits, from = i % 2 == 0 ? others[i / 2] : (uint16_t)any();
                const uint16_t expected = expected_half(into, from, op);
                reduction_combine(REDUCTION_FLOAT16, op, &into, &from, 1);
                if (into != expected)
                    fail_msg("operator %u: %#x with %#x gives %#x, not %#x", op, bits, from, into,
                             expected);
            }
}

static float brain_value(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float x;

    memcpy(&x, &wide, sizeof x);
    return x;
}

/* The nearest bfloat16, found among the two around the number; of two the even one. */
static uint16_t nearest_brain(double x)
{
    float f = (float)x;
    uint32_t bits;

    if (x != x)
        return 0x7fc0;
    if (fabs((double)f) >
        fabs(x)) /* towards 0, so that the bits below are those of the number before */
        f = nextafterf(f, 0);
    memcpy(&bits, &f, sizeof bits);
    uint16_t low = (uint16_t)(bits >> 16), high = (uint16_t)(low + 1);
    if ((low & 0x7fff) == 0x7f80 || low == 0x7f80)
        return low;
    const double below = fabs(x) - fabs((double)brain_value(low));
    const double above =
        ((high & 0x7fff) == 0x7f80 ? 0x1p128 : fabs((double)brain_value(high))) - fabs(x);
    return below < above || (below == above && low % 2 == 0) ? low : high;
}

/* Every bfloat16, with several others. */
TEST(bfloat16s)
{
    static const uint16_t others[] = {0,      0x8000, 0x3f80, 0xbf80, 0x0001, 0x007f, 0x0080,
                                      0x3c00, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x7f81};

    for (unsigned i = 0; i < 2 * sizeof others / sizeof *others; i++)
        for (uint32_t bits = 0; bits < 65536; bits++)
            for (enum reduction_operator op = REDUCTION_SUM; op <= REDUCTION_MAX; op++) {
                uint16_t into = (uint16_t)bits, from = i % 2 == 0 ? others[i / 2] : (uint16_t)any();
                const double x = (double)brain_value(into), y = (double)brain_value(from);
                const uint16_t expected = x != x || y != y          ? 0x7fc0
                                          : op == REDUCTION_SUM     ? nearest_brain(x + y)
                                          : op == REDUCTION_PRODUCT ? nearest_brain(x * y)
                                          : op == REDUCTION_MIN     ? (x < y ? into : from)
                                                                    : (x > y ? into : from);
                reduction_combine(REDUCTION_BFLOAT16, op, &into, &from, 1);
                if (into != expected)
                    fail_msg("operator %u: %#x with %#x gives %#x, not %#x", op, bits, from, into,
                             expected);
            }
}

/* An average is a sum, and a quotient that is rounded once. */
TEST(averages)
{
    double doubles[4] = {1, -10, 1e308, INFINITY};
    float floats[4] = {1, -10, 3e38f, -INFINITY};
    const double other[2] = {5, 1};

    reduction_combine(REDUCTION_COMPLEX128, REDUCTION_AVG, doubles, other, 1);
    reduction_finish(REDUCTION_COMPLEX128, REDUCTION_AVG, doubles, 2, 3);
    assert_true(doubles[0] == 2 && doubles[1] == -3 && doubles[2] == 1e308 / 3 &&
                doubles[3] == INFINITY);
    reduction_finish(REDUCTION_FLOAT64, REDUCTION_AVG, doubles, 1, 7);
    assert_true(doubles[0] == 2.0 / 7 && doubles[1] == -3);
    reduction_finish(REDUCTION_COMPLEX64, REDUCTION_AVG, floats, 2, 3);
    assert_true(floats[0] == 1.0f / 3 && floats[1] == -10.0f / 3 && floats[2] == 1e38f &&
                floats[3] == -INFINITY);
    reduction_finish(REDUCTION_FLOAT32, REDUCTION_AVG, floats, 1, 7);
    assert_true(floats[0] == 1.0f / 3 / 7 && floats[1] == -10.0f / 3);
    reduction_finish(REDUCTION_FLOAT32, REDUCTION_SUM, floats, 4, 7);
    assert_true(floats[1] == -10.0f / 3);
    for (uint32_t bits = 0; bits < 65536; bits++)
        for (uint32_t members = 1; members < 300; members += 7) {
            uint16_t half = (uint16_t)bits, brain = half;
            const double x = half_value(half), y = (double)brain_value(brain);
            reduction_finish(REDUCTION_FLOAT16, REDUCTION_AVG, &half, 1, members);
            reduction_finish(REDUCTION_BFLOAT16, REDUCTION_AVG, &brain, 1, members);
            assert_int_equal(half, nearest_half(x / members));
            assert_int_equal(brain, nearest_brain(y / members));
        }
    assert_false(reduction_allowed(REDUCTION_INT32, REDUCTION_AVG));
    assert_false(reduction_allowed(REDUCTION_BOOL, REDUCTION_AVG));
}

TEST(truth_values)
{
    for (unsigned a = 0; a < 256; a += 51)
        for (unsigned b = 0; b < 256; b += 17)
            for (enum reduction_operator op = REDUCTION_SUM; op <= REDUCTION_XOR; op++) {
                const bool any_is = a != 0 || b != 0, both_are = a != 0 && b != 0;
                const bool ored = op == REDUCTION_SUM || op == REDUCTION_MAX || op == REDUCTION_OR;
                uint8_t into = (uint8_t)a, from = (uint8_t)b;
                reduction_combine(REDUCTION_BOOL, op, &into, &from, 1);
                assert_int_equal(into, op == REDUCTION_XOR ? any_is && !both_are
                                       : ored              ? any_is
                                                           : both_are);
            }
}

TEST(complex_numbers)
{
    double x[4] = {1, 2, -3, 0.5}, y[4] = {3, -1, 2, 4};
    float u[2] = {1, 2}, v[2] = {3, -1};

    reduction_combine(REDUCTION_COMPLEX128, REDUCTION_PRODUCT, x, y, 2);
    assert_true(x[0] == 5 && x[1] == 5 && x[2] == -8 && x[3] == -11);
    reduction_combine(REDUCTION_COMPLEX128, REDUCTION_SUM, x, y, 2);
    assert_true(x[0] == 8 && x[1] == 4 && x[2] == -6 && x[3] == -7);
    reduction_combine(REDUCTION_COMPLEX64, REDUCTION_PRODUCT, u, v, 1);
    assert_true(u[0] == 5 && u[1] == 5);
    reduction_combine(REDUCTION_COMPLEX64, REDUCTION_SUM, u, v, 1);
    assert_true(u[0] == 8 && u[1] == 4);
    assert_false(reduction_allowed(REDUCTION_COMPLEX64, REDUCTION_MIN));
    assert_false(reduction_allowed(REDUCTION_COMPLEX128, REDUCTION_OR));
}

/* ---- Kinds of data --------------------------------------------------------------------------- */

TEST(kinds_of_data)
{
    const size_t shape[] = {3, 4}, turned[] = {4, 3};
    struct data_kind a, b;

    for (uint32_t type = 1; type < REDUCTION_TYPES; type++) {
        data_kind_set(&a, reduction_type_name(type), NULL, 0);
        assert_true(a.type == type && a.shape == 0 && data_kind_is_known(&a));
    }
    assert_null(reduction_type_name(0));
    assert_null(reduction_type_name(REDUCTION_TYPES));
    data_kind_set(&a, NULL, NULL, 0);
    assert_false(data_kind_is_known(&a));
    data_kind_set(&a, ">f8", shape, 2);
    data_kind_set(&b, ">f4", turned, 2);
    assert_true(a.type >= DATA_TYPE_OTHER && b.type >= DATA_TYPE_OTHER && a.type != b.type);
    assert_true(a.shape != 0 && b.shape != 0 && a.shape != b.shape);
    data_kind_set(&b, NULL, shape, 0);
    assert_true(b.type == 0 && b.shape != 0 && b.shape != a.shape);
}

TEST(types_and_operators_are_checked)
{
    unsigned pairs = 0;
    for (uint32_t i = 0; i < KINDS; i++)
        assert_int_equal(reduction_size(kinds[i].type), kinds[i].size);
    assert_int_equal(reduction_size(0), 0);
    assert_int_equal(reduction_size(REDUCTION_TYPES), 0);
    assert_int_equal(reduction_size(UINT32_MAX), 0);
    for (uint32_t type = 0; type < 300; type++)
        for (uint32_t op = 0; op < 300; op++)
            pairs += reduction_allowed(type, op);
    assert_int_equal(pairs, 8 * 7 + 4 * 5 + 2 * 3 + 7);
    for (uint32_t op = REDUCTION_SUM; op < REDUCTION_OPERATORS; op++)
        assert_non_null(reduction_operator_name(op));
    assert_null(reduction_operator_name(0));
    assert_null(reduction_operator_name(REDUCTION_OPERATORS));
    assert_false(reduction_allowed(UINT32_MAX, REDUCTION_SUM));
    assert_false(reduction_allowed(REDUCTION_INT8, UINT32_MAX));
    assert_false(reduction_allowed(REDUCTION_FLOAT32, REDUCTION_XOR));
    assert_true(reduction_allowed(REDUCTION_FLOAT64, REDUCTION_MAX));
}
