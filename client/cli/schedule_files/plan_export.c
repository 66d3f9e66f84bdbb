#include "client/cli/schedule_files/plan_export.h"

#include <string.h>
#include <unistd.h>

#include "client/cli/schedule_files/goal.h"
#include "client/cli/schedule_files/msccl.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/progress.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/file/export.h"
#include "daemon/lib/schedule/work.h"

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
