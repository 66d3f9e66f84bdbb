/* Which files of a copy have arrived, large ones perhaps in part, and the record of that in the staging, from which an
 * interrupted copy resumes.
 *
 * The record `arrived` is written about once a second, when the bytes that it names have been written, but perhaps are
 * in the system's memory only: syncing a disk while data arrives would cost the speed that copies are made for. So it
 * counts as long as the system runs, which the record's boot id tells. Once a minute the file system is synced, and the
 * previous record is kept as `arrived.synced`, which also counts after the machine has crashed. Bytes that no record
 * names are sent again.
 *
 * A record counts for a file only if nobody has written to that file since. For whole files, `stamps` has a number for
 * each entry, which is written when its file is complete (file_stamp.h). For a file of which a part has arrived, the
 * record has the stamp, which counts if no writer was at work when the daemon ended; otherwise the record's digests of
 * the pieces tell which of them are right. */
#pragma once

#include <sys/stat.h>

#include "daemon/lib/base/intervals.h"
#include "daemon/torusd/tree/file_data.h"
#include "daemon/torusd/tree/staging.h"

#define ARRIVALS_FILES_OPEN 16u /* files that stay open although nobody writes to them now */
#define ARRIVALS_BUCKETS 256u

#define ARRIVALS_PIECE_LEAST 16384u     /* pieces that are shorter on average are not all noted */
#define ARRIVALS_PIECE_MOST (64u << 20) /* longer ones are not noted */

/* Bytes of a stream that arrived together. */
struct arrived_piece {
    uint64_t begin, end, digest;
};

/* A file of which a part has arrived. */
struct partial {
    struct partial *next;
    uint64_t index;
    int file;                    /* -1: not open */
    unsigned users;              /* writers of it now */
    uint64_t used;               /* when it was used last: the oldest are closed first */
    struct intervals spans;      /* of its stream, from 0 */
    uint64_t stamp;              /* of the file when it was closed last */
    struct arrived_piece *piece; /* what of `spans` can be checked when the stamp differs */
    size_t pieces, pieces_room;
};

struct arrivals {
    uint64_t entries;
    uint8_t *whole; /* a bit for each entry: its file has arrived, and has its metadata */
    struct partial *partial[ARRIVALS_BUCKETS];
    size_t partials, open;
    uint64_t clock;
    int stamps; /* the file with the stamps of whole files; -1: not open */
};

/* Returns 0, or -1: no memory. */
int arrivals_init(struct arrivals *a, uint64_t entries);
void arrivals_free(struct arrivals *a);

static inline bool arrivals_whole(const struct arrivals *a, uint64_t index)
{
    return ((unsigned)a->whole[index / 8] >> index % 8 & 1u) != 0;
}

static inline void arrivals_set_whole(struct arrivals *a, uint64_t index)
{
    a->whole[index / 8] = (uint8_t)(a->whole[index / 8] | 1u << index % 8);
}

/* The partial file of an entry; NULL: there is none. */
struct partial *arrivals_find(const struct arrivals *a, uint64_t index);
/* Adds one, which is not open. Returns NULL: no memory. */
struct partial *arrivals_add(struct arrivals *a, uint64_t index);
/* Forgets one, and closes its file. */
void arrivals_remove(struct arrivals *a, struct partial *p);
/* Takes the descriptor of one that is open, and notes the file's stamp. Returns it: the caller closes it. */
int arrivals_take_file(struct arrivals *a, struct partial *p);
/* Closes files that nobody writes to, until few are open. */
void arrivals_close_some(struct arrivals *a);

/* Notes the digest of a piece, if it has something that has not arrived yet. Without memory, or if there are too many,
 * the piece is not noted, and counts only as long as the stamp is right. */
void arrivals_note_piece(struct partial *p, struct arrived_piece piece, uint64_t bytes);

/* Opens the stamps that a staging has. Returns 1; 0 if it has none, because it is from an earlier release; or -1 with
 * *e. */
int arrivals_find_stamps(struct arrivals *a, const struct staging *s, struct error *e);
/* Opens `stamps`, and makes them if there are none. Returns 0, or -1 with *e. */
int arrivals_open_stamps(struct arrivals *a, const struct staging *s, struct error *e);
/* Notes that a file is whole, and how it is now. Only where several threads cannot meet. */
void arrivals_stamp_whole(const struct arrivals *a, uint64_t index, const struct stat *st);
/* Whether a whole file is still as it was noted. */
bool arrivals_whole_is_same(const struct arrivals *a, uint64_t index, const struct stat *st);
/* Checks that the whole file of an entry, if it is in the staging, is as it was noted; without stamps, that it has its
 * size. Returns 0, or -1 with *e. */
int arrivals_check_staged(const struct arrivals *a, const struct staging *s,
                          const struct entry *entry, struct error *e);
/* The stamp of the file of which a part has arrived. */
uint64_t arrivals_stamp_of(uint64_t index, const struct stat *st);
/* Reads a file whose stamp differs, and leaves of p->spans only the pieces that are right. Returns 0 or -errno. */
int arrivals_check_pieces(struct partial *p, int file, const struct file_data *data,
                          const struct tree_progress *progress);

/* Writes the record for a manifest with this digest, under this name, without syncing it. Returns 0, or -1 with *e. */
int arrivals_save(const struct arrivals *a, const struct staging *s, const char *name,
                  const uint8_t digest[16], struct error *e);
/* Takes room for a record after this number of bytes has arrived, too; the room is given up when the disk is full. */
void arrivals_reserve(const struct arrivals *a, const struct staging *s, uint64_t bytes);
/* Reads the newest record that counts into *a, which has been initialised for that manifest. A record that is missing,
 * old or damaged says that nothing has arrived. Returns 0, or -1 with *e: no memory, or it cannot be read. */
int arrivals_load(struct arrivals *a, const struct staging *s, const uint8_t digest[16],
                  struct error *e);
/* Removes all records. */
int arrivals_forget(const struct staging *s, struct error *e);

#define ARRIVALS_SYNCED "arrived.synced"
#define ARRIVALS_STAMPS "stamps"
