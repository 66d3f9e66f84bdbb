/* Prints the tables of torusctl as JSON, from which the build makes the man pages and completions. Not installed. */
#include <jansson.h>

#include "client/cli/terminal/command.h"
#include "daemon/lib/schedule/algorithms/registry.h"

static json_t *options_value(const struct option *options)
{
    json_t *list = json_array();

    for (const struct option *o = options; o->name != NULL; o++)
        (void)json_array_append_new(list, json_pack("{s:s, s:s?, s:s}", "name", o->name, "value",
                                                    o->value, "help", o->help));
    return list;
}

static json_t *command_value(const struct command_group *group, const struct command *c)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:o}", "name", c->name, "group", group->title,
                     "summary", c->summary, "usage", c->usage, "details", command_details(c),
                     "needs_daemon", c->needs_daemon, "options", options_value(c->options));
}

static json_t *exit_meanings_value(void)
{
    json_t *list = json_array();

    for (const struct exit_meaning *m = exit_meanings; m->text != NULL; m++)
        (void)json_array_append_new(list,
                                    json_pack("{s:i, s:s}", "code", m->code, "text", m->text));
    return list;
}

static json_t *algorithms_value(void)
{
    json_t *list = json_array();

    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);

        (void)json_array_append_new(list, json_pack("{s:s, s:s}", "name", a->name, "operation",
                                                    schedule_operation_name(a->operation)));
    }
    return list;
}

int main(void)
{
    json_t *list = json_array(), *value;
    int result = 0;

    for (const struct command_group *g = commands; g->title != NULL; g++)
        for (const struct command *const *c = g->command; *c != NULL; c++) {
            if (command_details(*c) == NULL)
                (void)fprintf(stderr,
                              "client/doc/help/%s.txt: no such file; every command has one\n",
                              (*c)->name);
            result |= json_array_append_new(list, command_value(g, *c));
        }
    value = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o}", "usage", help_usage, "summary",
                      help_purpose, "examples", help_examples, "options",
                      options_value(global_options), "exit_meanings", exit_meanings_value(),
                      "commands", list, "algorithms", algorithms_value());
    result |= value != NULL ? json_dumpf(value, stdout, JSON_INDENT(1)) : -1;
    json_decref(value);
    return result != 0 || fflush(stdout) != 0;
}
