/* torusctl init: configures all hosts of a cluster from one file. */
#include <stddef.h>
#include <string.h>

#include "client/cli/cluster/init_run.h"
#include "client/cli/cluster/receive.h"
#include "client/cli/discovering/discovery_socket.h"
#include "client/cli/terminal/command.h"

static const struct option options[] = {
    {"CLUSTER", NULL, offsetof(struct init_options, file), "the cluster file"},
    {"--here", NULL, offsetof(struct init_options, here), "set up this machine only"},
    {"--ssh", NULL, offsetof(struct init_options, ssh),
     "set up all hosts by ssh, over any network that reaches them"},
    {"--links", NULL, offsetof(struct init_options, links),
     "set up all hosts over the links, through the discovery processes\n(torusd-discover.service)"},
    {"--host", "NAME", offsetof(struct init_options, host),
     "set up this host only; with --here: this machine is the host NAME"},
    {"--without", "LIST", offsetof(struct init_options, without),
     "leave out these hosts, such as beta,gamma, because they are off. After a\nchange of the key "
     "they have to be set up again"},
    {"--key", "FILE", offsetof(struct init_options, key),
     "file of the cluster key, which is made if it is missing (default:\n"
     "/etc/torusd/cluster.key if you can read it, otherwise cluster.key\nbeside the cluster file)"},
    {"--new-key", NULL, offsetof(struct init_options, new_key),
     "change the cluster key on all hosts, while links stay up"},
    {"--dry-run", NULL, offsetof(struct init_options, dry_run),
     "show what would change, and change nothing"},
    {"--yes", NULL, offsetof(struct init_options, yes), "make the changes without asking"},
    {"--trust-cables", NULL, offsetof(struct init_options, trust_cables),
     "with --links, for the first setup of a cluster: take the hosts that the\ncables reach for "
     "those "
     "of the file, without confirmation of their ids"},
    {"--allow-less-safe", NULL, offsetof(struct init_options, allow_less_safe),
     "make changes that make a host less safe, too: links that are not encrypted\nany more, "
     "another "
     "key, groups whose members could not exchange before,\ndata roots with files of the system"},
    {"--no-wait", NULL, offsetof(struct init_options, no_wait),
     "do not wait until the torus is whole"},
    {"--ssh-program", "PROGRAM", offsetof(struct init_options, deliver.ssh),
     "program to run instead of ssh; it gets the same arguments"},
    {"--discover-socket", "PATH", offsetof(struct init_options, deliver.socket),
     "with --links: socket of the discovery process (default:\n" DISCOVERY_DEFAULT_SOCKET ")"},
    {"--root", "DIR", offsetof(struct init_options, deliver.root),
     "with --here: write below DIR, an image of the host; start no unit"},
    {"--receive", "show|apply", offsetof(struct init_options, receive),
     "used by --ssh and --links on the other hosts: read a setup from\nstandard input, and show or "
     "make its changes"},
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    const struct init_options *a = arguments;
    struct init_options o = *a;

    if (a->receive != NULL && strcmp(a->receive, "show") != 0 && strcmp(a->receive, "apply") != 0)
        return cli_fail_usage(cli, "--receive: \"%.40s\" is neither show nor apply", a->receive);
    if (a->receive != NULL)
        return receive_run(cli, a->receive[0] == 'a', a->deliver.root);
    if (a->file == NULL)
        return cli_fail_usage(cli, "init: give the cluster file; 'torusctl discover' writes one");
    if (a->here + a->ssh + a->links != 1)
        return cli_fail_usage(cli, "init: give one of --links, --ssh and --here");
    if (a->deliver.root != NULL && !a->here)
        return cli_fail_usage(cli, "--root is for --here");
    if (a->trust_cables && !a->links)
        return cli_fail_usage(cli, "--trust-cables is for --links");
    if (a->here && a->new_key)
        return cli_fail_usage(cli, "--new-key changes the key on all hosts: give --links or --ssh");
    if (a->host != NULL && a->new_key)
        return cli_fail_usage(cli,
                              "--new-key changes the key on all hosts, so that they have one in "
                              "common: leave out --host");
    o.deliver.way = a->ssh ? DELIVER_SSH : a->links ? DELIVER_LINKS : DELIVER_HERE;
    return init_run(cli, &o);
}

const struct command command_init = {
    .name = "init",
    .summary = "Configure all hosts of a cluster from one file",
    .usage = "CLUSTER --links | --ssh | --here [--host NAME] [--key FILE] [--new-key] [--dry-run]\n"
             "           [--yes] [--allow-less-safe] [--no-wait] [--json]",
    .details =
        "From the cluster file come the configuration of torusd on every host, the addresses of\n"
        "the cables, IP routes between all hosts, and the names of the hosts in /etc/hosts. The\n"
        "command first compares all of these with what the hosts have, and shows the\n"
        "differences. Then it asks, writes the files, and starts or restarts the services. If\n"
        "something fails on a host, that host gets its former files back.\n"
        "\n"
        "'torusctl discover --output CLUSTER' writes the cluster file. By hand it is:\n"
        "\n"
        "  [cluster]\n"
        "  dims = 3\n"
        "  link_mbit = 1000          ; any setting of torusd.ini that all hosts share\n"
        "\n"
        "  [*]                       ; interfaces that all hosts have\n"
        "  +0 = enp1s0               ; the cable of port +0\n"
        "  -0 = enp2s0\n"
        "\n"
        "  [alpha]                   ; the hosts, by rank\n"
        "  [beta]\n"
        "  ssh = root@10.0.0.3       ; where ssh reaches it (default: root@beta)\n"
        "  [gamma]\n"
        "  -0 = enp4s0               ; another interface\n"
        "\n"
        "A change that makes a host less safe is refused, with --yes as well, before anything\n"
        "changes anywhere; --allow-less-safe makes it. Each host compares what it has with what\n"
        "it would get: encryption of the links, the cluster key, who may exchange, and data\n"
        "roots.\n"
        "\n"
        "The package torusd must be installed on every host. --links reaches hosts that nothing\n"
        "else reaches: it goes through torusd-discover.service, which the package starts on\n"
        "every host. A host that was never set up accepts its first setup from any host; after\n"
        "that, only from hosts that have its key.\n"
        "\n"
        "With --links, nothing goes to a host because of its name. Each host has an id, which\n"
        "'torusd-discover --id' prints on it, and the cluster file has a line \"id = ID\" for\n"
        "each. Where the line is missing, the command shows what it has found, asks whether the\n"
        "ids are right, and writes them into the file. --yes is no answer to that. If nobody\n"
        "else can be on the cables of a new cluster, --trust-cables says so.\n"
        "\n"
        "torus-routed keeps the IP routes, if it is installed on a host; otherwise a script sets\n"
        "routes that do not change. 'ip_routes = no' in [cluster]\n"
        "leaves out IP routes and names, 'address = 10.128.0.1' is the address of node 0,\n"
        "'address6 = fd12:3456:789a::1' its IPv6 address (default: from the name of\n"
        "node 0; 'no': none), and\n"
        "'port = 7411' the TCP port of the links. See 'torusctl help ip-routes' for the rest.\n"
        "A warning says if a host already reaches one of these addresses over a LAN, Docker or\n"
        "a VPN.\n"
        "\n"
        "Hosts keep their links if only the key changes. --new-key changes the key in three\n"
        "steps on all hosts, so that at any moment any two hosts have a key in common. If it is\n"
        "interrupted, or a host fails, run the same command again: it asks the hosts which keys\n"
        "they have, and goes on with the same new key. --without leaves out hosts that are dead.\n"
        "\n"
        "examples:\n"
        "  torusctl init cluster.ini --links --dry-run\n"
        "  torusctl init cluster.ini --links\n"
        "  torusctl init cluster.ini --ssh --new-key --yes\n"
        "  torusctl init cluster.ini --here --host beta --root /mnt/image\n",
    .options = options,
    .arguments_size = sizeof(struct init_options),
    .run = run,
};
