#include "daemon/torusd/files/state/calibration_file.h"

#include <stdio.h>
#include <string.h>

#include "proto/text_file.h"

#define NAME "calibration"

/* Removes the carriage returns that an editor on another system adds at line ends. */
static void drop_carriage_returns(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; from++)
        if (from[0] != '\r' || from[1] != '\n')
            *to++ = *from;
    *to = '\0';
}

int calibration_file_read(const struct journal *j, struct calibration *c, struct error *e)
{
    static const struct text_kind calibration = {.name = "a calibration", .most = 1024};
    char bytes[CALIBRATION_TEXT_SIZE + 64], text[sizeof bytes];
    ssize_t fetched = journal_fetch(j, NAME, bytes, sizeof bytes - 1, e);
    const char *begin = bytes;
    size_t length = (size_t)fetched;

    if (fetched < 0)
        return e->code == ERROR_NONE ? 0 : -1;
    bytes[fetched] = '\0';
    if (text_check(&begin, &length, &calibration, e) != 0)
        return error_wrap(e, "%.200s/" NAME, j->path);
    (void)strcpy(text, begin);
    drop_carriage_returns(text);
    if (calibration_parse(text, c) != 0)
        return error_set(e, ERROR_IO,
                         "file %.200s/" NAME " is damaged: remove it, and run torusctl calibrate",
                         j->path);
    if (calibration_check(c, e) != 0)
        return error_wrap(e, "%.200s/" NAME, j->path);
    return 1;
}

int calibration_file_write(const struct journal *j, const struct calibration *c, struct error *e)
{
    char text[CALIBRATION_TEXT_SIZE];

    (void)calibration_format(c, text);
    /* Not synced, because neighbours send the calibration again. */
    return journal_replace(j, NAME, text, strlen(text), false, e);
}
