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
    .details =
        "Asks all nodes for their state and for facts about their machines, and judges: nodes\n"
        "that do not answer, releases, links and cables, ranks, MTU, speed, errors and offloads\n"
        "of interfaces, cluster keys, clocks, disks, files, memory, load, IP routes (of\n"
        "'torusctl ip-routes', if they are in use), firewalls and settings of the system. It\n"
        "changes nothing.\n"
        "\n"
        "Each finding has a severity, the machines, what was found, why it matters, and a\n"
        "command that mends it. An error means that something fails, a warning that something\n"
        "may fail, a hint that something could be better. What has one cause is one finding.\n"
        "\n"
        "What could not be judged is 'not seen', with the reason, and never fine: a node that has\n"
        "not answered, or a setting that the sandbox of torusd hides. The last line says how\n"
        "many hosts have answered; with --json, 'checks' counts for each check the hosts that\n"
        "are fine, not seen and wrong.\n"
        "\n"
        "Losses, links that come and go, and errors of interfaces are those of the last hour, or\n"
        "since torusd has started.\n"
        "\n"
        "torusd needs no privileges for this. The rules of the firewall, which only root may\n"
        "read, are judged on the machine where root runs torusctl doctor. On other machines,\n"
        "the policy that Docker sets is guessed from its interface docker0.\n"
        "\n"
        "If no daemon can be asked, or a node has a release that knows no surveys, doctor says\n"
        "so, and judges this machine alone.\n"
        "\n"
        "exit status, for monitoring: 0 nothing but hints; 1 warnings; 2 errors (or an invalid\n"
        "option); 3 no daemon could be asked.\n"
        "\n"
        "examples:\n"
        "  torusctl doctor\n"
        "  torusctl doctor --json | jq '.findings[] | select(.severity == \"error\")'\n",
    .options = options,
    .arguments_size = sizeof(struct doctor_arguments),
    .needs_daemon = true,
    .run = run,
};
