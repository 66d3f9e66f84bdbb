/* Tests the decisions of the preloads for MPI programs that need no MPI: compiled for each library, with the test's
 * functions in place of the library's. */
#include <limits.h>

#include "client/mpi/calls/packing.h"
#include "client/mpi/job/job.h"
#include "client/mpi/job/launcher.h"
#include "client/mpi/library/real.h"
#include "tests/support/cmocka.h"

struct real real;
struct real_handles mpi;
struct job job;

/* ---- Programs -------------------------------------------------------------------------------- */

static void set_only(const char *name, const char *value, const char *other, const char *its_value)
{
    static const char *const all[] = {"TORUS_MPI_JOB", "PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri",
                                      "SLURM_JOB_ID",  "SLURM_STEP_ID",  "FLUX_JOB_ID",
                                      "PALS_APID"};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(unsetenv(all[i]), 0);
    assert_int_equal(setenv(name, value, 1), 0);
    assert_int_equal(setenv(other, its_value, 1), 0);
}

TEST(an_empty_variable_is_no_name)
{
    char program[64];

    set_only("TORUS_MPI_JOB", "mine", "PMIX_NAMESPACE", "theirs");
    assert_true(settings_program(program, sizeof program));
    assert_string_equal(program, "mine ");
    set_only("TORUS_MPI_JOB", "", "PMIX_NAMESPACE", "theirs");
    assert_true(settings_program(program, sizeof program));
    assert_string_equal(program, "theirs ");
    set_only("TORUS_MPI_JOB", "", "PMIX_NAMESPACE", "");
    assert_false(settings_program(program, sizeof program)); /* no launcher has started this */
}

TEST(words_of_the_mode)
{
    struct settings s;

    assert_int_equal(setenv("TORUS_MPI", "stats,torus", 1), 0);
    s = settings_read();
    assert_true(s.statistics && s.torus && !s.verbose && !s.off && s.wrong == NULL);
    assert_int_equal(setenv("TORUS_MPI", "stats,", 1), 0);
    assert_null(settings_read().wrong);
    assert_int_equal(setenv("TORUS_MPI", "stat,torus", 1), 0);
    assert_string_equal(settings_read().wrong, "TORUS_MPI");
    assert_int_equal(unsetenv("TORUS_MPI"), 0);
    assert_null(settings_read().wrong);
}

/* ---- Types ----------------------------------------------------------------------------------- */

#define GIB ((size_t)1 << 30)
#define TYPE ((MPI_Datatype)(intptr_t)7)

static size_t packed[8]; /* bytes by call, */
static unsigned calls;
static bool large[8]; /* and whether it was one with large sizes */
static MPI_Count size_of_type;

static int pack_size(int count, MPI_Datatype type, MPI_Comm comm, int *size)
{
    assert_int_equal(count, 0); /* an int may not be able to say more */
    *size = 0;
    return MPI_SUCCESS;
}

static int type_size(MPI_Datatype type, MPI_Count *size)
{
    *size = size_of_type;
    return MPI_SUCCESS;
}

static int extent(MPI_Datatype type, MPI_Count *lower, MPI_Count *its)
{
    *lower = 0;
    *its = size_of_type + 8; /* gaps: to be packed */
    return MPI_SUCCESS;
}

static int kind = MPI_COMBINER_VECTOR; /* of the type */

static int envelope(MPI_Datatype type, int *integers, int *addresses, int *types, int *combiner)
{
    *integers = *addresses = *types = 0;
    *combiner = kind;
    return MPI_SUCCESS;
}

static int note(bool is_large, int64_t size)
{
    assert_true(calls < sizeof packed / sizeof *packed);
    assert_true(size > 0);
    large[calls] = is_large;
    packed[calls++] = (size_t)size;
    return MPI_SUCCESS;
}

static int pack(const void *in, int count, MPI_Datatype type, void *out, int size, int *position,
                MPI_Comm comm)
{
    return note(false, size);
}

static int unpack(const void *in, int size, int *position, void *out, int count, MPI_Datatype type,
                  MPI_Comm comm)
{
    return note(false, size);
}

#if ABI_LARGE_COUNTS
static int pack_large(const void *in, MPI_Count count, MPI_Datatype type, void *out, MPI_Count size,
                      MPI_Count *position, MPI_Comm comm)
{
    return note(true, size);
}

static int unpack_large(const void *in, MPI_Count size, MPI_Count *position, void *out,
                        MPI_Count count, MPI_Datatype type, MPI_Comm comm)
{
    return note(true, size);
}
#endif

static void set_type(size_t size)
{
    size_of_type = (MPI_Count)size;
    calls = 0;
    real.Pack_size = pack_size;
    real.Type_size_x = type_size;
    real.Type_get_extent_x = extent;
    real.Type_get_true_extent_x = extent;
    real.Type_get_envelope = envelope;
    real.Pack = pack;
    real.Unpack = unpack;
#if ABI_LARGE_COUNTS
    real.Pack_c = pack_large;
    real.Unpack_c = unpack_large;
#endif
}

/* An address without memory, which must not be read or written. */
static char *const nowhere = (char *)(uintptr_t)4096;

static void pack_both_ways(const struct datatype *type, size_t count)
{
    assert_int_equal(datatype_pack(type, nowhere, count, nowhere), MPI_SUCCESS);
    assert_int_equal(datatype_unpack(type, nowhere, count, nowhere), MPI_SUCCESS);
}

TEST(elements_are_packed_in_pieces)
{
    struct datatype type;

    set_type(GIB / 4);
    assert_int_equal(datatype_read(TYPE, &type), 0);
    assert_true(datatype_is_packable(&type) && !type.plain);
    pack_both_ways(&type, 6);
    assert_int_equal(calls, 4);
    assert_true(packed[0] == GIB && packed[1] == GIB / 2 && packed[3] == GIB / 2);

    set_type(INT_MAX);
    assert_int_equal(datatype_read(TYPE, &type), 0);
    assert_true(datatype_is_packable(&type));
    pack_both_ways(&type, 1);
    assert_true(calls == 2 && packed[0] == INT_MAX && packed[1] == INT_MAX && !large[0]);
}

/* Types that MPI defines never change, and are read once; other handles may be used again for another type. */
TEST(predefined_types_are_read_once)
{
    const MPI_Datatype other = (MPI_Datatype)(intptr_t)8;
    struct datatype type;

    set_type(8);
    for (size_t size = 8; size <= 16; size += 8) {
        set_type(size);
        assert_int_equal(datatype_read(other, &type), 0);
        assert_int_equal(type.size, size);
    }
    kind = MPI_COMBINER_NAMED;
    for (size_t size = 8; size <= 16; size += 8) {
        set_type(size);
        assert_int_equal(datatype_read((MPI_Datatype)(intptr_t)9, &type), 0);
        assert_int_equal(type.size, 8);
    }
    kind = MPI_COMBINER_VECTOR;
}

/* Large counts are passed by calls with large sizes, or not at all. */
TEST(large_elements_do_not_overflow)
{
    static const int counts[] = {0, 0, 1}, none[] = {0, 0, 0};
    const struct communicator c = {.size = 3};
    struct blocks blocks = {.at = nowhere, .counts = NUMBERS(counts), .type = TYPE};
    struct block_list list;

    set_type(2 * GIB);
    assert_int_equal(blocks_read(&list, &blocks, c.size), 0);
    assert_int_equal(blocks_are_packable(&list, &c), ABI_LARGE_COUNTS);
    assert_int_equal(block_is_too_large(block_bytes(&list, 2)), !ABI_LARGE_COUNTS);
    if (ABI_LARGE_COUNTS) {
        pack_both_ways(&list.one, 2);
        assert_int_equal(calls, 4);
        for (unsigned i = 0; i < calls; i++)
            assert_true(large[i] && packed[i] == 2 * GIB);
    }
    blocks_free(&list);

    blocks.counts = NUMBERS(none); /* there is nothing to pack */
    assert_int_equal(blocks_read(&list, &blocks, c.size), 0);
    assert_true(blocks_are_packable(&list, &c));
    blocks_free(&list);
}
