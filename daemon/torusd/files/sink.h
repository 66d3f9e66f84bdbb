/* An output folder with one file per source, named by the source's rank. target.h describes the folder on the
 * disk. The states of a sink:
 *
 *     OPENING  --prepared---> PREPARED --lay_out()--> MAKING  --files made--> FILLING
 *     FILLING  --finish()---> SYNCING  --on disk, entry in the journal--> FINISHED
 *     FINISHED --commit()---> PLACING  --renamed--> PLACED, or back to FINISHED if it cannot be
 *
 * Before PLACING the sink may be kept for the next attempt. When no job is under way and all received bytes
 * are written, the sink returns to OPENING, and its temporary folder is renamed to the name of the next
 * attempt. */
#pragma once

#include "daemon/torusd/files/folders.h"
#include "daemon/torusd/files/jobs.h"
#include "daemon/torusd/files/target.h"

#define WRITERS 4u /* most jobs at a time that write pieces of a sink */
#define PARTS 4u   /* most jobs at a time that make or sync files, each a part of them */
#define NONE UINT32_MAX

enum sink_state { OPENING, PREPARED, MAKING, FILLING, SYNCING, FINISHED, INSTALLING, INSTALLED };

struct piece {
    struct piece *next;
    uint32_t origin;
    uint64_t offset;
    struct extent bytes;
};

/* A file of the output, by origin. */
struct output {
    int fd;            /* used only by the job that writes the file; -1: not open */
    bool made;         /* the file has been made */
    bool written;      /* bytes have been written */
    uint64_t stamp;    /* of the file when torusd had written to it last (file_stamp.h) */
    uint64_t unsynced; /* bytes written since the last start_sync() */
    uint64_t limit;    /* bytes of the last attempt that stay when the next one lays out the file */
    bool queued, writing;
    struct piece *first, *last;
    uint32_t next; /* next file in the queue */
};

struct writer {
    struct work work;
    struct folder_sink *owner;
    struct piece *pieces; /* NULL: no job. The pieces of one file follow each other */
    struct error error;
};

/* A job that makes or syncs the files from `first` up to, but without, `end`. */
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
    struct folder_request request; /* a copy; its texts are no longer valid */
    bool *gone;                    /* request.gone */
    enum sink_state state;
    bool is_retried;      /* attempt open.id waits to take over this output */
    bool *next_gone;      /* nodes that take no part in that attempt */
    struct target target; /* no other sink has the same path */
    struct output *output;
    uint32_t queue, queue_end; /* first and last file with waiting pieces; NONE: there are none */
    struct slab_writer kept;   /* copies of waiting bytes that do not stay in their slab */
    uint64_t pending;          /* received bytes that are not written */
    uint64_t waiting;          /* bytes of `pending` that no job writes yet */
    uint64_t in_cache;         /* bytes that have arrived since write_at_once() */
    unsigned writing;          /* number of writing jobs */
    struct writer writer[WRITERS];
    struct part part[PARTS];
    void (*run_part)(struct work *work);
    int (*parts_over)(struct folder_sink *s); /* returns 0, or -1 without memory */
    unsigned parts;                           /* number of parts under way */
    uint32_t next_file;                       /* the first file that no part has taken yet */
    bool in_memory;                           /* writing never waits for a disk */
    bool has_new_pieces;                      /* pieces have arrived since folders_flush() */
    bool keep_output, not_installed, not_removed;
};

/* The file system of a sink. */
static inline const struct file_system *sink_files(const struct folder_sink *s)
{
    return s->folders->files;
}

/* Opens the file of `origin`, or makes it. Returns its descriptor, or -1 with *e. */
int output_open(struct folder_sink *s, uint32_t origin, struct error *e);

/* To be called at the end of a job: keeps the file open if a descriptor can be reserved; otherwise closes
 * it. */
void output_leave(struct folder_sink *s, uint32_t origin, int fd);

/* Checks that the name of the file still leads to the file as torusd has left it. Returns 1; 0 if it does not, with *kind;
 * or -errno (-ENOENT: there is none). */
int output_is_there(const struct folder_sink *s, uint32_t origin, enum file_kind *kind);

/* Closes the file if it was kept open. */
void output_close(struct folder_sink *s, uint32_t origin);

/* Starts to write the file's bytes from memory to the disk. */
void output_start_sync(struct folder_sink *s, struct output *o, int fd);

/* Cuts off bytes of an earlier attempt that cannot be kept (output.limit). Returns 0, or -1 with *e. */
int output_limit(struct folder_sink *s, uint32_t origin, int fd, struct error *e);

/* Whether the file of `origin` gets a block. */
bool output_has_block(const struct folder_sink *s, uint32_t origin);

/* Starts to prepare the target. Returns false if there is no memory. */
bool attempt_prepare(struct folder_sink *s);

/* To be called whenever a job is over: if a next attempt waits for the output and no job is under way, starts
 * it. Returns whether a next attempt waits. */
bool attempt_start_next(struct folder_sink *s);

/* As sink_ops.keep_output(), lost() and limit(). */
bool sink_keep_output(struct sink *base, const struct block_events *events);
bool sink_lost(struct sink *base, uint32_t origin);
void sink_limit(struct sink *base, uint32_t origin, uint64_t size);

/* Gives a kept sink to the next attempt. Returns the sink, or NULL if there is no memory. */
struct sink *attempt_take_over(struct folder_sink *s, const struct folder_request *request,
                               const struct block_events *events);

/* Frees a list of pieces, whether they were written or not. */
void pieces_drop(struct folder_sink *s, struct piece *piece);

/* As sink_ops.write() and pending(). */
int sink_write(struct sink *base, uint32_t origin, uint64_t offset, const struct extent *bytes,
               struct error *e);
uint64_t sink_pending(struct sink *base);
