/* A folder with a file for each destination, named by its rank; or one file for all, which is that
 * for the node itself. Each segment of a file is read in chunks, one that is being sent and one behind
 * it. What a file has in memory anyway is read at once, where the file system can tell; all other
 * chunks wait in a queue, and a job reads as many as there are, up to a limit: the first ones of all
 * files before the exchange starts.
 *
 * Of a file of which something is skipped (source.skips) the rest is read as if it were the file: offsets,
 * sizes and segments are those of the rest, and no chunk goes on behind a gap.
 *
 *     OPENING --files found--> OPEN --all read, finish()--> CHECKING --unchanged--> CHECKED
 */
#ifndef TORUSD_FILES_SOURCE_SOURCE_RECORD_H
#define TORUSD_FILES_SOURCE_SOURCE_RECORD_H

#include "daemon/files/record/folders_record.h"
#include "daemon/files/record/jobs.h"
#include "daemon/files/source/segments.h"

#define CHUNK_LEAST (4u * 1024u)
#define CHUNK_MOST (1024u * 1024u)
#define CHUNK_PARTS (CHUNK_MOST / SLAB_SIZE)
#define READERS 4u /* jobs of a source at the same time, if there is enough */
#define FILE_PATH (PATH_MAX + 16)

enum source_state { OPENING, OPEN, CHECKING, CHECKED };

struct folder_source;

struct chunk {
    struct chunk *next; /* in the queue or in a job */
    uint64_t offset;
    uint64_t place;        /* of the same byte in the file */
    uint32_t file, length; /* length 0: not in use */
    bool ready;
    unsigned parts;
    struct extent part[CHUNK_PARTS];
};

/* Reads chunks. */
struct reading {
    struct work work;
    struct folder_source *owner;
    struct chunk *chunks; /* NULL: no job */
    struct error error;
};

/* A segment of a file: in each round one run of bytes. */
struct reader {
    uint64_t requested; /* where the next chunk begins */
    bool ahead;         /* chunks are read before they are asked for */
    struct chunk chunk[2];
};

struct file {
    int fd;         /* -1: not held open, */
    bool there;     /* or missing, an empty block */
    bool in_memory; /* reading never waits: all but the first chunk is read at once */
    struct file_status status;
    uint64_t marked; /* what mark() was before; 0: not known */
    /* Once laid out: */
    uint64_t size;         /* of what is to be read, */
    bool small;            /* which is one chunk */
    struct reader *reader; /* by segment; a small file has one */
    uint64_t left;         /* bytes that have not been asked for */
};

/* So many bytes of a file that follow each other. */
struct run {
    uint64_t place;
    uint32_t length;
};

/* Bytes that were read before. */
struct again {
    struct work work;
    enum { AGAIN_NONE, AGAIN_READING, AGAIN_READ } state;
    uint32_t file, length;
    uint64_t offset;
    struct run *run; /* where they are */
    unsigned runs;
    uint8_t *bytes;
    struct error error;
};

struct folder_source {
    struct source base;
    struct folders *folders;
    struct jobs jobs;              /* steps: opening, checking, closing */
    struct folder_request request; /* its strings are not kept: */
    bool *gone;                    /* request.gone */
    char folder[PATH_MAX];
    bool single; /* it is the file itself */
    enum source_state state;
    uint32_t small; /* files up to this size, without gaps, are one chunk, */
    uint32_t
        chunk_size;   /* others several of so much, or less at the end of a run or before a gap */
    bool not_at_once; /* the file system cannot tell what it has in memory */
    struct chunk *queue, **queue_end;
    unsigned readings; /* jobs */
    uint64_t waiting;  /* bytes in the queue */
    struct reading reading[READERS];
    struct slab_writer writer;
    struct file *file;
    struct reader *readers; /* of all files */
    struct segments segments;
    struct again again;
};

/* The file system of a source. */
static inline const struct file_system *source_files(const struct folder_source *s)
{
    return s->folders->files;
}

#endif
