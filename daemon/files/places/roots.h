/* Which folders may be read and written: those below the configured data roots. The roots are
 * opened once; whatever lies below one is reached from its descriptor, without passing through a
 * symbolic link. */
#ifndef TORUSD_FILES_PLACES_ROOTS_H
#define TORUSD_FILES_PLACES_ROOTS_H

#include "daemon/files/system/file_system.h"
#include "proto/error.h"

struct roots {
    const struct file_system *files;
    struct root *root;
    char **path; /* the same roots' paths, links resolved */
    size_t count;
};

/* Something at a root or below it. */
struct place {
    size_t root;
    char path[PATH_MAX]; /* from there: "." or components with one "/" between them; no ".." */
};

/* Opens an existing folder as a root. All roots are of one file system. Returns 0, or -1 with *e.
 */
int roots_add(struct roots *roots, const struct file_system *files, const char *path,
              struct error *e);
void roots_free(struct roots *roots);

/* The descriptor of a place's root, which stays the root's. */
int roots_folder(const struct roots *roots, const struct place *place);

/* "%r" in a path is the node's rank, "%%" a per cent sign. Returns 0, or -1 with *e if the result
 * is not absolute, too long, or has another "%". `out` has room for PATH_MAX. */
int path_expand(const char *path, uint32_t rank, char *out, struct error *e);

/* Where an absolute path lies, as far as its text tells: below the path of a root as it was given,
 * or as it was resolved. Touches no disk. Returns 0 with *place, or -1 with *e: not below a root,
 * or there is a ".." in it. */
int roots_find(const struct roots *roots, const char *path, struct place *place, struct error *e);

/* The same for a folder that is to be created: it lies strictly below a root and has a name. */
int roots_find_target(const struct roots *roots, const char *path, struct place *place,
                      struct error *e);

/* Opens what exists for reading. Links in the path are followed, provided that what they lead to
 * lies below a root. Returns the descriptor, which the caller closes, with *place and *status; -1
 * with *e; or -1 with e->code == ERROR_NONE if there is no such file. */
int roots_open(const struct roots *roots, const char *path, struct place *place,
               struct file_status *status, struct error *e);

/* Refuses a state folder that a reboot empties beside data roots that survive it: an exchange that
 * was being committed would be completed on some nodes and removed on others. Returns 0, or -1 with
 * *e. */
int roots_check_state_folder(const struct roots *roots, const char *path, int folder,
                             struct error *e);

#endif
