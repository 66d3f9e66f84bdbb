#include <signal.h>
#include <stdlib.h>

#include "daemon/base/log.h"
#include "daemon/routed/options.h"
#include "daemon/routed/routed.h"
#include "daemon/service/service.h"
#include "proto/descriptors.h"

struct program {
    uv_signal_t terminate, interrupt, reload;
    struct routed *routed;
    struct service service;
    int exit_code;
};

static void on_signal(uv_signal_t *handle, int number)
{
    struct program *p = handle->data;
    struct error e;

    log_info("torus-routed stops: it received %s", number == SIGINT ? "SIGINT" : "SIGTERM");
    service_stopping(&p->service);
    if (routed_stop(p->routed, &e) != 0) {
        log_error("%s", e.text);
        p->exit_code = EXIT_FAILURE;
    }
    uv_close((uv_handle_t *)&p->terminate, NULL);
    uv_close((uv_handle_t *)&p->interrupt, NULL);
    uv_close((uv_handle_t *)&p->reload, NULL);
}

static void on_hangup(uv_signal_t *handle, int number)
{
    struct program *p = handle->data;

    (void)number;
    routed_reload(p->routed);
}

static void on_status(void *context, char out[SERVICE_STATUS_SIZE])
{
    const struct program *p = context;

    routed_describe(p->routed, out, SERVICE_STATUS_SIZE);
}

static void hear_signals(struct program *p, uv_loop_t *loop)
{
    (void)uv_signal_init(loop, &p->terminate);
    (void)uv_signal_init(loop, &p->interrupt);
    (void)uv_signal_init(loop, &p->reload);
    p->terminate.data = p->interrupt.data = p->reload.data = p;
    (void)uv_signal_start(&p->reload, on_hangup, SIGHUP);
    (void)uv_signal_start(&p->terminate, on_signal, SIGTERM);
    (void)uv_signal_start(&p->interrupt, on_signal, SIGINT);
}

/* Signals that come before they can be heard wait: a process that they end would leave what it was about to take over. */
static void hold_signals(int how)
{
    sigset_t signals;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGHUP);
    (void)sigprocmask(how, &signals, NULL);
}

static int run(const struct routed_options *options)
{
    struct program p = {.exit_code = EXIT_SUCCESS};
    struct error e;
    uv_loop_t loop;

    if (uv_loop_init(&loop) != 0) {
        log_error("torus-routed cannot start: out of descriptors or memory");
        return EXIT_FAILURE;
    }
    p.routed = routed_start(&loop, options, &e);
    if (p.routed == NULL) {
        log_error("torus-routed cannot start: %s", e.text);
        (void)uv_loop_close(&loop);
        return EXIT_FAILURE;
    }
    hear_signals(&p, &loop);
    hold_signals(SIG_UNBLOCK);
    service_open(&p.service, &loop, on_status, &p);
    service_ready(&p.service);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    service_close(&p.service);
    routed_free(p.routed);
    if (uv_loop_close(&loop) != 0)
        log_error("some handles were not closed: this is a bug");
    log_info("ended");
    return p.exit_code;
}

static int clean_up(const struct routed_options *options)
{
    struct error e;

    if (routed_clean_up(options, &e) == 0)
        return EXIT_SUCCESS;
    log_error("torus-routed --down: %s", e.text);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct routed_options options;
    int exit_code;

    hold_signals(SIG_BLOCK);
    descriptors_fill_standard();
    if (routed_options_read(argc, argv, &options, &exit_code) != 0)
        return exit_code;
    (void)signal(SIGPIPE, SIG_IGN);
    log_begin();
    exit_code = options.down ? clean_up(&options) : run(&options);
    log_end();
    return exit_code;
}
