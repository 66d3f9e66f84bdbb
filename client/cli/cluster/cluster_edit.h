/* Changes a cluster file that people edit: everything else in it stays as it is, byte for byte. */
#pragma once

#include "proto/error.h"

/* The functions below return a text that the caller frees, or NULL if there is not enough memory. */

/* Returns the value of a setting in a section; also NULL if the section does not have the setting. */
char *cluster_edit_get(const char *text, const char *section, const char *name);

/* Returns a copy of the text in which a setting of a section has this value. If the section has the setting, only the
 * value changes, and a comment behind it stays. Otherwise the setting is added as a line at the end of the section;
 * "rank" is added at the beginning, because the names of ports depend on it. Also returns NULL if the text has no such
 * section. */
char *cluster_edit_set(const char *text, const char *section, const char *name, const char *value);

/* Returns a copy of the text without the line of a setting. */
char *cluster_edit_remove(const char *text, const char *section, const char *name);

/* Returns a copy of the text with a new section at the end. Each of its lines ends with "\n". */
char *cluster_edit_add(const char *text, const char *section, const char *lines);

/* Replaces the text of the file `path` in one step. Follows links, and keeps mode and owner. Returns 0, or -1 with *e:
 * the file cannot be written, or its text is no longer `before`, because somebody else has changed it. */
int cluster_edit_write(const char *path, const char *before, const char *after, struct error *e);
