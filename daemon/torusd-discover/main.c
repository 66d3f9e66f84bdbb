#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/service/signals.h"
#include "daemon/torusd-discover/process.h"
#include "daemon/torusd-discover/setup_link.h"
#include "proto/descriptors.h"

#define ID_MS 3000 /* how long --id waits for torusd-setup */

static int fail(const char *what, const char *why)
{
    log_error("%s: %s", what, why);
    return EXIT_FAILURE;
}

/* --- discovery --- */

struct running {
    struct signals signals;
    struct discovery_process *process;
    bool failed;
};

static void on_signal(void *context, const char *name)
{
    struct running *r = context;

    log_info("discovery stops: it received %s", name);
    signals_close(&r->signals);
    discovery_process_stop(r->process);
}

static void on_hangup(void *context)
{
    (void)context; /* torusd-setup tells what has changed */
}

static void on_failed(void *context)
{
    struct running *r = context;

    r->failed = true;
    signals_close(&r->signals);
    discovery_process_stop(r->process);
}

static int run(const struct discover_options *o)
{
    struct running running = {
        .signals = {.stop = on_signal, .reload = on_hangup, .context = &running}};
    uv_loop_t loop;
    struct error e;
    int result = uv_loop_init(&loop);

    if (result != 0)
        return fail("discovery cannot start", uv_strerror(result));
    running.process = discovery_process_start(&loop, o, on_failed, &running, &e);
    if (running.process == NULL) {
        (void)uv_loop_close(&loop);
        return fail("discovery cannot start", e.text);
    }
    signals_open(&running.signals, &loop);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop) != 0)
        log_error("some handles were not closed: this is a bug");
    log_info("ended");
    return running.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* --- the id --- */

struct asking {
    uv_loop_t loop;
    char id[HOST_ID_TEXT_SIZE]; /* "": not told */
};

static void on_told(void *context, const struct host_facts *facts)
{
    struct asking *a = context;

    (void)host_id_text(&facts->identity.id, a->id);
    uv_stop(&a->loop);
}

static void on_late(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static void on_closed(void *context)
{
    (void)context;
}

static int show_id(const struct discover_options *o)
{
    struct asking a = {.id = ""};
    const struct setup_link_user user = {.told = on_told, .closed = on_closed, .context = &a};
    struct setup_link *link;
    uv_timer_t deadline;

    if (uv_loop_init(&a.loop) != 0)
        return fail("no id", "out of memory");
    link = setup_link_open(&a.loop, o->setups, &user);
    if (link != NULL) {
        (void)uv_timer_init(&a.loop, &deadline);
        (void)uv_timer_start(&deadline, on_late, ID_MS, 0);
        (void)uv_run(&a.loop, UV_RUN_DEFAULT);
        uv_close((uv_handle_t *)&deadline, NULL);
        setup_link_close(link);
        (void)uv_run(&a.loop, UV_RUN_DEFAULT);
    }
    (void)uv_loop_close(&a.loop);
    if (a.id[0] == '\0')
        return fail("no id", "torusd-setup does not answer: run this as root, after systemctl "
                             "start torusd-setup");
    (void)printf("%s\n", a.id);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct discover_options options;
    int exit_code;

    signals_hold();
    descriptors_fill_standard();
    if (discover_options_read(argc, argv, &options, &exit_code) != 0)
        return exit_code;
    (void)signal(SIGPIPE, SIG_IGN);
    log_begin();
    if (sodium_init() < 0)
        exit_code = fail("discovery cannot start", "libsodium cannot be used on this system");
    else
        exit_code = options.show_id ? show_id(&options) : run(&options);
    log_end();
    return exit_code;
}
