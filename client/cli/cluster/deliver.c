#include "client/cli/cluster/deliver.h"

#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cluster/child.h"
#include "client/cli/discovering/discovery_socket.h"
#include "client/cli/terminal/progress.h"
#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

/* --- over the links --- */

#define AT_ONCE 16u

/* A setup on its way. */
struct sent {
    struct delivery *delivery;
    struct setup_sending sending;
};

struct links {
    const char *socket;
    const struct secrets *secrets;
    struct discovered hosts;
    bool apply;
    struct sent sent[AT_ONCE];
    unsigned active;
    uint32_t ended, count;
};

/* Finds the host with the id that the cluster file has; NULL: it is not there. */
static const struct discovered_host *find_host(const struct links *l, const struct host *host)
{
    struct host_id id;
    uint32_t at = host_id_parse(&id, host->id) ? discovered_find(&l->hosts, &id) : UINT32_MAX;

    return at != UINT32_MAX ? &l->hosts.host[at] : NULL;
}

/* Whether another host has its name. */
static bool has_impostor(const struct links *l, const struct host *host)
{
    for (uint32_t i = 0; i < l->hosts.hosts; i++)
        if (hosts_file_is_same_host(l->hosts.host[i].name, host->name))
            return true;
    return false;
}

/* Finds the host of a delivery. Returns NULL after setting the error of the delivery. */
static const struct discovered_host *find(const struct links *l, struct delivery *d)
{
    const struct host *host = d->host;
    const struct discovered_host *h = find_host(l, host);

    if (h != NULL && (h->reachable || h->self))
        return h;
    if (h != NULL)
        (void)error_set(&d->error, ERROR_LINK,
                        "%s: no cables that work in both directions lead there", host->name);
    else if (host->id[0] != '\0' && has_impostor(l, host))
        (void)error_set(&d->error, ERROR_LINK,
                        "%s: the host with this name does not have the id %s of the cluster file. "
                        "If the machine was installed again, remove the line, and "
                        "confirm the new id",
                        host->name, host->id);
    else
        (void)error_set(
            &d->error, ERROR_LINK,
            "%s: discovery does not find this host ('torusctl discover' lists the hosts)",
            host->name);
    return NULL;
}

/* --- answers --- */

/* Takes the answer of a host: what its torusctl has printed, if it was `done`. Otherwise sets the error, to what the
 * output says, or else to the first line of `why`. */
static void deliver_take(struct delivery *d, const char *output, bool done, const char *why)
{
    json_error_t error;
    char text[400];

    d->reply = output != NULL ? json_loads(output, 0, &error) : NULL;
    if (done && json_is_object(d->reply))
        return;
    const char *said =
        json_string_value(json_object_get(json_object_get(d->reply, "error"), "text"));
    why = said != NULL ? said : why;
    (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(why, "\n"), why);
    text_clean(text); /* another host has written it */
    (void)error_set(&d->error, ERROR_REFUSED, "%s: %s", d->host->name, text);
    json_decref(d->reply);
    d->reply = NULL;
}

/* Handles what has arrived for a setup. */
static void go_on(struct links *l, unsigned at)
{
    struct sent *s = &l->sent[at];
    struct setup_answer answer;
    char *storage;
    struct error e;
    int rc = setup_continue(&s->sending, &answer, &storage, &e);

    if (rc == 0)
        return;
    if (rc > 0) {
        deliver_take(s->delivery, answer.output, answer.status == 0,
                     answer.errors_size > 0 ? answer.errors : "its answer is not understood");
        free(storage);
    } else {
        (void)error_set(&s->delivery->error, e.code, "%s: %s", s->delivery->host->name, e.text);
    }
    watch_tell((double)++l->ended / l->count);
    *s = l->sent[--l->active];
}

/* Waits until at most `most` setups are on their way. */
static void wait_for(struct links *l, unsigned most)
{
    struct pollfd polls[AT_ONCE];

    while (l->active > most) {
        for (unsigned i = 0; i < l->active; i++)
            polls[i] = (struct pollfd){.fd = l->sent[i].sending.fd, .events = POLLIN};
        if (poll(polls, l->active, SETUP_SECONDS * 1000) <= 0)
            polls[0].revents = POLLHUP; /* setup_continue() reports that there is no answer */
        for (unsigned i = l->active; i > 0; i--)
            if (polls[i - 1].revents != 0)
                go_on(l, i - 1);
    }
}

static void send_setup(struct links *l, struct delivery *d, const struct discovered_host *h)
{
    struct sent *s;
    struct error e;
    int rc;

    wait_for(l, AT_ONCE - 1);
    s = &l->sent[l->active];
    *s = (struct sent){
        d, {.apply = l->apply, .bytes = d->setup, .size = d->length, .secrets = l->secrets}};
    rc = h->self ? setup_begin_own(&s->sending, l->hosts.setup_socket, &e)
                 : setup_begin(&s->sending, l->socket, &h->report->host, &e);
    if (rc == 0)
        l->active++;
    else
        (void)error_set(&d->error, e.code, "%s: %s", d->host->name, e.text);
}

/* --- the order --- */

/* Sends the setup of this host, or those of the others, and waits for the answers. Returns whether all hosts have
 * answered. */
static bool send_to(struct links *l, struct delivery *list, bool self)
{
    bool complete = true;

    for (uint32_t i = 0; i < l->count; i++) {
        const struct discovered_host *h = find(l, &list[i]);
        if (h != NULL && h->self == self)
            send_setup(l, &list[i], h);
    }
    wait_for(l, 0);
    for (uint32_t i = 0; i < l->count; i++) {
        const struct discovered_host *h = find_host(l, list[i].host);
        complete &= h == NULL || h->self != self || list[i].reply != NULL;
    }
    return complete;
}

static void skip_others(const struct links *l, struct delivery *list)
{
    for (uint32_t i = 0; i < l->count; i++) {
        const struct discovered_host *h = find_host(l, list[i].host);
        if (h == NULL || !h->self)
            (void)error_set(&list[i].error, ERROR_REFUSED,
                            "%s: not tried, because this host failed", list[i].host->name);
    }
}

/* Does what deliver() says, over the links. This host is set up first. If it fails, the others are not tried; if others
 * fail, this host already has the cluster key with which they accept the same setups again. Sets the error of each host
 * that failed. */
static void deliver_links(struct delivery *list, uint32_t count, bool apply, const char *socket,
                          const struct secrets *secrets)
{
    struct links l = {.socket = socket, .secrets = secrets, .apply = apply, .count = count};
    struct error e;

    if (discover_hosts(socket, &l.hosts, &e) != 0) {
        for (uint32_t i = 0; i < count; i++)
            list[i].error = e;
        return;
    }
    if (send_to(&l, list, true) || !apply)
        (void)send_to(&l, list, false);
    else
        skip_others(&l, list);
    discovered_free(&l.hosts);
}

#define HOST_MS 330000 /* longer than a setup may take on a host */
#define ARGUMENTS_MOST 20

struct command_line {
    const char *argument[ARGUMENTS_MOST];
    unsigned count;
};

static void add(struct command_line *line, const char *argument)
{
    line->argument[line->count++] = argument;
    line->argument[line->count] = NULL;
}

static void add_receiver(struct command_line *line, const char *program, bool apply)
{
    add(line, program);
    add(line, "--json");
    add(line, "init");
    add(line, "--receive");
    add(line, apply ? "apply" : "show");
}

/* The other host's user needs root's rights, by sudo if it is not root. */
static void write_ssh(struct command_line *line, const struct host *h, bool apply,
                      const struct deliver_options *o)
{
    const char *target = h->ssh[0] != '\0' ? h->ssh : h->name;
    const char *at = strchr(target, '@');

    add(line, o->ssh != NULL ? o->ssh : "ssh");
    add(line, "-o");
    add(line, "BatchMode=yes");
    add(line, "-o");
    add(line, "ConnectTimeout=10");
    if (at == NULL) {
        add(line, "-l");
        add(line, "root");
    }
    add(line, "--");
    add(line, target);
    if (at != NULL && strncmp(target, "root@", 5) != 0) {
        add(line, "sudo");
        add(line, "-n");
    }
    add_receiver(line, "torusctl", apply);
}

static void write_here(struct command_line *line, bool apply, const struct deliver_options *o)
{
    add_receiver(line, "/proc/self/exe", apply);
    if (o->root != NULL) {
        add(line, "--root");
        add(line, o->root);
    }
}

struct counting {
    uint32_t ended, count;
};

static void on_end(void *context, struct child *child)
{
    struct counting *c = context;

    (void)child;
    watch_tell((double)++c->ended / c->count);
}

static int run_programs(struct delivery *list, uint32_t count, bool apply,
                        const struct deliver_options *o)
{
    struct child *children = calloc(count, sizeof *children);
    struct command_line *lines = calloc(count, sizeof *lines);
    struct counting counting = {0, count};
    char text[400];

    if (children == NULL || lines == NULL) {
        free(children);
        free(lines);
        return -1;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (o->method == DELIVER_SSH)
            write_ssh(&lines[i], list[i].host, apply, o);
        else
            write_here(&lines[i], apply, o);
        children[i] = (struct child){
            .arguments = lines[i].argument, .input = list[i].setup, .input_length = list[i].length};
    }
    child_run(children, count, CHILD_MOST_AT_ONCE, HOST_MS, on_end, &counting);
    for (uint32_t i = 0; i < count; i++) {
        deliver_take(&list[i], children[i].output, child_exit_status(&children[i]) == 0,
                     child_problem(&children[i], text, sizeof text));
        child_free(&children[i]);
    }
    free(children);
    free(lines);
    return 0;
}

uint32_t deliver(struct delivery *list, uint32_t count, bool apply, const struct deliver_options *o,
                 const struct secrets *secrets)
{
    uint32_t failed = 0;

    for (uint32_t i = 0; i < count; i++) {
        json_decref(list[i].reply);
        list[i].reply = NULL;
        (void)error_set(&list[i].error, ERROR_MEMORY, "%s: out of memory", list[i].host->name);
    }
    long_work_begin(apply ? "setting up %u %s" : "comparing the files of %u %s", count,
                    count == 1 ? "host" : "hosts");
    if (o->method == DELIVER_LINKS)
        deliver_links(list, count, apply, o->socket, secrets);
    else
        (void)run_programs(list, count, apply, o);
    long_work_end();
    for (uint32_t i = 0; i < count; i++)
        failed += list[i].reply == NULL;
    return failed;
}

void deliver_free(struct delivery *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].setup != NULL)
            sodium_memzero(list[i].setup, list[i].length);
        free(list[i].setup);
        json_decref(list[i].reply);
    }
}
