#include "daemon/torusd-discover/options.h"

#include <stddef.h>

#include "daemon/lib/discovery/discovery.h"
#include "daemon/lib/discovery/interfaces.h"

const struct option discover_option_table[] = {
    {"--interfaces", "LIST", offsetof(struct discover_options, interfaces),
     "the interfaces that have cables, such as eth1,eth2, or all (every network\n"
     "card, without wireless ones)"},
    {"--name", "NAME", offsetof(struct discover_options, name),
     "this host's name (default: as 'uname -n' prints it)"},
    {"--discover-socket", "PATH", offsetof(struct discover_options, socket),
     "socket for torusctl discover (default: " DISCOVER_SOCKET ")"},
    {"--setups", "PATH", offsetof(struct discover_options, setups),
     "socket of torusd-setup, which gives this host its id, and opens setups of\n"
     "torusctl init --links, such as " SETUP_SOCKET ".\n"
     "Without it, the host accepts no setups, proves no cluster key, and has an id\n"
     "that lasts as long as the process"},
    {"--key-file", "FILE", offsetof(struct discover_options, key),
     "prove this cluster key; not with --setups, as torusd-setup reads the keys then"},
    {"--id", NULL, offsetof(struct discover_options, show_id),
     "print the id of this host, as torusd-setup says it, and end"},
    {0},
};

static const struct program_options options = {
    .program = "torusd-discover",
    .head = "torusd-discover: finds the hosts and cables of a torus\n"
            "\n"
            "usage: torusd-discover --interfaces LIST [OPTION ...]\n"
            "       torusd-discover --id [--setups PATH]\n"
            "\n"
            "Sends packets over each cable, and collects what all hosts say about theirs, for\n"
            "'torusctl discover'; and carries setups of 'torusctl init --links', which it cannot\n"
            "read. It needs no rights. SIGTERM or Ctrl-C ends it.\n"
            "\n",
    .tail = "\nexit status: 0 ended by a signal; 1 an error; 2 invalid options\n",
    .option = discover_option_table,
};

int discover_options_read(int argc, char **argv, struct discover_options *o, int *exit_code)
{
    struct error e;

    *o = (struct discover_options){.socket = DISCOVER_SOCKET};
    if (program_options_read(&options, argc, argv, o, exit_code) != 0)
        return -1;
    if (o->interfaces != NULL && interfaces_check(o->interfaces, &e) != 0)
        return program_options_refuse(&options, "--interfaces", o->interfaces, &e, exit_code);
    if (o->name != NULL && !host_name_is_valid(o->name)) {
        (void)error_set(&e, ERROR_USAGE,
                        "not the name of a host: at most %u letters, digits, and . _ -",
                        REPORT_NAME_SIZE - 1);
        return program_options_refuse(&options, "--name", o->name, &e, exit_code);
    }
    if (o->show_id && o->setups == NULL)
        o->setups = SETUP_SOCKET;
    if (o->interfaces == NULL && !o->show_id)
        (void)error_set(&e, ERROR_USAGE,
                        "--interfaces is missing: name the interfaces with cables, such as "
                        "--interfaces eth1,eth2, or all");
    else if (o->key != NULL && o->setups != NULL)
        (void)error_set(&e, ERROR_USAGE,
                        "--key-file and --setups exclude each other: torusd-setup has the key");
    else
        return 0;
    return program_options_fail(&options, &e, exit_code);
}
