#include <signal.h>
#include <stdlib.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/service/service.h"
#include "daemon/torus-routed/options.h"
#include "daemon/torus-routed/routed.h"
#include "proto/descriptors.h"

struct program {
    struct signals signals;
    struct routed *routed;
    struct service service;
    int exit_code;
};

static void on_signal(void *context, const char *name)
{
    struct program *p = context;

    log_info("torus-routed stops: it received %s", name);
    signals_close(&p->signals);
    service_stopping(&p->service);
    routed_stop(p->routed);
}

static void on_hangup(void *context)
{
    const struct program *p = context;

    routed_reload(p->routed);
}

static void on_status(void *context, char out[SERVICE_STATUS_SIZE])
{
    const struct program *p = context;

    routed_describe(p->routed, out, SERVICE_STATUS_SIZE);
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
    p.signals = (struct signals){.stop = on_signal, .reload = on_hangup, .context = &p};
    signals_open(&p.signals, &loop);
    service_open(&p.service, &loop, on_status, &p);
    service_ready(&p.service);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    service_close(&p.service);
    if (!routed_stopped_well(p.routed))
        p.exit_code = EXIT_FAILURE;
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

    signals_hold(); /* a process that they end would leave what it was about to take over */
    descriptors_fill_standard();
    if (routed_options_read(argc, argv, &options, &exit_code) != 0)
        return exit_code;
    (void)signal(SIGPIPE, SIG_IGN);
    log_begin();
    exit_code = options.down ? clean_up(&options) : run(&options);
    log_end();
    return exit_code;
}
