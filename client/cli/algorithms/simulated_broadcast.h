/* An all-to-all broadcast in time (client/theory/broadcast_run.h), with the options and the output of
 * 'torusctl simulate'. */
#pragma once

#include "client/cli/terminal/command.h"
#include "daemon/lib/schedule/algorithm.h"

struct broadcast_arguments {
    const char *ts, *tp, *tw, *block_size;
    const char *queue, *switching;
};

#define BROADCAST_OPTIONS(arguments, member)                                                       \
    {"--ts", "US", offsetof(struct arguments, member.ts),                                          \
     "with a broadcast: microseconds to start (default: 75)"},                                     \
        {"--tp", "US", offsetof(struct arguments, member.tp),                                      \
         "with a broadcast: microseconds to switch a message (default: 1)"},                       \
        {"--tw", "US", offsetof(struct arguments, member.tw),                                      \
         "with a broadcast: microseconds to transmit a byte (default: 0.011)"},                    \
        {"--block-size", "SIZE", offsetof(struct arguments, member.block_size),                    \
         "with a broadcast: bytes of a message (default: 1KiB)"},                                  \
        {"--queue", "NAME", offsetof(struct arguments, member.queue),                              \
         "with a broadcast: fifo, or longest, by which the message with the\n"                     \
         "longest way ahead goes first (default: fifo)"},                                          \
    {                                                                                              \
        "--switch", "PLACE", offsetof(struct arguments, member.switching),                         \
            "with a broadcast: input or output, the buffers that switch\n"                         \
            "(default: input)"                                                                     \
    }

#define BROADCAST_ONLY                                                                             \
    "--ts, --tp, --tw, --block-size, --queue and --switch are for --dims with an allgather "       \
    "algorithm, such as yangwang"

bool broadcast_arguments_given(const struct broadcast_arguments *a);

/* Runs an allgather algorithm, and prints what it took. Returns the exit code. */
int simulated_broadcast(const struct cli *cli, const struct broadcast_arguments *a,
                        const struct torus *t, const struct algorithm *algorithm);
