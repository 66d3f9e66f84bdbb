#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/discovery/process/options.h"
#include "daemon/discovery/process/process.h"
#include "daemon/service/signals.h"
#include "proto/descriptors.h"

struct running {
    struct signals signals;
    struct discovery_process *process;
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
    const struct running *r = context;

    discovery_process_read_settings(r->process);
}

static int fail(const char *what, const char *why)
{
    log_error("%s: %s", what, why);
    return EXIT_FAILURE;
}

static int run(const struct discover_options *o, struct host_state *state)
{
    struct running running = {
        .signals = {.stop = on_signal, .reload = on_hangup, .context = &running}};
    uv_loop_t loop;
    struct error e;
    int result = uv_loop_init(&loop);

    if (result != 0)
        return fail("discovery cannot start", uv_strerror(result));
    running.process = discovery_process_start(&loop, o, state, &e);
    if (running.process == NULL) {
        (void)uv_loop_close(&loop);
        return fail("discovery cannot start", e.text);
    }
    signals_open(&running.signals, &loop);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop) != 0)
        log_error("some handles were not closed: this is a bug");
    log_info("ended");
    return EXIT_SUCCESS;
}

static int show_id(const struct host_state *state)
{
    struct identity identity;
    char id[HOST_ID_TEXT_SIZE];

    identity_make(&identity, state->seed);
    (void)printf("%s\n", host_id_text(&identity.id, id));
    sodium_memzero(&identity, sizeof identity);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Makes this host a new one, if nothing else says that it is set up. */
static int open_again(const struct discover_options *o, struct host_state *state)
{
    struct process_settings settings;
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
            "A process that runs learns it by SIGHUP (systemctl reload torusd-discover).\n");
    sodium_memzero(&settings, sizeof settings);
    return result;
}

static int prepare_and_run(const struct discover_options *o)
{
    struct host_state state = {0};
    struct error e;
    int result;

    if (sodium_init() < 0)
        return fail("discovery cannot start", "libsodium cannot be used on this system");
    if (o->state == NULL)
        randombytes_buf(state.seed, sizeof state.seed);
    else if (host_state_read(&state, o->state, &e) != 0)
        return fail("discovery cannot start", e.text);
    result = o->show_id ? show_id(&state) : o->open ? open_again(o, &state) : run(o, &state);
    host_state_forget(&state);
    return result;
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
    exit_code = prepare_and_run(&options);
    log_end();
    return exit_code;
}
