#include "client/cli/terminal/command.h"

#include <stddef.h>
#include <string.h>

#include "daemon/lib/command_line/options.h"

const struct option global_options[] = {
    {"--socket", "PATH", offsetof(struct global_arguments, socket),
     "the daemon's control socket; %h: the host's name (default:\n"
     "$TORUS_SOCKET or " TORUS_DEFAULT_SOCKET ")"},
    {"--json", NULL, offsetof(struct global_arguments, json),
     "print one JSON object instead of text"},
    {"--help", NULL, offsetof(struct global_arguments, help), "explain the command"},
    {"--version", NULL, offsetof(struct global_arguments, version), "print the version"},
    {0},
};

const struct command *command_find(const struct command_group *groups, const char *name)
{
    for (; groups->title != NULL; groups++)
        for (const struct command *const *c = groups->command; *c != NULL; c++)
            if (strcmp((*c)->name, name) == 0)
                return *c;
    return NULL;
}

const char *command_suggest(const struct command_group *groups, const char *name)
{
    struct suggestion s = {.word = name};

    for (; groups->title != NULL; groups++)
        for (const struct command *const *c = groups->command; *c != NULL; c++)
            suggest(&s, (*c)->name);
    return s.best;
}
