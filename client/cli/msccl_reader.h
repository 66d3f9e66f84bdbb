/* How msccl_read() works: the XML becomes thread blocks with their steps (msccl_parse.c), these are
 * run, as far as each can go, until all have ended (msccl_run.c), and the ways that the chunks have
 * taken become routes (msccl_read.c). */
#ifndef TORUSD_CLI_MSCCL_READER_H
#define TORUSD_CLI_MSCCL_READER_H

#include "client/cli/msccl.h"
#include "daemon/schedule/imported.h"

#define MSCCL_NONE UINT32_MAX

enum msccl_kind { MSCCL_SEND, MSCCL_RECEIVE, MSCCL_RECEIVE_COPY_SEND, MSCCL_COPY, MSCCL_NOP };
enum msccl_buffer { MSCCL_INPUT, MSCCL_OUTPUT, MSCCL_SCRATCH, MSCCL_BUFFERS };

struct msccl_place {
    uint8_t buffer;
    uint32_t at;
};

struct msccl_step {
    uint8_t kind;
    struct msccl_place from, to;
    uint32_t count;
    uint32_t number;                     /* torusd's own attribute; MSCCL_NONE: not there */
    int64_t depends_block, depends_step; /* -1: on nothing */
    uint32_t line;
    uint32_t level; /* the first step of a schedule that may follow, once it is done */
};

/* A chunk in a buffer, or on its way to another GPU. */
struct msccl_cell {
    uint32_t chunk; /* (source * nodes + destination) * segments + segment; MSCCL_NONE: nothing */
    uint32_t hop;   /* by which it came; MSCCL_NONE: it is where it began */
    uint32_t level; /* the first step in which it can leave */
};

struct msccl_block {
    uint32_t gpu, id;
    int64_t send, receive; /* peers; -1: none */
    int64_t channel;
    uint32_t first, count; /* steps */
    uint32_t done;
    uint32_t level;
    uint32_t target;          /* index of the thread block that receives what this one sends */
    struct msccl_cell *queue; /* what has been sent to this one */
    size_t queued, taken, room;
};

struct msccl_gpu {
    uint32_t first, count; /* thread blocks, by id */
    uint32_t size[MSCCL_BUFFERS];
    struct msccl_cell *buffer[MSCCL_BUFFERS];
};

struct msccl_hop {
    uint32_t before; /* MSCCL_NONE: the first */
    uint32_t from;
    struct leg leg;
    uint32_t chunk, line;
    bool used;
};

struct msccl_reader {
    const struct torus *torus;
    struct error *e;
    char name[IMPORTED_NAME_SIZE];
    uint32_t segments;
    bool own;        /* written by torusd: channels are ports, sends have steps */
    uint64_t chunks; /* of all buffers */

    struct msccl_gpu *gpu; /* by id */
    uint32_t gpu_now;
    struct msccl_block *block;
    size_t blocks, block_room;
    struct msccl_step *step;
    size_t steps, step_room;
    struct msccl_hop *hop;
    size_t hops, hop_room;
};

/* Reads the XML into thread blocks and steps. Returns 0, or -1 with *r->e. */
int msccl_parse(struct msccl_reader *r, const char *xml, size_t length);

/* Runs all steps: fills r->hop and the output buffers. Returns 0, or -1 with *r->e. */
int msccl_run(struct msccl_reader *r);

/* "block 3 -> 7, segment 1" */
#define MSCCL_CHUNK_NAME_SIZE 64
const char *msccl_chunk_name(const struct msccl_reader *r, uint32_t chunk,
                             char name[MSCCL_CHUNK_NAME_SIZE]);

/* Makes room for one more element of `size` bytes. Returns 0, or -1 without memory. */
int msccl_grow(void *array, size_t count, size_t *room, size_t size);

int msccl_no_memory(struct msccl_reader *r); /* sets *r->e; returns -1 */

#endif
