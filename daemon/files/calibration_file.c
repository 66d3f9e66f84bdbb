#include "daemon/files/calibration_file.h"

#include <stdio.h>
#include <string.h>

#define NAME "calibration"

int calibration_file_read(const struct journal *j, struct calibration *c, struct error *e)
{
    char text[CALIBRATION_TEXT_SIZE + 1];
    ssize_t length = journal_fetch(j, NAME, text, sizeof text - 1, e);

    if (length < 0)
        return e->code == ERROR_NONE ? 0 : -1;
    text[length] = '\0';
    if ((ssize_t)strlen(text) != length || calibration_parse(text, c) != 0)
        return error_set(e, ERROR_IO, "%s/" NAME " is damaged", j->path);
    if (calibration_check(c, e) != 0)
        return error_wrap(e, "%s/" NAME, j->path);
    return 1;
}

int calibration_file_write(const struct journal *j, const struct calibration *c, struct error *e)
{
    char text[CALIBRATION_TEXT_SIZE];

    (void)calibration_format(c, text);
    /* Not synced: neighbours tell it again. */
    return journal_replace(j, NAME, text, strlen(text), false, e);
}
