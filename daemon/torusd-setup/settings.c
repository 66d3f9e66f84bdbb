#include "daemon/torusd-setup/settings.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "proto/ini.h"
#include "proto/number.h"
#include "proto/text.h"

/* Settings of torusd.ini. */
struct configuration {
    struct setup_settings *settings;
    char key[PATH_MAX], second_key[PATH_MAX];
};

static const struct text_kind kind = {"a configuration", 1024 * 1024, false};

/* A file is there: the host is not new. */
static void close_host(struct setup_settings *s, const char *path)
{
    char text[400];

    if (s->why_closed[0] == '\0')
        (void)snprintf(s->why_closed, sizeof s->why_closed,
                       "%s exists: if nobody needs it, remove it",
                       text_printable(text, sizeof text, path));
}

/* Something is there, and cannot be read. */
static void fail(struct setup_settings *s, const struct error *e)
{
    if (!s->failed)
        (void)text_printable(s->why_closed, sizeof s->why_closed, e->text);
    s->failed = true;
}

/* --- torusd.ini --- */

static int take_line(void *context, const struct ini_line *line, struct error *e)
{
    struct configuration *c = context;
    char *path = NULL;
    struct torus torus;

    if (line->name == NULL)
        return 0;
    if (strcmp(line->name, "dims") == 0) {
        if (torus_parse(&torus, line->value, e) != 0)
            return -1;
        (void)torus_format(&torus, c->settings->dims);
    } else if (strcmp(line->name, "rank") == 0) {
        c->settings->have_rank =
            number_parse(line->value, UINT32_MAX - 1, &c->settings->rank, e) == 0;
        return c->settings->have_rank ? 0 : -1;
    } else if (strcmp(line->name, "key_file") == 0) {
        path = c->key;
    } else if (strcmp(line->name, "second_key_file") == 0) {
        path = c->second_key;
    }
    if (path == NULL)
        return 0;
    if (strlen(line->value) >= PATH_MAX)
        return error_set(e, ERROR_USAGE, "the path is too long");
    (void)strcpy(path, line->value);
    return 0;
}

static void read_configuration(struct configuration *c, const char *path)
{
    struct error e;

    if (path == NULL || (access(path, F_OK) != 0 && errno == ENOENT))
        return;
    close_host(c->settings, path);
    if (ini_read(path, &kind, take_line, c, &e) != 0)
        fail(c->settings, &e);
}

/* --- keys --- */

/* `needed`: it is an error if there is no such file. */
static void read_key(struct setup_settings *s, const char *path, bool needed)
{
    struct key key;
    struct error e;

    if (path == NULL || path[0] == '\0')
        return;
    if (key_read_as_root(path, &key, &e) != 0) {
        if (errno != ENOENT || needed)
            fail(s, &e);
        return;
    }
    close_host(s, path);
    secrets_add(&s->secrets, &key);
    key_forget(&key);
}

/* --- both --- */

static void log_result(const struct setup_settings *s)
{
    char id[KEY_ID_TEXT_SIZE];

    if (s->failed)
        log_error("%s; it is read again every few seconds", s->why_closed);
    if (s->secrets.count > 0)
        log_info("cluster key %s: setups need it", key_id_text(s->secrets.key[0].id, id));
    else if (s->open)
        log_warning("this host is new: it accepts setups from every machine that its cables reach, "
                    "until one has brought a cluster key");
    else
        log_warning("this host was set up before, and has no cluster key that it can read: it "
                    "accepts no setups");
}

void settings_read(struct setup_settings *s, const struct setup_options *o,
                   struct host_state *state, bool log)
{
    struct configuration *c = calloc(1, sizeof *c);
    struct error e;

    *s = (struct setup_settings){0};
    host_state_look(state);
    if (c == NULL) {
        (void)error_set(&e, ERROR_MEMORY, "out of memory for the settings");
        fail(s, &e);
        return;
    }
    c->settings = s;
    read_configuration(c, o->config);
    read_key(s, c->key, true);
    read_key(s, c->second_key, false);
    read_key(s, o->key, false);
    read_key(s, o->second_key, false);
    free(c);
    if (s->why_closed[0] != '\0' && !state->was_set_up && host_state_mark(state, true, &e) != 0)
        log_error("%s: this host is open when it starts without its configuration", e.text);
    s->open = s->why_closed[0] == '\0' && !state->was_set_up;
    if (log)
        log_result(s);
}
