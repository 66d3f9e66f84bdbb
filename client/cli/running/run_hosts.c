#include "client/cli/running/run_hosts.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/running/run_frames.h"
#include "client/cli/terminal/shell_words.h"
#include "daemon/lib/cluster/cluster_file.h"
#include "proto/text.h"

static const struct text_kind hosts_kind = {.name = "a list of hosts", .most = CLUSTER_FILE_MOST};

/* --- the file --- */

/* Returns whether the text is a cluster file: its first line that is not empty is a section. */
static bool is_cluster_file(const char *text)
{
    while (isspace((unsigned char)*text) || *text == '#' || *text == ';')
        text += *text == '#' || *text == ';' ? strcspn(text, "\n") : 1;
    return *text == '[';
}

/* Makes room for `count` hosts. */
static int make_room(struct run_hosts *hosts, uint32_t count, struct error *e)
{
    hosts->list = calloc(count > 0 ? count : 1, sizeof *hosts->list);
    return hosts->list != NULL ? 0 : error_set(e, ERROR_MEMORY, "out of memory for the hosts");
}

/* The line `ssh` of a cluster file says where ssh reaches root, for 'torusctl init': programs run as another user. */
static void take_host(struct run_host *h, const struct host *host, uint32_t rank, bool torus_ip)
{
    const char *at = strrchr(host->ssh, '@'), *address = at != NULL ? at + 1 : host->ssh;

    (void)snprintf(h->name, sizeof h->name, "%s", host->name);
    (void)snprintf(h->target, sizeof h->target, "%s", address[0] != '\0' ? address : host->name);
    h->by_address = torus_ip;
    if (torus_ip)
        (void)inet_ntop(AF_INET, &host->address, h->target, sizeof h->target);
    h->node = rank;
    h->is_node = true;
}

static int read_cluster(struct run_hosts *hosts, const struct run_choice *choice, const char *text,
                        size_t length, struct error *e)
{
    struct cluster c;
    int rc = cluster_read_text(&c, choice->file, text, length, e);

    if (rc != 0)
        return -1;
    rc = make_room(hosts, c.count, e);
    if (rc == 0 && choice->torus_ip && !(c.has_dims && c.has_ports && c.ip_routes))
        rc = error_set(e, ERROR_USAGE, "--torus-ip: %.200s says that the hosts have no addresses",
                       choice->file);
    for (uint32_t i = 0; rc == 0 && i < c.count; i++)
        take_host(&hosts->list[hosts->count++], &c.hosts[i], i, choice->torus_ip);
    if (rc == 0 && c.has_dims) {
        (void)torus_format(&c.routes.torus, hosts->dims);
        hosts->nodes = c.count;
    }
    cluster_free(&c);
    return rc;
}

/* Takes the first word of a line, which may have more for other launchers (slots=1). */
static int take_line(struct run_hosts *hosts, const char *file, unsigned number, const char *line,
                     struct error *e)
{
    struct run_host *h = &hosts->list[hosts->count];
    const char *at;
    size_t length;

    line += strspn(line, " \t\r");
    length = strcspn(line, " \t\r#");
    if (length == 0)
        return 0;
    if (length >= sizeof h->target || line[0] == '-')
        return error_set(e, ERROR_USAGE, "%.200s, line %u: this is not a host: %.60s", file, number,
                         line);
    (void)snprintf(h->target, sizeof h->target, "%.*s", (int)length, line);
    at = strrchr(h->target, '@');
    (void)snprintf(h->name, sizeof h->name, "%s", at != NULL ? at + 1 : h->target);
    for (uint32_t i = 0; i < hosts->count; i++)
        if (strcmp(hosts->list[i].name, h->name) == 0)
            return error_set(e, ERROR_USAGE, "%.200s, line %u: %.80s is there twice", file, number,
                             h->name);
    hosts->count++;
    return 0;
}

static int read_list(struct run_hosts *hosts, const struct run_choice *choice, char *text,
                     struct error *e)
{
    uint32_t lines = 1;
    unsigned number = 0;

    if (choice->torus_ip)
        return error_set(e, ERROR_USAGE,
                         "--torus-ip needs a cluster file; %.200s is a list of hosts",
                         choice->file);
    for (const char *at = text; *at != '\0'; at++)
        lines += *at == '\n';
    if (make_room(hosts, lines, e) != 0)
        return -1;
    for (char *line = text; line != NULL;) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        if (take_line(hosts, choice->file, ++number, line, e) != 0)
            return -1;
        line = end != NULL ? end + 1 : NULL;
    }
    return 0;
}

/* --- the choice --- */

/* Marks the hosts that a list of names has. */
static int mark(const struct run_hosts *hosts, const char *option, const char *names, bool *marked,
                const char *file, struct error *e)
{
    while (names != NULL && *names != '\0') {
        const size_t length = strcspn(names, ",");
        bool found = false;
        char name[HOST_SSH_SIZE];
        (void)snprintf(name, sizeof name, "%.*s", (int)length, names);
        for (uint32_t i = 0; i < hosts->count; i++)
            if (hosts_file_is_same_host(hosts->list[i].name, name))
                marked[i] = found = true;
        if (!found)
            return error_set(e, ERROR_USAGE, "%s: %.200s has no host \"%.80s\"", option, file,
                             name);
        names += length + (names[length] == ',');
    }
    return 0;
}

static int choose(struct run_hosts *hosts, const struct run_choice *choice, struct error *e)
{
    bool *only = calloc(hosts->count + 1, sizeof *only);
    bool *without = calloc(hosts->count + 1, sizeof *without);
    uint32_t count = 0;
    int rc = only != NULL && without != NULL
                 ? 0
                 : error_set(e, ERROR_MEMORY, "out of memory for the hosts");

    if (rc == 0)
        rc = mark(hosts, "--only", choice->only, only, choice->file, e);
    if (rc == 0)
        rc = mark(hosts, "--without", choice->without, without, choice->file, e);
    for (uint32_t i = 0; rc == 0 && i < hosts->count; i++)
        if ((choice->only == NULL || only[i]) && !without[i])
            hosts->list[count++] = hosts->list[i];
    free(only);
    free(without);
    hosts->count = count;
    if (rc == 0 && count == 0)
        rc = error_set(e, ERROR_USAGE, "%.200s: no host is left", choice->file);
    return rc;
}

int run_hosts_read(struct run_hosts *hosts, const struct run_choice *choice, struct error *e)
{
    char *text;
    size_t length;
    int rc;

    *hosts = (struct run_hosts){0};
    if (text_file_read(choice->file, &hosts_kind, &text, &length, e) != 0)
        return -1;
    if (is_cluster_file(text))
        rc = read_cluster(hosts, choice, text, length, e);
    else
        rc = read_list(hosts, choice, text, e);
    free(text);
    if (rc == 0)
        rc = choose(hosts, choice, e);
    if (rc != 0)
        run_hosts_free(hosts);
    return rc;
}

void run_hosts_free(struct run_hosts *hosts)
{
    free(hosts->list);
    *hosts = (struct run_hosts){0};
}

/* --- ssh --- */

/* What the shell of the host runs: all shells read these quotes alike. The path is $0, so nothing in it is expanded. */
#define STARTER "sh -c 'test -x \"$0\" && exec \"$0\" run --receive; exec torusctl run --receive' "

static char *remote_command(const char *own)
{
    char *word = shell_word(own), *line = NULL;

    if (word != NULL && asprintf(&line, STARTER "%s", word) < 0)
        line = NULL;
    free(word);
    return line;
}

#define WORDS 20u

struct words {
    char **word;
    size_t count;
    bool failed;
};

__attribute__((format(printf, 2, 3))) static void add(struct words *w, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (w->failed || vasprintf(&w->word[w->count], format, arguments) < 0)
        w->failed = true;
    else
        w->word[++w->count] = NULL;
    va_end(arguments);
}

char **run_ssh(const struct run_host *host, const char *user, unsigned timeout_s, unsigned alive_s,
               const char *own)
{
    const char *command = getenv("TORUS_SSH");
    struct words w = {.word = calloc(WORDS, sizeof *w.word)};
    char *remote = remote_command(own);

    w.failed = w.word == NULL || remote == NULL;
    if (command != NULL && command[0] != '\0') {
        add(&w, "sh");
        add(&w, "-c");
        add(&w, "exec %s \"$@\"", command);
    }
    add(&w, "ssh");
    add(&w, "-T");
    add(&w, "-x");
    add(&w, "-oBatchMode=yes");
    add(&w, "-oConnectTimeout=%u", timeout_s);
    add(&w, "-oServerAliveInterval=%u", alive_s);
    add(&w, "-oServerAliveCountMax=%u", RUN_ALIVE_PARTS);
    if (host->by_address)
        add(&w, "-oHostKeyAlias=%s", host->name);
    if (user != NULL)
        add(&w, "-l%s", user);
    add(&w, "--");
    add(&w, "%s", host->target);
    add(&w, "%s", remote != NULL ? remote : "");
    free(remote);
    if (!w.failed)
        return w.word;
    run_ssh_free(w.word);
    return NULL;
}

void run_ssh_free(char **words)
{
    for (size_t i = 0; words != NULL && words[i] != NULL; i++)
        free(words[i]);
    free(words);
}
