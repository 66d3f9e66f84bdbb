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
    o.deliver.method = a->ssh ? DELIVER_SSH : a->links ? DELIVER_LINKS : DELIVER_HERE;
    return init_run(cli, &o);
}

const struct command command_init = {
    .name = "init",
    .summary = "Configure all hosts of a cluster from one file",
    .usage = "CLUSTER --links | --ssh | --here [--host NAME] [--key FILE] [--new-key] [--dry-run]\n"
             "           [--yes] [--allow-less-safe] [--no-wait] [--json]",
    .options = options,
    .arguments_size = sizeof(struct init_options),
    .run = run,
};
