#include "client/cli/running/run_plan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/shell_words.h"

#define TIMEOUT_MS 30000u
#define GRACE_MS 10000u
#define WAIT_MOST_MS 86400000u
#define MASTER_PORT "29500" /* as torchrun has it */

/* --- making it --- */

/* Returns the folder as the user calls it, with its links: the other hosts may have the same links. */
static char *own_folder(void)
{
    const char *pwd = getenv("PWD");
    struct stat named, here;

    if (pwd != NULL && pwd[0] == '/' && stat(pwd, &named) == 0 && stat(".", &here) == 0 &&
        named.st_dev == here.st_dev && named.st_ino == here.st_ino)
        return strdup(pwd);
    return getcwd(NULL, 0);
}

static int read_wait(const char *option, const char *text, uint32_t standard, uint32_t *ms,
                     struct error *e)
{
    uint64_t given = standard;

    if (READ_OPTION(e, option, text, parse_seconds, &given) != 0)
        return -1;
    if (given > WAIT_MOST_MS)
        return error_set(e, ERROR_USAGE, "%s: at most %u seconds", option, WAIT_MOST_MS / 1000);
    *ms = (uint32_t)given;
    return 0;
}

static bool is_name(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] != '_' && (text[i] < 'A' || text[i] > 'Z') &&
            (text[i] < 'a' || text[i] > 'z') && (i == 0 || text[i] < '0' || text[i] > '9'))
            return false;
    return length > 0;
}

static int add_given(struct run_plan *plan, const char *name, size_t length, const char *value,
                     struct error *e)
{
    char **at = &plan->given[plan->givens];

    if (asprintf(at, "%.*s=%s", (int)length, name, value) < 0) {
        *at = NULL;
        return error_set(e, ERROR_MEMORY, "out of memory");
    }
    plan->givens++;
    return 0;
}

static int read_variables(struct run_plan *plan, const struct option_list *env, const char *socket,
                          struct error *e)
{
    plan->given = calloc(env->count + 2, sizeof *plan->given);
    if (plan->given == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    if (socket == NULL)
        socket = getenv("TORUS_SOCKET");
    if (socket != NULL && add_given(plan, "TORUS_SOCKET", strlen("TORUS_SOCKET"), socket, e) != 0)
        return -1;
    for (size_t i = 0; i < env->count; i++) {
        const char *text = env->given[i].text, *equals = strchr(text, '=');
        const size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);
        const char *value = equals != NULL ? equals + 1 : getenv(text);
        if (!is_name(text, length))
            return error_set(e, ERROR_USAGE, "--env: \"%.80s\" is not the name of a variable",
                             text);
        if (value == NULL)
            return error_set(e, ERROR_USAGE,
                             "--env: the variable %.80s is not set here; --env %.80s=VALUE sets it",
                             text, text);
        if (add_given(plan, text, length, value, e) != 0)
            return -1;
    }
    return 0;
}

int run_plan_make(struct run_plan *plan, const struct run_options *o, char **program,
                  const char *socket, struct error *e)
{
    ssize_t length;

    *plan = (struct run_plan){
        .per_host = 1, .input = !o->no_stdin, .user = o->user, .program = program};
    if (READ_OPTION(e, "--ranks-per-node", o->ranks_per_node, parse_number, RUN_RANKS_MOST,
                    &plan->per_host) != 0)
        return -1;
    if (plan->per_host == 0)
        return error_set(e, ERROR_USAGE, "--ranks-per-node: 1 or more");
    if (read_wait("--timeout", o->timeout, TIMEOUT_MS, &plan->timeout_ms, e) != 0 ||
        read_wait("--grace", o->grace, GRACE_MS, &plan->grace_ms, e) != 0 ||
        read_wait("--silence", o->silence, RUN_SILENCE_MS, &plan->silence_ms, e) != 0 ||
        read_variables(plan, &o->env, socket, e) != 0)
        return -1;
    plan->folder = o->folder != NULL ? strdup(o->folder) : own_folder();
    if (plan->folder == NULL)
        return error_set(e, ERROR_IO, "cannot find the name of this folder: %s", strerror(errno));
    if (plan->folder[0] != '/')
        return error_set(e, ERROR_USAGE, "--folder: a path from / on, not \"%.80s\"", plan->folder);
    length = readlink("/proc/self/exe", plan->own, sizeof plan->own - 1);
    plan->own[length > 0 ? length : 0] = '\0';
    return run_hosts_read(&plan->hosts, &o->hosts, e);
}

void run_plan_free(struct run_plan *plan)
{
    for (uint32_t i = 0; i < plan->givens; i++)
        free(plan->given[i]);
    free(plan->given);
    free(plan->folder);
    run_hosts_free(&plan->hosts);
}

/* --- the order of a host --- */

#define OWN_VARIABLES 9u

__attribute__((format(printf, 2, 3))) static void add(struct run_order *o, const char *format, ...)
{
    va_list arguments;
    char *text;

    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) >= 0)
        o->variable[o->variables++] = text;
    va_end(arguments);
}

int run_plan_order(const struct run_plan *plan, uint32_t index, struct run_order *order)
{
    const struct run_host *host = &plan->hosts.list[index], *first = &plan->hosts.list[0];

    *order = (struct run_order){
        .folder = plan->folder,
        .first_rank = index * plan->per_host,
        .ranks = plan->per_host,
        .grace_ms = plan->grace_ms,
        .silence_ms = plan->silence_ms,
        .input = index == 0 && plan->input,
        .variable = calloc(OWN_VARIABLES + plan->givens + 1, sizeof *order->variable),
        .argument = (const char **)(uintptr_t)plan->program,
    };
    if (order->variable == NULL)
        return -1;
    add(order, "WORLD_SIZE=%u", plan->hosts.count * plan->per_host);
    add(order, "LOCAL_WORLD_SIZE=%u", plan->per_host);
    add(order, "GROUP_RANK=%u", index);
    add(order, "MASTER_ADDR=%s", first->by_address ? first->target : first->name);
    add(order, "MASTER_PORT=" MASTER_PORT);
    if (host->is_node && plan->hosts.nodes > 0) {
        add(order, "TORUS_RANK=%u", host->node);
        add(order, "TORUS_NODES=%u", plan->hosts.nodes);
        add(order, "TORUS_DIMS=%s", plan->hosts.dims);
    }
    for (uint32_t i = 0; i < plan->givens; i++)
        add(order, "%s", plan->given[i]);
    while (order->argument[order->arguments] != NULL)
        order->arguments++;
    return 0;
}

void run_plan_order_free(struct run_order *order)
{
    for (uint32_t i = 0; i < order->variables; i++)
        free((void *)(uintptr_t)order->variable[i]);
    free(order->variable);
}

char **run_plan_ssh(const struct run_plan *plan, uint32_t index)
{
    /* ssh gives up first, because it knows why. */
    return run_ssh(&plan->hosts.list[index], plan->user,
                   plan->timeout_ms > 2000 ? plan->timeout_ms / 1000 - 1 : 1,
                   (plan->silence_ms + 1000 * RUN_ALIVE_PARTS - 1) / (1000 * RUN_ALIVE_PARTS),
                   plan->own);
}

/* --- showing it --- */

static json_t *texts(char *const *list)
{
    json_t *values = json_array();
    int r = 0;

    for (; list != NULL && *list != NULL; list++)
        r |= json_array_append_new(values, json_path(*list, ""));
    return json_checked(values, r);
}

static json_t *host_value(const struct run_plan *plan, uint32_t index)
{
    struct run_order order;
    char **ssh = run_plan_ssh(plan, index);
    const int rc = run_plan_order(plan, index, &order);
    json_t *value = NULL;

    if (rc == 0 && ssh != NULL)
        value = json_pack("{s:s, s:I, s:I, s:o, s:o}", "host", plan->hosts.list[index].name,
                          "first_rank", (json_int_t)order.first_rank, "rank_count",
                          (json_int_t)order.ranks, "ssh", texts(ssh), "variables",
                          texts((char *const *)(uintptr_t)order.variable));
    run_plan_order_free(&order);
    run_ssh_free(ssh);
    return value;
}

static int print_json(const struct run_plan *plan, const struct cli *cli)
{
    json_t *hosts = json_array();
    int r = 0;

    for (uint32_t i = 0; i < plan->hosts.count; i++)
        r |= json_array_append_new(hosts, host_value(plan, i));
    return cli_print(
        cli,
        json_checked(json_pack("{s:o, s:o, s:o}", "folder", json_path(plan->folder, ""), "program",
                               texts(plan->program), "hosts", hosts),
                     r),
        NULL);
}

static void print_line(const char *before, const char *const *words)
{
    char *line = shell_line(words);

    (void)printf("%s%s\n", before, line != NULL ? line : "");
    free(line);
}

int run_plan_print(const struct run_plan *plan, const struct cli *cli)
{
    if (cli->json)
        return print_json(plan, cli);
    print_line("cd ", (const char *const[]){plan->folder, NULL});
    for (uint32_t i = 0; i < plan->hosts.count; i++) {
        struct run_order order;
        char **ssh = run_plan_ssh(plan, i), before[64];
        if (ssh == NULL || run_plan_order(plan, i, &order) != 0)
            return cli_fail(cli, &(struct error){.code = ERROR_MEMORY, .text = "out of memory"});
        (void)printf("%s:\n", plan->hosts.list[i].name);
        print_line("  ", (const char *const *)(uintptr_t)ssh);
        for (uint32_t local = 0; local < plan->per_host; local++) {
            (void)snprintf(before, sizeof before, "    RANK=%u LOCAL_RANK=%u ",
                           order.first_rank + local, local);
            char *variables = shell_line(order.variable);
            (void)printf("%s%s", before, variables != NULL ? variables : "");
            free(variables);
            print_line(" ", order.argument);
        }
        run_plan_order_free(&order);
        run_ssh_free(ssh);
    }
    return EXIT_DONE;
}
