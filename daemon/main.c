#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "daemon/base/log.h"
#include "daemon/node.h"

enum { EXIT_USAGE = 2 };

static const char help[] =
    "torusd: one node of a torus of directly cabled machines\n"
    "\n"
    "usage: torusd [--config FILE] [OPTION ...]\n"
    "\n"
    "Holds one TCP connection per port to its torus neighbours, and forwards the messages of\n"
    "complete exchanges. Runs in the foreground and logs to standard error; SIGTERM or Ctrl-C\n"
    "ends it. Use torusctl to start exchanges.\n"
    "\n"
    "  --config FILE        read settings from an INI file; options override it\n"
    "  --dims RxC           the torus, such as 4x4 or 3x4x5; \"4x8m\": the last dimension does\n"
    "                       not wrap\n"
    "  --rank N             this node's rank, row-major; or\n"
    "  --coordinates X,Y    its coordinates\n"
    "  --port PORT=ADDRESS  once for each port with a link. `+` ports dial, `-` ports listen:\n"
    "                       --port +0=10.0.0.2:7411  the neighbour's address for its port -0\n"
    "                       --port -0=10.0.1.1:7411  this node's own address\n"
    "  --control PATH       control socket (default /run/torusd/control.sock)\n"
    "  --data-root DIR      folder exchanges may read and write below DIR; may be repeated\n"
    "  --state-dir DIR      records that must survive a crash or power failure (default\n"
    "                       /var/lib/torusd); each daemon needs its own, on a disk if the data\n"
    "                       roots are on disks\n"
    "  --link-mbit RATE     nominal link rate, for the lower bound in reports; rates up to\n"
    "                       500 Mbit/s also pace TCP\n"
    "  --daemons-per-processor N\n"
    "                       how many share a processor of this machine, on average (default 1);\n"
    "                       used by auto until torusctl calibrate has been run\n"
    "  --memory SIZE        for blocks in transit, of all exchanges together (default 64MiB)\n"
    "  --congestion NAME    TCP congestion control of the links (default reno; \"\": the "
    "system's)\n"
    "  --log-level LEVEL    error, warning, info (default) or debug\n"
    "  --help, --version\n"
    "\n"
    "The INI file has the same settings: [node] with dims, rank, coordinates, control, data_roots\n"
    "(separated by colons), state_dir, link_mbit, daemons_per_processor, memory, congestion,\n"
    "log_level; [ports] with lines such as \"+0 = 10.0.0.2:7411\".\n"
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

/* 0: go on; otherwise *exit_code is set. */
static int read_options(int argc, char **argv, struct config *config, int *exit_code)
{
    enum { CONFIG = 256, PORT, HELP, VERSION, SETTING };
    static const char *const setting[] = {"dims",
                                          "rank",
                                          "coordinates",
                                          "control",
                                          "state_dir",
                                          "data_roots",
                                          "link_mbit",
                                          "memory",
                                          "congestion",
                                          "log_level",
                                          "daemons_per_processor"};
    static const struct option options[] = {
        {"config", required_argument, NULL, CONFIG},
        {"port", required_argument, NULL, PORT},
        {"help", no_argument, NULL, HELP},
        {"version", no_argument, NULL, VERSION},
        {"dims", required_argument, NULL, SETTING + 0},
        {"rank", required_argument, NULL, SETTING + 1},
        {"coordinates", required_argument, NULL, SETTING + 2},
        {"control", required_argument, NULL, SETTING + 3},
        {"state-dir", required_argument, NULL, SETTING + 4},
        {"data-root", required_argument, NULL, SETTING + 5},
        {"link-mbit", required_argument, NULL, SETTING + 6},
        {"memory", required_argument, NULL, SETTING + 7},
        {"congestion", required_argument, NULL, SETTING + 8},
        {"log-level", required_argument, NULL, SETTING + 9},
        {"daemons-per-processor", required_argument, NULL, SETTING + 10},
        {0},
    };
    struct error e = {0};
    int option, result = 0;

    *exit_code = EXIT_USAGE;
    /* The file first, so that options override it wherever they stand. */
    opterr = 0;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1)
        if (option == CONFIG && config_read(config, optarg, &e) != 0) {
            (void)fprintf(stderr, "torusd: %s\n", e.text);
            return -1;
        }
    opterr = 1;
    optind = 1;
    while (result == 0 && (option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case CONFIG:
            break;
        case PORT:
            result = set_port(config, optarg, &e);
            break;
        case HELP:
            (void)fputs(help, stdout);
            *exit_code = EXIT_SUCCESS;
            return -1;
        case VERSION:
            (void)puts("torusd " TORUSD_VERSION);
            *exit_code = EXIT_SUCCESS;
            return -1;
        case '?':
            (void)fputs("torusd --help lists the options\n", stderr);
            return -1;
        default:
            result = config_set(config, setting[option - SETTING], optarg, &e);
        }
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

struct signals {
    uv_signal_t terminate, interrupt;
    struct node *node;
};

static void on_signal(uv_signal_t *handle, int number)
{
    struct signals *signals = handle->data;

    log_info("%s: ending", number == SIGINT ? "interrupted" : "terminated");
    node_stop(signals->node);
    uv_close((uv_handle_t *)&signals->terminate, NULL);
    uv_close((uv_handle_t *)&signals->interrupt, NULL);
}

static int run(const struct config *config)
{
    uv_loop_t loop;
    struct signals signals;
    struct error e;
    char dims[TORUS_TEXT_SIZE];
    size_t leaked;

    if (uv_loop_init(&loop) != 0)
        return EXIT_FAILURE;
    signals.node = node_start(&loop, config, &e);
    if (signals.node == NULL) {
        log_error("node %u cannot start: %s", config->rank, e.text);
        (void)uv_loop_close(&loop);
        return EXIT_FAILURE;
    }
    (void)uv_signal_init(&loop, &signals.terminate);
    (void)uv_signal_init(&loop, &signals.interrupt);
    signals.terminate.data = signals.interrupt.data = &signals;
    (void)uv_signal_start(&signals.terminate, on_signal, SIGTERM);
    (void)uv_signal_start(&signals.interrupt, on_signal, SIGINT);
    log_info("torusd " TORUSD_VERSION ": node %u of %s, control socket %s", config->rank,
             torus_format(&config->torus, dims), config->control);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    leaked = node_free(signals.node);
    if (leaked > 0)
        log_error("%zu buffers were leaked", leaked);
    if (uv_loop_close(&loop) != 0)
        log_error("some handles were not closed");
    log_info("ended");
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct config config;
    int exit_code;

    config_init(&config);
    if (read_options(argc, argv, &config, &exit_code) == 0) {
        log_set_level((enum log_level)config.log_level);
        (void)signal(SIGPIPE, SIG_IGN);
        raise_file_limit();
        exit_code = run(&config);
    }
    config_free(&config);
    return exit_code;
}
