/* Schedules in the XML of MSCCL, Microsoft's Collective Communication Library, for alltoall.
 *
 * With S segments, chunk d * S + k of a GPU's input buffer is segment k of its block for GPU d, and chunk s * S + k of
 * its output buffer is segment k of the block from GPU s. A GPU has thread blocks. Each of them sends to one peer,
 * receives from one peer, or both, on a channel, step by step. A step may wait for a step of another thread block. */
#pragma once

#include <stdio.h>

#include "daemon/lib/schedule/algorithm.h"

/* Prints the schedule of an exchange. GPU r is node r. Each leg is a send to the node where it ends and a receive
 * there, on the channel with the number of the port through which it leaves. Blocks that are relayed wait in the scratch
 * buffer. The algorithm must accept the torus. Returns 0, or -1 with *e: not an exchange (ERROR_USAGE), more than
 * 2^26 legs (ERROR_REFUSED), or memory is short. */
int msccl_print(FILE *out, const struct torus *t, const struct algorithm *a, struct error *e);

/* Converts XML to torusd's format (imported.h), without verifying the schedule. A send goes along one dimension. If
 * torusd wrote the file, and the number of the channel is a port from which the peer can be reached straight, the
 * send goes through this port; otherwise it takes the shortest path. Steps get new numbers: as early as the blocks are
 * there and the order of the thread block allows.
 *
 * Returns 0 with *routes, which the caller frees, or -1 with NULL and *e: ERROR_MEMORY or ERROR_REFUSED. The text of
 * ERROR_REFUSED names the line, or the GPU, thread block and step: not MSCCL's XML, not an alltoall for as many GPUs
 * as nodes, a peer that is not in a straight line, two thread blocks at one end of a connection, something other than
 * send, receive, copy and nop, a step that waits for ever, or a block that arrives at the wrong place.
 *
 * Takes time linear in the length of the XML and the number of chunks that its steps move. Takes memory for the
 * routes, at most four times the XML, 4 bytes for each chunk of the GPUs' buffers (the used part of scratch buffers),
 * and 21 bytes for each chunk that is sent. Rejects more than 2^24 chunks in all buffers, more than 2^24 copied
 * chunks, and more than 1677721 sent chunks, because imported_read() would reject the legs of more. */
int msccl_read(const char *xml, size_t length, const struct torus *t, char **routes,
               size_t *routes_length, struct error *e);
