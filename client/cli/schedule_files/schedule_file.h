/* A schedule of the user's own: the file that --import and --schedule name. */
#ifndef TORUSD_CLI_SCHEDULE_FILE_H
#define TORUSD_CLI_SCHEDULE_FILE_H

#include "daemon/schedule/imported.h"

#define SCHEDULE_FILE_BYTES_MOST (64u << 20) /* XML is longer than our own format */

struct schedule_file {
    char *text; /* in torusd's own format (imported.h), whatever the file's was */
    size_t length;
    struct imported *imported;
    struct schedule_report report;
};

/* Reads and verifies a file in torusd's own format or in MSCCL's, judged by how it begins; MSCCL's does
 * not say which torus it is for, so that `torus`, which may otherwise be NULL, has to. Returns 0 with
 * *f, to be given to schedule_file_free(), or -1 with *e, which names the file. */
int schedule_file_read(struct schedule_file *f, const char *path, const struct torus *torus,
                       struct error *e);
void schedule_file_free(struct schedule_file *f); /* zeroed: nothing */

#endif
