/* torusctl report: says where the time of a traced run went. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/reporting/report_page.h"
#include "client/cli/terminal/command.h"

struct report_arguments {
    const char *trace;
    const char *html;
};

static const struct option options[] = {
    {"TRACE", NULL, offsetof(struct report_arguments, trace),
     "a file of 'torusctl trace' or --trace"},
    {"--html", "FILE", offsetof(struct report_arguments, html),
     "also make a page for a browser; '-' is standard output"},
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    const struct report_arguments *a = arguments;
    struct trace_data data;
    struct error e;

    if (a->trace == NULL)
        return cli_fail_usage(cli, "name the trace: torusctl report TRACE");
    if (trace_data_read(&data, a->trace, &e) != 0)
        return cli_fail(cli, &e);
    int code = a->html != NULL ? report_page_write(cli, a->html, &data) : EXIT_DONE;
    if (code == EXIT_DONE && (a->html == NULL || strcmp(a->html, "-") != 0))
        code = report_print(cli, &data);
    trace_data_free(&data);
    return code;
}

const struct command command_report = {
    .name = "report",
    .summary = "Say where the time of a traced run went, and make a page of it",
    .usage = "TRACE [--html FILE] [--json]",
    .options = options,
    .arguments_size = sizeof(struct report_arguments),
    .run = run,
};
