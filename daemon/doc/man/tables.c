/* Prints the options and settings of torusd, and the options of torus-routed, torusd-discover and torusd-setup, as JSON, from which
 * the man pages and the completions are made. Only the build uses this program. */
#include <jansson.h>

#include "daemon/torus-routed/options.h"
#include "daemon/torusd-discover/options.h"
#include "daemon/torusd-setup/options.h"
#include "daemon/torusd/settings.h"

static void add_rows(json_t *rows, const struct option *option)
{
    for (const struct option *o = option; o->name != NULL; o++)
        (void)json_array_append_new(rows, json_pack("{s:s, s:s?, s:s}", "option", o->name + 2,
                                                    "value", o->value, "help", o->help));
}

static json_t *table(const struct option *option)
{
    json_t *rows = json_array();

    add_rows(rows, option);
    add_rows(rows, program_options_of_all);
    return rows;
}

int main(void)
{
    json_t *list = json_array(), *value;
    int result;

    for (const struct setting *s = config_settings; s->option != NULL; s++)
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:s?, s:s?, s:s}", "option", s->option, "name",
                                              s->name, "value", s->value, "help", s->help));
    value = json_pack("{s:o, s:o, s:o, s:o}", "options", list, "routed", table(routed_option_table),
                      "discover", table(discover_option_table), "setup", table(setup_option_table));
    result = value != NULL ? json_dumpf(value, stdout, JSON_INDENT(1)) : -1;
    json_decref(value);
    return result != 0 || fflush(stdout) != 0;
}
