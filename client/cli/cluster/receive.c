#include "client/cli/cluster/receive.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "client/cli/cluster/setup_apply.h"
#include "proto/text_file.h"

#define WAIT_MS 30000
#define LOCK_MS 60000 /* for another setup */
#define LOCK_PAUSE_MS 100

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

/* Waits until no other setup is applied here, by whatever way it came. Returns a descriptor that holds the lock, or -1
 * with *e. */
static int lock_host(const char *root, struct error *e)
{
    const char *path = root != NULL && access(root, F_OK) == 0 ? root : "/";
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = -1;

    for (unsigned i = 0; fd >= 0 && i <= LOCK_MS / LOCK_PAUSE_MS; i++) {
        rc = flock(fd, LOCK_EX | LOCK_NB);
        if (rc == 0 || errno != EWOULDBLOCK)
            break;
        (void)poll(NULL, 0, LOCK_PAUSE_MS);
    }
    if (rc == 0)
        return fd;
    if (fd >= 0 && errno == EWOULDBLOCK)
        (void)error_set(e, ERROR_BUSY, "another setup is being applied on this host: try again");
    else
        (void)error_set(e, ERROR_IO, "cannot lock %.200s: %s", path, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

static int carry_out(const struct cli *cli, const struct setup *s, bool apply, const char *root)
{
    int lock = -1, rc;
    struct setup_plan plan = {0};
    struct error e;
    json_t *value = NULL;

    if (apply && (lock = lock_host(root, &e)) < 0)
        return cli_fail(cli, &e);
    rc = setup_plan_make(&plan, s, root != NULL ? root : "", &e);
    if (rc == 0)
        value = setup_plan_json(&plan, s); /* before the files change */
    if (rc == 0)
        rc = apply ? setup_apply(&plan, &e) : setup_check(&plan, &e);
    setup_plan_free(&plan);
    if (lock >= 0)
        (void)close(lock);
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
