#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "daemon/base/log.h"
#include "daemon/node.h"
#include "proto/descriptors.h"
#include "proto/text.h"
#include "proto/version.h"

enum { EXIT_USAGE = 2, SETTING_NAME_SIZE = 64 };

static const char help[] =
    "torusd: one node of a torus of directly cabled machines\n"
    "\n"
    "usage: torusd [--config FILE] [OPTION ...]\n"
    "\n"
    "Holds one TCP connection per port to its torus neighbours, and forwards the messages of\n"
    "complete exchanges. Runs in the foreground and logs to standard error; SIGTERM or Ctrl-C\n"
    "ends it; SIGHUP makes it read the cluster keys again. Use torusctl to start exchanges.\n"
    "\n"
    "  --config FILE        read settings from an INI file; options override it\n"
    "  --dims RxC           the torus, such as 4x4 or 3x4x5; \"4x8m\": the last dimension does\n"
    "                       not wrap\n"
    "  --rank N             this node's rank, row-major; or\n"
    "  --coordinates X,Y    its coordinates\n"
    "  --port PORT=ADDRESS  once for each port with a link. `+` ports dial, `-` ports listen:\n"
    "                       --port +0=10.0.0.2:7411  the neighbour's address for its port -0\n"
    "                       --port -0=10.0.1.1:7411  this node's own address\n"
    "                       Also [fd00::1]:7411, [fe80::1%eth0]:7411 and name:7411; \" on eth0\"\n"
    "                       behind it keeps the port to that interface. What does not exist yet\n"
    "                       is waited for\n"
    "  --control PATH       control socket (default /run/torusd/control.sock)\n"
    "  --read-group GROUP   whose members may ask for its state (torusctl status, links),\n"
    "  --exchange-group GROUP\n"
    "                       exchange as well, and open groups of programs,\n"
    "  --admin-group GROUP  or also change what is set (torusctl calibrate). Those not named are\n"
    "                       the group of the daemon; without all three, who may connect to the\n"
    "                       control socket (the daemon's user and group) may do everything\n"
    "  --data-root DIR      folder exchanges may read and write below DIR, one folder whatever "
    "its\n"
    "                       name; may be repeated\n"
    "  --output-mode MODE   permissions of folders that are made for results, such as 0750 "
    "(default\n"
    "                       0700); files in them get the same without execution. A folder that\n"
    "                       exists keeps its own\n"
    "  --state-dir DIR      records that must survive a crash or power failure (default\n"
    "                       /var/lib/torusd); each daemon needs its own, on a disk if the data\n"
    "                       roots are on disks\n"
    "  --key-file FILE      the cluster key (torusctl help key), which every node has and proves "
    "to\n"
    "                       its neighbours; without it, whoever can reach a port can speak to it\n"
    "  --second-key-file FILE\n"
    "                       another key that is accepted while keys are changed, if there is such\n"
    "                       a file\n"
    "  --encrypt yes|no     encrypt all links (default no); every node has to say the same\n"
    "  --link-mbit RATE     nominal link rate, for the lower bound in reports; rates up to\n"
    "                       500 Mbit/s also pace TCP\n"
    "  --link-burst SIZE    what a link passes at once before it limits its rate, as token\n"
    "                       buckets do (default 0: none, as on a cable)\n"
    "  --daemons-per-processor N\n"
    "                       how many share a processor of this machine, on average (default 1);\n"
    "                       used by auto until torusctl calibrate has been run\n"
    "  --memory SIZE        for blocks in transit, of all exchanges together (default 96MiB)\n"
    "  --heartbeat-ms TIME  milliseconds between two heartbeats on each link (default 250)\n"
    "  --silence-ms TIME    milliseconds without anything from a neighbour, and without its\n"
    "                       system's acknowledgements, after which a link is down (default 1000;\n"
    "                       at least 300, and twice the time between heartbeats). A neighbour\n"
    "                       whose system answers while torusd there does not has 5 s, or this "
    "time\n"
    "                       if that is longer\n"
    "  --congestion NAME    TCP congestion control of the links (default reno; \"\": the "
    "system's)\n"
    "  --hop-limit N        how many hosts away a neighbour may be (default 1: at the other end "
    "of\n"
    "                       the cable; a route over a third host does not work). 2 to 255 for\n"
    "                       links that are tunnels or routed on purpose\n"
    "  --log-level LEVEL    error, warning, info (default) or debug\n"
    "  --help, --version\n"
    "\n"
    "The INI file, UTF-8 text of at most 1 MiB, has the same settings: [node] with dims, rank,\n"
    "coordinates, control, data_roots (separated by colons), output_mode, state_dir,\n"
    "key_file, second_key_file, encrypt, read_group, exchange_group, admin_group, link_mbit,\n"
    "link_burst, daemons_per_processor, memory, heartbeat_ms, silence_ms, congestion, hop_limit,\n"
    "log_level; [ports] with lines such as \"+0 = 10.0.0.2:7411\". ';' begins a comment; a\n"
    "value ends with its line.\n"
    "\n"
    "exit status: 0 ended by a signal; 1 could not start; 2 invalid options\n";

static int set_port(struct config *config, char *value, struct error *e)
{
    char *equals = strchr(value, '=');

    if (equals == NULL)
        return error_set(e, ERROR_USAGE, "--port %s: PORT=ADDRESS is needed", value);
    *equals = '\0';
    return config_set(config, value, equals + 1, e);
}

/* An option that is named as its setting is: "--state-dir" sets "state_dir". */
static int set_setting(struct config *config, const char *option, const char *value,
                       struct error *e)
{
    char name[SETTING_NAME_SIZE];

    (void)snprintf(name, sizeof name, "%s", option);
    for (char *c = name; *c != '\0'; c++)
        if (*c == '-')
            *c = '_';
    return config_set(config, name, value, e);
}

enum { CONFIG = 256, PORT, DATA_ROOT, HELP, VERSION, SETTING };

static const struct option options[] = {
    {"config", required_argument, NULL, CONFIG},
    {"port", required_argument, NULL, PORT},
    {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
    {"dims", required_argument, NULL, SETTING},
    {"rank", required_argument, NULL, SETTING},
    {"coordinates", required_argument, NULL, SETTING},
    {"control", required_argument, NULL, SETTING},
    {"state-dir", required_argument, NULL, SETTING},
    {"data-root", required_argument, NULL, DATA_ROOT},
    {"link-mbit", required_argument, NULL, SETTING},
    {"memory", required_argument, NULL, SETTING},
    {"congestion", required_argument, NULL, SETTING},
    {"log-level", required_argument, NULL, SETTING},
    {"daemons-per-processor", required_argument, NULL, SETTING},
    {"link-burst", required_argument, NULL, SETTING},
    {"key-file", required_argument, NULL, SETTING},
    {"second-key-file", required_argument, NULL, SETTING},
    {"encrypt", required_argument, NULL, SETTING},
    {"read-group", required_argument, NULL, SETTING},
    {"exchange-group", required_argument, NULL, SETTING},
    {"admin-group", required_argument, NULL, SETTING},
    {"heartbeat-ms", required_argument, NULL, SETTING},
    {"silence-ms", required_argument, NULL, SETTING},
    {"hop-limit", required_argument, NULL, SETTING},
    {"output-mode", required_argument, NULL, SETTING},
    {0},
};

/* The file comes first, so that options override it wherever they stand. */
static int read_config_file(int argc, char **argv, struct config *config, struct error *e)
{
    int option, result = 0;

    opterr = 0;
    while (result == 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (option == CONFIG)
            result = config_read(config, optarg, e);
    opterr = 1;
    optind = 1;
    return result;
}

/* Options that only print something: 0 if this is none of them, otherwise *exit_code is set. */
static int print_and_end(int option, int *exit_code)
{
    switch (option) {
    case HELP:
        (void)fputs(help, stdout);
        *exit_code = EXIT_SUCCESS;
        return -1;
    case VERSION:
        (void)printf("torusd " TORUSD_VERSION "\n" VERSION_PROTOCOLS_FORMAT "\n",
                     VERSION_PROTOCOLS);
        *exit_code = EXIT_SUCCESS;
        return -1;
    case '?':
        (void)fputs("torusd --help lists the options\n", stderr);
        return -1;
    default:
        return 0;
    }
}

static int set_option(struct config *config, int option, const char *name, struct error *e)
{
    switch (option) {
    case CONFIG:
        return 0;
    case PORT:
        return set_port(config, optarg, e);
    case DATA_ROOT:
        return config_add_root(config, optarg, e);
    default:
        return set_setting(config, name, optarg, e);
    }
}

/* 0: go on; otherwise *exit_code is set. */
static int read_options(int argc, char **argv, struct config *config, int *exit_code)
{
    struct error e = {0};
    int option, index = 0, result;

    *exit_code = EXIT_USAGE;
    result = read_config_file(argc, argv, config, &e);
    while (result == 0 && (option = getopt_long(argc, argv, "", options, &index)) != -1) {
        if (print_and_end(option, exit_code) != 0)
            return -1;
        result = set_option(config, option, options[index].name, &e);
    }
    if (result == 0 && optind < argc)
        result = error_set(&e, ERROR_USAGE, "unexpected argument \"%s\"", argv[optind]);
    if (result == 0)
        result = config_finish(config, &e);
    if (result != 0)
        (void)fprintf(stderr, "torusd: %s\n", e.text);
    return result;
}

/* Folder exchanges keep two files open for each node of the torus. */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Whatever a file's size is limited to (ulimit -f), a write that exceeds it is an error like others. */
static void ignore_signals(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
}

/* While nobody handles it, at the start and at the end, SIGHUP would end the process. Threads that are
 * started meanwhile never get it. */
static void hold_hangup(int how)
{
    sigset_t hangup;

    (void)sigemptyset(&hangup);
    (void)sigaddset(&hangup, SIGHUP);
    (void)pthread_sigmask(how, &hangup, NULL);
}

struct signals {
    uv_signal_t terminate, interrupt, read_keys;
    struct node *node;
};

static void on_signal(uv_signal_t *handle, int number)
{
    struct signals *signals = handle->data;

    log_info("%s: ending", number == SIGINT ? "interrupted" : "terminated");
    hold_hangup(SIG_BLOCK);
    node_stop(signals->node);
    uv_close((uv_handle_t *)&signals->terminate, NULL);
    uv_close((uv_handle_t *)&signals->interrupt, NULL);
    uv_close((uv_handle_t *)&signals->read_keys, NULL);
}

static void on_hangup(uv_signal_t *handle, int number)
{
    struct signals *signals = handle->data;

    (void)number;
    node_read_keys(signals->node);
}

static int run(const struct config *config)
{
    uv_loop_t loop;
    struct signals signals;
    struct error e;
    char dims[TORUS_TEXT_SIZE];
    size_t leaked;
    int result = uv_loop_init(&loop);

    if (result != 0) {
        log_error("node %u cannot start: %s", config->rank, uv_strerror(result));
        return EXIT_FAILURE;
    }
    signals.node = node_start(&loop, config, &e);
    if (signals.node == NULL) {
        log_error("node %u cannot start: %s", config->rank, e.text);
        (void)uv_loop_close(&loop);
        return EXIT_FAILURE;
    }
    (void)uv_signal_init(&loop, &signals.terminate);
    (void)uv_signal_init(&loop, &signals.interrupt);
    (void)uv_signal_init(&loop, &signals.read_keys);
    signals.terminate.data = signals.interrupt.data = signals.read_keys.data = &signals;
    (void)uv_signal_start(&signals.terminate, on_signal, SIGTERM);
    (void)uv_signal_start(&signals.interrupt, on_signal, SIGINT);
    (void)uv_signal_start(&signals.read_keys, on_hangup, SIGHUP);
    hold_hangup(SIG_UNBLOCK);
    log_info("torusd " TORUSD_VERSION " (" VERSION_PROTOCOLS_FORMAT
             "): node %u of %s, control socket %s",
             VERSION_PROTOCOLS, config->rank, torus_format(&config->torus, dims), config->control);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    leaked = node_free(signals.node);
    if (leaked > 0)
        log_error("%zu %s leaked", leaked, text_plural(leaked, "buffer was", "buffers were"));
    if (uv_loop_close(&loop) != 0)
        log_error("some handles were not closed");
    log_info("ended");
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct config config;
    int exit_code;

    hold_hangup(SIG_BLOCK);
    descriptors_fill_standard();
    config_init(&config);
    if (read_options(argc, argv, &config, &exit_code) == 0) {
        log_set_level((enum log_level)config.log_level);
        ignore_signals();
        raise_file_limit();
        log_begin();
        exit_code = run(&config);
        log_end();
    }
    config_free(&config);
    return exit_code;
}
