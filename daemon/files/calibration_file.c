#include "daemon/files/calibration_file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define NAME "calibration"
#define NEXT ".next-" NAME /* as the journal's, which removes what a crash has left unfinished */
#define TEXT_MOST 512

/* All digits of the numbers, so that what is read is what was written. */
static int format(char text[TEXT_MOST], const struct calibration *c)
{
    return snprintf(text, TEXT_MOST,
                    "version %" PRIu32 "\nmeasured_at %" PRIu64 "\nstep_seconds %.17g\n"
                    "message_seconds %.17g\nbytes_per_second %.17g\n",
                    c->version, c->measured_at, c->costs.step, c->costs.message,
                    c->costs.bytes_per_second);
}

static int failed(struct error *e, const char *path)
{
    return error_set(e, ERROR_IO, "%s: %s", path, strerror(errno));
}

int calibration_file_read(const char *folder, struct calibration *c, struct error *e)
{
    char path[PATH_MAX], text[TEXT_MOST], again[TEXT_MOST];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/" NAME, folder);
    f = fopen(path, "re");
    if (f == NULL)
        return errno == ENOENT ? 0 : failed(e, path);
    size_t length = fread(text, 1, sizeof text - 1, f);
    text[length] = '\0';
    (void)fclose(f);
    *c = (struct calibration){0};
    int found = sscanf(text,
                       "version %" SCNu32 " measured_at %" SCNu64 " step_seconds %lf "
                       "message_seconds %lf bytes_per_second %lf",
                       &c->version, &c->measured_at, &c->costs.step, &c->costs.message,
                       &c->costs.bytes_per_second);
    /* Whatever else is in it, or is not, it would not have been written like that. */
    if (found != 5 || (size_t)format(again, c) != length || memcmp(text, again, length) != 0)
        return error_set(e, ERROR_IO, "%s is damaged", path);
    if (calibration_check(c, e) != 0)
        return error_wrap(e, "%s", path);
    return 1;
}

int calibration_file_write(const char *folder, const struct calibration *c, struct error *e)
{
    char path[PATH_MAX], next[PATH_MAX], text[TEXT_MOST];

    (void)format(text, c);
    (void)snprintf(path, sizeof path, "%s/" NAME, folder);
    (void)snprintf(next, sizeof next, "%s/" NEXT, folder);
    FILE *f = fopen(next, "we");
    if (f == NULL)
        return failed(e, next);
    /* Not synced, which would hold up the links: neighbours tell it again. */
    bool good = fputs(text, f) >= 0;
    good = fclose(f) == 0 && good;
    good = good && rename(next, path) == 0;
    return good ? 0 : failed(e, next);
}
