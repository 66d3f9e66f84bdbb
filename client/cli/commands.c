#include <stddef.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/suggest.h"

extern const struct command command_status, command_links, command_algorithms, command_exchange,
    command_plan, command_predict, command_bounds, command_help, command_allgather,
    command_broadcast, command_barrier, command_calibrate, command_bench;

const struct command *const commands[] = {
    &command_exchange,   &command_allgather,
    &command_broadcast,  &command_barrier,
    &command_bench,      &command_calibrate,
    &command_status,     &command_links,
    &command_algorithms, &command_plan,
    &command_predict,    &command_bounds,
    &command_help,       NULL,
};

const struct option global_options[] = {
    {"--socket", "PATH", offsetof(struct global_arguments, socket),
     "the daemon's control socket; else $TORUS_SOCKET, else " TORUS_CLIENT_SOCKET},
    {"--json", NULL, offsetof(struct global_arguments, json),
     "print one JSON object instead of text"},
    {"--help", NULL, offsetof(struct global_arguments, help), "explain the command"},
    {"--version", NULL, offsetof(struct global_arguments, version), "print the version"},
    {0},
};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; commands[i] != NULL; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

const char *command_suggest(const char *name)
{
    struct suggestion s = {.word = name};
    for (size_t i = 0; commands[i] != NULL; i++)
        suggest(&s, commands[i]->name);
    return s.best;
}
