#include "client/cli/animation/animation.h"

#include "client/cli/animation/animation_page.h"
#include "client/cli/animation/schedule_json.h"
#include "client/cli/terminal/long_work.h"
#include "client/cli/web/page_file.h"
#include "client/cli/web/torus_json.h"
#include "client/cli/web/web_texts.h"

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
    o = json_pack("{s:o, s:o, s:I}", "torus", torus, "schedules", list, "source",
                  source != TORUS_NO_NODE ? (json_int_t)source : -1);
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
