#include "client/cli/cluster/receive.h"

#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

#include "client/cli/cluster/setup_apply.h"
#include "proto/text_file.h"

#define WAIT_MS 30000

static const struct field fields[] = {
    {"host", "host", FORMAT_PLAIN},
    {"applied", "applied", FORMAT_PLAIN},
    {0},
};
static const struct field change_fields[] = {
    {"file", "file", FORMAT_PLAIN},
    {"change", "action", FORMAT_PLAIN},
    {0},
};
static const struct section sections[] = {
    {.layout = LAYOUT_RECORD, .fields = fields},
    {.layout = LAYOUT_TABLE, .key = "changes", .fields = change_fields},
};

static int read_stdin(struct setup *s, struct error *e)
{
    static char json[SETUP_MOST + 1];
    ssize_t length = text_file_fill(STDIN_FILENO, "standard input", json, sizeof json, WAIT_MS, e);
    int rc = length < 0 ? -1 : setup_read(s, json, (size_t)length, e);

    sodium_memzero(json, sizeof json);
    return rc;
}

static int carry_out(const struct cli *cli, const struct setup *s, bool apply, const char *root)
{
    struct setup_plan plan;
    struct error e;
    json_t *value = NULL, *warnings;
    int rc;

    if (root == NULL)
        root = "";
    if (apply && setup_lock(root, &e) != 0)
        return cli_fail(cli, &e);
    rc = setup_plan_make(&plan, s, root, &e);
    if (rc == 0)
        value = setup_plan_json(&plan, s); /* before the files change */
    warnings = json_object_get(value, "warnings");
    if (rc == 0)
        rc = apply ? setup_apply(&plan, warnings, &e) : setup_check(&plan, warnings, &e);
    setup_plan_free(&plan);
    if (rc != 0) {
        json_decref(value);
        return cli_fail(cli, &e);
    }
    (void)json_object_set_new(value, "applied", json_boolean(apply));
    return cli_print(cli, value, &(struct view){sections, 2});
}

int receive_run(const struct cli *cli, bool apply, const char *root)
{
    struct setup setup;
    struct error e;
    int code;

    if (isatty(STDIN_FILENO))
        return cli_fail_usage(cli,
                              "--receive reads a setup from standard input, which is a terminal "
                              "here; 'torusctl init CLUSTER.ini --here' sets up this host");
    if (read_stdin(&setup, &e) != 0) {
        e.code =
            e.code == ERROR_USAGE ? ERROR_REFUSED : e.code; /* the command line is not at fault */
        return cli_fail(cli, &e);
    }
    code = carry_out(cli, &setup, apply, root);
    setup_free(&setup);
    return code;
}
