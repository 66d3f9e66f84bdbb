/* An output folder with a file from each source, named by its rank (target.h: how it lies on the
 * disk):
 *
 *     OPENING  --prepared---> PREPARED --lay_out()--> MAKING  --files made--> FILLING
 *     FILLING  --finish()---> SYNCING  --on disk, entry in the journal--> FINISHED
 *     FINISHED --commit()---> PLACING  --renamed--> PLACED, or back to FINISHED if it cannot be
 *
 * Until PLACING it may be parked, and go on as the output of the next attempt: back to OPENING when nothing
 * of the last one is under way any more, and everything that had come is written; then its temporary folder gets
 * the next one's name. */
#ifndef TORUSD_FILES_SINK_SINK_RECORD_H
#define TORUSD_FILES_SINK_SINK_RECORD_H

#include "daemon/files/record/folders_record.h"
#include "daemon/files/record/jobs.h"
#include "daemon/files/target/target_record.h"

#define WRITERS 4u /* jobs of a sink at the same time, */
#define PARTS 4u   /* jobs that make or sync files, each a part of them */
#define NONE UINT32_MAX

enum sink_state { OPENING, PREPARED, MAKING, FILLING, SYNCING, FINISHED, PLACING, PLACED };

struct piece {
    struct piece *next;
    uint32_t origin;
    uint64_t offset;
    struct extent bytes;
};

/* A file of the output, by origin. */
struct output {
    int fd;          /* the job's while it writes; -1: not open, */
    bool made;       /* and whether it has been */
    bool written;    /* there are bytes in it */
    uint64_t unsent; /* bytes since start_sync() */
    uint64_t limit;  /* bytes that may be there when it is made once more */
    bool queued, writing;
    struct piece *first, *last;
    uint32_t next; /* in the queue */
};

struct writer {
    struct work work;
    struct folder_sink *owner;
    struct piece *pieces; /* NULL: no job. Those of one file come one after the other */
    struct error error;
};

/* A job with the files from `first` on. */
struct part {
    struct work work;
    struct folder_sink *owner; /* NULL: no job */
    uint32_t first, end;
    struct error error;
};

struct folder_sink {
    struct sink base;
    struct open_sink open; /* in folders->sinks */
    struct folders *folders;
    struct jobs jobs;              /* steps: preparing, sealing, placing, closing */
    struct folder_request request; /* its strings are not kept */
    bool *gone;                    /* request.gone */
    enum sink_state state;
    bool anew;          /* it is to go on as the output of another attempt, open.id, */
    bool *next_gone;    /* where these take no part */
    struct place place; /* of the target; no other sink's */
    struct target target;
    struct output *output;
    uint32_t queue, queue_end; /* of files with pieces that wait; NONE */
    struct slab_writer kept;   /* of them, what does not stay in the slab that it came in */
    uint64_t pending;          /* bytes, */
    uint64_t waiting;          /* and those of them that no job has, */
    uint64_t warm;             /* of which so many have come since write_at_once() */
    unsigned writing;          /* jobs */
    struct writer writer[WRITERS];
    struct part part[PARTS];
    void (*run_part)(struct work *work);
    int (*parts_over)(struct folder_sink *s); /* returns 0, or -1 without memory */
    unsigned parts;                           /* under way */
    uint32_t rest;                            /* the first file that none of them has, or has had */
    bool in_memory;                           /* writing never waits */
    bool due;                                 /* pieces have come since folder_sinks_flush() */
    bool keep, not_placed, not_removed;
};

/* The file system of a sink. */
static inline const struct file_system *sink_files(const struct folder_sink *s)
{
    return s->folders->files;
}

#endif
