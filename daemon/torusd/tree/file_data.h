/* The data of a file: its contents without holes, as if the data before and behind each hole touched. A place is an
 * offset there.
 *
 * Functions return 0, or -1 with errno: 0 if the file ends too early, ECANCELED if progress->stop is set. The caller says
 * which file it was. `progress` may be NULL; its `bytes` grows by what is read. */
#pragma once

#include "daemon/torusd/copy/tree_store.h"
#include "daemon/torusd/tree/manifest.h"

#define FILE_DIGEST 16u /* bytes of a digest (BLAKE2b) */

struct file_data {
    uint64_t size;                       /* of the file, with holes */
    uint64_t bytes;                      /* of data */
    const struct extent_of_file *extent; /* NULL: there are no holes */
    uint32_t extents;
    uint32_t last;        /* extent that was read last, */
    uint64_t before_last; /* and bytes of data before it; 0 at first */
};

/* What an entry says about the data of its file. Valid as long as the entry. */
struct file_data file_data_of(const struct entry *entry);

/* Finds the holes of an open file of this size; the caller gives *d to file_data_free(). Data of more than
 * MANIFEST_EXTENTS_MOST extents is described with fewer and smaller holes. */
int file_data_find(int file, uint64_t size, struct file_data *d);
void file_data_free(struct file_data *d);

/* Reads data from a place on. Remembers the extent, so that the next read finds it; so each thread needs a struct of its
 * own. */
int file_data_read(int file, struct file_data *d, uint64_t place, uint8_t *bytes, size_t length);

/* Computes the digest of all data. Holes are not read: whether they are holes (or zeros) is for the caller to check. */
int file_data_digest(int file, struct file_data *d, struct tree_progress *progress,
                     uint8_t digest[FILE_DIGEST]);

/* --- copying: with the holes of both files; blocks are shared if the file system can do that --- */

/* Copies `length` bytes from a place of the data of one file to a place of that of another one. Returns 0 or -errno; -EIO
 * if the source is shorter than its data. */
int copy_data(int from, struct file_data *from_data, uint64_t from_place, int to,
              struct file_data *to_data, uint64_t to_place, uint64_t length);

/* Writes bytes to a place of the data of a file. Returns 0 or -errno. */
int copy_data_write(int file, struct file_data *d, uint64_t place, const uint8_t *bytes,
                    size_t length);

/* --- comparing with the digest of an entry --- */

/* Whether the file with this name, which has the size of the entry, has its contents: data by its digest, and zeros where
 * the entry has holes. Returns 1, 0 or -errno. */
int compare_contents(int folder, const char *name, const struct entry *entry,
                     struct tree_progress *progress);

/* The same for an open file. */
int compare_contents_of(int file, const struct entry *entry, struct tree_progress *progress);
