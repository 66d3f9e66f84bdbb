/* What of the files of a copy has arrived: whole files, and parts of large ones; and the record of it in the staging, from
 * which an interrupted copy resumes.
 *
 * The record `arrived` is written about once a second, when the bytes that it names have been written, but perhaps are in
 * the system's memory only: syncing a disk while data arrives would cost the speed that copies are made for. So it counts
 * as long as the system runs, which the record's boot id tells. Once a minute the file system is synced, and the record of
 * before is kept as `arrived.synced`, which also counts after the machine has crashed. Bytes that no record names are sent
 * again. */
#ifndef TORUSD_TREE_ARRIVALS_H
#define TORUSD_TREE_ARRIVALS_H

#include "daemon/tree/spans.h"
#include "daemon/tree/staging.h"

#define ARRIVALS_FILES_OPEN 16u /* files that stay open although nobody writes to them now */
#define ARRIVALS_BUCKETS 256u

/* A file of which a part has arrived. */
struct partial {
    struct partial *next;
    uint64_t index;
    int file;           /* -1: not open */
    unsigned users;     /* writers of it now */
    uint64_t used;      /* when it was used last: the oldest are closed first */
    struct spans spans; /* of its stream, from 0 */
};

struct arrivals {
    uint64_t entries;
    uint8_t *whole; /* a bit for each entry: its file has arrived, and has its metadata */
    struct partial *partial[ARRIVALS_BUCKETS];
    size_t partials, open;
    uint64_t clock;
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
/* Closes files that nobody writes to, until few are open. */
void arrivals_close_some(struct arrivals *a);

/* Writes the record for a manifest with this digest, under this name, without syncing it. Returns 0, or -1 with *e. */
int arrivals_save(const struct arrivals *a, const struct staging *s, const char *name,
                  const uint8_t digest[16], struct error *e);
/* Takes room for a record, which is given up when the disk is full. */
void arrivals_reserve(const struct arrivals *a, const struct staging *s);
/* Reads the newest record that counts into *a, which has been initialised for that manifest. A record that is missing,
 * old or damaged says that nothing has arrived. Returns 0, or -1 with *e: no memory, or it cannot be read. */
int arrivals_load(struct arrivals *a, const struct staging *s, const uint8_t digest[16],
                  struct error *e);
/* Removes all records. */
int arrivals_forget(const struct staging *s, struct error *e);

#define ARRIVALS_SYNCED "arrived.synced"

#endif
