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
#include "daemon/lib/discovery/host/interfaces.h"
#include "proto/ini.h"

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

void host_state_look(struct host_state *s)
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
