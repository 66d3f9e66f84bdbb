#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/service/signals.h"
#include "daemon/torusd-setup/keeper.h"
#include "proto/descriptors.h"

struct running {
    struct signals signals;
    struct keeper *keeper;
};

static void on_signal(void *context, const char *name)
{
    struct running *r = context;

    log_info("torusd-setup stops: it received %s", name);
    signals_close(&r->signals);
    keeper_stop(r->keeper);
}

static void on_hangup(void *context)
{
    const struct running *r = context;

    keeper_read_settings(r->keeper);
}

static int fail(const char *what, const char *why)
{
    log_error("%s: %s", what, why);
    return EXIT_FAILURE;
}

static int run(const struct setup_options *o, struct host_state *state)
{
    struct running running = {
        .signals = {.stop = on_signal, .reload = on_hangup, .context = &running}};
    uv_loop_t loop;
    struct error e;
    int result = uv_loop_init(&loop);

    if (result != 0)
        return fail("torusd-setup cannot start", uv_strerror(result));
    running.keeper = keeper_start(&loop, o, state, &e);
    if (running.keeper == NULL) {
        (void)uv_loop_close(&loop);
        return fail("torusd-setup cannot start", e.text);
    }
    signals_open(&running.signals, &loop);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop) != 0)
        log_error("some handles were not closed: this is a bug");
    log_info("ended");
    return EXIT_SUCCESS;
}

/* Makes this host a new one, if nothing else says that it is set up. */
static int open_again(const struct setup_options *o, struct host_state *state)
{
    struct setup_settings settings;
    struct error e;
    int result = EXIT_SUCCESS;

    settings_read(&settings, o, state, false);
    if (settings.why_closed[0] != '\0')
        result = fail("this host stays closed", settings.why_closed);
    else if (host_state_mark(state, false, &e) != 0)
        result = fail("this host stays closed", e.text);
    else
        (void)printf(
            "This host now accepts a first setup from every machine that its cables reach. "
            "A process that runs learns it by SIGHUP (systemctl reload torusd-setup).\n");
    sodium_memzero(&settings, sizeof settings);
    return result;
}

static int prepare_and_run(const struct setup_options *o)
{
    struct host_state state = {0};
    struct error e;
    int result;

    if (sodium_init() < 0)
        return fail("torusd-setup cannot start", "libsodium cannot be used on this system");
    if (host_state_read(&state, o->state, &e) != 0)
        return fail("torusd-setup cannot start", e.text);
    result = o->open ? open_again(o, &state) : run(o, &state);
    host_state_forget(&state);
    return result;
}

int main(int argc, char **argv)
{
    struct setup_options options;
    int exit_code;

    signals_hold();
    descriptors_fill_standard();
    if (setup_options_read(argc, argv, &options, &exit_code) != 0)
        return exit_code;
    (void)signal(SIGPIPE, SIG_IGN);
    log_begin();
    exit_code = prepare_and_run(&options);
    log_end();
    return exit_code;
}
