#include "client/cli/animation/plan_animation.h"

#include <string.h>

#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/animation/measured_steps.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/progress.h"
#include "daemon/lib/schedule/detour/detour.h"

bool plan_animation_is_output(const struct animation_arguments *a)
{
    return a->file != NULL && strcmp(a->file, "-") == 0;
}

/* Finds the algorithm to compare with. Returns 0 with *algorithm, and with *found if that was made for it; or -1 with
 * *e. */
static int find(const char *name, const struct torus *t, enum operation operation,
                const struct algorithm **algorithm, struct detour **found, struct error *e)
{
    *found = NULL;
    if (!torus_is_plain(t) && found_is_name(name, t)) {
        if (detour_new_whole(found, t, e) != 0)
            return -1;
        *algorithm = found_named(*found, name, e);
    } else {
        *algorithm = named_algorithm(name, NULL, e);
    }
    if (*algorithm == NULL || algorithm_accepts(*algorithm, t, e) != 0)
        return -1;
    if ((*algorithm)->operation == operation)
        return 0;
    return error_set(e, ERROR_USAGE, "--compare: %s is for an %s, and the other schedule for an %s",
                     name, operation_name((*algorithm)->operation), operation_name(operation));
}

static int write_both(const struct cli *cli, const struct animation_arguments *a,
                      const struct torus *t, const struct animated *schedule, uint32_t source)
{
    struct schedule_report report;
    struct animated both[2] = {*schedule, {.report = &report}};
    struct detour *found;
    struct error e;

    long_work_next("the routes of %.80s", a->compare);
    int r = find(a->compare, t, schedule->algorithm->operation, &both[1].algorithm, &found, &e);
    int code = r != 0 ? cli_fail_usage(cli, "%s", e.text) : EXIT_DONE;
    if (r == 0 && schedule_verify(t, both[1].algorithm, &report, &e) != 0)
        code = cli_fail(cli, &e);
    else if (r == 0)
        code = animation_write(cli, a->file, t, both, 2, source);
    detour_free(found);
    return code;
}

int plan_animation(const struct cli *cli, const struct animation_arguments *a, const char *source,
                   const struct torus *t, const struct animated *schedule)
{
    uint32_t rank = TORUS_NO_NODE;
    struct error e;

    if (a->file == NULL && (a->compare != NULL || a->trace != NULL))
        return cli_fail_usage(cli, "%s is for a page: give its file with --html FILE",
                              a->compare != NULL ? "--compare" : "--trace");
    if (a->file == NULL)
        return EXIT_DONE;
    if (source != NULL && parse_number(source, t->nodes - 1, &rank, &e) != 0)
        return cli_fail_usage(cli, "--source: %s", e.text);
    struct animated timed = *schedule;
    struct measured_steps steps = {.count = 0};
    if (a->trace != NULL) {
        if (measured_steps_read(&steps, a->trace, t, schedule, &e) != 0)
            return e.code == ERROR_USAGE ? cli_fail_usage(cli, "%s", e.text) : cli_fail(cli, &e);
        timed.measured = &steps;
    }
    int code = a->compare != NULL ? write_both(cli, a, t, &timed, rank)
                                  : animation_write(cli, a->file, t, &timed, 1, rank);
    measured_steps_free(&steps);
    return code;
}
