/* The folders that exchanges may read and write: the configured data roots and everything below them. Roots
 * are opened when the settings are read. Files below a root are opened relative to its descriptor, without following symbolic
 * links. */
#pragma once

#include "daemon/torusd/disk/file_system.h"
#include "proto/error.h"

struct roots {
    const struct file_system *files;
    struct root *root;
    char **path; /* paths of the roots, links resolved */
    size_t count;
};

/* A file or folder at a root or below it. */
struct location {
    size_t root;
    /* relative to the root: "." or components with one "/" between them; no ".." */
    char path[PATH_MAX];
};

/* Sets *above to the folder above a place, and returns the name of the place in it, which is valid as long as *place. A root
 * is "." in itself. */
const char *location_split(const struct location *place, struct location *above);

/* Opens an existing folder as a root. All roots use the same `files`. Returns 0, or -1 with *e.
 */
int roots_add(struct roots *roots, const struct file_system *files, const char *path,
              struct error *e);
/* Closes all roots, and frees their memory. */
void roots_free(struct roots *roots);

/* Returns the path of a root as configured; borrowed. */
const char *roots_name(const struct roots *roots, size_t root);

/* Returns the descriptor of a place's root; borrowed. */
int roots_folder(const struct roots *roots, const struct location *place);

/* Opens the folder with this path below the root of a place. Returns its descriptor or -errno. */
int roots_open_folder(const struct roots *roots, const struct location *place, const char *path);

/* Whether two sets have the same roots, as configured, in the same order. */
bool roots_are_same(const struct roots *a, const struct roots *b);

/* Replaces "%r" in a path by the node's rank, "%%" by a per cent sign. Returns 0, or -1 with *e if the
 * result is not absolute, is too long, or has another "%". `out` has room for PATH_MAX bytes. */
int path_expand(const char *path, uint32_t rank, char *out, struct error *e);

/* Finds the place of an absolute path by comparing its text with the paths of the roots, as configured and as
 * resolved. Touches no disk. Returns 0 with *place, or -1 with *e: the path is not below a root, or contains
 * "..". */
int roots_find(const struct roots *roots, const char *path, struct location *place,
               struct error *e);

/* Finds the place of a folder that will be created. Like roots_find(), but the path must be strictly below a
 * root, and end with a name. */
int roots_find_target(const struct roots *roots, const char *path, struct location *place,
                      struct error *e);

/* Opens an existing file or folder for reading. Links in the path are followed if they lead to a place
 * below a root. Returns the descriptor, which the caller closes, with *place and *status; -1 with *e; or -1
 * with e->code == ERROR_NONE if there is no such file. */
int roots_open(const struct roots *roots, const char *path, struct location *place,
               struct file_status *status, struct error *e);

/* Refuses a state folder that a reboot empties while the data roots survive: an exchange whose commit the
 * reboot interrupts would be completed on some nodes and removed on others. Returns 0, or -1 with *e. */
int roots_check_state_folder(const struct roots *roots, const char *path, int folder,
                             struct error *e);
