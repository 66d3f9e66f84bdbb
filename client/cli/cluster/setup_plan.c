#include "client/cli/cluster/setup_plan.h"

#include <errno.h>
#include <net/if.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/cli/cluster/child.h"
#include "client/cli/cluster/less_safe.h"
#include "client/cli/cluster/overlap.h"

#define DIFF_MS 10000
#define DIFF_LINES 40 /* shown of a file */

/* --- the files as they are --- */

/* Reads a file into *text; NULL if there is none. */
static int read_file(const char *path, char **text, struct error *e)
{
    FILE *in = fopen(path, "re");
    size_t room = 0;
    ssize_t length;
    int rc = 0;

    *text = NULL;
    if (in == NULL && errno == ENOENT)
        return 0;
    if (in == NULL)
        return error_set(e, ERROR_IO, "cannot read %.200s: %s%s", path, strerror(errno),
                         errno == EACCES ? " (run this as root)" : "");
    length = getdelim(text, &room, '\0', in); /* all of it, as texts have no '\0' */
    if (length < 0 && feof(in) && *text != NULL)
        (*text)[0] = '\0'; /* an empty file */
    else if (length < 0)
        rc = error_set(e, ERROR_IO, "cannot read %.200s: %s", path, strerror(errno));
    else if (strlen(*text) != (size_t)length)
        rc = error_set(e, ERROR_REFUSED, "%.200s is not a text", path);
    (void)fclose(in);
    return rc;
}

/* Finds the line of the text that is equal to `line`. Returns its beginning, and that of the next line; or NULL if the
 * text has no such line. Lines end with "\n" or "\r\n"; the last one may have no end. */
static const char *find_line(const char *text, const char *line, const char **next)
{
    const size_t length = strlen(line);

    for (const char *at = text; (at = strstr(at, line)) != NULL; at += length) {
        const char *end = at + length + (at[length] == '\r');
        if ((at > text && at[-1] != '\n') || (*end != '\n' && *end != '\0'))
            continue;
        *next = end + (*end == '\n');
        return at;
    }
    return NULL;
}

/* Returns a copy of `before` with `block` in place of the block that it has, or at its end; NULL with *e. */
static char *replace_block(const char *before, const char *block, const char *path, struct error *e)
{
    const char *rest = "";
    const char *begin = find_line(before, HOST_BLOCK_BEGIN, &rest);
    const char *end = begin != NULL ? find_line(rest, HOST_BLOCK_END, &rest) : NULL;
    size_t head = begin != NULL ? (size_t)(begin - before) : strlen(before);
    bool open_line = begin == NULL && head > 0 && before[head - 1] != '\n';
    char *text;

    if (begin != NULL && end == NULL) {
        (void)error_set(e, ERROR_REFUSED,
                        "%.200s has the line \"" HOST_BLOCK_BEGIN
                        "\" but not the line \"" HOST_BLOCK_END "\": repair it by hand",
                        path);
        return NULL;
    }
    if (asprintf(&text, "%.*s%s%s%s", (int)head, before, open_line ? "\n" : "", block, rest) < 0) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for %.200s", path);
        return NULL;
    }
    return text;
}

/* --- the plan --- */

/* Takes over *text, the content that the file should have. */
static int plan_file(struct setup_plan *p, enum host_file which, char **text, struct error *e)
{
    struct setup_change *c = &p->change[which];

    if (asprintf(&c->path, "%s%s", p->root, host_file_kinds[which].path) < 0) {
        c->path = NULL;
        return error_set(e, ERROR_MEMORY, "out of memory for the files");
    }
    if (read_file(c->path, &c->before, e) != 0)
        return -1;
    if (host_file_kinds[which].block) {
        c->after = replace_block(c->before != NULL ? c->before : "", *text, c->path, e);
        if (c->after == NULL)
            return -1;
    } else if ((*text)[0] != '\0') {
        c->after = *text;
        *text = NULL;
    }
    c->differs = c->before == NULL || c->after == NULL ? c->before != c->after
                                                       : strcmp(c->before, c->after) != 0;
    return 0;
}

/* Whether torus-routed is installed on this host. */
static bool has_routed(const char *root)
{
    char path[4096];

    return (size_t)snprintf(path, sizeof path, "%s" ROUTED_PROGRAM, root) < sizeof path &&
           access(path, X_OK) == 0;
}

int setup_plan_make(struct setup_plan *p, const struct setup *s, const char *root, struct error *e)
{
    char *text[HOST_FILES];
    int rc;

    *p = (struct setup_plan){.root = root};
    rc = host_files_make(&s->cluster, s->rank, &s->key, s->has_second_key ? &s->second_key : NULL,
                         has_routed(root), text, e);
    for (unsigned i = 0; rc == 0 && i < HOST_FILES; i++)
        rc = plan_file(p, (enum host_file)i, &text[i], e);
    host_files_forget(text);
    return rc;
}

static void forget(char *text, bool secret)
{
    if (text != NULL && secret)
        sodium_memzero(text, strlen(text));
    free(text);
}

void setup_plan_free(struct setup_plan *p)
{
    for (unsigned i = 0; i < HOST_FILES; i++) {
        forget(p->change[i].before, host_file_kinds[i].secret);
        forget(p->change[i].after, host_file_kinds[i].secret);
        free(p->change[i].path);
    }
}

/* --- what is shown --- */

/* Ends a difference after some lines. */
static void shorten(char *diff)
{
    unsigned lines = 0;

    for (char *at = diff; *at != '\0'; at++)
        if (*at == '\n' && ++lines == DIFF_LINES && at[1] != '\0') {
            (void)strcpy(at + 1, "");
            return;
        }
}

/* Returns the difference as 'diff -u' prints it, or NULL. */
static char *difference(const struct setup_change *c)
{
    const char *const arguments[] = {
        "diff",    "-u",    "--label", c->path,
        "--label", c->path, "--",      c->before != NULL ? c->path : "/dev/null",
        "-",       NULL};
    struct child child = {.arguments = arguments, .input = c->after != NULL ? c->after : ""};
    char *result = NULL;

    child.input_length = strlen(child.input);
    child_run(&child, 1, 1, DIFF_MS, NULL, NULL);
    if (child_exit_status(&child) == 1 && child.output != NULL) {
        result = child.output;
        child.output = NULL;
        shorten(result);
    }
    child_free(&child);
    return result;
}

/* Returns "new, id 0123456789abcdef" for a key. */
static json_t *describe_key(const struct setup_change *c, const struct key *key)
{
    char id[KEY_ID_TEXT_SIZE];

    return c->after == NULL ? json_string("the key is removed")
                            : json_sprintf("the key with id %s", key_id_text(key->id, id));
}

static json_t *describe(const struct setup_plan *p, const struct setup *s, enum host_file which)
{
    const struct setup_change *c = &p->change[which];
    const char *action = c->before == NULL ? "new" : c->after == NULL ? "removed" : "changed";
    json_t *difference_text;
    char *diff;

    if (host_file_kinds[which].secret) {
        difference_text = describe_key(c, which == HOST_FILE_KEY ? &s->key : &s->second_key);
    } else if (which == HOST_FILE_CLUSTER || (which == HOST_FILE_ROUTES && c->before == NULL)) {
        difference_text = json_string(""); /* the user's own file; a long script without news */
    } else {
        diff = difference(c);
        difference_text = json_string(diff != NULL ? diff : "");
        free(diff);
    }
    return json_pack("{s:s, s:s, s:o}", "file", c->path, "action", action, "diff", difference_text);
}

static json_t *warnings(const struct setup_plan *p, const struct setup *s)
{
    const struct host *h = &s->cluster.hosts[s->rank];
    json_t *list = json_array();
    struct utsname name;

    if (p->root[0] != '\0')
        return list;
    if (uname(&name) == 0 && !hosts_file_is_same_host(name.nodename, h->name))
        (void)json_array_append_new(
            list, json_sprintf("this machine calls itself %s, not %s", name.nodename, h->name));
    for (unsigned port = 0; port < torus_ports(&s->cluster.routes.torus); port++)
        if (h->port[port].interface[0] != '\0' && if_nametoindex(h->port[port].interface) == 0)
            (void)json_array_append_new(
                list, json_sprintf("there is no interface %s now", h->port[port].interface));
    overlap_warn(&s->cluster, s->rank, list);
    return list;
}

/* The ids of the keys that this host has, the preferred one first. */
static json_t *keys_now(const struct setup_plan *p)
{
    static const enum host_file files[] = {HOST_FILE_KEY, HOST_FILE_SECOND_KEY};
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char id[KEY_ID_TEXT_SIZE];
        struct key key;
        struct error e;
        if (key_read_as_root(p->change[files[i]].path, &key, &e) != 0)
            continue;
        (void)json_array_append_new(list, json_string(key_id_text(key.id, id)));
        key_forget(&key);
    }
    return list;
}

json_t *setup_plan_json(const struct setup_plan *p, const struct setup *s)
{
    json_t *changes = json_array();

    for (unsigned i = 0; i < HOST_FILES; i++)
        if (p->change[i].differs)
            (void)json_array_append_new(changes, describe(p, s, (enum host_file)i));
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "host", s->cluster.hosts[s->rank].name, "changes",
                     changes, "warnings", warnings(p, s), "keys", keys_now(p), "less_safe",
                     less_safe(p, s));
}
