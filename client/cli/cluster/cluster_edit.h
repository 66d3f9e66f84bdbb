/* Changes a cluster file that people edit: everything else in it stays as it is. */
#ifndef TORUSD_CLI_CLUSTER_EDIT_H
#define TORUSD_CLI_CLUSTER_EDIT_H

/* Returns a copy of the text, to be freed, in which this setting of a section has this value: in the line where it was,
 * or in a new one at the end of the section. NULL: there is no such section, or no memory. */
char *cluster_edit_set(const char *text, const char *section, const char *name, const char *value);

#endif
