/* A folder that holds nothing but what an exchange has put there: files named by ranks. A new result
 * may replace it, and it is removed. */
#ifndef TORUSD_FILES_TARGET_OLD_RESULT_H
#define TORUSD_FILES_TARGET_OLD_RESULT_H

#include "daemon/files/system/file_system.h"
#include "proto/error.h"

/* Whether a file of a result can have this name. */
bool old_result_is_name(const char *name);

/* Whether all that is in the open folder is a result, and can be removed. `path` is the folder's, for
 * *e. Returns 0, or -1 with *e. */
int old_result_check(const struct file_system *files, int folder, const char *path,
                     struct error *e);

#endif
