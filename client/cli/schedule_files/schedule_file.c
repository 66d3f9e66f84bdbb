#include "client/cli/schedule_files/schedule_file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/schedule_files/forestcoll.h"
#include "client/cli/schedule_files/goal.h"
#include "client/cli/schedule_files/msccl.h"
#include "client/cli/schedule_files/python_algorithm.h"
#include "client/cli/schedule_files/teccl.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/progress.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/file/export.h"
#include "daemon/lib/schedule/work.h"
#include "proto/text_file.h"
#include "proto/text_format.h"

/* The formats of other programs, which a function converts to torusd's. */
static const struct {
    const char *format, *name;
    int (*read)(const char *text, size_t length, const struct torus *t, char **routes,
                size_t *routes_length, struct error *e);
} others[] = {
    {TEXT_FORMAT_MSCCL, "MSCCL", msccl_read},
    {TEXT_FORMAT_FORESTCOLL, "ForestColl", forestcoll_read},
    {TEXT_FORMAT_TECCL, "TE-CCL", teccl_read},
};
#define OTHERS (sizeof others / sizeof *others)

/* Finds the format among `others`; OTHERS if it is torusd's. Rejects what is none of them by its name. A damaged
 * schedule is left to its reader, which names the line. Returns 0, or -1 with *e. */
static int find_format(const char *format, size_t *other, struct error *e)
{
    *other = OTHERS;
    if (format == NULL || strcmp(format, TEXT_FORMAT_SCHEDULE) == 0 ||
        strcmp(format, TEXT_FORMAT_ROUTES) == 0)
        return 0;
    for (*other = 0; *other < OTHERS; (*other)++)
        if (strcmp(format, others[*other].format) == 0)
            return 0;
    return error_set(
        e, ERROR_REFUSED,
        "this is %s, which cannot be read as a schedule: give MSCCL's XML (<algo ...>), "
        "ForestColl's (<Algo ...>), TE-CCL's JSON, or torusd's format, which begins with "
        "{\"schedule\":%d,\"dims\":...}",
        format, IMPORTED_VERSION);
}

/* Replaces the text by the same schedule in torusd's format. */
static int convert(struct schedule_file *f, size_t other, const struct torus *torus,
                   struct error *e)
{
    char *text = f->text;
    size_t length = f->length;
    int rc;

    if (torus == NULL)
        return error_set(e, ERROR_USAGE, "%s's format does not contain the torus: give --dims",
                         others[other].name);
    f->text = NULL;
    rc = others[other].read(text, length, torus, &f->text, &f->length, e);
    free(text);
    return rc;
}

/* Reads and verifies the schedule. After convert(), an error names lines that the user does not see, so it says so. */
static int verify(struct schedule_file *f, bool converted, const struct torus *torus,
                  struct error *e)
{
    if (imported_read(&f->imported, f->text, f->length, torus, &f->report, e) == 0)
        return 0;
    return converted ? error_wrap(e, "after conversion to torusd's format") : -1;
}

/* Makes and verifies the schedule of an algorithm in Python. */
static int read_python(struct schedule_file *f, const char *name, const struct torus *torus,
                       struct error *e)
{
    if (torus == NULL)
        return error_set(e, ERROR_USAGE, "%.200s needs --dims", name);
    if (python_algorithm_run(name, torus, &f->text, &f->length, e) == 0 &&
        verify(f, true, torus, e) == 0)
        return 0;
    schedule_file_free(f);
    return error_wrap(e, "%.200s", name);
}

int schedule_file_read(struct schedule_file *f, const char *path, const struct torus *torus,
                       struct error *e)
{
    static const struct text_kind schedule = {
        .name = "a schedule", .most = SCHEDULE_FILE_BYTES_MOST, .xml = true};
    char room[TEXT_FORMAT_SIZE];

    *f = (struct schedule_file){0};
    if (python_algorithm_is_name(path))
        return read_python(f, path, torus, e);
    if (text_file_read(path, &schedule, &f->text, &f->length, e) != 0)
        return -1;
    /* XML in UTF-16 is left to its reader, which names the first element. */
    const char *format = text_is_wide_xml(f->text, f->length)
                             ? TEXT_FORMAT_MSCCL
                             : text_format(f->text, f->length, room);
    size_t other;
    int rc = find_format(format, &other, e);
    if (rc == 0 && other < OTHERS)
        rc = convert(f, other, torus, e);
    if (rc == 0)
        rc = verify(f, other < OTHERS, torus, e);
    if (rc == 0)
        return 0;
    schedule_file_free(f);
    return error_wrap(e, "%.200s", path);
}

void schedule_file_free(struct schedule_file *f)
{
    imported_free(f->imported);
    free(f->text);
    *f = (struct schedule_file){0};
}

/* ---- Printing a schedule --------------------------------------------------------------------- */

int plan_export_check(const struct torus *t, const struct algorithm *a, bool by_period,
                      struct error *e)
{
    if (isatty(STDOUT_FILENO))
        long_work_end();
    return work_check(t, a, by_period ? work_of(t, a) : work_of_all(t, a), WORK_MOST, e);
}

int plan_export(const struct cli *cli, const struct export_arguments *a, const struct torus *t,
                const struct algorithm *algorithm)
{
    bool torusd = strcmp(a->format, "torusd") == 0, goal = strcmp(a->format, "goal") == 0;
    uint64_t block_bytes = 64 * 1024;
    struct error e;
    int r;

    for (uint32_t node = 0; algorithm->detour != NULL && node < t->nodes; node++)
        if (detour_damage(algorithm->detour)->gone[node])
            return cli_fail_usage(
                cli, "--export: a file must have the routes of all nodes, but node %u is down",
                node);
    if (!torusd && !goal && strcmp(a->format, "msccl") != 0)
        return cli_fail_usage(cli, "--export: '%.20s' is not a format: give torusd, msccl or goal",
                              a->format);
    if (a->period && !torusd)
        return cli_fail_usage(cli, "--period is for --export torusd");
    if (a->block_size != NULL && !goal)
        return cli_fail_usage(cli, "--block-size is for --export goal");
    if (a->block_size != NULL && parse_size(a->block_size, &block_bytes, &e) != 0)
        return cli_fail_usage(cli, "--block-size: %s", e.text);
    if (plan_export_check(t, algorithm, a->period, &e) != 0)
        return cli_fail(cli, &e);
    r = torusd ? schedule_export(stdout, t, algorithm, a->period, &e)
        : goal ? goal_print(stdout, t, algorithm, block_bytes, &e)
               : msccl_print(stdout, t, algorithm, &e);
    if (r == 0)
        return EXIT_DONE;
    return e.code == ERROR_USAGE ? cli_fail_usage(cli, "%s", e.text) : cli_fail(cli, &e);
}
