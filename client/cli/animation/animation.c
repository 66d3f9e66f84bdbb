#include "client/cli/animation/animation.h"

#include "client/cli/animation/animation_page.h"
#include "client/cli/animation/schedule_json.h"
#include "client/cli/terminal/progress.h"
#include "client/cli/web/page_file.h"
#include "client/cli/web/torus_json.h"
#include "client/cli/web/web_texts.h"
#include "daemon/lib/schedule/detour/detour.h"

/* Nodes that are down, and ports whose links are down, which one of the schedules avoids. */
static json_t *down_json(const struct torus *t, const struct animated *schedules, unsigned count)
{
    const struct damage *d = NULL;
    json_t *nodes = json_array(), *ports = json_array();
    int r = 0;

    for (unsigned i = 0; i < count; i++)
        if (schedules[i].algorithm->detour != NULL)
            d = detour_damage(schedules[i].algorithm->detour);
    for (uint32_t rank = 0; d != NULL && rank < t->nodes; rank++) {
        if (d->gone[rank])
            r |= json_array_append_new(nodes, json_integer(rank));
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (torus_neighbour(t, rank, port) != TORUS_NO_NODE && !damage_has_link(d, rank, port))
                r |= json_array_append_new(ports, json_pack("[i, i]", (int)rank, (int)port));
    }
    json_t *o = json_pack("{s:o, s:o}", "nodes", nodes, "ports", ports);
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

static json_t *data_of(const struct torus *t, const struct animated *schedules, unsigned count,
                       uint32_t source, struct error *e)
{
    json_t *torus = torus_json(t, e), *list = json_array(), *o;
    uint64_t blocks = 0;
    bool complete = torus != NULL;

    for (unsigned i = 0; complete && i < count; i++) {
        json_t *one = schedule_json(t, &schedules[i], source, &blocks, e);
        complete = one != NULL && json_array_append_new(list, one) == 0;
    }
    if (!complete) {
        json_decref(torus);
        json_decref(list);
        return NULL;
    }
    o = json_pack("{s:o, s:o, s:I, s:o}", "torus", torus, "schedules", list, "source",
                  source != TORUS_NO_NODE ? (json_int_t)source : -1, "down",
                  down_json(t, schedules, count));
    if (o == NULL)
        (void)error_set(e, ERROR_MEMORY, "out of memory for the page");
    return o;
}

int animation_write(const struct cli *cli, const char *file, const struct torus *t,
                    const struct animated *schedules, unsigned count, uint32_t source)
{
    static const char *const scripts[] = {web_texts_js,          web_colours_js,      web_torus_js,
                                          animation_schedule_js, animation_player_js, NULL};
    struct error e;
    json_t *data = data_of(t, schedules, count, source, &e);

    if (data == NULL)
        return cli_fail(cli, &e);
    return page_file_write(cli, file,
                           &(struct page){.body = animation_html,
                                          .style = web_style_css,
                                          .more_style = animation_css,
                                          .scripts = scripts,
                                          .data = data});
}
