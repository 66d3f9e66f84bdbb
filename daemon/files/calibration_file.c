#include "daemon/files/calibration_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME "calibration"
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

int calibration_file_read(const struct journal *j, struct calibration *c, struct error *e)
{
    char text[TEXT_MOST], again[TEXT_MOST];
    ssize_t length = journal_fetch(j, NAME, text, sizeof text - 1, e);

    if (length < 0)
        return e->code == ERROR_NONE ? 0 : -1;
    text[length] = '\0';
    *c = (struct calibration){0};
    int found = sscanf(text,
                       "version %" SCNu32 " measured_at %" SCNu64 " step_seconds %lf "
                       "message_seconds %lf bytes_per_second %lf",
                       &c->version, &c->measured_at, &c->costs.step, &c->costs.message,
                       &c->costs.bytes_per_second);
    /* Whatever else is in it, or is not, it would not have been written like that. */
    if (found != 5 || format(again, c) != length || memcmp(text, again, (size_t)length) != 0)
        return error_set(e, ERROR_IO, "%s/" NAME " is damaged", j->path);
    if (calibration_check(c, e) != 0)
        return error_wrap(e, "%s/" NAME, j->path);
    return 1;
}

int calibration_file_write(const struct journal *j, const struct calibration *c, struct error *e)
{
    char text[TEXT_MOST];
    int length = format(text, c);

    /* Not synced: neighbours tell it again. */
    return journal_replace(j, NAME, text, (size_t)length, false, e);
}
