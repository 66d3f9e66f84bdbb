/* One loop for each operator and width, so that the compiler vectorises all of them. */
#include "daemon/lib/base/arithmetic.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef void combine(void *into, const void *from, size_t count);

/* Elements need not be aligned: they lie in received bytes, or in the memory of programs. */
#define ANYWHERE __attribute__((aligned(1), may_alias))
typedef int8_t ANYWHERE anywhere_int8;
typedef int16_t ANYWHERE anywhere_int16;
typedef int32_t ANYWHERE anywhere_int32;
typedef int64_t ANYWHERE anywhere_int64;
typedef uint8_t ANYWHERE anywhere_uint8;
typedef uint16_t ANYWHERE anywhere_uint16;
typedef uint32_t ANYWHERE anywhere_uint32;
typedef uint64_t ANYWHERE anywhere_uint64;
typedef float ANYWHERE anywhere_float32;
typedef double ANYWHERE anywhere_float64;
typedef uint16_t ANYWHERE anywhere_float16; /* its bits: not every compiler has such a type */
typedef uint16_t ANYWHERE anywhere_bfloat16;
typedef uint8_t ANYWHERE anywhere_bool8;

#define LOOP(name, type, result)                                                                   \
    static void name##_##type(void *into, const void *from, size_t count)                          \
    {                                                                                              \
        anywhere_##type *restrict x = into;                                                        \
        const anywhere_##type *restrict y = from;                                                  \
        for (size_t i = 0; i < count; i++) {                                                       \
            const anywhere_##type a = x[i], b = y[i];                                              \
            x[i] = (anywhere_##type)(result);                                                      \
        }                                                                                          \
    }

/* Computes signed integers as unsigned ones: the bits are the same, and nothing overflows. UINT64_C(1) and 1u
 * prevent the promotion of narrow types to int. */
#define MODULO(type, one)                                                                          \
    LOOP(sum, type, one *a + b)                                                                    \
    LOOP(product, type, one *a *b)                                                                 \
    LOOP(and, type, a &b)                                                                          \
    LOOP(or, type, a | b)                                                                          \
    LOOP(xor, type, a ^ b)
MODULO(uint8, 1u)
MODULO(uint16, 1u)
MODULO(uint32, 1u)
MODULO(uint64, UINT64_C(1))

#define ORDERED(type)                                                                              \
    LOOP(min, type, a < b ? a : b)                                                                 \
    LOOP(max, type, a > b ? a : b)
ORDERED(int8)
ORDERED(int16)
ORDERED(int32)
ORDERED(int64)
ORDERED(uint8)
ORDERED(uint16)
ORDERED(uint32)
ORDERED(uint64)

/* Processor and compiler decide which of two NaNs an operation returns. To make results the same everywhere,
 * every NaN becomes this one. */
static inline float one_nan32(float x)
{
    return x == x ? x : NAN;
}

static inline double one_nan64(double x)
{
    return x == x ? x : (double)NAN;
}

/* MIN and MAX: `a != a` is true if a is a NaN; if b is a NaN, the comparison is false and b is the result. */
#define FLOATING(type, one_nan)                                                                    \
    LOOP(sum, type, one_nan(a + b))                                                                \
    LOOP(product, type, one_nan(a *b))                                                             \
    LOOP(min, type, one_nan(a < b || a != a ? a : b))                                              \
    LOOP(max, type, one_nan(a > b || a != a ? a : b))
FLOATING(float32, one_nan32)
FLOATING(float64, one_nan64)

/* ---- Half precision -------------------------------------------------------------------------- */

/* Computes in float and rounds once more, to the nearest half, ties to even. For sums, products and quotients this gives
 * the same as rounding the exact result once, because a float has more than twice the bits of a half. The same holds for
 * bfloat16. */

#define HALF_NAN 0x7e00u
#define HALF_INFINITY 0x7c00u
#define HALF_SIGN 0x8000u

static inline float float_of_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t bits_of_float(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float of_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & HALF_SIGN) << 16, rest = half & ~HALF_SIGN;
    float x;

    if (rest >= HALF_INFINITY)
        return float_of_bits(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    if (rest < 0x400u) { /* subnormal: in units of 2^-24 */
        x = (float)rest * 0x1p-24f;
        return sign != 0 ? -x : x;
    }
    return float_of_bits(sign | ((rest << 13) + (112u << 23)));
}

static inline uint16_t to_half(float x)
{
    const uint32_t bits = bits_of_float(x), rest = bits & 0x7fffffffu;
    const uint32_t sign = bits >> 16 & HALF_SIGN;
    uint32_t half;

    if (rest > 0x7f800000u)
        return HALF_NAN;
    if (rest >= 0x47800000u) /* 65536 */
        return (uint16_t)(sign | HALF_INFINITY);
    if (rest < 0x38800000u) /* below 2^-14: the addition rounds to units of 2^-24 */
        half = bits_of_float(float_of_bits(rest) + 0.5f) - 0x3f000000u;
    else
        half = ((rest + 0xfffu + (rest >> 13 & 1)) >> 13) - (112u << 10);
    return (uint16_t)(sign | half);
}

static inline uint16_t one_nan16(uint16_t half)
{
    return (half & ~HALF_SIGN) > HALF_INFINITY ? HALF_NAN : half;
}

/* bfloat16 is the upper half of a float. */

#define BRAIN_NAN 0x7fc0u
#define BRAIN_INFINITY 0x7f80u

static inline float of_brain(uint16_t brain)
{
    return float_of_bits((uint32_t)brain << 16);
}

static inline uint16_t to_brain(float x)
{
    const uint32_t bits = bits_of_float(x);

    if (x != x)
        return BRAIN_NAN;
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static inline uint16_t one_nan_brain(uint16_t brain)
{
    return (brain & ~HALF_SIGN) > BRAIN_INFINITY ? BRAIN_NAN : brain;
}

#define SHORT(type, to, of, one_nan)                                                               \
    LOOP(sum, type, to(of(a) + of(b)))                                                             \
    LOOP(product, type, to(of(a) * of(b)))                                                         \
    LOOP(min, type, one_nan(of(a) < of(b) || of(a) != of(a) ? a : b))                              \
    LOOP(max, type, one_nan(of(a) > of(b) || of(a) != of(a) ? a : b))
SHORT(float16, to_half, of_half, one_nan16)
SHORT(bfloat16, to_brain, of_brain, one_nan_brain)

/* ---- Truth values ---------------------------------------------------------------------------- */

/* Sum and maximum are "or", product and minimum are "and", as in numpy. */
LOOP(and, bool8, a != 0 && b != 0)
LOOP(or, bool8, a != 0 || b != 0)
LOOP(xor, bool8, (a != 0) != (b != 0))

/* ---- Complex numbers ------------------------------------------------------------------------- */

/* This file is compiled without contraction: a fused multiply-add would round differently on another machine. */
#define COMPLEX(type, part, one_nan)                                                               \
    static void sum_##type(void *into, const void *from, size_t count)                             \
    {                                                                                              \
        sum_##part(into, from, 2 * count);                                                         \
    }                                                                                              \
    static void product_##type(void *into, const void *from, size_t count)                         \
    {                                                                                              \
        anywhere_##part *restrict x = into;                                                        \
        const anywhere_##part *restrict y = from;                                                  \
        for (size_t i = 0; i < 2 * count; i += 2) {                                                \
            const anywhere_##part a = x[i], b = x[i + 1], c = y[i], d = y[i + 1];                  \
            x[i] = one_nan(a * c - b * d);                                                         \
            x[i + 1] = one_nan(a * d + b * c);                                                     \
        }                                                                                          \
    }
COMPLEX(complex64, float32, one_nan32)
COMPLEX(complex128, float64, one_nan64)

/* ---- Averages -------------------------------------------------------------------------------- */

#define DIVIDE(type, quotient)                                                                     \
    static void divide_##type(void *result, size_t count, uint32_t members)                        \
    {                                                                                              \
        anywhere_##type *x = result;                                                               \
        for (size_t i = 0; i < count; i++) {                                                       \
            const anywhere_##type a = x[i];                                                        \
            x[i] = (anywhere_##type)(quotient);                                                    \
        }                                                                                          \
    }
DIVIDE(float16, to_half(of_half(a) / (float)members))
DIVIDE(bfloat16, to_brain(of_brain(a) / (float)members))
DIVIDE(float32, one_nan32(a / (float)members))
DIVIDE(float64, one_nan64(a / members))

/* ---- Tables ---------------------------------------------------------------------------------- */

#define INTEGER(type, modulo)                                                                      \
    {                                                                                              \
        [REDUCTION_SUM] = sum_##modulo, [REDUCTION_PRODUCT] = product_##modulo,                    \
        [REDUCTION_MIN] = min_##type, [REDUCTION_MAX] = max_##type,                                \
        [REDUCTION_AND] = and_##modulo, [REDUCTION_OR] = or_##modulo,                              \
        [REDUCTION_XOR] = xor_##modulo                                                             \
    }
#define FRACTION(type)                                                                             \
    {                                                                                              \
        [REDUCTION_SUM] = sum_##type, [REDUCTION_PRODUCT] = product_##type,                        \
        [REDUCTION_MIN] = min_##type, [REDUCTION_MAX] = max_##type, [REDUCTION_AVG] = sum_##type   \
    }

static combine *const combines[REDUCTION_TYPES][REDUCTION_OPERATORS] = {
    [REDUCTION_INT8] = INTEGER(int8, uint8),
    [REDUCTION_INT16] = INTEGER(int16, uint16),
    [REDUCTION_INT32] = INTEGER(int32, uint32),
    [REDUCTION_INT64] = INTEGER(int64, uint64),
    [REDUCTION_UINT8] = INTEGER(uint8, uint8),
    [REDUCTION_UINT16] = INTEGER(uint16, uint16),
    [REDUCTION_UINT32] = INTEGER(uint32, uint32),
    [REDUCTION_UINT64] = INTEGER(uint64, uint64),
    [REDUCTION_FLOAT32] = FRACTION(float32),
    [REDUCTION_FLOAT64] = FRACTION(float64),
    [REDUCTION_FLOAT16] = FRACTION(float16),
    [REDUCTION_BFLOAT16] = FRACTION(bfloat16),
    [REDUCTION_COMPLEX64] = {[REDUCTION_SUM] = sum_complex64,
                             [REDUCTION_PRODUCT] = product_complex64,
                             [REDUCTION_AVG] = sum_complex64},
    [REDUCTION_COMPLEX128] = {[REDUCTION_SUM] = sum_complex128,
                              [REDUCTION_PRODUCT] = product_complex128,
                              [REDUCTION_AVG] = sum_complex128},
    [REDUCTION_BOOL] = {[REDUCTION_SUM] = or_bool8,
                        [REDUCTION_PRODUCT] = and_bool8,
                        [REDUCTION_MIN] = and_bool8,
                        [REDUCTION_MAX] = or_bool8,
                        [REDUCTION_AND] = and_bool8,
                        [REDUCTION_OR] = or_bool8,
                        [REDUCTION_XOR] = xor_bool8},
};

void reduction_combine(enum reduction_type type, enum reduction_operator operation, void *into,
                       const void *from, size_t count)
{
    assert(reduction_allowed(type, operation));
    combines[type][operation](into, from, count);
}

void reduction_finish(enum reduction_type type, enum reduction_operator operation, void *result,
                      size_t count, uint32_t members)
{
    if (operation != REDUCTION_AVG)
        return;
    switch (type) {
    case REDUCTION_FLOAT16:
        divide_float16(result, count, members);
        break;
    case REDUCTION_BFLOAT16:
        divide_bfloat16(result, count, members);
        break;
    case REDUCTION_FLOAT32:
        divide_float32(result, count, members);
        break;
    case REDUCTION_FLOAT64:
        divide_float64(result, count, members);
        break;
    case REDUCTION_COMPLEX64:
        divide_float32(result, 2 * count, members);
        break;
    case REDUCTION_COMPLEX128:
        divide_float64(result, 2 * count, members);
        break;
    default:
        assert(!reduction_allowed(type, operation));
    }
}
