/* torusctl doctor: judges all machines from one of them. */
#include <stddef.h>

#include "client/cli/doctor/report.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/progress.h"

struct doctor_arguments {
    bool all;
};

static const struct option options[] = {
    {"--all", NULL, offsetof(struct doctor_arguments, all),
     "also show what was checked and is fine"},
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    const struct doctor_arguments *args = arguments;
    struct diagnosis d;
    int code = diagnosis_make(cli, &d);

    if (code == EXIT_DONE) {
        json_t *value = doctor_report_value(&d, args->all);
        long_work_end();
        if (value != NULL && cli->json)
            writer_json(stdout, value);
        if (value == NULL || (!cli->json && doctor_report_print(stdout, value) != 0))
            code = cli_fail(cli, &(struct error){.code = ERROR_MEMORY, .text = "out of memory"});
        else
            code = doctor_report_status(&d);
        json_decref(value);
    }
    diagnosis_free(&d);
    return code;
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "Find what is wrong on all machines, and say how to mend it",
    .usage = "[--all] [--socket PATH] [--json]",
    .options = options,
    .arguments_size = sizeof(struct doctor_arguments),
    .needs_daemon = true,
    .run = run,
};
