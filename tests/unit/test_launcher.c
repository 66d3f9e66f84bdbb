/* What launchers say by variables, and the names of jobs. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/torusd/launcher.h"
#include "tests/support/cmocka.h"

/* Sets the variables of the list, which ends with NULL, and no others of launchers. */
static void set_only(const char *const *list)
{
    static const char *const all[] = {"TORUS_JOB",
                                      "OMPI_COMM_WORLD_RANK",
                                      "OMPI_COMM_WORLD_SIZE",
                                      "OMPI_COMM_WORLD_LOCAL_RANK",
                                      "PMI_RANK",
                                      "PMI_SIZE",
                                      "MPI_LOCALRANKID",
                                      "SLURM_PROCID",
                                      "SLURM_NTASKS",
                                      "SLURM_LOCALID",
                                      "SLURM_JOB_ID",
                                      "PMIX_RANK",
                                      "PMIX_NAMESPACE"};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        assert_int_equal(unsetenv(all[i]), 0);
    for (; *list != NULL; list += 2)
        assert_int_equal(setenv(list[0], list[1], 1), 0);
}

#define SET(...) set_only((const char *const[]){__VA_ARGS__, NULL})

static struct launcher found(void)
{
    struct launcher l;
    struct error e = {0};

    assert_success(launcher_find(&l, &e), e);
    return l;
}

TEST(each_launcher)
{
    struct launcher l;

    SET("OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_SIZE", "9", "OMPI_COMM_WORLD_LOCAL_RANK", "1",
        "PMIX_RANK", "3", "PMIX_NAMESPACE", "prterun-host-77@1");
    l = found();
    assert_string_equal(l.rank_variable, "OMPI_COMM_WORLD_RANK");
    assert_int_equal(l.rank, 3);
    assert_true(l.has_size);
    assert_int_equal(l.size, 9);
    assert_int_equal(l.local_rank, 1);
    assert_string_equal(l.job, "prterun-host-77_1");
    SET("PMI_RANK", "0", "PMI_SIZE", "16", "MPI_LOCALRANKID", "0");
    l = found();
    assert_string_equal(l.size_variable, "PMI_SIZE");
    assert_int_equal(l.size, 16);
    assert_memory_equal(l.job, "pid-", 4);
    SET("PMIX_RANK", "12");
    l = found();
    assert_int_equal(l.rank, 12);
    assert_false(l.has_size);
}

/* mpiexec in a job of Slurm starts its servers by srun: the variables of srun are those of the servers. */
TEST(launchers_in_launchers)
{
    struct launcher l;

    SET("SLURM_PROCID", "0", "SLURM_NTASKS", "1", "SLURM_JOB_ID", "71", "OMPI_COMM_WORLD_RANK", "2",
        "OMPI_COMM_WORLD_SIZE", "4", "PMIX_NAMESPACE", "5");
    l = found();
    assert_int_equal(l.rank, 2);
    assert_int_equal(l.size, 4);
    assert_string_equal(l.job, "71");
    SET("SLURM_PROCID", "0", "SLURM_NTASKS", "1", "PMIX_RANK", "2");
    l = found();
    assert_string_equal(l.rank_variable, "PMIX_RANK");
    assert_false(l.has_size);
    SET("SLURM_PROCID", "2", "SLURM_NTASKS", "4", "SLURM_LOCALID", "0", "PMIX_RANK", "2");
    l = found();
    assert_string_equal(l.rank_variable, "SLURM_PROCID");
    assert_int_equal(l.size, 4);
}

TEST(names_of_jobs)
{
    static const char *const names[][2] = {
        {"demo", "demo"},
        {"..", "_."},
        {"../../etc", "_._.._etc"},
        {"a/b c", "a_b_c"},
        {"\xc3\xa4", "__"},
        {"0123456789012345678901234567890123456789", "01234567890123456789012345678901"}};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        SET("TORUS_JOB", names[i][0], "SLURM_JOB_ID", "5");
        struct launcher l = found();
        assert_null(l.rank_variable);
        assert_int_equal(l.local_rank, 0);
        assert_string_equal(l.job, names[i][1]);
    }
    SET("TORUS_JOB", "", "SLURM_PROCID", "0", "SLURM_JOB_ID", "5");
    assert_string_equal(found().job, "5");
}

TEST(errors)
{
    struct launcher l;
    struct error e = {0};

    SET("SLURM_JOB_ID", "5");
    assert_fails(launcher_find(&l, &e), e, ERROR_USAGE, "OMPI_COMM_WORLD_RANK");
    assert_contains(e.text, "PMIX_RANK");
    assert_contains(e.text, "TORUS_JOB");
    for (size_t i = 0; i < 4; i++) {
        static const char *const bad[] = {"-1", "1x", "99999999999999999999", " 1"};
        SET("PMI_RANK", bad[i]);
        assert_int_equal(launcher_find(&l, &e), -1);
        assert_contains(e.text, "PMI_RANK");
        SET("PMI_RANK", "1", "PMI_SIZE", bad[i]);
        assert_int_equal(launcher_find(&l, &e), -1);
        assert_contains(e.text, "PMI_SIZE");
    }
}

/* mkdir(), but the folder above has been removed before the call of this number, counted from 1. */
static int calls, gone_before;
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    if (++calls != gone_before)
        return __real_mkdir(path, mode);
    errno = ENOENT;
    return -1;
}

/* The end of a job removes the folder of the user, if it is empty, while another job makes its own in it. */
TEST(jobs_that_end_while_others_begin)
{
    struct job_folder f;
    struct error e;
    char job[64];

    (void)snprintf(job, sizeof job, "launcher-%ld", (long)getpid());
    assert_int_equal(job_folder_name(&f, job, &e), 0);
    for (gone_before = 2; gone_before <= 4; gone_before++) {
        calls = 0;
        assert_success(job_folder_make(&f, &e), e);
        assert_int_equal(access(f.data, W_OK), 0);
        assert_true(calls > 4);
        job_folder_remove(&f);
    }
    gone_before = 0;
}
