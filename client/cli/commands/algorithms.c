/* torusctl algorithms: lists the algorithms, or with --dims their costs on a torus. */
#include <stddef.h>

#include "client/cli/algorithms/named_algorithm.h"
#include "client/cli/algorithms/plan_report.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/progress.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/work.h"

struct algorithms_arguments {
    const char *dims;
};

static const struct option options[] = {
    {"--dims", "DIMS", offsetof(struct algorithms_arguments, dims),
     "compare the costs of the algorithms on this torus, such as 8x8"},
    {0},
};

static const struct section registry_sections[] = {
    RECORD("algorithms", FIELD("name"), FIELD("summary"), FIELD("operation"),
           FIELD("ports", "port_model"), FIELD("accepts"), FIELD("startups"), FIELD("transmission"),
           FIELD("segments"), FIELD("source")),
};

static const struct section cost_sections[] = {
    RECORD(NULL, FIELD("torus", "dims", FORMAT_TORUS), FIELD("nodes", "node_count")),
    TABLE("algorithms", FIELD("algorithm"), FIELD("operation"), FIELD("ports", "port_model"),
          FIELD("startups"), FIELD("transmission"), FIELD("critical path", "critical_path"),
          FIELD("bound"), FIELD("efficiency", "efficiency", FORMAT_PERCENT),
          FIELD("contended", "contended_steps"), FIELD("minimal"),
          FIELD("not counted because", "refused")),
};

static json_t *registry_row(const struct algorithm *a)
{
    json_t *o = json_object();
    int r = 0;

    r |= json_object_set_new(o, "name", json_string(a->name));
    r |= json_object_set_new(o, "summary", json_string(a->summary));
    r |= json_object_set_new(o, "operation", json_string(schedule_operation_name(a->operation)));
    r |= json_object_set_new(o, "port_model", json_string(port_model_name(a->port_model)));
    r |= json_object_set_new(o, "accepts", json_string(a->accepts_text));
    r |= json_object_set_new(o, "startups", json_string(a->startups));
    r |= json_object_set_new(o, "transmission", json_string(a->transmission));
    r |= json_object_set_new(o, "segments", json_integer(a->segments));
    r |= json_object_set_new(o, "source", json_string(a->source));
    return json_checked(o, r);
}

/* Returns the costs of the algorithm on the torus, or the reason why they are not counted. */
static json_t *cost_row(const struct algorithm *named, const struct torus *t)
{
    struct schedule_report report;
    struct detour *found;
    struct error e;
    json_t *o = json_object();
    int r = json_object_set_new(o, "algorithm", json_string(named->name)) |
            json_object_set_new(o, "operation",
                                json_string(schedule_operation_name(named->operation))) |
            json_object_set_new(o, "port_model", json_string(port_model_name(named->port_model)));

    long_work_next("the costs of %s", named->name);
    const struct algorithm *a = found_routes(named, t, &found, &e);
    bool accepted = a != NULL && algorithm_accepts(a, t, &e) == 0;
    bool counted = accepted && work_check(t, a, work_to_verify(t, a), WORK_QUICK, &e) == 0 &&
                   schedule_verify(t, a, &report, &e) == 0;
    r |= json_object_set_new(o, "accepts", json_boolean(accepted));
    if (counted) {
        r |= plan_set_report(o, a, &report);
        r |= plan_set_efficiency(o, a, &report);
    } else {
        r |= json_object_set_new(o, "refused", json_string(e.text));
    }
    detour_free(found);
    return json_checked(o, r);
}

static json_t *value_of(const struct torus *t)
{
    json_t *o = json_object(), *list = json_array();
    int r = 0;

    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);
        r |= json_array_append_new(list, t != NULL ? cost_row(a, t) : registry_row(a));
    }
    if (t != NULL) {
        r |= json_set_torus(o, t);
        r |= json_object_set_new(o, "node_count", json_integer(t->nodes));
    }
    r |= json_object_set_new(o, "algorithms", list);
    return json_checked(o, r);
}

static int run(struct cli *cli, const void *arguments)
{
    const struct algorithms_arguments *a = arguments;
    struct view registry = {registry_sections, 1}, costs = {cost_sections, 2};
    struct torus torus;
    struct error e;

    if (a->dims == NULL)
        return cli_print(cli, value_of(NULL), &registry);
    if (torus_parse(&torus, a->dims, &e) != 0)
        return cli_fail_usage(cli, "--dims: %s", e.text);
    return cli_print(cli, value_of(&torus), &costs);
}

const struct command command_algorithms = {
    .name = "algorithms",
    .summary = "List the algorithms, or compare them on a torus",
    .usage = "[--dims DIMS] [--json]",
    .options = options,
    .arguments_size = sizeof(struct algorithms_arguments),
    .run = run,
};
