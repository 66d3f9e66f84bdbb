#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/service/service.h"
#include "daemon/torusd/from_env.h"
#include "daemon/torusd/launcher.h"
#include "daemon/torusd/node.h"
#include "daemon/torusd/options.h"
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

struct program {
    struct signals signals;
    bool for_job; /* the daemon ends with its parent, which `parent` watches */
    struct parent_watch parent;
    struct node *node;
    struct service service;
    int argc; /* of the command line, which is read again */
    char **argv;
};

static void stop(struct program *p)
{
    signals_close(&p->signals);
    if (p->for_job)
        parent_watch_stop(&p->parent);
    service_stopping(&p->service);
    node_stop(p->node);
}

static void on_signal(void *context, const char *name)
{
    log_info("torusd stops: it received %s", name);
    stop(context);
}

static void on_parent_ended(void *context)
{
    log_info("torusd stops: the process that started it has ended");
    stop(context);
}

static int read_again(void *context, struct config *fresh, struct error *e)
{
    const struct program *p = context;

    return options_read_again(p->argc, p->argv, fresh, e);
}

static void on_reloaded(void *context)
{
    struct program *p = context;

    service_ready(&p->service);
}

static void on_hangup(void *context)
{
    struct program *p = context;

    service_reloading(&p->service);
    node_reload(p->node, &(struct reload_source){read_again, on_reloaded, p});
}

static void on_status(void *context, char out[SERVICE_STATUS_SIZE])
{
    const struct program *p = context;

    node_describe(p->node, out, SERVICE_STATUS_SIZE);
}

static int run(struct config *config, int argc, char **argv)
{
    uv_loop_t loop;
    struct program p = {.argc = argc, .argv = argv, .for_job = config->from_env.on};
    struct error e;
    char dims[TORUS_TEXT_SIZE];
    size_t leaked;
    int result = uv_loop_init(&loop);

    if (result != 0) {
        log_error("node %u cannot start: %s", config->rank, uv_strerror(result));
        return EXIT_FAILURE;
    }
    p.node = node_start(&loop, config, &e);
    if (p.node == NULL) {
        log_error("node %u cannot start: %s", config->rank, e.text);
        (void)uv_loop_close(&loop);
        return EXIT_FAILURE;
    }
    p.signals = (struct signals){.stop = on_signal, .reload = on_hangup, .context = &p};
    signals_open(&p.signals, &loop);
    if (p.for_job)
        parent_watch_start(&p.parent, &loop, config->from_env.parent, on_parent_ended, &p);
    service_open(&p.service, &loop, on_status, &p);
    service_ready(&p.service);
    log_info("torusd " TORUSD_VERSION " (" VERSION_PROTOCOLS_FORMAT
             "): node %u of %s, control socket %s",
             VERSION_PROTOCOLS, config->rank, torus_format(&config->torus, dims), config->control);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    service_close(&p.service);
    leaked = node_free(p.node);
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

    signals_hold_reload();
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
        exit_code = run(&config, argc, argv);
        if (exit_code == EXIT_SUCCESS)
            from_env_remove(&config);
        log_end();
    }
    config_free(&config);
    return exit_code;
}
