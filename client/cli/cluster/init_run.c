#include "client/cli/cluster/init_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/cli/cluster/identify.h"
#include "client/cli/cluster/init_keys.h"
#include "client/cli/cluster/init_report.h"
#include "client/cli/cluster/wait_whole.h"
#include "proto/text.h"

#define WHOLE_SECONDS 60

struct run {
    struct cli *cli;
    const struct init_options *options;
    struct cluster cluster;
    struct init_keys keys;
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

    if (name == NULL && r->options->deliver.way != DELIVER_HERE)
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

static int choose_hosts(struct run *r, struct error *e)
{
    int64_t only = only_host(r, e);

    if (only < -1)
        return -1;
    r->count = only >= 0 ? 1 : r->cluster.count;
    r->list = calloc(r->count, sizeof *r->list);
    if (r->list == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the hosts");
    for (uint32_t i = 0; i < r->count; i++)
        r->list[i].host = &r->cluster.hosts[only >= 0 ? (uint32_t)only : i];
    return 0;
}

/* Writes the setups of all hosts with these keys; `second` NULL: there is none. */
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
    return deliver(r->list, r->count, true, &r->options->deliver);
}

/* Changes the key in three steps, each on all hosts before the next begins: at any moment, any two hosts have a key in
 * common. Returns the number of hosts that failed; then the next step has not begun. */
static uint32_t change_key(struct run *r)
{
    const struct key *now = &r->keys.key, *next = &r->keys.next;
    uint32_t failed = 0;

    if (memcmp(now->id, next->id, KEY_ID_SIZE) != 0) {
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
    char whole[WAIT_WHOLE_SIZE] = "";
    struct error e;
    uint32_t failed = r->keys.changing ? change_key(r) : apply(r, &r->keys.key, NULL);

    if (failed == 0 && init_keys_finish(&r->keys, &e) != 0)
        return cli_fail(r->cli, &e);
    if (failed > 0 && r->keys.changing)
        cli_warn(
            "the change of the key is not complete: run the same command again; until then both "
            "keys are valid");
    if (failed == 0 && !r->options->no_wait && r->options->deliver.root == NULL)
        wait_until_whole(r->cli, WHOLE_SECONDS, whole);
    return report(r, true, whole);
}

static int show_and_carry_out(struct run *r)
{
    uint32_t failed = deliver(r->list, r->count, false, &r->options->deliver), changing;

    changing = init_report_changing(r->list, r->count);
    if (failed > 0) {
        (void)report(r, false, "");
        cli_warn("nothing was changed");
        return EXIT_FAILED;
    }
    if (changing == 0 && !r->keys.changing)
        return r->options->dry_run || r->options->deliver.root != NULL ? report(r, false, "")
                                                                       : carry_out(r);
    if (!r->cli->json)
        init_report_changes(r->list, r->count);
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
    if (o->deliver.way == DELIVER_LINKS && identify_hosts(&r->cluster, &identify, r->cli, e) != 0)
        return -1;
    if (choose_hosts(r, e) != 0 ||
        init_keys_read(&r->keys, o->key, o->file, o->new_key, o->dry_run, e) != 0)
        return -1;
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
    deliver_free(r.list, r.count);
    free(r.list);
    cluster_free(&r.cluster);
    return code;
}
