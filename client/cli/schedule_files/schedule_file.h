/* A schedule file of the user: the file that --import and --schedule name. */
#pragma once

#include "daemon/lib/schedule/file/imported.h"

#define SCHEDULE_FILE_BYTES_MOST (64u << 20) /* XML is longer than torusd's format */

struct schedule_file {
    char *text; /* in torusd's format (imported.h), whatever the format of the file */
    size_t length;
    struct imported *imported;
    struct schedule_report report;
};

/* Reads and verifies a file in torusd's or MSCCL's format, judged by its beginning. MSCCL's format does not contain
 * the torus, so it needs `torus`, which may otherwise be NULL. Returns 0 with *f, which the caller frees with
 * schedule_file_free(), or -1 with *e, which names the file. */
int schedule_file_read(struct schedule_file *f, const char *path, const struct torus *torus,
                       struct error *e);
void schedule_file_free(struct schedule_file *f); /* does nothing if *f is zeroed */
