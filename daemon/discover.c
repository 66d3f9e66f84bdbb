#include "daemon/discover.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/discovery/process/process.h"

struct running {
    uv_signal_t terminate, interrupt, hangup;
    struct discovery_process *process;
};

/* Reads a key. Root reads it as the user that owns it, such as torusd, because key_read() trusts only the own
 * user's files and those of root. */
static int read_as_owner(const char *path, struct key *key, struct error *e)
{
    const uid_t before = geteuid();
    struct stat st;
    int result, error;

    if (before == 0 && stat(path, &st) == 0 && st.st_uid != 0 && seteuid(st.st_uid) != 0)
        log_debug("cannot read %s as its owner: %s", path, strerror(errno));
    result = key_read(path, key, e);
    error = errno;
    if (geteuid() != before && seteuid(before) != 0)
        abort(); /* a process without its rights cannot go on */
    errno = error;
    return result;
}

/* Reads one key. A file that does not exist yet is no error: a setup may bring it. */
static int read_key(const char *path, struct secrets *secrets, struct error *e)
{
    if (path[0] == '\0')
        return 0;
    if (read_as_owner(path, &secrets->key[secrets->count], e) == 0)
        secrets->count++;
    else if (errno != ENOENT)
        return -1;
    return 0;
}

static int read_keys(void *context, struct secrets *secrets, struct error *e)
{
    const struct config *config = context;
    char id[KEY_ID_TEXT_SIZE];

    *secrets = (struct secrets){0};
    if (read_key(config->key_file, secrets, e) != 0 ||
        (secrets->count > 0 && read_key(config->second_key_file, secrets, e) != 0))
        return -1;
    if (secrets->count > 0)
        log_info("cluster key %s: discovery shows which hosts have proved it",
                 key_id_text(secrets->key[0].id, id));
    else if (config->discover.command[0] != '\0')
        log_warning("no cluster key: this host accepts setups from any host that its cables "
                    "reach, until a setup has brought a key");
    else
        log_info("no cluster key: discovery believes every host that its cables reach");
    return 0;
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct running *r = handle->data;

    if (number == SIGHUP) {
        discovery_process_read_keys(r->process);
        return;
    }
    log_info("discovery stops: it received %s", number == SIGINT ? "SIGINT" : "SIGTERM");
    discovery_process_stop(r->process);
    uv_close((uv_handle_t *)&r->terminate, NULL);
    uv_close((uv_handle_t *)&r->interrupt, NULL);
    uv_close((uv_handle_t *)&r->hangup, NULL);
}

static void watch(uv_loop_t *loop, struct running *r, uv_signal_t *handle, int number)
{
    (void)uv_signal_init(loop, handle);
    handle->data = r;
    (void)uv_signal_start(handle, on_signal, number);
}

static void watch_signals(uv_loop_t *loop, struct running *r)
{
    sigset_t hangup;

    watch(loop, r, &r->terminate, SIGTERM);
    watch(loop, r, &r->interrupt, SIGINT);
    watch(loop, r, &r->hangup, SIGHUP);
    (void)sigemptyset(&hangup);
    (void)sigaddset(&hangup, SIGHUP);
    (void)pthread_sigmask(SIG_UNBLOCK, &hangup, NULL);
}

int discover_run(const struct config *config)
{
    const struct discover_config *d = &config->discover;
    char dims[TORUS_TEXT_SIZE] = "";
    const struct process_setup setup = {
        .interfaces = d->interfaces,
        .socket = d->socket,
        .name = d->name,
        .command = d->command,
        .set_up_links = d->set_up_links || d->command[0] != '\0',
        .dims = config->have_dims ? torus_format(&config->torus, dims) : dims,
        .have_rank = config->have_rank,
        .rank = config->rank,
        .read_keys = read_keys,
        .context = (void *)(uintptr_t)config,
    };
    struct running running;
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
    watch_signals(&loop, &running);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop) != 0)
        log_error("some handles were not closed: this is a bug");
    log_info("ended");
    return EXIT_SUCCESS;
}
