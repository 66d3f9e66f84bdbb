/* Writes a page as a file. */
#pragma once

#include "client/cli/terminal/cli.h"
#include "client/cli/web/page.h"

/* Writes the page to a file ("-": standard output), and gives up its data; without data, memory was short. Returns
 * EXIT_DONE, or another exit code after printing the reason, without a new file. */
int page_file_write(const struct cli *cli, const char *file, const struct page *p);
