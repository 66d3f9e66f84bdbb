/* One loop for each operator and width, so that the compiler vectorises all of them. */
#include "daemon/base/arithmetic.h"

#include <assert.h>
#include <math.h>

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

static const uint8_t sizes[REDUCTION_TYPES] = {
    [REDUCTION_INT8] = 1,    [REDUCTION_INT16] = 2,  [REDUCTION_INT32] = 4,
    [REDUCTION_INT64] = 8,   [REDUCTION_UINT8] = 1,  [REDUCTION_UINT16] = 2,
    [REDUCTION_UINT32] = 4,  [REDUCTION_UINT64] = 8, [REDUCTION_FLOAT32] = 4,
    [REDUCTION_FLOAT64] = 8,
};

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
        [REDUCTION_MIN] = min_##type, [REDUCTION_MAX] = max_##type                                 \
    }

static combine *const combines[REDUCTION_TYPES][REDUCTION_OPERATORS] = {
    [REDUCTION_INT8] = INTEGER(int8, uint8),      [REDUCTION_INT16] = INTEGER(int16, uint16),
    [REDUCTION_INT32] = INTEGER(int32, uint32),   [REDUCTION_INT64] = INTEGER(int64, uint64),
    [REDUCTION_UINT8] = INTEGER(uint8, uint8),    [REDUCTION_UINT16] = INTEGER(uint16, uint16),
    [REDUCTION_UINT32] = INTEGER(uint32, uint32), [REDUCTION_UINT64] = INTEGER(uint64, uint64),
    [REDUCTION_FLOAT32] = FRACTION(float32),      [REDUCTION_FLOAT64] = FRACTION(float64),
};

uint32_t reduction_size(uint32_t type)
{
    return type < REDUCTION_TYPES ? sizes[type] : 0;
}

bool reduction_allowed(uint32_t type, uint32_t operation)
{
    return type < REDUCTION_TYPES && operation < REDUCTION_OPERATORS &&
           combines[type][operation] != NULL;
}

void reduction_combine(enum reduction_type type, enum reduction_operator operation, void *into,
                       const void *from, size_t count)
{
    assert(reduction_allowed(type, operation));
    combines[type][operation](into, from, count);
}
