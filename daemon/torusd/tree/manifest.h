/* The manifest of a tree: one entry for each file, folder and link, sorted by path. It is made in a temporary file,
 * checked completely where it arrives, and read in order, or from any entry on, through a small buffer: a tree of
 * 10^6 files takes a bounded amount of memory.
 *
 * Paths are relative, without "." and "..", names of any bytes except 0 and '/'. The path "" is the one source of a
 * copy that gives it another name; it is then the first entry. A folder comes before what it holds: paths are compared
 * as if '/' were the smallest byte.
 *
 * On disks and between nodes a manifest is: a head, then entries of variable length, then the numbers of entries that hard
 * links lead to, then an index with the place in the manifest and the begin in the stream of every MANIFEST_STRIDE-th
 * entry, and at its end the digest of everything before. Numbers are little-endian; manifest_format.h defines each field. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "proto/error.h"

#define MANIFEST_STRIDE 256u
#define MANIFEST_PATH_MOST 4095u /* bytes of a path */
#define MANIFEST_EXTENTS_MOST                                                                      \
    65536u /* of a sparse file; more are joined, and small holes become data */
#define MANIFEST_ATTRIBUTES_MOST 65536u /* bytes of the extended attributes of an entry */

enum entry_kind {
    ENTRY_FOLDER = 1,
    ENTRY_FILE,
    ENTRY_SYMLINK,
    ENTRY_HARDLINK, /* to an earlier entry, which is an ENTRY_FILE */
};

/* A part of a sparse file that is data. */
struct extent_of_file {
    uint64_t offset, length;
};

struct entry {
    uint64_t index; /* its number, from 0 */
    enum entry_kind kind;
    const char *path; /* ends with a 0 byte; valid until the next call */
    size_t path_length;
    mode_t mode; /* permissions, with set-user-ID, set-group-ID and sticky bits */
    uid_t owner;
    gid_t group;
    struct timespec modified;
    uint64_t size; /* of a file, with holes */
    uint64_t begin,
        bytes; /* place in the stream, and length there: `size` without holes; 0 except for files */
    const struct extent_of_file *extent; /* rising, not touching; NULL: the file has no holes */
    uint32_t extents;
    const char *link; /* of a symbolic link: its text; of a hard link: path of the earlier entry */
    uint64_t linked;  /* of a hard link: index of that entry */
    const uint8_t *
        attributes; /* extended attributes: name, 0 byte, 4 bytes length, value, and so on; sorted */
    uint32_t attributes_length;
    bool has_digest;
    uint8_t digest[16]; /* of a file's contents without holes (BLAKE2b) */
};

/* --- making one --- */

struct manifest_maker;

/* Makes a manifest in an open, empty file, which the caller keeps open and closes. Returns NULL with *e. */
struct manifest_maker *manifest_maker_new(int file, struct error *e);
/* Adds an entry behind all others: checks it and the order, and sets entry->index, entry->begin and entry->bytes. */
int manifest_maker_add(struct manifest_maker *m, struct entry *entry, struct error *e);
/* Completes it. Returns 0 with the size of the manifest and of the stream in bytes. */
int manifest_maker_finish(struct manifest_maker *m, uint64_t *size, uint64_t *stream,
                          struct error *e);
void manifest_maker_free(struct manifest_maker *m);

/* --- reading one --- */

struct manifest {
    int file; /* borrowed */
    uint64_t size, stream, entries;
    uint64_t files, folders, symlinks, hardlinks;
    uint8_t digest[16]; /* identifies the manifest */
};

/* Opens a manifest of `size` bytes in a file, and checks all of it: every field of every entry, the order, that parents
 * are there and are folders, hard links, extents, the index and the digest. It may contain anything. Returns 0, or -1
 * with *e (ERROR_PROTOCOL; ERROR_IO; ERROR_MEMORY). */
int manifest_open(struct manifest *m, int file, uint64_t size, struct error *e);

/* Reads entries. Several cursors may read one manifest at the same time, also in several threads. */
struct manifest_cursor;
struct manifest_cursor *manifest_cursor_new(const struct manifest *m); /* NULL: no memory */
void manifest_cursor_free(struct manifest_cursor *c);
/* Returns 1 with the next entry, valid until the next call; 0 behind the last one; -1 with *e. */
int manifest_next(struct manifest_cursor *c, struct entry *entry, struct error *e);
/* Go to an entry by its number; to the file that holds a byte of the stream. manifest_next() returns it, or 0 if the
 * number is that of no entry, or the stream ends before. */
int manifest_seek_index(struct manifest_cursor *c, uint64_t index, struct error *e);
int manifest_seek_stream(struct manifest_cursor *c, uint64_t offset, struct error *e);

/* Calls each() for every entry, in order, until it fails. Returns 0, or -1 with *e. */
int manifest_each(const struct manifest *m,
                  int (*each)(void *context, const struct entry *entry, struct error *e),
                  void *context, struct error *e);

/* Compares two paths in the order of a manifest: negative, 0 or positive. */
int manifest_compare_paths(const char *a, const char *b);

/* Whether a path is in the folder with the path `folder`, whose length is `length`; 0: the top. */
bool manifest_path_is_in(const char *path, const char *folder, size_t length);
