#include "daemon/torusd/files/target/old_result.h"

#include <errno.h>
#include <string.h>

struct check {
    const struct file_system *files;
    int folder;
    const char *path;
    struct error *error;
    bool failed;
};

bool old_result_is_name(const char *name)
{
    size_t digits = strspn(name, "0123456789");

    return digits > 0 && digits <= 10 && name[digits] == '\0';
}

static void check_entry(void *argument, const char *name)
{
    struct check *c = argument;
    const struct file_system *files = c->files;
    struct file_status status;
    const char *why = "cannot be examined";

    if (c->failed)
        return;
    int result = files->status_at(files->context, c->folder, name, &status);
    if (result == 0 && (status.kind != FILE_REGULAR || !old_result_is_name(name))) {
        c->failed = true;
        (void)error_set(c->error, ERROR_REFUSED,
                        "target folder %s contains %s, which is not a file of a result (their "
                        "names are ranks): only a result can be replaced",
                        c->path, name);
        return;
    }
    if (result == 0)
        result = files->check_removable(files->context, c->folder, name, &why);
    c->failed = result < 0;
    if (c->failed)
        (void)error_set(c->error, ERROR_REFUSED,
                        "target folder %s cannot be replaced, because %s in it %s: %s", c->path,
                        name, why, strerror(-result));
}

int old_result_check(const struct file_system *files, int folder, const char *path, struct error *e)
{
    struct check c = {.files = files, .folder = folder, .path = path, .error = e};
    int result = files->list(files->context, folder, check_entry, &c);

    if (result < 0)
        return error_set(e, ERROR_IO, "target folder %s cannot be read: %s", path,
                         strerror(-result));
    return c.failed ? -1 : 0;
}
