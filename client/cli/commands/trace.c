/* torusctl trace: writes what all nodes have recorded of the last traced run. */
#include <stddef.h>

#include "client/cli/terminal/command.h"
#include "client/cli/tracing/trace_file.h"

struct trace_arguments {
    const char *file;
};

static const struct option options[] = {
    {"FILE", NULL, offsetof(struct trace_arguments, file),
     "the file to write; '-' is standard output"},
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    const struct trace_arguments *a = arguments;

    if (a->file == NULL)
        return cli_fail_usage(cli, "name the file to write: torusctl trace FILE");
    int code = cli_connect(cli);
    return code != EXIT_DONE ? code : trace_file_write(cli, a->file, NULL, NULL);
}

const struct command command_trace = {
    .name = "trace",
    .summary = "Write what all nodes did in the last traced run",
    .usage = "FILE [--socket PATH]",
    .options = options,
    .arguments_size = sizeof(struct trace_arguments),
    .needs_daemon = true,
    .run = run,
};
