/* A folder with a file for each destination, named by the destination's rank; or a single file, the node's
 * block for itself or for all nodes. Each segment of a file is read in chunks: one is being sent while the
 * next one is read. Chunks that are in the page cache are read on the loop, if the file system can tell.
 * Other chunks wait in a queue, and each job reads as many of them as there are, up to a limit. The first
 * chunks of all files are read before the exchange starts.
 *
 * If parts of a file are skipped (source.skips), offsets, sizes and segments count only the remaining bytes,
 * and no chunk extends across a gap.
 *
 *     OPENING --files found--> OPEN --all read, finish()--> CHECKING --unchanged--> CHECKED
 */
#pragma once

#include "daemon/torusd/engine/blocks.h"
#include "daemon/torusd/files/folders.h"
#include "daemon/torusd/files/jobs.h"

#define CHUNK_LEAST (4u * 1024u)
#define CHUNK_MOST (1024u * 1024u)
#define CHUNK_PARTS (CHUNK_MOST / SLAB_SIZE)
#define READERS 4u /* most jobs of a source at a time */
#define FILE_PATH (PATH_MAX + 16)

enum source_state { OPENING, OPEN, CHECKING, CHECKED };

struct folder_source;

struct chunk {
    struct chunk *next; /* next chunk in the queue or job */
    uint64_t offset;
    uint64_t place;        /* offset of the same byte in the file */
    uint32_t file, length; /* length 0: not in use */
    bool ready;
    unsigned parts;
    struct extent part[CHUNK_PARTS];
};

/* A job that reads chunks. */
struct reading {
    struct work work;
    struct folder_source *owner;
    struct chunk *chunks; /* NULL: no job */
    struct error error;
};

/* A segment of a file; it has one run of bytes in each round. */
struct reader {
    uint64_t requested; /* where the next chunk begins */
    bool ahead;         /* chunks are read before they are needed */
    struct chunk chunk[2];
};

struct file {
    int fd;     /* -1: not kept open */
    bool there; /* false: missing, an empty block */
    /* reading never waits for a disk: all chunks except the first are read on the loop */
    bool in_memory;
    struct file_status status;
    uint64_t marked; /* mark() in the last attempt; 0: not known */
    /* Once laid out: */
    uint64_t size;         /* bytes to read, without skipped ones */
    bool small;            /* the file is one chunk */
    struct reader *reader; /* by segment; a small file has one */
    uint64_t left;         /* bytes that have not been read by the engine */
};

/* Bytes of a file that follow each other. */
struct run {
    uint64_t place;
    uint32_t length;
};

/* Bytes that are being reread. */
struct rereading {
    struct work work;
    enum { REREAD_NONE, REREADING, REREAD_DONE } state;
    uint32_t file, length;
    uint64_t offset;
    struct run *run; /* where the bytes are in the file */
    unsigned runs;
    uint8_t *bytes;
    struct error error;
};

/* How the blocks in files are cut: round_bytes a round, in segments of run_bytes each (blocks.h). */

struct segments {
    uint32_t count;
    uint64_t round_bytes, run_bytes;
};

/* Returns the segments of rounds of `round_bytes` bytes; a `count` of 0 means 1. */
static inline struct segments segments_of(uint64_t round_bytes, uint32_t count)
{
    return (struct segments){count > 1 ? count : 1, round_bytes, run_bytes(round_bytes, count)};
}

/* Returns the segments of a round that has only `bytes` bytes and is split evenly. */
static inline struct segments segments_of_rest(const struct segments *s, uint64_t bytes)
{
    return bytes < s->round_bytes
               ? (struct segments){s->count, s->round_bytes, run_bytes(bytes, s->count)}
               : *s;
}

/* Returns the segment of a byte of a block. */
static inline uint32_t segment_at(const struct segments *s, uint64_t offset)
{
    return s->count == 1 ? 0 : (uint32_t)(offset % s->round_bytes / s->run_bytes);
}

struct folder_source {
    struct source base;
    struct folders *folders;
    const struct roots *roots;     /* those of the time when it was made */
    struct jobs jobs;              /* steps: opening, checking, closing */
    struct folder_request request; /* a copy; its texts are no longer valid */
    bool *gone;                    /* request.gone */
    char folder[PATH_MAX];
    bool single; /* `folder` is the path of the file itself */
    enum source_state state;
    uint32_t small;      /* bytes: files up to this size without gaps are one chunk */
    uint32_t chunk_size; /* bytes of a chunk of other files */
    bool not_at_once;    /* the file system cannot tell which bytes are in memory */
    struct chunk *queue, **queue_end;
    unsigned readings; /* number of reading jobs */
    uint64_t waiting;  /* bytes in the queue */
    struct reading reading[READERS];
    struct slab_writer writer;
    struct file *file;
    struct reader *readers; /* of all files */
    struct segments segments;
    struct rereading rereading;
};

/* The file system of a source. */
static inline const struct file_system *source_files(const struct folder_source *s)
{
    return s->folders->files;
}

/* Writes the path of a block's file to `out`, which has room for FILE_PATH bytes. Returns `out`. */
const char *source_file_path(const struct folder_source *s, uint32_t d, char *out);

/* In a job: returns the descriptor that is kept open; or opens the file again, if it has not changed since it
 * was first opened. Returns -1 with *e on failure. */
int source_file_borrow(const struct folder_source *s, uint32_t d, struct error *e);

/* Closes a borrowed descriptor, unless it is the one that is kept open. */
void source_file_return(const struct folder_source *s, uint32_t d, int fd);

/* Starts to open the files. Returns false if there is no memory. */
bool source_open(struct folder_source *s);

/* As source_ops.opened(), size() and mark(). */
bool source_opened(struct source *base);
uint64_t source_size(struct source *base, uint32_t destination);
uint64_t source_mark(const struct source *base, uint32_t destination);

/* As source_ops.finish(). */
bool source_finish(struct source *base);
