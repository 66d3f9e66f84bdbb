#include "client/cli/cluster/less_safe.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/ini.h"
#include "proto/text.h"

#define VALUE_SIZE 1024u
#define DAEMON_GROUP "torusd"

/* The settings of a torusd.ini that count here. */
struct settings {
    bool encrypt;
    char data_roots[VALUE_SIZE], exchange_group[VALUE_SIZE], admin_group[VALUE_SIZE],
        key_file[VALUE_SIZE];
};

static const struct text_kind kind = {.name = "a configuration", .most = CLUSTER_FILE_MOST};

static int on_line(void *context, const struct ini_line *line, struct error *e)
{
    struct settings *s = context;
    const struct {
        const char *name;
        char *value;
    } texts[] = {{"data_roots", s->data_roots},
                 {"exchange_group", s->exchange_group},
                 {"admin_group", s->admin_group},
                 {"key_file", s->key_file}};

    if (line->name == NULL)
        return 0;
    if (strcmp(line->name, "encrypt") == 0)
        s->encrypt = strcmp(line->value, "yes") == 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strcmp(line->name, texts[i].name) != 0)
            continue;
        if (strlen(line->value) >= VALUE_SIZE)
            return error_set(e, ERROR_REFUSED, "%s is too long", line->name);
        (void)strcpy(texts[i].value, line->value);
    }
    return 0;
}

static int read_settings(struct settings *s, const char *path, const char *text, struct error *e)
{
    char *copy = strdup(text);
    int rc;

    *s = (struct settings){0};
    if (copy == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for %.200s", path);
    rc = ini_read_text(path, &kind, copy, strlen(copy), on_line, s, e);
    free(copy);
    return rc;
}

/* --- data roots --- */

/* Whether a path is this folder, or in it. */
static bool is_in(const char *path, size_t length, const char *folder)
{
    const size_t size = strlen(folder);

    return length >= size && memcmp(path, folder, size) == 0 &&
           (length == size || path[size] == '/' || size == 1);
}

/* Returns the folder of the system that contains the data root, or that the data root contains; NULL if there is no
 * such folder. Folders in somebody's home are not folders of the system. */
static const char *system_folder(const char *root, size_t length)
{
    static const struct {
        const char *path;
        bool inside; /* folders in it count, too */
    } folders[] = {{"/etc", true},   {"/boot", true}, {"/dev", true}, {"/proc", true},
                   {"/sys", true},   {"/run", true},  {"/usr", true}, {"/var/lib", false},
                   {"/home", false}, {"/root", false}};
    char path[VALUE_SIZE];

    (void)snprintf(path, sizeof path, "%.*s", (int)length, root);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (is_in(folders[i].path, strlen(folders[i].path), path) ||
            (folders[i].inside && is_in(path, length, folders[i].path)))
            return folders[i].path;
    return NULL;
}

static bool has_root(const char *list, const char *root, size_t length)
{
    for (size_t size; *list != '\0'; list += size + (list[size] == ':')) {
        size = strcspn(list, ":");
        if (size == length && memcmp(list, root, size) == 0)
            return true;
    }
    return false;
}

static void check_roots(const struct settings *before, const struct settings *after, json_t *list)
{
    size_t length, used;

    for (const char *root = after->data_roots; *root != '\0';
         root += length + (root[length] == ':')) {
        length = strcspn(root, ":");
        used = length;
        while (used > 1 && root[used - 1] == '/')
            used--;
        const char *folder = used > 0 ? system_folder(root, used) : NULL;
        if (folder == NULL || has_root(before->data_roots, root, length))
            continue;
        (void)json_array_append_new(
            list, json_sprintf("all who may exchange get access to %s, by the data root %.*s",
                               folder, (int)length, root));
    }
}

bool less_safe_had_root(const struct setup_plan *p, const char *root)
{
    const struct setup_change *c = &p->change[HOST_FILE_CONFIG];
    struct settings before;
    struct error e;

    return c->before != NULL && read_settings(&before, c->path, c->before, &e) == 0 &&
           has_root(before.data_roots, root, strlen(root));
}

/* --- groups --- */

/* A setting that is left out stands for the group of the daemon. */
static const char *group_of(const char *setting)
{
    return setting[0] != '\0' ? setting : DAEMON_GROUP;
}

static void check_groups(const struct settings *before, const struct settings *after, json_t *list)
{
    const char *was[] = {group_of(before->exchange_group), group_of(before->admin_group),
                         DAEMON_GROUP};
    const char *is[] = {group_of(after->exchange_group), group_of(after->admin_group)};

    for (size_t i = 0; i < sizeof is / sizeof is[0]; i++) {
        bool known = i == 1 && strcmp(is[1], is[0]) == 0; /* is named already */
        for (size_t k = 0; k < sizeof was / sizeof was[0]; k++)
            known |= strcmp(is[i], was[k]) == 0;
        if (!known)
            (void)json_array_append_new(
                list, json_sprintf("members of the group %s may exchange, which reads and writes "
                                   "below the data roots",
                                   is[i]));
    }
}

/* --- the key --- */

/* The keys in the files of init are compared by those who asked, as all hosts have them. */
static void check_key_file(const struct setup_plan *p, const struct setup *s,
                           const struct settings *before, json_t *list)
{
    char path[2 * VALUE_SIZE], id[KEY_ID_TEXT_SIZE];
    struct key key = {0};
    struct error e;

    if (before->key_file[0] == '\0' ||
        strcmp(before->key_file, host_file_kinds[HOST_FILE_KEY].path) == 0)
        return;
    (void)snprintf(path, sizeof path, "%s%s", p->root, before->key_file);
    if (key_read_as_root(path, &key, &e) != 0)
        (void)json_array_append_new(list, json_sprintf("its key file %s, which cannot be read now, "
                                                       "is not used any more",
                                                       before->key_file));
    else if (memcmp(key.id, s->key.id, KEY_ID_SIZE) != 0)
        (void)json_array_append_new(list,
                                    json_sprintf("its key in %s, with the id %s, is not used any "
                                                 "more",
                                                 before->key_file, key_id_text(key.id, id)));
    key_forget(&key);
}

json_t *less_safe(const struct setup_plan *p, const struct setup *s)
{
    const struct setup_change *c = &p->change[HOST_FILE_CONFIG];
    struct settings before, after;
    struct error e;
    json_t *list = json_array();

    if (c->before == NULL || c->after == NULL)
        return list;
    if (read_settings(&before, c->path, c->before, &e) != 0 ||
        read_settings(&after, c->path, c->after, &e) != 0) {
        text_clean(e.text);
        (void)json_array_append_new(list,
                                    json_sprintf("whether it was safer is not known: %s", e.text));
        return list;
    }
    if (before.encrypt && !after.encrypt)
        (void)json_array_append_new(list, json_string("its links are not encrypted any more"));
    check_groups(&before, &after, list);
    check_roots(&before, &after, list);
    check_key_file(p, s, &before, list);
    return list;
}
