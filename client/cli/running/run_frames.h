/* What 'torusctl run' and 'torusctl run --receive' tell each other over a connection of ssh: frames (proto/frame.h) whose
 * heads are a kind, the number of a process on that host, and bytes.
 *
 * The asking side sends RUN_ORDER. The host checks the folder and the program, and answers RUN_READY or RUN_REFUSED. When
 * all hosts are ready, each gets RUN_GO and starts its processes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"

/* The host sends this in front of its frames, because its shell may print something before. */
#define RUN_HELLO "torusrun-1\n"

enum run_kind {
    /* to the host */
    RUN_ORDER = 1, /* struct run_order */
    RUN_GO,
    RUN_INPUT, /* bytes of standard input for the first process; none: its end */
    RUN_SIGNAL, /* a byte: end all processes by this signal, and after the time of grace by SIGKILL */
    /* from the host */
    RUN_READY,
    RUN_REFUSED, /* a byte: the exit code; and a text: why */
    RUN_OUTPUT,  /* bytes of standard output */
    RUN_ERRORS,  /* bytes of standard error */
    RUN_TAKEN,   /* as many bytes as the process has taken of its standard input were sent: u32 */
    RUN_ENDED,   /* of a process, as of waitpid(): u32 */
    /* both ways, so that each side notices when the connection is cut */
    RUN_ALIVE,
};

#define RUN_PIECE (32u << 10)     /* bytes of input or output in a frame */
#define RUN_WINDOW (256u << 10)   /* bytes of standard input on their way, at most */
#define RUN_ORDER_MOST (3u << 20) /* bytes of an order */
#define RUN_RANKS_MOST 256u       /* processes on a host */
#define RUN_SILENCE_MS 30000u     /* by default */
#define RUN_ALIVE_PARTS 6u        /* each side sends something so often in this time */

/* Exit codes of failures before the programs run, as env(1) and timeout(1) have them. */
enum { RUN_EXIT_FAILED = 125, RUN_EXIT_NO_EXECUTION = 126, RUN_EXIT_NOT_FOUND = 127 };

struct run_frame {
    enum run_kind kind;
    unsigned process;
    const uint8_t *bytes; /* valid until the next call on the stream */
    size_t length;
};

/* Appends a frame. Returns 0, or -1 without memory. */
int run_frame_put(struct frame_stream *s, enum run_kind kind, unsigned process, const void *bytes,
                  size_t length);

/* Reads the next frame. Returns 1 with *f, 0 if bytes are missing, or -1 with *e if the bytes are not frames. */
int run_frame_next(struct frame_stream *s, struct run_frame *f, struct error *e);

/* The number that RUN_TAKEN and RUN_ENDED have; 0 if the length is wrong. */
uint32_t run_frame_number(const struct run_frame *f);
int run_frame_put_number(struct frame_stream *s, enum run_kind kind, unsigned process,
                         uint32_t number);

/* Reads once from a descriptor that does not block. Returns 1; 0 at the end; -1 if there is nothing now. */
int run_stream_read(struct frame_stream *s, int fd);

/* Writes as much as the descriptor takes. Returns false if nobody reads it any more. */
bool run_stream_write(struct frame_stream *s, int fd);

/* The number of bytes that wait. */
static inline size_t run_stream_waiting(const struct frame_stream *s)
{
    return s->length - s->taken;
}

/* What a host does. */
struct run_order {
    const char *folder;
    uint32_t first_rank, ranks;    /* of the processes on this host */
    uint32_t grace_ms, silence_ms; /* after that much silence the connection counts as cut */
    bool input;                    /* standard input of the first process comes in frames */
    uint32_t variables, arguments; /* their numbers */
    const char **variable;         /* NAME=VALUE, ended by NULL */
    const char **argument;         /* ended by NULL */
};

/* Appends the order as a frame. Returns 0, or -1 with *e: it is too long, or memory is short. */
int run_order_put(struct frame_stream *s, const struct run_order *o, struct error *e);

/* Reads an order from the bytes of a frame, to which its texts point. Returns 0 with *o, whose two lists are freed with
 * run_order_free(); or -1 with *e, and nothing to free. */
int run_order_read(struct run_order *o, const uint8_t *bytes, size_t length, struct error *e);
void run_order_free(struct run_order *o);
