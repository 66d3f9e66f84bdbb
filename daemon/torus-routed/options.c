#include "daemon/torus-routed/options.h"

#include <stddef.h>
#include <string.h>

const struct option routed_option_table[] = {
    {"--socket", "PATH", offsetof(struct routed_options, socket),
     "control socket of torusd (default: /run/torusd/control.sock)"},
    {"--addresses", "FILE", offsetof(struct routed_options, addresses),
     "addresses and names of all hosts, a line a host in the order of the ranks:\n"
     "\"10.128.0.1 alpha\" or \"10.128.0.1,fd12::1 alpha\"\n"
     "(default: /etc/torusd/addresses)"},
    {"--state", "DIR", offsetof(struct routed_options, state),
     "folder with the former settings, and the socket that 'torusctl routes' asks;\n"
     "it must be empty after a boot (default: /run/torus-routed)"},
    {"--interface", "NAME", offsetof(struct routed_options, interface),
     "interface that is made for the addresses of this host (default: torus0); one\n"
     "that others have made is refused"},
    {"--without", "LINKS", offsetof(struct routed_options, without),
     "links that routes avoid, the same on all hosts: 5:+0,7 are the link at port\n"
     "+0 of node 5, and all links of node 7"},
    {"--congestion", "NAME", offsetof(struct routed_options, congestion),
     "congestion control of TCP over the routes (default: that of the machine)"},
    {"--down", NULL, offsetof(struct routed_options, down),
     "remove everything that a killed torus-routed left behind, and end"},
    {0},
};

static const struct program_options options = {
    .program = "torus-routed",
    .head = "torus-routed: IP routes between the hosts of a torus, which follow its links\n"
            "\n"
            "usage: torus-routed [OPTION ...]\n"
            "\n"
            "Hears from torusd on this host which links are up, and keeps routes to all other\n"
            "hosts: the shortest paths, all of them where several are equally short, around\n"
            "links and hosts that are down. Needs CAP_NET_ADMIN. SIGTERM or Ctrl-C ends it and\n"
            "removes everything that it has set.\n"
            "\n",
    .tail = "\nexit status: 0 ended by a signal, or --down, and everything is removed; 1 an error; "
            "2 invalid options\n",
    .option = routed_option_table,
};

int routed_options_read(int argc, char **argv, struct routed_options *o, int *exit_code)
{
    struct error e;

    *o = (struct routed_options){.socket = "/run/torusd/control.sock",
                                 .addresses = "/etc/torusd/addresses",
                                 .state = "/run/torus-routed",
                                 .interface = "torus0"};
    if (program_options_read(&options, argc, argv, o, exit_code) != 0)
        return -1;
    if (strlen(o->interface) >= 10 || o->interface[0] == '\0' ||
        strpbrk(o->interface, "/ ") != NULL) {
        (void)error_set(&e, ERROR_USAGE, "an interface has a name of at most 9 characters");
        return program_options_refuse(&options, "--interface", o->interface, &e, exit_code);
    }
    if (o->congestion != NULL && strlen(o->congestion) >= 16) {
        (void)error_set(&e, ERROR_USAGE, "the name has more than 15 characters");
        return program_options_refuse(&options, "--congestion", o->congestion, &e, exit_code);
    }
    return 0;
}
