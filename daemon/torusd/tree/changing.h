/* Files of a source that change while a copy reads them.
 *
 * A file that grows is not an error: the bytes that it had when it was found are a valid copy if they have not changed
 * since. So the walk notes a sample of each file that was written to a short time before; the digest of everything that
 * is read is also noted, in a temporary file. At the end, files that have grown are compared with their sample, with
 * what was read of them, with the digests that were sent of them, and with the digest that the manifest has.
 *
 * Files that change in any other way fail the copy; or, if that was asked for, are left out: other bytes are sent in
 * place of theirs, and the writers are told at the end to leave these files as they are. */
#pragma once

#include <pthread.h>

#include "daemon/torusd/tree/digests.h"
#include "daemon/torusd/tree/manifest.h"
#include "daemon/torusd/tree/tree_files.h"

#define CHANGING_LEFT_OUT                                                                          \
    (-2) /* result of functions: the file is left out, and the copy continues */
#define CHANGING_NOTES 1024u
#define CHANGING_RECENT                                                                            \
    600 /* seconds since its last change in which a file may be one that grows */

/* Bytes of the stream that were read together from one file; or a sample of a file of this length. */
struct read_note {
    uint64_t begin; /* or NOTE_SAMPLE and the number of its entry */
    uint64_t length, digest;
};
#define NOTE_SAMPLE (UINT64_C(1) << 63)

struct changing {
    bool skip; /* files that change are left out */
    pthread_mutex_t lock;
    int file;         /* of the notes; -1: none */
    uint64_t written; /* bytes in the file */
    unsigned used;
    bool incomplete; /* notes could not be written, so files that have grown cannot be checked */
    struct read_note note[CHANGING_NOTES];
    /* files that were left out: numbers of their entries */
    uint64_t *index;
    uint32_t count;
    size_t room;
    struct shown_path first;
};

/* `file` is empty and temporary, and is closed in the end. */
void changing_init(struct changing *c, int file, bool skip);
void changing_free(struct changing *c);

/* Notes a sample of an open file, as it was found, if it may be one that grows. */
void changing_note_sample(struct changing *c, int file, const struct entry *entry);
/* Notes bytes of a file that were read at this place of the stream. Several threads may call it. */
void changing_note(struct changing *c, uint64_t begin, const uint8_t *bytes, size_t length);

/* Leaves out the entry with this number (UINT64_MAX: it has none), if files that change are left out; its path is
 * `above` and `below`. Returns CHANGING_LEFT_OUT, or -1 if it is not: the caller says why. Several threads may call
 * it. */
int changing_leave_out(struct changing *c, uint64_t index, const char *above, const char *below);
/* Sorts the numbers of files that were left out, each once. */
void changing_finish(struct changing *c);

/* A file that has grown, when it is looked at again. */
struct grown {
    uint64_t index, begin, end; /* its entry, and where it is in the stream */
};

/* Compares what was noted with files that have grown, in the order of their entries. differs() is called for each that
 * has other bytes than were sent; open() opens one. Both return 0, or -1 with *e, except that open() returns a
 * descriptor, or CHANGING_LEFT_OUT. `digests`: the document TREE_DIGESTS and its size; -1: none was made. Returns 0, or
 * -1 with *e. */
struct changing_sources {
    void *context;
    const struct manifest *manifest;
    int digests;
    uint64_t digests_size;
    struct tree_progress *progress; /* may be NULL */
    int (*open)(void *context, const struct entry *entry, struct error *e);
    int (*differs)(void *context, const struct entry *entry, struct error *e);
};
int changing_check_grown(struct changing *c, const struct grown *grown, size_t count,
                         const struct changing_sources *sources, struct error *e);
