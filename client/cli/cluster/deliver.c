#include "client/cli/cluster/deliver.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/cluster/child.h"
#include "client/cli/cluster/deliver_links.h"
#include "client/cli/terminal/long_work.h"
#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

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
        if (o->way == DELIVER_SSH)
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
    if (o->way == DELIVER_LINKS)
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
