#include "client/cli/web/page_file.h"

#include "client/cli/terminal/output_file.h"

int page_file_write(const struct cli *cli, const char *file, const struct page *p)
{
    struct output_file output;
    struct error e;

    if (p->data == NULL)
        return cli_fail(
            cli, &(struct error){.code = ERROR_MEMORY, .text = "out of memory for the page"});
    int r = output_file_open(&output, file, &e);
    if (r == 0) {
        page_write(output.stream, p);
        r = output_file_finish(&output, &e);
    }
    json_decref(p->data);
    return r == 0 ? EXIT_DONE : cli_fail(cli, &e);
}
