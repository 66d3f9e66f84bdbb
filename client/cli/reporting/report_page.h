/* The report of a trace: as text or JSON, and as a page. */
#pragma once

#include "client/cli/reporting/findings.h"
#include "client/cli/terminal/cli.h"

/* Print the report, and write it as a page ("-": standard output). Return EXIT_DONE, or another exit code after printing
 * the reason. */
int report_print(const struct cli *cli, const struct trace_data *d);
int report_page_write(const struct cli *cli, const char *file, const struct trace_data *d);
