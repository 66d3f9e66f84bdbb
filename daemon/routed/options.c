#include "daemon/routed/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"

#define EXIT_USAGE 2
#define OPTIONS_MOST 16

enum { SOCKET, ADDRESSES, STATE, INTERFACE, WITHOUT, CONGESTION, DOWN, LOG_LEVEL, HELP, VERSION };

const struct routed_option routed_options[] = {
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
    [LOG_LEVEL] = {"log-level", "LEVEL", "error, warning, info or debug (default: info)"},
    [HELP] = {"help", NULL, "print this text"},
    [VERSION] = {"version", NULL, "print the version"},
    {0},
};

static void print_help(void)
{
    (void)fputs(
        "torus-routed: IP routes between the hosts of a torus, which follow its links\n"
        "\n"
        "usage: torus-routed [OPTION ...]\n"
        "\n"
        "Hears from torusd on this host which links are up, and keeps routes to all other\n"
        "hosts: the shortest ways, all of them where several are equally short, around\n"
        "links and hosts that are down. Needs CAP_NET_ADMIN. SIGTERM or Ctrl-C ends it and\n"
        "removes everything that it has set.\n"
        "\n",
        stdout);
    for (const struct routed_option *o = routed_options; o->name != NULL; o++) {
        char left[32];
        (void)snprintf(left, sizeof left, "--%s%s%s", o->name, o->value != NULL ? " " : "",
                       o->value != NULL ? o->value : "");
        (void)printf("  %-18s ", left);
        for (const char *c = o->help; *c != '\0'; c++)
            (void)printf(*c == '\n' ? "\n%21s" : "%.1s", *c == '\n' ? "" : c);
        (void)putchar('\n');
    }
    (void)fputs(
        "\nexit status: 0 ended by a signal, or --down, and everything is removed; 1 an error; "
        "2 invalid options\n",
        stdout);
}

/* Returns 0, 1 to end, or -1: the value is wrong. */
static int set(struct routed_options *o, int which, const char *value)
{
    switch (which) {
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
        return strlen(value) < 10 && value[0] != '\0' && strpbrk(value, "/ ") == NULL ? 0 : -1;
    case WITHOUT:
        o->without = value;
        return 0;
    case CONGESTION:
        o->congestion = value;
        return strlen(value) < 16 ? 0 : -1;
    case DOWN:
        o->down = true;
        return 0;
    case LOG_LEVEL:
        if (log_level_parse(value) < 0)
            return -1;
        log_set_level((enum log_level)log_level_parse(value));
        return 0;
    case HELP:
        print_help();
        return 1;
    default:
        (void)printf("torus-routed " TORUSD_VERSION "\n");
        return 1;
    }
}

int routed_options_read(int argc, char **argv, struct routed_options *o, int *exit_code)
{
    struct option list[OPTIONS_MOST] = {{0}};
    int which, index, rc = 0;

    *o = (struct routed_options){.socket = "/run/torusd/control.sock",
                                 .addresses = "/etc/torusd/addresses",
                                 .state = "/run/torus-routed",
                                 .interface = "torus0"};
    for (index = 0; routed_options[index].name != NULL; index++)
        list[index] = (struct option){
            .name = routed_options[index].name,
            .has_arg = routed_options[index].value != NULL ? required_argument : no_argument,
            .val = index};
    *exit_code = EXIT_USAGE;
    while (rc == 0 && (which = getopt_long(argc, argv, "", list, NULL)) != -1) {
        rc = which == '?' ? -2 : set(o, which, optarg);
        if (rc == -1)
            (void)fprintf(stderr, "torus-routed: --%s \"%.60s\" is not possible\n",
                          routed_options[which].name, optarg);
    }
    if (rc == 0 && optind < argc) {
        (void)fprintf(stderr, "torus-routed: unexpected argument \"%.60s\"\n", argv[optind]);
        rc = -1;
    }
    if (rc < 0)
        (void)fputs("torus-routed --help lists the options\n", stderr);
    *exit_code = rc > 0 ? EXIT_SUCCESS : EXIT_USAGE;
    return rc == 0 ? 0 : -1;
}
