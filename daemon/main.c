#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/discover.h"
#include "daemon/from_env.h"
#include "daemon/launcher/parent_watch.h"
#include "daemon/node.h"
#include "daemon/options.h"
#include "daemon/service/service.h"
#include "proto/descriptors.h"
#include "proto/text.h"
#include "proto/version.h"

/* Folder exchanges keep two files open for each node of the torus. */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* A write beyond a limit on the size of files (ulimit -f) must fail with an error, and not end the
 * process. */
static void ignore_signals(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
}

/* Blocks or unblocks SIGHUP. While it has no handler, at the start and at the end, it would end the process.
 * Threads that are started while it is blocked never get it. */
static void hold_hangup(int how)
{
    sigset_t hangup;

    (void)sigemptyset(&hangup);
    (void)sigaddset(&hangup, SIGHUP);
    (void)pthread_sigmask(how, &hangup, NULL);
}

struct signals {
    uv_signal_t terminate, interrupt, read_keys;
    bool for_job; /* the daemon ends with its parent, which `parent` watches */
    struct parent_watch parent;
    struct node *node;
    struct service service;
    int argc; /* of the command line, which is read again */
    char **argv;
};

static void stop(struct signals *signals)
{
    hold_hangup(SIG_BLOCK);
    if (signals->for_job)
        parent_watch_stop(&signals->parent);
    service_stopping(&signals->service);
    node_stop(signals->node);
    uv_close((uv_handle_t *)&signals->terminate, NULL);
    uv_close((uv_handle_t *)&signals->interrupt, NULL);
    uv_close((uv_handle_t *)&signals->read_keys, NULL);
}

static void on_signal(uv_signal_t *handle, int number)
{
    log_info("torusd stops: it received %s", number == SIGINT ? "SIGINT" : "SIGTERM");
    stop(handle->data);
}

static void on_parent_ended(void *context)
{
    log_info("torusd stops: the process that started it has ended");
    stop(context);
}

static int read_again(void *context, struct config *fresh, struct error *e)
{
    const struct signals *signals = context;

    return options_read_again(signals->argc, signals->argv, fresh, e);
}

static void on_reloaded(void *context)
{
    struct signals *signals = context;

    service_ready(&signals->service);
}

static void on_hangup(uv_signal_t *handle, int number)
{
    struct signals *signals = handle->data;

    (void)number;
    service_reloading(&signals->service);
    node_reload(signals->node, &(struct reload_source){read_again, on_reloaded, signals});
}

static void on_status(void *context, char out[SERVICE_STATUS_SIZE])
{
    const struct signals *signals = context;

    node_describe(signals->node, out, SERVICE_STATUS_SIZE);
}

static int run(struct config *config, int argc, char **argv)
{
    uv_loop_t loop;
    struct signals signals = {.argc = argc, .argv = argv, .for_job = config->from_env.on};
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
    if (signals.for_job)
        parent_watch_start(&signals.parent, &loop, config->from_env.parent, on_parent_ended,
                           &signals);
    hold_hangup(SIG_UNBLOCK);
    service_open(&signals.service, &loop, on_status, &signals);
    service_ready(&signals.service);
    log_info("torusd " TORUSD_VERSION " (" VERSION_PROTOCOLS_FORMAT
             "): node %u of %s, control socket %s",
             VERSION_PROTOCOLS, config->rank, torus_format(&config->torus, dims), config->control);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    service_close(&signals.service);
    leaked = node_free(signals.node);
    if (leaked > 0)
        log_error("%zu %s leaked: this is a bug", leaked,
                  text_plural(leaked, "buffer was", "buffers were"));
    if (uv_loop_close(&loop) != 0)
        log_error("some handles were not closed: this is a bug");
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
    config.from_env.parent = getppid();
    if (options_read(argc, argv, &config, &exit_code) == 0) {
        log_set_level((enum log_level)config.log_level);
        ignore_signals();
        raise_file_limit();
        log_begin();
        if (config.from_env.on)
            from_env_log(&config);
        exit_code = config.discover.on ? discover_run(&config) : run(&config, argc, argv);
        if (exit_code == EXIT_SUCCESS)
            from_env_remove(&config);
        log_end();
    }
    config_free(&config);
    return exit_code;
}
