/* The types and operators of MPI that the torus can reduce. */
#include <pthread.h>

#include "client/mpi/library/real.h"
#include "client/mpi/library/reduction.h"

enum kind { SIGNED, UNSIGNED, INTEGER, FLOATING, COMPLEX, BYTES };

/* The types that torusd can compute with. Their widths depend on the machine and on the Fortran compiler, so
 * fill_in() asks MPI for them. Types that an MPI library lacks are MPI_DATATYPE_NULL. */
#define TYPES(X)                                                                                   \
    X(MPI_SIGNED_CHAR, SIGNED)                                                                     \
    X(MPI_SHORT, SIGNED)                                                                           \
    X(MPI_INT, SIGNED)                                                                             \
    X(MPI_LONG, SIGNED)                                                                            \
    X(MPI_LONG_LONG, SIGNED)                                                                       \
    X(MPI_INT8_T, SIGNED)                                                                          \
    X(MPI_INT16_T, SIGNED)                                                                         \
    X(MPI_INT32_T, SIGNED)                                                                         \
    X(MPI_INT64_T, SIGNED)                                                                         \
    X(MPI_AINT, INTEGER)                                                                           \
    X(MPI_OFFSET, INTEGER)                                                                         \
    X(MPI_COUNT, INTEGER)                                                                          \
    X(MPI_INTEGER, INTEGER)                                                                        \
    X(MPI_INTEGER1, INTEGER)                                                                       \
    X(MPI_INTEGER2, INTEGER)                                                                       \
    X(MPI_INTEGER4, INTEGER)                                                                       \
    X(MPI_INTEGER8, INTEGER)                                                                       \
    X(MPI_UNSIGNED_CHAR, UNSIGNED)                                                                 \
    X(MPI_UNSIGNED_SHORT, UNSIGNED)                                                                \
    X(MPI_UNSIGNED, UNSIGNED)                                                                      \
    X(MPI_UNSIGNED_LONG, UNSIGNED)                                                                 \
    X(MPI_UNSIGNED_LONG_LONG, UNSIGNED)                                                            \
    X(MPI_UINT8_T, UNSIGNED)                                                                       \
    X(MPI_UINT16_T, UNSIGNED)                                                                      \
    X(MPI_UINT32_T, UNSIGNED)                                                                      \
    X(MPI_UINT64_T, UNSIGNED)                                                                      \
    X(MPI_FLOAT, FLOATING)                                                                         \
    X(MPI_DOUBLE, FLOATING)                                                                        \
    X(MPI_REAL, FLOATING)                                                                          \
    X(MPI_REAL4, FLOATING)                                                                         \
    X(MPI_REAL8, FLOATING)                                                                         \
    X(MPI_DOUBLE_PRECISION, FLOATING)                                                              \
    X(MPI_C_FLOAT_COMPLEX, COMPLEX)                                                                \
    X(MPI_C_DOUBLE_COMPLEX, COMPLEX)                                                               \
    X(MPI_CXX_FLOAT_COMPLEX, COMPLEX)                                                              \
    X(MPI_CXX_DOUBLE_COMPLEX, COMPLEX)                                                             \
    X(MPI_COMPLEX, COMPLEX)                                                                        \
    X(MPI_COMPLEX8, COMPLEX)                                                                       \
    X(MPI_COMPLEX16, COMPLEX)                                                                      \
    X(MPI_DOUBLE_COMPLEX, COMPLEX)                                                                 \
    X(MPI_BYTE, BYTES)

/* Sets of kinds; bit k stands for kind k. Logical operators are served for C integers only: MPI also allows them for
 * Fortran's LOGICAL, whose values depend on the compiler. */
#define C_INTEGERS (1u << SIGNED | 1u << UNSIGNED)
#define INTEGERS (C_INTEGERS | 1u << INTEGER)
#define NUMBERS (INTEGERS | 1u << FLOATING)

#define OPERATORS(X)                                                                               \
    X(MPI_SUM, TORUS_SUM, NUMBERS | 1u << COMPLEX, false)                                          \
    X(MPI_PROD, TORUS_PRODUCT, NUMBERS, false)                                                     \
    X(MPI_MIN, TORUS_MIN, NUMBERS, false)                                                          \
    X(MPI_MAX, TORUS_MAX, NUMBERS, false)                                                          \
    X(MPI_BAND, TORUS_AND, INTEGERS | 1u << BYTES, false)                                          \
    X(MPI_BOR, TORUS_OR, INTEGERS | 1u << BYTES, false)                                            \
    X(MPI_BXOR, TORUS_XOR, INTEGERS | 1u << BYTES, false)                                          \
    X(MPI_LAND, TORUS_AND, C_INTEGERS, true)                                                       \
    X(MPI_LOR, TORUS_OR, C_INTEGERS, true)                                                         \
    X(MPI_LXOR, TORUS_XOR, C_INTEGERS, true)

struct type_row {
    MPI_Datatype handle;
    enum kind kind;
    enum torus_type type; /* type of the parts of an element; 0: torusd lacks it */
};

struct operator_row {
    MPI_Op handle;
    enum torus_operator operator;
    unsigned kinds;
    bool logical;
};

#define ONE(...) +1
static struct type_row types[0 TYPES(ONE)];
static struct operator_row operators[0 OPERATORS(ONE)];
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static enum torus_type type_of(enum kind kind, MPI_Count size)
{
    static const enum torus_type of_size[][9] = {
        [SIGNED] = {[1] = TORUS_INT8, [2] = TORUS_INT16, [4] = TORUS_INT32, [8] = TORUS_INT64},
        [UNSIGNED] =
            {[1] = TORUS_UINT8, [2] = TORUS_UINT16, [4] = TORUS_UINT32, [8] = TORUS_UINT64},
        [FLOATING] = {[4] = TORUS_FLOAT32, [8] = TORUS_FLOAT64},
        [BYTES] = {[1] = TORUS_UINT8},
    };

    if (kind == COMPLEX)
        return type_of(FLOATING, size / 2);
    if (kind == INTEGER)
        return type_of(SIGNED, size);
    return size >= 0 && size <= 8 ? of_size[kind][size] : 0;
}

static void fill_in(void)
{
    size_t n = 0;

#define X(mpi_type, its_kind)                                                                      \
    types[n++] = (struct type_row){.handle = ABI_HANDLE(mpi_type), .kind = its_kind};
    TYPES(X)
#undef X
    for (size_t i = 0; i < n; i++) {
        MPI_Count size;
        if (types[i].handle != (MPI_Datatype)0 && types[i].handle != mpi.type_null &&
            real.Type_size_x(types[i].handle, &size) == MPI_SUCCESS)
            types[i].type = type_of(types[i].kind, size);
    }
    n = 0;
#define X(op, its_operator, its_kinds, is_logical)                                                 \
    operators[n++] = (struct operator_row){ABI_HANDLE(op), its_operator, its_kinds, is_logical};
    OPERATORS(X)
#undef X
}

static const struct type_row *find_type(MPI_Datatype handle)
{
    for (size_t i = 0; i < COUNT(types); i++)
        if (types[i].handle == handle && types[i].type != 0)
            return &types[i];
    return NULL;
}

static const struct operator_row *find_operator(MPI_Op handle)
{
    for (size_t i = 0; i < COUNT(operators); i++)
        if (operators[i].handle == handle)
            return &operators[i];
    return NULL;
}

bool reduction_of(MPI_Datatype type, MPI_Op op, struct reduction *reduction)
{
    const struct operator_row *o;
    const struct type_row *t;

    (void)pthread_once(&once, fill_in);
    o = find_operator(op);
    t = find_type(type);
    if (o == NULL || t == NULL || (o->kinds >> t->kind & 1) == 0)
        return false;
    *reduction = (struct reduction){t->type, o->operator, t->kind == COMPLEX ? 2 : 1, o->logical};
    return true;
}

#define NORMALISE(width)                                                                           \
    for (size_t i = 0; i < count; i++)                                                             \
    ((uint##width##_t *)to)[i] = ((const uint##width##_t *)from)[i] != 0

void reduction_normalise(enum torus_type type, void *to, const void *from, size_t count)
{
    switch (torus_type_size(type)) {
    case 1:
        NORMALISE(8);
        break;
    case 2:
        NORMALISE(16);
        break;
    case 4:
        NORMALISE(32);
        break;
    default:
        NORMALISE(64);
        break;
    }
}
