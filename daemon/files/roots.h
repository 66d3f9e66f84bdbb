/* Which folders may be read and written: those below the configured data roots, after resolving
 * symbolic links. */
#ifndef TORUSD_FILES_ROOTS_H
#define TORUSD_FILES_ROOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

struct roots {
    char **path; /* resolved */
    size_t count;
};

/* Adds a folder, which must exist. Returns 0, or -1 with *e. */
int roots_add(struct roots *roots, const char *path, struct error *e);
void roots_free(struct roots *roots);

/* True if the (resolved) path is a root or lies below one. */
bool roots_contain(const struct roots *roots, const char *resolved);

/* "%r" in a path is the node's rank, "%%" a per cent sign. Returns 0, or -1 with *e if the result
 * is not absolute, too long, or has another "%". `out` has room for PATH_MAX. */
int path_expand(const char *path, uint32_t rank, char *out, struct error *e);

/* Resolves an existing folder and checks it. Returns 0 with `out` (PATH_MAX), or -1 with *e. */
int roots_resolve_folder(const struct roots *roots, const char *path, char *out, struct error *e);

/* Opens a regular file for reading that lies, links resolved, below the roots. Returns the
 * descriptor; -1 with *e; or -1 with e->code == ERROR_NONE if there is no such file. */
int roots_open_file(const struct roots *roots, const char *path, struct error *e);

/* Resolves a folder that need not exist: creates the missing folders above it (their number goes to
 * *created), and checks that it lies strictly below a root. Returns 0 with `out` (PATH_MAX), or -1
 * with *e and nothing created. */
int roots_resolve_target(const struct roots *roots, const char *path, char *out, unsigned *created,
                         struct error *e);

/* Removes `created` folders above `target` again, as far as they are empty. */
void roots_remove_created(const char *target, unsigned created);

#endif
