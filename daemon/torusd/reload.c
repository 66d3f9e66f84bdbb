#include "daemon/torusd/reload.h"

#include "daemon/lib/base/log.h"

/* Reads everything that may fail before anything is changed. */
static int read_all(struct reload *r, struct error *e)
{
    if (r->source.read(r->source.context, &r->fresh, e) != 0 ||
        folders_check_roots(r->folders, &r->fresh.roots, e) != 0 ||
        config_read_groups(&r->fresh, &r->access, e) != 0 ||
        config_read_keys(&r->fresh, &r->secrets, e) != 0)
        return -1;
    r->secrets.encrypt = r->config->encrypt; /* a change needs a restart */
    if (r->secrets.encrypt && r->secrets.count == 0)
        return error_set(e, ERROR_USAGE,
                         "this daemon encrypts its links, which needs a key: set key_file, or "
                         "restart the daemon");
    return 0;
}

static void on_run(struct work *work)
{
    struct reload *r = (struct reload *)work;

    r->result = read_all(r, &r->error);
}

static void begin_work(struct reload *r);

static void on_done(struct work *work)
{
    struct reload *r = (struct reload *)work;

    r->running = false;
    if (r->result != 0 && !r->stopped)
        log_error("the settings were not read again, and stay as they are: %s", r->error.text);
    else if (!r->stopped)
        r->apply(r->context, r);
    config_free(&r->fresh);
    config_forget_keys(&r->secrets);
    if (r->stopped)
        return;
    if (r->again)
        begin_work(r);
    else
        r->source.done(r->source.context);
}

static void begin_work(struct reload *r)
{
    config_init(&r->fresh);
    r->secrets = (struct secrets){0};
    r->error = (struct error){0};
    r->again = false;
    r->work.run = on_run;
    r->work.done = on_done;
    r->running = workers_submit(r->workers, &r->work) == 0;
    if (!r->running) {
        log_error("the settings were not read again, and stay as they are: out of memory");
        config_free(&r->fresh);
        r->source.done(r->source.context);
    }
}

void reload_begin(struct reload *r, const struct reload_source *source)
{
    if (r->running) {
        r->again = true;
        return;
    }
    r->source = *source;
    begin_work(r);
}

void reload_stop(struct reload *r)
{
    r->stopped = true;
}

void reload_log_changes(const struct reload *r, const struct roots *roots)
{
    char changed[CONFIG_CHANGES_SIZE], others[CONFIG_CHANGES_SIZE];

    config_changes(r->config, roots, &r->fresh, changed, others);
    log_info("the settings have been read again; changed: %s",
             changed[0] != '\0' ? changed : "nothing");
    if (others[0] != '\0')
        log_warning("these settings differ from those that the daemon has started with, and need a "
                    "restart: %s",
                    others);
}
