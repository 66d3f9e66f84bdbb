/* How msccl_read() works, from XML to routes:
 *
 *     msccl_parse.c    XML to a program: GPUs, thread blocks, steps
 *     msccl_connect.c  which thread block receives what another one sends
 *     msccl_run.c      runs the program: which way each chunk goes
 *     msccl_read.c     the ways as routes
 *
 * A chunk is a segment of a block: (source * nodes + destination) * segments + segment. */
#ifndef TORUSD_CLI_MSCCL_PROGRAM_H
#define TORUSD_CLI_MSCCL_PROGRAM_H

#include "client/cli/schedule_files/msccl.h"
#include "daemon/schedule/imported.h"

#define MSCCL_NONE UINT32_MAX

enum msccl_kind { MSCCL_SEND, MSCCL_RECEIVE, MSCCL_RECEIVE_COPY_SEND, MSCCL_COPY, MSCCL_NOP };
enum msccl_buffer { MSCCL_INPUT, MSCCL_OUTPUT, MSCCL_SCRATCH, MSCCL_BUFFERS };

struct msccl_step {
    uint32_t line;
    uint32_t block; /* index of its thread block */
    uint32_t count; /* chunks that it moves */
    uint32_t from, to;
    uint32_t number;                     /* torusd's own attribute; MSCCL_NONE: not there */
    int32_t depends_block, depends_step; /* in the same GPU; depends_block -1: on nothing */
    uint8_t kind, from_buffer, to_buffer;
};

struct msccl_block {
    uint32_t line;
    uint32_t gpu, id;
    int32_t send, receive; /* peers; -1: none */
    uint32_t channel;
    uint32_t first, count; /* steps */
    bool sends, receives;  /* whether any step does */
};

struct msccl_gpu {
    bool given;
    uint32_t first, count; /* thread blocks, by id */
    uint32_t size[MSCCL_BUFFERS];
    uint32_t scratch_used; /* no step uses more of the scratch buffer */
};

struct msccl_program {
    const struct torus *torus;
    char name[IMPORTED_NAME_SIZE];
    bool own; /* written by torusd: channels are ports, sends have steps */
    uint32_t segments;
    uint32_t chunks;       /* of all blocks together */
    uint32_t sent, copied; /* chunks, by all steps together */

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

/* Reads XML into *p, to be given to msccl_program_free() in any case. Returns 0, or -1 with *e. */
int msccl_parse(struct msccl_program *p, const char *xml, size_t length, const struct torus *t,
                struct error *e);
void msccl_program_free(struct msccl_program *p);

/* For each thread block, the index of the one that receives what it sends, or MSCCL_NONE if it sends
 * nothing. Also checks that the steps that others depend on exist. Returns 0 with *targets, to be
 * freed by the caller, or -1 with *e. */
int msccl_connect(const struct msccl_program *p, uint32_t **targets, struct error *e);

/* What is in a chunk's place: nothing, or the chunk that began there, or the chunk that a hop has
 * brought. 0 is empty, so that buffers that nobody has written take no memory. */
typedef uint32_t msccl_content;

/* A chunk that a step has sent. */
struct msccl_hop {
    msccl_content before; /* what was sent: from it follows by which hops it had come */
    uint32_t chunk;
    uint32_t step; /* index of the step that has sent it */
    uint32_t next; /* the next one that the same thread block receives */
};

/* What becomes of a step. */
struct msccl_step_run {
    uint32_t level;   /* the first step of a schedule in which it can send */
    uint32_t waiting; /* first of the thread blocks that wait for it, or MSCCL_NONE */
    struct leg leg;   /* if it sends */
};

struct msccl_block_run {
    uint32_t done; /* steps */
    uint32_t level;
    uint32_t head, tail; /* hops that have come here and are not received yet; MSCCL_NONE: none */
    uint32_t queued, wanted; /* how many these are; as many it waits for, 0: it does not wait */
    uint32_t next;           /* in the list that it is in: of the work, or of those that wait */
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
    uint32_t work, last_work; /* thread blocks that may be able to go on; MSCCL_NONE: none */
    uint64_t tries;           /* of steps, whether they could be done then or not */
};

/* Runs all steps, in time linear in the size of the program and the chunks that it moves. Returns 0,
 * or -1 with *e; *r is to be given to msccl_run_free() in any case. */
int msccl_run(struct msccl_run *r, const struct msccl_program *p, const uint32_t *targets,
              struct error *e);
void msccl_run_free(struct msccl_run *r);

/* What is in a place of a GPU's buffer. */
msccl_content msccl_look(const struct msccl_run *r, uint32_t gpu, unsigned buffer, uint32_t at);
/* The hop that has brought it; MSCCL_NONE: it is empty, or began there. */
uint32_t msccl_hop_of(const struct msccl_run *r, msccl_content content);
/* The chunk that it is; MSCCL_NONE: it is empty. */
uint32_t msccl_chunk_of(const struct msccl_run *r, msccl_content content);

/* "block 3 -> 7, segment 1" */
#define MSCCL_CHUNK_NAME_SIZE 64
const char *msccl_chunk_name(const struct msccl_program *p, uint32_t chunk,
                             char name[MSCCL_CHUNK_NAME_SIZE]);

/* Sets *e to "line 7: GPU 1, thread block 2, step 3: ...". Returns -1. */
int msccl_bad_step(const struct msccl_program *p, const struct msccl_step *s, struct error *e,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

int msccl_no_memory(struct error *e); /* returns -1 */

#endif
