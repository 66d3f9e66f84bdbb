#include "client/cli/cluster/init_run.h"

#include <errno.h>
#include <limits.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <torus/status.h>
#include <unistd.h>

#include "client/cli/cluster/deliver.h"
#include "client/cli/cluster/host_files.h"
#include "client/cli/cluster/identify.h"
#include "client/cli/terminal/cli.h"
#include "client/cli/terminal/clock.h"
#include "client/cli/terminal/progress.h"
#include "daemon/lib/base/secrets.h"
#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

/* --- the keys --- */

struct init_keys {
    char path[PATH_MAX];      /* the file of the current key */
    char next_path[PATH_MAX]; /* that of the next one, while keys are changed */
    struct key key;
    struct key next; /* if `changing` */
    bool changing;
    bool swapped;   /* `key` is the next one already, and the previous one is gone */
    bool made;      /* the current key was made just now, and has no file yet */
    bool made_next; /* the same for the next one */
};

#define NEXT ".next"

static int choose_path(struct init_keys *k, const char *path, const char *cluster_file,
                       struct error *e)
{
    const char *slash = strrchr(cluster_file, '/');
    int folder = slash != NULL ? (int)(slash + 1 - cluster_file) : 0, length;
    const char *standard = host_file_kinds[HOST_FILE_KEY].path;

    if (path != NULL)
        length = snprintf(k->path, sizeof k->path, "%s", path);
    else if (access(standard, R_OK) == 0)
        length = snprintf(k->path, sizeof k->path, "%s", standard);
    else
        length = snprintf(k->path, sizeof k->path, "%.*scluster.key", folder, cluster_file);
    if (length >= (int)(sizeof k->path - sizeof NEXT))
        return error_set(e, ERROR_USAGE, "the path of the key file is too long: %.80s...", k->path);
    (void)snprintf(k->next_path, sizeof k->next_path, "%.*s" NEXT, length, k->path);
    return 0;
}

/* Reads a key from a file. Without the file, makes a key and sets *made. */
static int read_or_make(const char *path, struct key *key, bool *made, struct error *e)
{
    *made = false;
    if (key_read_as_root(path, key, e) == 0)
        return 0;
    if (errno != ENOENT)
        return -1;
    *made = true;
    return key_make(key, e);
}

/* Writes the keys that were made to their files. Called before the first host gets a key, so that an interrupted setup
 * or change goes on with the same keys. Returns 0, or -1 with *e. */
static int init_keys_store(struct init_keys *k, struct error *e)
{
    if (k->made && key_write(k->path, &k->key, e) != 0)
        return -1;
    k->made = false;
    if (k->made_next && key_write(k->next_path, &k->next, e) != 0)
        return -1;
    k->made_next = false;
    return 0;
}

/* Reads the second key of the host whose key file the key is read from, perhaps by a link. Returns 1, 0 if there is none,
 * or -1 with *e. */
static int read_second(const struct init_keys *k, struct key *second, struct error *e)
{
    const char *name = strrchr(host_file_kinds[HOST_FILE_SECOND_KEY].path, '/');
    char *real = realpath(k->path, NULL), *path = NULL;
    const int folder = real != NULL ? (int)(strrchr(real, '/') - real) : 0;
    int rc;

    if (real == NULL || asprintf(&path, "%.*s%s", folder, real, name) < 0) {
        free(real);
        return error_set(e, ERROR_IO, "cannot find the folder of %.200s: %s", k->path,
                         strerror(errno));
    }
    rc = key_read_as_root(path, second, e) == 0 ? 1 : errno == ENOENT ? 0 : -1;
    free(path);
    free(real);
    return rc;
}

/* If an earlier change was interrupted, this host may already have the next key in its key file. */
static int find_former(struct init_keys *k, struct error *e)
{
    struct key former;
    int found;

    if (memcmp(k->key.id, k->next.id, KEY_ID_SIZE) != 0)
        return 0;
    k->swapped = true;
    found = read_second(k, &former, e);
    if (found <= 0)
        return found;
    k->swapped = memcmp(former.id, k->next.id, KEY_ID_SIZE) == 0;
    k->key = former;
    key_forget(&former);
    return 0;
}

/* Reads the cluster key from the file `path`, or makes one if the file does not exist. NULL stands for
 * /etc/torusd/cluster.key if this user can read it, otherwise for cluster.key beside the cluster file. With `change`,
 * also reads or makes the next key, in the file whose name has ".next" at its end. Keys that are made here are not
 * written yet. If `path` is the key file of this host, and an interrupted change has put the next key there, the former
 * key is read from the file of the host's second key. Returns 0, or -1 with *e; the caller calls init_keys_forget() in
 * both cases. */
static int init_keys_read(struct init_keys *k, const char *path, const char *cluster_file,
                          bool change, struct error *e)
{
    *k = (struct init_keys){.changing = change};
    if (choose_path(k, path, cluster_file, e) != 0)
        return -1;
    if (change && access(k->path, F_OK) != 0 && errno == ENOENT)
        return error_set(e, ERROR_USAGE,
                         "there is no key to change: %.200s does not exist; name the file of the "
                         "present key with --key FILE",
                         k->path);
    if (read_or_make(k->path, &k->key, &k->made, e) != 0)
        return -1;
    if (!change)
        return 0;
    if (read_or_make(k->next_path, &k->next, &k->made_next, e) != 0)
        return -1;
    return find_former(k, e);
}

/* Lists the keys that hosts may have at this moment: those in *k, and the key of this host. */
static void init_keys_list(const struct init_keys *k, struct secrets *list)
{
    struct key own;
    struct error e;

    *list = (struct secrets){0};
    secrets_add(list, &k->key);
    if (k->changing)
        secrets_add(list, &k->next);
    if (key_read_as_root(host_file_kinds[HOST_FILE_KEY].path, &own, &e) == 0)
        secrets_add(list, &own);
    key_forget(&own);
}

/* Renames the file of the next key to that of the previous key, after all hosts have changed. Returns 0, or -1 with
 * *e. */
static int init_keys_finish(struct init_keys *k, struct error *e)
{
    struct stat before;
    int owned = k->changing ? stat(k->path, &before) : -1;

    if (!k->changing)
        return 0;
    /* The file may be that of this host, which belongs to the user of torusd. */
    if ((owned != 0 || geteuid() != 0 || chown(k->next_path, before.st_uid, before.st_gid) == 0) &&
        rename(k->next_path, k->path) == 0)
        return 0;
    return error_set(e, ERROR_IO,
                     "all hosts have the new key, but %.200s cannot be renamed to %.200s: %s",
                     k->next_path, k->path, strerror(errno));
}

static void init_keys_forget(struct init_keys *k)
{
    key_forget(&k->key);
    key_forget(&k->next);
}

/* --- what is shown --- */

static const struct section sections[] = {
    RECORD(NULL, FIELD("applied"), FIELD("torus")),
    TABLE("hosts", FIELD("host"), FIELD("result"), FIELD("files")),
};

/* Prints a text that came from another host, without control characters except newlines. */
static void print_clean(const char *text)
{
    for (; *text != '\0'; text++)
        (void)putchar((unsigned char)*text < ' ' && *text != '\n' && *text != '\t' ? '?' : *text);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static void print_sentences(const char *kind, const json_t *list)
{
    const json_t *text;
    size_t i;

    json_array_foreach(list, i, text)
    {
        (void)printf("  %s: ", kind);
        print_clean(json_string_value(text) != NULL ? json_string_value(text) : "");
        (void)fputs("\n", stdout);
    }
}

static void print_host(const struct delivery *d)
{
    const json_t *changes = json_object_get(d->reply, "changes"), *change;
    size_t i;

    if (json_array_size(changes) == 0 &&
        json_array_size(json_object_get(d->reply, "warnings")) == 0)
        return;
    (void)printf("%s:\n", d->host->name);
    print_sentences("warning", json_object_get(d->reply, "warnings"));
    print_sentences("less safe", json_object_get(d->reply, "less_safe"));
    json_array_foreach(changes, i, change)
    {
        const char *diff = text_of(change, "diff");
        (void)fputs("  ", stdout);
        print_clean(text_of(change, "action"));
        (void)fputs(" ", stdout);
        print_clean(text_of(change, "file"));
        (void)fputs(strchr(diff, '\n') != NULL ? "\n" : diff[0] != '\0' ? ": " : "", stdout);
        print_clean(diff);
        (void)fputs(strchr(diff, '\n') != NULL ? "" : "\n", stdout);
    }
    (void)fputs("\n", stdout);
}

/* Prints the changes of each host as text: its files, with their differences, and warnings. */
static void init_report_changes(const struct delivery *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i].reply != NULL)
            print_host(&list[i]);
}

/* Returns how many hosts have changes. */
static uint32_t init_report_changing(const struct delivery *list, uint32_t count)
{
    uint32_t changing = 0;

    for (uint32_t i = 0; i < count; i++)
        changing += json_array_size(json_object_get(list[i].reply, "changes")) > 0;
    return changing;
}

static json_t *host_row(const struct delivery *d, bool applied)
{
    static const char *const copied[] = {"changes", "warnings", "less_safe"};
    const json_t *changes = json_object_get(d->reply, "changes");
    size_t files = json_array_size(changes);
    json_t *row = json_pack("{s:s, s:I}", "host", d->host->name, "files", (json_int_t)files);
    const char *result = files == 0 ? "up to date" : applied ? "changed" : "would change";

    (void)json_object_set_new(row, "result", json_string(d->reply != NULL ? result : "failed"));
    if (d->reply == NULL)
        (void)json_object_set_new(row, "error", json_string(d->error.text));
    for (size_t i = 0; d->reply != NULL && i < sizeof copied / sizeof copied[0]; i++)
        (void)json_object_set(row, copied[i], json_object_get(d->reply, copied[i]));
    (void)json_object_set_new(row, "failed", json_boolean(d->reply == NULL));
    return row;
}

/* Prints the result: a row for each host. `applied`: the setups were applied. `whole`: what is known about the torus
 * now ("" if nothing). Returns EXIT_DONE, or EXIT_FAILED if a host failed. */
static int init_report_result(const struct cli *cli, const struct delivery *list, uint32_t count,
                              bool applied, const char *whole)
{
    json_t *hosts = json_array(), *value;
    uint32_t failed = 0;
    int code;

    for (uint32_t i = 0; i < count; i++) {
        failed += list[i].reply == NULL;
        (void)json_array_append_new(hosts, host_row(&list[i], applied));
    }
    value = json_pack("{s:b, s:o}", "applied", applied, "hosts", hosts);
    if (whole[0] != '\0')
        (void)json_object_set_new(value, "torus", json_string(whole));
    code = cli_print(cli, value, VIEW(sections));
    if (failed == 0 || code != EXIT_DONE)
        return code;
    for (uint32_t i = 0; i < count; i++)
        if (list[i].reply == NULL)
            (void)fprintf(stderr, "torusctl: %s\n", list[i].error.text);
    return EXIT_FAILED;
}

#define WHOLE_SECONDS 60 /* how long the torus may take to become whole */
#define WHOLE_SIZE 128
#define ASK_AGAIN_MS 200

struct run {
    struct cli *cli;
    const struct init_options *options;
    struct cluster cluster;
    struct init_keys keys;
    struct secrets secrets; /* that the hosts may have */
    struct delivery *list;
    uint32_t count;
};

/* --- the hosts --- */

/* Finds the only host that is set up. Returns its index, -1 for all hosts, or -2 with *e. */
static int64_t only_host(const struct run *r, struct error *e)
{
    const char *name = r->options->host;
    struct utsname here;
    int64_t index;

    if (name == NULL && r->options->deliver.method != DELIVER_HERE)
        return -1;
    if (name == NULL && uname(&here) == 0)
        name = here.nodename;
    index = name != NULL ? cluster_find(&r->cluster, name) : -1;
    if (index >= 0)
        return index;
    (void)error_set(e, ERROR_USAGE, "%.200s has no host \"%.80s\"%s", r->options->file,
                    name != NULL ? name : "",
                    r->options->host == NULL ? ": name this machine with --host NAME" : "");
    return -2;
}

/* Marks the hosts that --without names. */
static int mark_left_out(const struct run *r, bool *left_out, struct error *e)
{
    const char *without = r->options->without != NULL ? r->options->without : "";
    char list[1024], *saved;

    if (strlen(without) >= sizeof list)
        return error_set(e, ERROR_USAGE, "--without: the list is too long");
    (void)strcpy(list, without);
    for (char *name = strtok_r(list, ",", &saved); name != NULL;
         name = strtok_r(NULL, ",", &saved)) {
        const int64_t rank = cluster_find(&r->cluster, name);
        if (rank < 0)
            return error_set(e, ERROR_USAGE, "--without: %.200s has no host \"%.80s\"",
                             r->options->file, name);
        left_out[rank] = true;
    }
    return 0;
}

static int choose_hosts(struct run *r, struct error *e)
{
    const int64_t only = only_host(r, e);
    bool *left_out;
    int rc;

    if (only < -1)
        return -1;
    r->list = calloc(r->cluster.count, sizeof *r->list);
    left_out = calloc(r->cluster.count, sizeof *left_out);
    rc = r->list != NULL && left_out != NULL
             ? mark_left_out(r, left_out, e)
             : error_set(e, ERROR_MEMORY, "out of memory for the hosts");
    for (uint32_t i = 0; rc == 0 && i < r->cluster.count; i++)
        if (only >= 0 ? i == (uint32_t)only : !left_out[i])
            r->list[r->count++].host = &r->cluster.hosts[i];
    free(left_out);
    if (rc == 0 && r->count == 0)
        rc = error_set(e, ERROR_USAGE, "--without leaves no host");
    return rc;
}

/* Writes the setups of all hosts with these keys; `second` may be NULL. */
static int write_setups(struct run *r, const struct key *key, const struct key *second,
                        struct error *e)
{
    for (uint32_t i = 0; i < r->count; i++) {
        struct delivery *d = &r->list[i];
        uint32_t rank = (uint32_t)(d->host - r->cluster.hosts);
        free(d->setup);
        d->setup = setup_write(&r->cluster, rank, key, second, &d->length);
        if (d->setup == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory for the setups");
        if (d->length > SETUP_MOST)
            return error_set(e, ERROR_USAGE, "the cluster file is too large");
    }
    return 0;
}

/* --- the torus --- */

enum answer { NO_DAEMON, NOT_WHOLE, WHOLE };

static enum answer ask(const struct cli *cli)
{
    struct torus_client *client;
    struct torus_status *status;
    struct torus_error e;
    enum answer answer = NO_DAEMON;

    client = torus_client_open(cli->socket, &e);
    if (client == NULL)
        return NO_DAEMON;
    if (torus_client_status(client, &status, &e) == 0) {
        answer = status->whole ? WHOLE : NOT_WHOLE;
        torus_status_free(status);
    }
    torus_client_close(client);
    return answer;
}

/* Asks the daemon of this machine until it says that the torus is whole, for at most WHOLE_SECONDS. Writes the result:
 * "whole", that it is not, or "" if this machine has no daemon. */
static void wait_until_whole(const struct cli *cli, char result[WHOLE_SIZE])
{
    const struct timespec pause = {.tv_nsec = ASK_AGAIN_MS * 1000000L};
    int64_t end = clock_ms() + 1000 * (int64_t)WHOLE_SECONDS;
    enum answer answer;

    result[0] = '\0';
    long_work_begin("waiting until the torus is whole");
    while ((answer = ask(cli)) == NOT_WHOLE && clock_ms() < end) {
        watch_tell(-1);
        (void)nanosleep(&pause, NULL);
    }
    long_work_end();
    if (answer == WHOLE)
        (void)snprintf(result, WHOLE_SIZE, "whole");
    else if (answer == NOT_WHOLE)
        (void)snprintf(result, WHOLE_SIZE,
                       "not whole after %u s: 'torusctl status' lists the faults", WHOLE_SECONDS);
}

/* --- the flow --- */

/* Asks whether the changes are to be made. */
static bool user_agrees(const struct run *r, uint32_t changing)
{
    char answer[16] = "";

    if (r->options->yes)
        return true;
    if (!isatty(STDIN_FILENO) || r->cli->json)
        return false;
    (void)fflush(stdout);
    (void)fprintf(stderr, "Make these changes on %u %s? [y/N] ", changing,
                  text_plural(changing, "host", "hosts"));
    return fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

/* Lets all hosts apply setups with these keys. Returns the number of hosts that failed. */
static uint32_t apply(struct run *r, const struct key *key, const struct key *second)
{
    struct error e;

    if (write_setups(r, key, second, &e) != 0) {
        cli_warn(e.text);
        return r->count;
    }
    return deliver(r->list, r->count, true, &r->options->deliver, &r->secrets);
}

/* --- which keys the hosts have, as they say --- */

static bool holds(const struct delivery *d, const struct key *key)
{
    char id[KEY_ID_TEXT_SIZE];
    const json_t *value;
    size_t i;

    (void)key_id_text(key->id, id);
    json_array_foreach(json_object_get(d->reply, "keys"), i, value)
    {
        if (json_is_string(value) && strcmp(json_string_value(value), id) == 0)
            return true;
    }
    return false;
}

static bool all_hold(const struct run *r, const struct key *key)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (!holds(&r->list[i], key))
            return false;
    return true;
}

/* Checks that no host loses its last key in common with the others. */
static int check_keys(const struct run *r, struct error *e)
{
    const struct init_keys *k = &r->keys;

    for (uint32_t i = 0; i < r->count; i++) {
        const struct delivery *d = &r->list[i];
        const size_t count = json_array_size(json_object_get(d->reply, "keys"));
        if (!k->changing && count > 1)
            return error_set(e, ERROR_REFUSED,
                             "a change of the cluster key has not ended on %.80s: run this command "
                             "with --new-key where it was begun",
                             d->host->name);
        if (k->changing && !holds(d, &k->next) && !holds(d, &k->key))
            return error_set(
                e, ERROR_REFUSED,
                "%.80s has neither the present nor the next cluster key: another change "
                "may be under way there, or it must be set up first; or leave it out "
                "with --without %.80s",
                d->host->name, d->host->name);
    }
    if (k->changing && k->swapped && !all_hold(r, &k->next))
        return error_set(e, ERROR_REFUSED,
                         "this host has only the next key, and some hosts do not have it: run this "
                         "command where the change was begun");
    return 0;
}

/* --- what becomes less safe --- */

static json_t *sentence_of_key(const struct run *r, const struct delivery *d, bool any_holds)
{
    const char *held = json_string_value(json_array_get(json_object_get(d->reply, "keys"), 0));
    const struct init_keys *k = &r->keys;
    char id[KEY_ID_TEXT_SIZE];

    if (k->changing || held == NULL || holds(d, &k->key))
        return NULL;
    if (k->made)
        return json_sprintf(
            "it has the cluster key with the id %.16s, and %.200s is missing: a new "
            "key would take its place",
            held, k->path);
    if (any_holds || r->options->host != NULL)
        return NULL; /* it gets the key that the others have, or was named */
    return json_sprintf("it has the cluster key with the id %.16s, and %.200s has another one (id "
                        "%s), which none of these hosts has",
                        held, k->path, key_id_text(k->key.id, id));
}

/* Completes what the hosts have said about becoming less safe: no host knows which keys the others have. */
static void judge_safety(struct run *r)
{
    bool any_holds = false;

    for (uint32_t i = 0; i < r->count; i++)
        any_holds |= holds(&r->list[i], &r->keys.key);
    for (uint32_t i = 0; i < r->count; i++) {
        struct delivery *d = &r->list[i];
        json_t *list = json_object_get(d->reply, "less_safe"), *of_key;
        if (!json_is_array(list)) {
            (void)json_object_set_new(d->reply, "less_safe", json_array());
            list = json_object_get(d->reply, "less_safe");
            (void)json_array_append_new(list, json_string("its release does not say whether it "
                                                          "would be: install the same one"));
        }
        of_key = sentence_of_key(r, d, any_holds);
        if (of_key != NULL)
            (void)json_array_append_new(list, of_key);
    }
}

static bool is_less_safe(const struct delivery *d)
{
    return json_array_size(json_object_get(d->reply, "less_safe")) > 0;
}

/* Prints all hosts that would become less safe, unless the user has allowed that. Returns whether there are any. */
static bool refuses_less_safe(const struct run *r)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < r->count; i++)
        count += is_less_safe(&r->list[i]);
    if (count == 0 || r->options->allow_less_safe)
        return false;
    (void)fflush(stdout);
    (void)fprintf(stderr, "torusctl: %u %s would become less safe:", count,
                  text_plural(count, "host", "hosts"));
    for (uint32_t i = 0, named = 0; i < r->count; i++)
        if (is_less_safe(&r->list[i]))
            (void)fprintf(stderr, "%s %s", named++ > 0 ? "," : "", r->list[i].host->name);
    (void)fputs("\n", stderr);
    cli_warn("nothing was changed; --allow-less-safe makes these changes");
    return true;
}

/* Changes the key in three steps, each on all hosts before the next begins: at any moment, any two hosts have a key in
 * common. Steps that an interrupted change has completed are not made again, because a host may have dropped the former
 * key. Returns the number of hosts that failed; then the next step has not begun. */
static uint32_t change_key(struct run *r)
{
    const struct key *now = &r->keys.key, *next = &r->keys.next;
    uint32_t failed = 0;

    if (!r->keys.swapped) {
        if (!all_hold(r, next))
            failed = apply(r, now, next);
        if (failed == 0)
            failed = apply(r, next, now);
    }
    return failed == 0 ? apply(r, next, NULL) : failed;
}

static int report(const struct run *r, bool applied, const char *whole)
{
    return init_report_result(r->cli, r->list, r->count, applied, whole);
}

static int carry_out(struct run *r)
{
    char whole[WHOLE_SIZE] = "";
    struct error e;
    uint32_t failed;

    if (init_keys_store(&r->keys, &e) != 0)
        return cli_fail(r->cli, &e);
    failed = r->keys.changing ? change_key(r) : apply(r, &r->keys.key, NULL);
    if (failed == 0 && init_keys_finish(&r->keys, &e) != 0)
        return cli_fail(r->cli, &e);
    if (failed > 0 && r->keys.changing)
        cli_warn(
            "the change of the key is not complete: run the same command again; until then both "
            "keys are valid");
    if (failed == 0 && r->options->without != NULL)
        cli_warn(r->keys.changing
                     ? "the hosts of --without do not have the new key: they have to be "
                       "set up again, by --ssh or --here"
                     : "the hosts of --without were left as they are");
    if (failed == 0 && !r->options->no_wait && r->options->deliver.root == NULL)
        wait_until_whole(r->cli, whole);
    return report(r, true, whole);
}

static int show_and_carry_out(struct run *r)
{
    uint32_t failed = deliver(r->list, r->count, false, &r->options->deliver, &r->secrets);
    uint32_t changing;
    struct error e;

    changing = init_report_changing(r->list, r->count);
    if (failed > 0) {
        (void)report(r, false, "");
        cli_warn("nothing was changed");
        return EXIT_FAILED;
    }
    if (check_keys(r, &e) != 0)
        return cli_fail(r->cli, &e);
    judge_safety(r);
    if (changing == 0 && !r->keys.changing)
        return r->options->dry_run || r->options->deliver.root != NULL ? report(r, false, "")
                                                                       : carry_out(r);
    if (!r->cli->json)
        init_report_changes(r->list, r->count);
    if (refuses_less_safe(r)) {
        (void)report(r, false, "");
        return EXIT_FAILED;
    }
    if (r->options->dry_run)
        return report(r, false, "");
    if (!user_agrees(r, changing)) {
        (void)report(r, false, "");
        cli_warn("nothing was changed; --yes makes the changes");
        return EXIT_FAILED;
    }
    return carry_out(r);
}

static int prepare(struct run *r, struct error *e)
{
    const struct init_options *o = r->options;

    if (!r->cluster.has_ports)
        return error_set(e, ERROR_USAGE,
                         "%.200s does not say which interface each port has: 'torusctl discover "
                         "--output %.200s' finds out, and writes it",
                         o->file, o->file);
    const struct identify_options identify = {o->file,         o->host, o->deliver.socket,
                                              o->trust_cables, o->yes,  o->dry_run};
    if (o->deliver.method == DELIVER_LINKS &&
        identify_hosts(&r->cluster, &identify, r->cli, e) != 0)
        return -1;
    if (choose_hosts(r, e) != 0 || init_keys_read(&r->keys, o->key, o->file, o->new_key, e) != 0)
        return -1;
    init_keys_list(&r->keys, &r->secrets);
    return write_setups(r, &r->keys.key, o->new_key ? &r->keys.next : NULL, e);
}

int init_run(struct cli *cli, const struct init_options *o)
{
    struct run r = {.cli = cli, .options = o};
    struct error e;
    int code;

    if (cluster_read(&r.cluster, o->file, &e) != 0)
        return cli_fail(cli, &e);
    code = prepare(&r, &e) == 0 ? show_and_carry_out(&r) : cli_fail(cli, &e);
    init_keys_forget(&r.keys);
    sodium_memzero(&r.secrets, sizeof r.secrets);
    deliver_free(r.list, r.count);
    free(r.list);
    cluster_free(&r.cluster);
    return code;
}
