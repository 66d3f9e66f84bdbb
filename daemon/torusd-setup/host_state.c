#include "daemon/torusd-setup/host_state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/discovery/interfaces.h"
#include "proto/ini.h"
#include "proto/number.h"
#include "proto/text.h"

#define MACHINE_ID "/etc/machine-id"
#define MACHINE_SIZE 32u /* bytes of its digest */
#define HEX(size) (2 * (size) + 1)
#define CARDS_SIZE (DISCOVERY_INTERFACES_MOST * (HEX(MAC_SIZE)) + 1)
#define TEXT_SIZE (CARDS_SIZE + 1024)

/* The file. */
struct identity_file {
    char seed[HEX(SEED_SIZE)], machine[HEX(MACHINE_SIZE)];
    char cards[CARDS_SIZE]; /* MAC addresses, separated by blanks */
};

static const struct text_kind kind = {"an identity", 64 * 1024, false};

static int path_of(char path[PATH_MAX], const char *folder, const char *name, struct error *e)
{
    if (snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX)
        return 0;
    return error_set(e, ERROR_USAGE, "the path of the state folder is too long");
}

/* --- the machine --- */

/* Digests the machine-id, which others must not know. */
static void digest_machine(char out[HEX(MACHINE_SIZE)])
{
    static const uint8_t label[] = "torusd discovery machine";
    uint8_t digest[MACHINE_SIZE];
    char machine[64] = "";
    FILE *file = fopen(MACHINE_ID, "re");

    if (file != NULL) {
        if (fgets(machine, sizeof machine, file) == NULL)
            machine[0] = '\0';
        (void)fclose(file);
    }
    machine[strcspn(machine, "\n")] = '\0';
    (void)crypto_generichash(digest, sizeof digest, (const uint8_t *)machine, strlen(machine),
                             label, sizeof label - 1);
    (void)sodium_bin2hex(out, HEX(MACHINE_SIZE), digest, sizeof digest);
}

/* Lists the addresses of all network cards. */
static void list_cards(char out[CARDS_SIZE])
{
    struct interface_state list[DISCOVERY_INTERFACES_MOST];
    unsigned count = interfaces_read("all", list);

    out[0] = '\0';
    for (unsigned i = 0; i < count; i++) {
        char mac[HEX(MAC_SIZE)];
        (void)sodium_bin2hex(mac, sizeof mac, list[i].mac, MAC_SIZE);
        (void)snprintf(out + strlen(out), CARDS_SIZE - strlen(out), "%s%s", i > 0 ? " " : "", mac);
    }
}

/* Whether the lists have a card in common, or one is empty: drivers may not be loaded yet. */
static bool share_a_card(const char *former, const char *now)
{
    char list[CARDS_SIZE], *saved;

    if (former[0] == '\0' || now[0] == '\0')
        return true;
    (void)strcpy(list, former);
    for (char *mac = strtok_r(list, " ", &saved); mac != NULL; mac = strtok_r(NULL, " ", &saved))
        if (strstr(now, mac) != NULL)
            return true;
    return false;
}

/* --- the file --- */

static int take_line(void *context, const struct ini_line *line, struct error *e)
{
    struct identity_file *f = context;
    char *to = NULL;
    size_t size = 0;

    if (line->name == NULL)
        return 0;
    if (strcmp(line->name, "secret") == 0)
        to = f->seed, size = sizeof f->seed;
    else if (strcmp(line->name, "machine") == 0)
        to = f->machine, size = sizeof f->machine;
    else if (strcmp(line->name, "cards") == 0)
        to = f->cards, size = sizeof f->cards;
    if (to == NULL || strlen(line->value) >= size)
        return error_set(e, ERROR_REFUSED, "this is not the file that torusd-setup has written");
    (void)strcpy(to, line->value);
    return 0;
}

/* Reads the file. Returns 1 on success, 0 if the file does not exist, or -1 with *e. */
static int read_file(const char *path, struct identity_file *f, uint8_t seed[SEED_SIZE],
                     struct error *e)
{
    size_t size;

    if (access(path, F_OK) != 0 && errno == ENOENT)
        return 0;
    if (ini_read(path, &kind, take_line, f, e) != 0)
        return -1;
    if (sodium_hex2bin(seed, SEED_SIZE, f->seed, strlen(f->seed), NULL, &size, NULL) == 0 &&
        size == SEED_SIZE)
        return 1;
    return error_set(e, ERROR_REFUSED,
                     "%s is damaged: if it is removed, this host makes new keys, and has "
                     "another id",
                     path);
}

static int write_text(int fd, const char *text)
{
    size_t length = strlen(text);
    int rc = write(fd, text, length) == (ssize_t)length && fsync(fd) == 0 ? 0 : -1;

    return close(fd) == 0 ? rc : -1;
}

static int write_file(const char *path, const struct identity_file *f, struct error *e)
{
    char text[TEXT_SIZE], fresh[PATH_MAX + 8];
    int fd, rc = -1;

    (void)snprintf(text, sizeof text,
                   "; The identity of this machine, written by torusd-setup: whoever has the "
                   "secret is this host.\n"
                   "secret = %s\nmachine = %s\ncards = %s\n",
                   f->seed, f->machine, f->cards);
    (void)snprintf(fresh, sizeof fresh, "%s.new", path);
    fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && fchmod(fd, 0600) == 0)
        rc = write_text(fd, text);
    else if (fd >= 0)
        (void)close(fd);
    sodium_memzero(text, sizeof text);
    if (rc == 0)
        rc = rename(fresh, path);
    return rc == 0 ? 0 : error_set(e, ERROR_IO, "cannot write %s: %s", path, strerror(errno));
}

/* --- both --- */

/* Looks again whether the host was set up: another process may have forgotten it. */
static void host_state_look(struct host_state *s)
{
    char path[PATH_MAX];
    struct error e;

    if (path_of(path, s->folder, "set-up", &e) == 0)
        s->was_set_up = access(path, F_OK) == 0 || errno != ENOENT;
}

int host_state_mark(struct host_state *s, bool set_up, struct error *e)
{
    char path[PATH_MAX];
    int fd;

    if (path_of(path, s->folder, "set-up", e) != 0)
        return -1;
    if (!set_up) {
        if (unlink(path) != 0 && errno != ENOENT)
            return error_set(e, ERROR_IO, "cannot remove %s: %s", path, strerror(errno));
        s->was_set_up = false;
        return 0;
    }
    s->was_set_up = true;
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return fd >= 0 && write_text(fd, "") == 0
               ? 0
               : error_set(e, ERROR_IO, "cannot create %s: %s", path, strerror(errno));
}

/* Makes a seed, which no setup has reached. */
static int make(struct host_state *s, struct identity_file *f, const char *path, struct error *e)
{
    randombytes_buf(s->seed, sizeof s->seed);
    (void)sodium_bin2hex(f->seed, sizeof f->seed, s->seed, SEED_SIZE);
    return host_state_mark(s, false, e) == 0 && write_file(path, f, e) == 0 ? 0 : -1;
}

int host_state_read(struct host_state *s, const char *folder, struct error *e)
{
    struct identity_file former = {0}, now = {0};
    char path[PATH_MAX];
    int found, rc = 0;

    *s = (struct host_state){.folder = folder};
    if (path_of(path, folder, "identity", e) != 0)
        return -1;
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return error_set(e, ERROR_IO, "cannot create %s: %s", folder, strerror(errno));
    digest_machine(now.machine);
    list_cards(now.cards);
    found = read_file(path, &former, s->seed, e);
    if (found < 0)
        return -1;
    const bool belongs =
        strcmp(former.machine, now.machine) == 0 && share_a_card(former.cards, now.cards);
    if (found == 0 || !belongs) {
        if (found > 0)
            log_warning("%s belongs to another machine: it names another machine-id, or other "
                        "network cards. This host gets a new id",
                        path);
        rc = make(s, &now, path, e);
    } else {
        (void)strcpy(now.seed, former.seed);
        host_state_look(s);
        if (now.cards[0] != '\0' && strcmp(former.cards, now.cards) != 0)
            rc = write_file(path, &now, e);
    }
    sodium_memzero(&former, sizeof former);
    sodium_memzero(&now, sizeof now);
    return rc;
}

void host_state_forget(struct host_state *s)
{
    sodium_memzero(s->seed, sizeof s->seed);
}

/* Settings of torusd.ini. */
struct configuration {
    struct setup_settings *settings;
    char key[PATH_MAX], second_key[PATH_MAX];
};

static const struct text_kind settings_kind = {"a configuration", 1024 * 1024, false};

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

static int take_setting(void *context, const struct ini_line *line, struct error *e)
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
    if (ini_read(path, &settings_kind, take_setting, c, &e) != 0)
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
        log_error("%s: this host would accept a setup from everybody if it started without its "
                  "configuration",
                  e.text);
    s->open = s->why_closed[0] == '\0' && !state->was_set_up;
    if (log)
        log_result(s);
}
