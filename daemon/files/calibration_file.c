#include "daemon/files/calibration_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define NAME "calibration"
#define NEXT ".next-" NAME /* as the journal's, which removes what a crash has left unfinished */
static int failed(struct error *e, const char *path)
{
    return error_set(e, ERROR_IO, "%s: %s", path, strerror(errno));
}

int calibration_file_read(const char *folder, struct calibration *c, struct error *e)
{
    char path[PATH_MAX], text[CALIBRATION_TEXT_SIZE + 1];
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/" NAME, folder);
    f = fopen(path, "re");
    if (f == NULL)
        return errno == ENOENT ? 0 : failed(e, path);
    size_t length = fread(text, 1, sizeof text - 1, f);
    text[length] = '\0';
    (void)fclose(f);
    if (strlen(text) != length || calibration_parse(text, c) != 0)
        return error_set(e, ERROR_IO, "%s is damaged", path);
    if (calibration_check(c, e) != 0)
        return error_wrap(e, "%s", path);
    return 1;
}

int calibration_file_write(const char *folder, const struct calibration *c, struct error *e)
{
    char path[PATH_MAX], next[PATH_MAX], text[CALIBRATION_TEXT_SIZE];

    (void)calibration_format(c, text);
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
