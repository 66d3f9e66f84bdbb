#include "daemon/discover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/discovery/process/process.h"
#include "daemon/service/signals.h"

struct running {
    struct signals signals;
    struct discovery_process *process;
};

/* Reads one key. A file that does not exist yet is no error: a setup may bring it. */
static int read_key(const char *path, struct secrets *secrets, struct error *e)
{
    if (path[0] == '\0')
        return 0;
    if (key_read_as_root(path, &secrets->key[secrets->count], e) == 0)
        secrets->count++;
    else if (errno != ENOENT)
        return -1;
    return 0;
}

static int read_keys(const struct config *config, const struct config *file,
                     struct secrets *secrets, struct error *e)
{
    const struct config *from = config->key_file[0] != '\0' ? config : file;

    if (read_key(from->key_file, secrets, e) != 0 ||
        (secrets->count > 0 && read_key(from->second_key_file, secrets, e) != 0))
        return -1;
    return 0;
}

static void log_keys(const struct config *config, const struct secrets *secrets)
{
    char id[KEY_ID_TEXT_SIZE];

    if (secrets->count > 0)
        log_info("cluster key %s: discovery shows which hosts have proved it",
                 key_id_text(secrets->key[0].id, id));
    else if (config->discover.command[0] != '\0')
        log_warning("no cluster key: this host accepts setups from any host that its cables "
                    "reach, until a setup has brought a key");
    else
        log_info("no cluster key: discovery believes every host that its cables reach");
}

/* Reads the file of --config, which may be missing, into *file. */
static int read_file(const struct config *config, struct config *file, struct error *e)
{
    const char *path = config->discover.config;

    return path[0] == '\0' || access(path, F_OK) != 0 ? 0 : config_read(file, path, e);
}

static int read_settings(void *context, struct process_settings *settings, struct error *e)
{
    const struct config *config = context;
    struct config *file = malloc(sizeof *file);
    int result;

    if (file == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the settings");
    config_init(file);
    result = read_file(config, file, e);
    if (result == 0)
        result = read_keys(config, file, &settings->secrets, e);
    if (result == 0) {
        const struct config *node = config->have_dims ? config : file;
        if (node->have_dims)
            (void)torus_format(&node->torus, settings->dims);
        settings->have_rank = node->have_rank;
        settings->rank = node->rank;
        log_keys(config, &settings->secrets);
    }
    config_free(file);
    free(file);
    return result;
}

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

int discover_run(const struct config *config)
{
    const struct discover_config *d = &config->discover;
    const struct process_setup setup = {
        .interfaces = d->interfaces,
        .socket = d->socket,
        .name = d->name,
        .command = d->command,
        .set_up_links = d->set_up_links || d->command[0] != '\0',
        .read_settings = read_settings,
        .context = (void *)(uintptr_t)config,
    };
    struct running running = {
        .signals = {.stop = on_signal, .reload = on_hangup, .context = &running}};
    uv_loop_t loop;
    struct error e;
    int result = uv_loop_init(&loop);

    if (result != 0) {
        log_error("discovery cannot start: %s", uv_strerror(result));
        return EXIT_FAILURE;
    }
    running.process = discovery_process_start(&loop, &setup, &e);
    if (running.process == NULL) {
        log_error("discovery cannot start: %s", e.text);
        (void)uv_loop_close(&loop);
        return EXIT_FAILURE;
    }
    signals_open(&running.signals, &loop);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop) != 0)
        log_error("some handles were not closed: this is a bug");
    log_info("ended");
    return EXIT_SUCCESS;
}
