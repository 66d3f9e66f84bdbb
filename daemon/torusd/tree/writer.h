/* The writing half of tree_store.h: what comes from another node is put onto this machine's disk. staging.h has where,
 * install.h how it gets its names. Its parts share the record of a writer. */
#pragma once

#include <pthread.h>

#include "daemon/torusd/tree/arrivals.h"
#include "daemon/torusd/tree/digests.h"
#include "daemon/torusd/tree/install.h"
#include "daemon/torusd/tree/metadata.h"
#include "daemon/torusd/tree/removal.h"
#include "daemon/torusd/tree/staging.h"
#include "daemon/torusd/tree/tree_files.h"

#define WRITER_CURSORS 16u /* that are kept for later calls of write() */

struct writer_cursor {
    struct manifest_cursor *cursor;
    uint64_t next; /* place in the stream where it goes on; UINT64_MAX: not known */
};

struct tree_writer {
    struct tree_files *files;
    char id[128];
    struct complete rules;
    bool checksum, look_only;
    bool sizes;           /* files that have grown are told */
    bool delete_root;     /* rules.delete may have a data root as its target */
    uint64_t delete_most; /* 0: no limit; otherwise one more than the entries that may be removed */
    bool skip_changing; /* arriving bytes may belong to no file, so later copies do not use them */
    struct patterns *patterns;
    struct staging staging;
    struct metadata_rules metadata;
    struct stored stored;
    int document[TREE_DOCUMENTS]; /* -1: no bytes yet */
    uint64_t document_size[TREE_DOCUMENTS];
    struct manifest manifest;
    uint8_t *state; /* STATE_..., for each entry; NULL before compare() */
    struct wanted *wanted;
    struct intervals missing;
    struct tree_report report;
    struct removal_paths going;
    uint64_t old_bytes; /* that older versions of files take up */
    bool
        tight; /* there is no room for all new files at once, so that older versions are not copied */
    bool inherited; /* the staging belongs to this manifest */
    bool placed;    /* finish() has succeeded */

    /* Shared by the threads that write. */
    pthread_mutex_t lock;
    struct arrivals arrivals;
    bool has_arrivals; /* files or parts of files are in the staging */
    struct writer_cursor cursor[WRITER_CURSORS];
    struct timespec saved, synced; /* when the record was written last */
    pthread_mutex_t install_lock;
    struct install install; /* as_it_comes */
    bool install_open;
};

/* Finds out what an interrupted copy has left, for the new manifest. compare() has checked it. Returns 0, or -1 with
 * *e. */
int writer_inherit(struct tree_writer *w, struct tree_progress *progress, struct error *e);

/* Copies pieces of older versions, which TREE_DIGESTS names, into the new files. Returns 0, or -1 with *e. */
int writer_use_old(struct tree_writer *w, struct tree_progress *progress, struct error *e);

/* The new file of an entry is complete: checks its digest, gives it its metadata, and notes that it has arrived; puts
 * it in place if the copy does that as it comes. Closes `file`, and forgets the partial file. Returns 0, or -1 with *e:
 * nothing of it is used. */
int writer_complete_file(struct tree_writer *w, const struct entry *entry, int file,
                         struct error *e);

/* Writes the record of what has arrived, if the record is due, or if `now`. Returns 0, or -1 with *e. */
int writer_save(struct tree_writer *w, bool now, struct error *e);

/* Fills *e: a new file for the entry cannot be `done`. Returns -1. */
int writer_file_failed(const struct tree_writer *w, const struct entry *entry, const char *done,
                       int error, struct error *e);

/* Notes the first path that differs, for the report. */
void writer_note_first(struct tree_writer *w, const char *path);

/* Functions of the store (tree_store.h). */
int writer_compare(struct tree_writer *w, struct tree_progress *progress, const uint8_t **wanted,
                   size_t *length, struct error *e);
int writer_missing(struct tree_writer *w, uint32_t most, struct tree_progress *progress,
                   const struct interval **span, uint32_t *spans, struct error *e);
int writer_write(struct tree_writer *w, uint64_t offset, const uint8_t *bytes, size_t length,
                 struct error *e);
