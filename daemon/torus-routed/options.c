#include "daemon/torus-routed/options.h"

#include <string.h>

enum { SOCKET, ADDRESSES, STATE, INTERFACE, WITHOUT, CONGESTION, DOWN };

const struct program_option routed_option_table[] = {
    [SOCKET] = {"socket", "PATH", "control socket of torusd (default: /run/torusd/control.sock)"},
    [ADDRESSES] = {"addresses", "FILE",
                   "addresses and names of all hosts, a line a host in the order of the ranks:\n"
                   "\"10.128.0.1 alpha\" or \"10.128.0.1,fd12::1 alpha\"\n"
                   "(default: /etc/torusd/addresses)"},
    [STATE] = {"state", "DIR",
               "folder with the former settings, and the socket that 'torusctl routes' asks;\n"
               "it must be empty after a boot (default: /run/torus-routed)"},
    [INTERFACE] = {"interface", "NAME",
                   "interface that is made for the addresses of this host (default: torus0); one\n"
                   "that others have made is refused"},
    [WITHOUT] = {"without", "LINKS",
                 "links that routes avoid, the same on all hosts: 5:+0,7 are the link at port\n"
                 "+0 of node 5, and all links of node 7"},
    [CONGESTION] = {"congestion", "NAME",
                    "congestion control of TCP over the routes (default: that of the machine)"},
    [DOWN] = {"down", NULL,
              "remove everything that a torus-routed that was killed has left, and end"},
    PROGRAM_OPTIONS_END,
};

static int set(void *context, int option, const char *value, struct error *e)
{
    struct routed_options *o = context;

    switch (option) {
    case SOCKET:
        o->socket = value;
        return 0;
    case ADDRESSES:
        o->addresses = value;
        return 0;
    case STATE:
        o->state = value;
        return 0;
    case INTERFACE:
        o->interface = value;
        if (strlen(value) < 10 && value[0] != '\0' && strpbrk(value, "/ ") == NULL)
            return 0;
        return error_set(e, ERROR_USAGE, "an interface has a name of at most 9 characters");
    case WITHOUT:
        o->without = value;
        return 0;
    case CONGESTION:
        o->congestion = value;
        if (strlen(value) < 16)
            return 0;
        return error_set(e, ERROR_USAGE, "the name has more than 15 characters");
    default:
        o->down = true;
        return 0;
    }
}

static const struct program_options options = {
    .program = "torus-routed",
    .head = "torus-routed: IP routes between the hosts of a torus, which follow its links\n"
            "\n"
            "usage: torus-routed [OPTION ...]\n"
            "\n"
            "Hears from torusd on this host which links are up, and keeps routes to all other\n"
            "hosts: the shortest ways, all of them where several are equally short, around\n"
            "links and hosts that are down. Needs CAP_NET_ADMIN. SIGTERM or Ctrl-C ends it and\n"
            "removes everything that it has set.\n"
            "\n",
    .tail = "\nexit status: 0 ended by a signal, or --down, and everything is removed; 1 an error; "
            "2 invalid options\n",
    .option = routed_option_table,
    .set = set,
};

int routed_options_read(int argc, char **argv, struct routed_options *o, int *exit_code)
{
    *o = (struct routed_options){.socket = "/run/torusd/control.sock",
                                 .addresses = "/etc/torusd/addresses",
                                 .state = "/run/torus-routed",
                                 .interface = "torus0"};
    return program_options_read(&options, argc, argv, o, exit_code);
}
