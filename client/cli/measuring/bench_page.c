#include "client/cli/measuring/bench_page.h"

#include "client/cli/measuring/bench_texts.h"
#include "client/cli/terminal/output_file.h"
#include "client/cli/web/page.h"

int bench_page_write(const struct cli *cli, const char *file, const struct sweep *s)
{
    static const char *const scripts[] = {bench_js, NULL};
    char network[TORUS_TEXT_SIZE];
    struct output_file output;
    struct error e;
    json_t *data = json_pack(
        "{s:s, s:I, s:I, s:f, s:f, s:O}", "network", torus_format(&s->torus, network), "nodes",
        (json_int_t)s->torus.nodes, "repeat", (json_int_t)s->repeat, "link_mbit", s->link_mbit,
        "bound_blocks", torus_bound_all_port(&s->torus), "results", s->results);

    if (data == NULL)
        return cli_fail(
            cli, &(struct error){.code = ERROR_MEMORY, .text = "out of memory for the page"});
    int r = output_file_open(&output, file, &e);
    if (r == 0) {
        page_write(output.stream, &(struct page){.body = bench_html,
                                                 .style = web_style_css,
                                                 .more_style = bench_css,
                                                 .scripts = scripts,
                                                 .data = data});
        r = output_file_finish(&output, &e);
    }
    json_decref(data);
    return r == 0 ? EXIT_DONE : cli_fail(cli, &e);
}
