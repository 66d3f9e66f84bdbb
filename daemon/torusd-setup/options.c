#include "daemon/torusd-setup/options.h"

#include <pwd.h>
#include <stddef.h>
#include <unistd.h>

#include "daemon/lib/discovery/discovery.h"
#include "daemon/torusd-setup/command.h"

const struct option setup_option_table[] = {
    {"--socket", "PATH", offsetof(struct setup_options, socket),
     "socket for torusd-discover, and for setups of this host itself\n"
     "(default: " SETUP_SOCKET ")"},
    {"--state", "DIR", offsetof(struct setup_options, state),
     "folder that keeps the keys of this host, from which its id follows, and whether\n"
     "the host was set up before (default: /var/lib/torusd-setup)"},
    {"--config", "FILE", offsetof(struct setup_options, config),
     "torusd.ini of this host, which may be missing: it names the cluster keys, and\n"
     "dims and rank are shown to others (default: /etc/torusd/torusd.ini)"},
    {"--key-file", "FILE", offsetof(struct setup_options, key),
     "a cluster key, beside that of --config; it may be missing\n"
     "(default: /etc/torusd/cluster.key)"},
    {"--second-key-file", "FILE", offsetof(struct setup_options, second_key),
     "another cluster key that is accepted, while keys are changed\n"
     "(default: /etc/torusd/second.key)"},
    {"--command", "COMMAND", offsetof(struct setup_options, command),
     "run COMMAND with the further word show or apply, and the setup at its standard\n"
     "input, without a shell"},
    {"--reader", "USER", offsetof(struct setup_options, reader_name),
     "user of torusd-discover, who may hand over sealed setups, and gets what it\n"
     "signs with; root may do that, too"},
    {"--open", NULL, offsetof(struct setup_options, open),
     "forget that this host was set up, so that it accepts a first setup again from\n"
     "everybody whom its cables reach, and end. Refused while the host is configured\n"
     "or has a cluster key"},
    {0},
};

static int find_user(const char *name, uint32_t *id, struct error *e)
{
    const struct passwd *user = getpwnam(name);

    if (user == NULL)
        return error_set(e, ERROR_USAGE, "there is no user \"%.60s\"", name);
    *id = (uint32_t)user->pw_uid;
    return 0;
}

static const struct program_options options = {
    .program = "torusd-setup",
    .head =
        "torusd-setup: applies setups that reach this host over its cables\n"
        "\n"
        "usage: torusd-setup --command COMMAND [OPTION ...]\n"
        "       torusd-setup --open [--state DIR]\n"
        "\n"
        "Opens setups of 'torusctl init --links', which torusd-discover receives without being\n"
        "able to read them, and runs a command for each that the cluster key authenticates. A\n"
        "host that is new, without a key, accepts a first setup from everybody whom its cables\n"
        "reach; a host that was set up before, and cannot read its key, accepts none. While\n"
        "the host is new, it also sets interfaces up, once, that are down when they appear\n"
        "(needs CAP_NET_ADMIN). SIGTERM or Ctrl-C ends it; at SIGHUP it reads settings and\n"
        "keys again.\n"
        "\n",
    .tail = "\nexit status: 0 ended by a signal; 1 an error; 2 invalid options\n",
    .option = setup_option_table,
};

int setup_options_read(int argc, char **argv, struct setup_options *o, int *exit_code)
{
    struct command command = {0};
    struct error e;

    *o = (struct setup_options){
        .socket = SETUP_SOCKET,
        .state = "/var/lib/torusd-setup",
        .config = "/etc/torusd/torusd.ini",
        .key = "/etc/torusd/cluster.key",
        .second_key = "/etc/torusd/second.key",
        .reader = (uint32_t)geteuid(),
    };
    if (program_options_read(&options, argc, argv, o, exit_code) != 0)
        return -1;
    if (o->command != NULL && command_parse(&command, o->command, &e) != 0)
        return program_options_refuse(&options, "--command", o->command, &e, exit_code);
    if (o->reader_name != NULL && find_user(o->reader_name, &o->reader, &e) != 0)
        return program_options_refuse(&options, "--reader", o->reader_name, &e, exit_code);
    if (o->open || o->command != NULL)
        return 0;
    (void)error_set(&e, ERROR_USAGE,
                    "--command is missing: name what applies setups, such as "
                    "--command \"/usr/bin/torusctl --json init --receive\"");
    return program_options_fail(&options, &e, exit_code);
}
