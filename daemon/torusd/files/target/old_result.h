/* Recognises an old result: a folder that contains only files of an exchange, named by ranks. A new result
 * may replace it. */
#pragma once

#include "daemon/torusd/files/system/file_system.h"
#include "proto/error.h"

/* Whether a file of a result can have this name. */
bool old_result_is_name(const char *name);

/* Checks that everything in the open folder belongs to a result and can be removed. `path` is that of the
 * folder, for *e. Returns 0, or -1 with *e. */
int old_result_check(const struct file_system *files, int folder, const char *path,
                     struct error *e);
