/* The parts of msccl_read(): msccl_parse.c reads XML into a program of GPUs, thread blocks and steps; msccl_read.c finds
 * the thread block that receives from each sending one, runs the program, and so finds the path of each chunk, which it
 * prints as routes.
 *
 * A chunk is a segment of a block: (source * nodes + destination) * segments + segment. */
#pragma once

#include "client/cli/schedule_files/msccl.h"
#include "daemon/lib/schedule/file/imported.h"

#define MSCCL_NONE UINT32_MAX

enum msccl_kind { MSCCL_SEND, MSCCL_RECEIVE, MSCCL_RECEIVE_COPY_SEND, MSCCL_COPY, MSCCL_NOP };
enum msccl_buffer { MSCCL_INPUT, MSCCL_OUTPUT, MSCCL_SCRATCH, MSCCL_BUFFERS };

struct msccl_step {
    uint32_t line;
    uint32_t block; /* index of its thread block */
    uint32_t count; /* number of chunks that it moves */
    uint32_t from, to;
    uint32_t number;                     /* torusd's attribute `step`; MSCCL_NONE: not there */
    int32_t depends_block, depends_step; /* in the same GPU; depends_block -1: no dependency */
    uint8_t kind, from_buffer, to_buffer;
};

struct msccl_block {
    uint32_t line;
    uint32_t gpu, id;
    int32_t send, receive; /* peers; -1: none */
    uint32_t channel;
    uint32_t first, count; /* steps */
    bool sends, receives;  /* a step sends, a step receives */
};

struct msccl_gpu {
    bool given;
    uint32_t first, count; /* thread blocks, by id */
    uint32_t size[MSCCL_BUFFERS];
    uint32_t scratch_used; /* used chunks of the scratch buffer */
};

struct msccl_program {
    const struct torus *torus;
    char name[IMPORTED_NAME_SIZE];
    bool by_torusd; /* written by torusd: channels are ports, sends have steps */
    uint32_t segments;
    uint32_t chunks;       /* chunks of all blocks */
    uint32_t sent, copied; /* chunks that all steps send and copy */

    struct msccl_gpu *gpu; /* by id */
    struct msccl_block *block;
    uint32_t blocks, block_room;
    struct msccl_step *step;
    uint32_t steps, step_room;
};

static inline bool msccl_sends(const struct msccl_step *s)
{
    return s->kind == MSCCL_SEND || s->kind == MSCCL_RECEIVE_COPY_SEND;
}

static inline bool msccl_receives(const struct msccl_step *s)
{
    return s->kind == MSCCL_RECEIVE || s->kind == MSCCL_RECEIVE_COPY_SEND;
}

/* Reads XML into *p. Returns 0, or -1 with *e. In either case the caller frees *p with msccl_program_free(). */
int msccl_parse(struct msccl_program *p, const char *xml, size_t length, const struct torus *t,
                struct error *e);
void msccl_program_free(struct msccl_program *p);

/* Finds, for each thread block, the index of the thread block that receives from it, or MSCCL_NONE if it sends
 * nothing. Also checks that steps depend only on steps that exist. Returns 0 with *targets, which the caller frees,
 * or -1 with *e. */
int msccl_connect(const struct msccl_program *p, uint32_t **targets, struct error *e);

/* The content of a place in a buffer: empty, an input chunk, or the chunk that a hop has brought. 0 is empty, so that
 * calloc() gives empty buffers without touching their memory. */
typedef uint32_t msccl_content;

/* A chunk that a step has sent. */
struct msccl_hop {
    msccl_content before; /* the content that was sent, which leads to the previous hops */
    uint32_t chunk;
    uint32_t step; /* index of the step that has sent it */
    uint32_t next; /* the next hop in the queue of the receiving thread block */
};

/* The state of a step. */
struct msccl_step_run {
    uint32_t level;   /* the first step of a schedule in which it can send */
    uint32_t waiting; /* first of the thread blocks that wait for it, or MSCCL_NONE */
    struct leg leg;   /* if it sends */
};

/* The state of a thread block. */
struct msccl_block_run {
    uint32_t done; /* number of steps done */
    uint32_t level;
    uint32_t head, tail; /* queue of hops that have arrived and are not received yet */
    uint32_t queued;     /* number of hops in the queue */
    uint32_t wanted;     /* number of hops that it waits for; 0: it does not wait for hops */
    uint32_t next;       /* next thread block in the list of work or of waiting ones */
};

/* A program that is running, or has run. */
struct msccl_run {
    const struct msccl_program *program;
    const uint32_t *targets; /* msccl_connect() */
    uint32_t *first;         /* by GPU: its first place in contents[] */
    msccl_content *contents; /* each GPU's input, output and scratch buffers */
    struct msccl_step_run *step;
    struct msccl_block_run *block;
    struct msccl_hop *hop;
    uint32_t hops;
    uint32_t work, last_work; /* thread blocks that may be able to continue; MSCCL_NONE: none */
    uint64_t tries;           /* number of attempts to run a step */
};

/* Runs all steps, in time linear in the size of the program and the chunks that it moves. Returns 0, or -1 with *e. In
 * either case the caller frees *r with msccl_run_free(). */
int msccl_run(struct msccl_run *r, const struct msccl_program *p, const uint32_t *targets,
              struct error *e);
void msccl_run_free(struct msccl_run *r);

/* Writes "block 3 -> 7, segment 1" to `name`. Returns `name`. */
#define MSCCL_CHUNK_NAME_SIZE 64
const char *msccl_chunk_name(const struct msccl_program *p, uint32_t chunk,
                             char name[MSCCL_CHUNK_NAME_SIZE]);

/* Sets *e to "line 7: GPU 1, thread block 2, step 3: ...". Returns -1. */
int msccl_bad_step(const struct msccl_program *p, const struct msccl_step *s, struct error *e,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

int msccl_no_memory(struct error *e); /* returns -1 */
