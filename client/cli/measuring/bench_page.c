#include "client/cli/measuring/bench_page.h"

#include "client/cli/measuring/bench_texts.h"
#include "client/cli/web/page_file.h"
#include "client/cli/web/web_texts.h"

int bench_page_write(const struct cli *cli, const char *file, const struct sweep *s)
{
    static const char *const scripts[] = {web_texts_js, bench_js, NULL};
    char network[TORUS_TEXT_SIZE];
    json_t *data = json_pack(
        "{s:s, s:I, s:I, s:f, s:f, s:O}", "network", torus_format(&s->torus, network), "node_count",
        (json_int_t)s->torus.nodes, "repeat", (json_int_t)s->repeat, "link_mbit", s->link_mbit,
        "bound_blocks", torus_bound_all_port(&s->torus), "results", s->results);

    return page_file_write(cli, file,
                           &(struct page){.body = bench_html,
                                          .style = web_style_css,
                                          .more_style = bench_css,
                                          .scripts = scripts,
                                          .data = data});
}
