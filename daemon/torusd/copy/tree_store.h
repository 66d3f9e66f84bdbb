/* Trees of files on disks, as copies read and write them. The daemon's are in daemon/torusd/tree; the simulator has its
 * own.
 *
 * A tree is described by its manifest, and the contents of its files follow each other in one stream of bytes without
 * holes, in the order of the manifest. So a copy moves any ranges of that stream, and each writer knows from the
 * manifest where they belong. A copy goes like this:
 *
 *     reader  read_open()  walks the tree, and makes the manifest
 *     writer  write_open() finds the target, and what an interrupted copy left there
 *     writer  write_document(TREE_MANIFEST) ..., then compare(): finds what is missing or may differ, and which large
 *             files it wants digests of, because an older version of them is there
 *     reader  digest(): makes the second document, with digests of pieces of the files that any writer wants
 *     writer  write_document(TREE_DIGESTS) ..., then missing(): which ranges of the stream it lacks
 *     reader  read() and writer write(): these ranges, in any order
 *     reader  check(): nothing has changed meanwhile
 *     writer  finish(): everything is there; syncs it, and puts it in place
 *
 * All functions block: they are called in jobs (base/work.h), one at a time for a reader or writer, except read() and
 * write(), several of which may run at once (for different ranges). They return 0, or -1 with *e, which names the file.
 * A reader or writer that has failed can only be closed. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/lib/base/intervals.h"
#include "proto/error.h"

struct tree_reader;
struct tree_writer;

enum tree_document { TREE_MANIFEST, TREE_DIGESTS };
#define TREE_DOCUMENTS (TREE_DIGESTS + 1u)
#define TREE_DOCUMENT_MOST (UINT64_C(1) << 34) /* bytes */

#define TREE_PLACES_MOST 512u          /* numbers of folders that a reader tells */
#define TREE_GOING_MOST (64u * 1024u)  /* bytes of paths that would be removed */
#define TREE_WANTED_MOST (64u * 1024u) /* bytes of what compare() says */

/* What a job has done so far, for progress; and whether it shall end early (with ERROR_CANCELLED or any error). */
struct tree_progress {
    _Atomic uint64_t files, bytes;
    atomic_bool stop;
};

/* What a reader has found. Texts and lists are valid until read_close(). */
struct tree_facts {
    uint64_t size
        [TREE_DOCUMENTS]; /* bytes of the documents that have been made: all of them are there */
    uint64_t stream;      /* bytes */
    uint64_t left_out;    /* sockets, FIFOs and devices, which cannot be copied; */
    const char *first_left_out; /* path of one of them, or "" */
    uint64_t links_out; /* symbolic links that lead to places which the copy does not have */
    const char *first_link_out;
    const uint64_t *
        place; /* numbers that tell where the sources are, so that nodes which share a file system notice it */
    uint32_t places;
    /* With skip_changing, after check(): numbers of the entries of files that have changed, and are not to be put in
     * place; ascending; UINT64_MAX: a file that the manifest does not have. */
    const uint64_t *changed;
    uint32_t changes;
    const char *first_changed;
};

struct tree_read_options {
    const char *const *path; /* absolute, expanded */
    uint32_t paths;
    bool into; /* the sources keep their names; otherwise there is one, without a name */
    const char *const *pattern; /* copy_request.pattern */
    uint32_t patterns;
    bool digests;       /* the manifest has a digest of each file's contents (checksum, verify) */
    bool missing_ok;    /* a source that does not exist is an empty manifest */
    bool sizes;         /* answers of compare() have sizes (daemon/torusd/tree/digests.h) */
    bool fast_digests;  /* all nodes know fast digests of chunks (daemon/torusd/tree/digests.h) */
    bool copy_links;    /* symbolic links are followed, if they lead to a place below a data root */
    bool skip_changing; /* files that change meanwhile are left out; otherwise the copy fails */
};

struct tree_write_options {
    const char *id;   /* of the copy, for the log */
    const char *path; /* absolute, expanded */
    bool into;
    const char *const *pattern; /* names that are left out are not deleted either */
    uint32_t patterns;
    bool delete, checksum, as_it_comes;
    bool delete_root;     /* `delete` may have a data root as its target */
    uint64_t delete_most; /* as in copy_request */
    bool sizes; /* compare() tells sizes, and the report says what has grown; only with look_only */
    bool look_only; /* dry_run, verify: nothing is made or changed on the disk */
    bool
        skip_changing; /* the reader may send bytes that no file has, and say so at the end: nothing is resumed */
};

/* What a writer has done, or with look_only would do. */
struct tree_report {
    uint64_t files, folders, links;   /* of the manifest: regular files, folders, symbolic links */
    uint64_t added, changed, removed; /* entries of any kind */
    uint64_t unchanged;
    uint64_t bytes;         /* of all files of the manifest, without holes */
    uint64_t bytes_missing; /* that have to be moved */
    uint64_t not_owned;     /* entries whose owner could not be set */
    uint64_t
        not_attributed; /* entries that have extended attributes which the file system here refuses */
    uint64_t grown; /* with sizes: changed files of which the beginning is here, and nothing else */
    char first[256]; /* the first path that differs, printable; "": none does */
};

struct tree_store {
    void *context;

    /* --- reading --- */

    /* Walks the sources, without following symbolic links below them, and makes the manifest. The caller gives *r to
     * read_close(), only on success. */
    int (*read_open)(void *context, const struct tree_read_options *options,
                     struct tree_progress *progress, struct tree_reader **r, struct error *e);
    struct tree_facts (*facts)(const struct tree_reader *r);
    /* Waits until a change from now on gives every file of the tree a time that differs by at least `granularity`
     * nanoseconds from the one that was found, and that differs at all in the source. To be called before anything is
     * read; without it, a change just after the copy could leave the time as it was. It takes two seconds at most, and
     * no time for files that are older. Ends early if progress->stop is set. */
    void (*settle)(struct tree_reader *r, uint64_t granularity, struct tree_progress *progress);
    /* Makes TREE_DIGESTS, for the files that any of these answers of compare() wants. Answers come from other nodes and
     * may contain anything. */
    int (*digest)(struct tree_reader *r, const uint8_t *const *wanted, const size_t *length,
                  uint32_t answers, struct tree_progress *progress, struct error *e);
    /* Reads bytes of a document that has been made. */
    int (*read_document)(struct tree_reader *r, enum tree_document which, uint64_t offset,
                         uint8_t *bytes, size_t length, struct error *e);
    /* Reads bytes of the stream. Fails if a file has changed, unless such files are left out; a file may have grown. */
    int (*read)(struct tree_reader *r, uint64_t offset, uint8_t *bytes, size_t length,
                struct error *e);
    /* Checks that the tree has not changed since read_open(): sizes and times of files and folders, and of files that
     * have grown, that what was read of them is still there. */
    int (*check)(struct tree_reader *r, struct tree_progress *progress, struct error *e);
    void (*read_close)(struct tree_reader *r);

    /* --- writing --- */

    /* Finds the target, which only one copy may write to at a time (ERROR_BUSY). The caller gives *w to write_close(),
     * only on success. */
    int (*write_open)(void *context, const struct tree_write_options *options,
                      struct tree_writer **w, struct error *e);
    /* How much of a time the target loses, at most, in nanoseconds; 1: nothing. */
    uint64_t (*granularity)(const struct tree_writer *w);
    /* Takes bytes of a document, front to back. Documents come from another node and may contain anything. */
    int (*write_document)(struct tree_writer *w, enum tree_document which, const uint8_t *bytes,
                          size_t length, struct error *e);
    /* Before compare(): checks that the target is not among the sources of that reader, whose places() are told, nor
     * around them if the copy deletes. Numbers may be anything. */
    int (*check_places)(struct tree_writer *w, const uint64_t *place, uint32_t places,
                        struct error *e);
    /* To be called when the manifest is complete. Sets *wanted, valid until write_close(), to what digest() needs;
     * *length may be 0, and is at most TREE_WANTED_MOST. */
    int (*compare)(struct tree_writer *w, struct tree_progress *progress, const uint8_t **wanted,
                   size_t *length, struct error *e);
    /* To be called when TREE_DIGESTS is complete, or at once if no node wants it. Sets *span, valid until
     * write_close(), to at most `most` (at least 1) ranges of the stream that are missing here, ascending, not touching
     * each other; they may include bytes that are here, to be fewer. Checks that the disk has room, unless
     * look_only. */
    int (*missing)(struct tree_writer *w, uint32_t most, struct tree_progress *progress,
                   const struct interval **span, uint32_t *spans, struct error *e);
    /* Writes bytes of the stream; ignores those that are not missing here. */
    int (*write)(struct tree_writer *w, uint64_t offset, const uint8_t *bytes, size_t length,
                 struct error *e);
    /* With skip_changing, before finish(): these entries (ascending) have changed at the reader, and stay as they are
     * here. Numbers may be anything. */
    int (*leave)(struct tree_writer *w, const uint64_t *index, uint32_t count, struct error *e);
    /* Puts everything in place, durably; or with look_only only completes *report. If it fails before anything is in
     * place, everything stays as if interrupted; if it fails later, it is repeated when the daemon starts, and by the
     * next copy. It stops only before anything is in place. */
    int (*finish)(struct tree_writer *w, struct tree_progress *progress, struct error *e);
    /* With look_only, after compare(): the paths that `delete` would remove, below the target, each with a 0 byte
     * behind it; the first ones, if there are many. Returns the number of bytes; they are valid until write_close(). */
    size_t (*going)(const struct tree_writer *w, const uint8_t **paths);
    /* The report so far: complete after missing(), except what finish() has found. */
    void (*report)(const struct tree_writer *w, struct tree_report *report);
    /* Closes the writer. What has arrived stays for the next copy to the same target, for a day; unless nothing has
     * arrived, or finish() has put it in place: then nothing is left behind. */
    void (*write_close)(struct tree_writer *w);
};
