/* Changes a cluster file that people edit: everything else in it stays as it is, byte for byte. */
#ifndef TORUSD_CLI_CLUSTER_EDIT_H
#define TORUSD_CLI_CLUSTER_EDIT_H

#include "proto/error.h"

/* Returns the value of a setting of a section, which the caller frees, or NULL: the section does not set it, or memory
 * is short. */
char *cluster_edit_get(const char *text, const char *section, const char *name);

/* Returns a copy of the text, to be freed, in which this setting of a section has this value. Where the setting is, only
 * its value changes, and a comment behind it stays. Otherwise it gets a line of its own at the end of the section; "rank"
 * at its beginning, because ports depend on it. NULL: there is no such section, or no memory. */
char *cluster_edit_set(const char *text, const char *section, const char *name, const char *value);

/* Returns a copy of the text without the line of this setting. The caller frees it. Returns NULL if memory is short. */
char *cluster_edit_remove(const char *text, const char *section, const char *name);

/* Returns a copy of the text, to be freed, with a new section at its end, which has these lines (each ends with "\n").
 * NULL: there is no memory. */
char *cluster_edit_add(const char *text, const char *section, const char *lines);

/* Replaces the file `path`, which has the text `before`, at once. Links are followed, and mode and owner stay. Returns
 * 0, or -1 with *e: the file has been changed meanwhile, or cannot be written. */
int cluster_edit_write(const char *path, const char *before, const char *after, struct error *e);

#endif
