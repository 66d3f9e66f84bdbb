#include "daemon/discovery/process/options.h"

#include "daemon/discovery/process/command.h"
#include "daemon/discovery/process/interfaces.h"

enum {
    INTERFACES,
    NAME,
    SOCKET,
    STATE,
    CONFIG,
    KEY,
    SECOND_KEY,
    ACCEPT_SETUPS,
    SET_UP_LINKS,
    ID,
    OPEN,
};

const struct program_option discover_option_table[] = {
    [INTERFACES] = {"interfaces", "LIST",
                    "the interfaces that have cables, such as eth1,eth2, or all (every network\n"
                    "card, without wireless ones)"},
    [NAME] = {"name", "NAME", "this host's name (default: as 'uname -n' prints it)"},
    [SOCKET] = {"discover-socket", "PATH",
                "socket for torusctl discover (default: " DISCOVER_SOCKET ")"},
    [STATE] = {"state", "DIR",
               "folder that keeps the key pair of this host, from which its id follows, and\n"
               "whether the host was set up before. Without it, the key pair lasts as long as\n"
               "the process"},
    [CONFIG] = {"config", "FILE",
                "torusd.ini of this host, which may be missing: it names the cluster keys, and\n"
                "dims and rank are shown to others"},
    [KEY] = {"key-file", "FILE", "a cluster key, beside that of --config; it may be missing"},
    [SECOND_KEY] = {"second-key-file", "FILE",
                    "another cluster key that is accepted, while keys are changed"},
    [ACCEPT_SETUPS] = {"accept-setups", "COMMAND",
                       "accept setups (torusctl init --links), and run COMMAND with the further\n"
                       "word show or apply for each, without a shell. A host with a cluster key\n"
                       "accepts setups only from hosts with this key; a new host accepts all, and\n"
                       "a host that was set up before and cannot read its key accepts none. Needs\n"
                       "--state"},
    [SET_UP_LINKS] = {"set-up-links", NULL,
                      "set interfaces up, once, that are down when they appear, while this host\n"
                      "is new (needs CAP_NET_ADMIN); --accept-setups does that, too"},
    [ID] = {"id", NULL, "print the id of this host, and end; without --state, that of the service"},
    [OPEN] = {"open", NULL,
              "forget that this host was set up, so that it accepts a first setup again from\n"
              "everybody whom its cables reach, and end. Refused while the host is\n"
              "configured or has a cluster key. Without --state: with the files of the service"},
    PROGRAM_OPTIONS_END,
};

static int set(void *context, int option, const char *value, struct error *e)
{
    struct discover_options *o = context;
    struct command command = {0};

    switch (option) {
    case INTERFACES:
        o->interfaces = value;
        return interfaces_check(value, e);
    case NAME:
        o->name = value;
        if (host_name_is_valid(value))
            return 0;
        return error_set(e, ERROR_USAGE,
                         "not the name of a host: at most %u letters, digits, and . _ -",
                         REPORT_NAME_SIZE - 1);
    case SOCKET:
        o->socket = value;
        return 0;
    case STATE:
        o->state = value;
        return 0;
    case CONFIG:
        o->config = value;
        return 0;
    case KEY:
        o->key = value;
        return 0;
    case SECOND_KEY:
        o->second_key = value;
        return 0;
    case ACCEPT_SETUPS:
        o->command = value;
        return command_parse(&command, value, e);
    case SET_UP_LINKS:
        o->set_up_links = true;
        return 0;
    case ID:
        o->show_id = true;
        return 0;
    default:
        o->open = true;
        return 0;
    }
}

static const struct program_options options = {
    .program = "torusd-discover",
    .head = "torusd-discover: finds the hosts and cables of a torus\n"
            "\n"
            "usage: torusd-discover --interfaces LIST [OPTION ...]\n"
            "       torusd-discover --id | --open [--state DIR]\n"
            "\n"
            "Sends packets over each cable, and collects what all hosts say about theirs, for\n"
            "'torusctl discover'; and carries setups of 'torusctl init --links' to the hosts.\n"
            "SIGTERM or Ctrl-C ends it; at SIGHUP it reads settings and keys again.\n"
            "\n",
    .tail = "\nexit status: 0 ended by a signal; 1 an error; 2 invalid options\n",
    .option = discover_option_table,
    .set = set,
};

/* --id and --open are about the service, unless options say otherwise. */
static void fill_defaults(struct discover_options *o)
{
    if (o->state != NULL || (!o->show_id && !o->open))
        return;
    o->state = "/var/lib/torusd-discover";
    o->config = o->config != NULL ? o->config : "/etc/torusd/torusd.ini";
    o->key = o->key != NULL ? o->key : "/etc/torusd/cluster.key";
    o->second_key = o->second_key != NULL ? o->second_key : "/etc/torusd/second.key";
}

/* Checks that the options go together. */
static int check(const struct discover_options *o, struct error *e)
{
    if (o->interfaces == NULL && !o->show_id && !o->open)
        return error_set(e, ERROR_USAGE,
                         "--interfaces is missing: name the interfaces with cables, such as "
                         "--interfaces eth1,eth2, or all");
    if (o->state == NULL && o->command != NULL)
        return error_set(e, ERROR_USAGE, "--state is missing: --accept-setups needs it");
    if (o->second_key != NULL && o->key == NULL)
        return error_set(e, ERROR_USAGE, "--second-key-file needs --key-file");
    return 0;
}

int discover_options_read(int argc, char **argv, struct discover_options *o, int *exit_code)
{
    struct error e;

    *o = (struct discover_options){.socket = DISCOVER_SOCKET};
    if (program_options_read(&options, argc, argv, o, exit_code) != 0)
        return -1;
    fill_defaults(o);
    if (check(o, &e) == 0)
        return 0;
    *exit_code = program_options_fail(&options, &e);
    return -1;
}
