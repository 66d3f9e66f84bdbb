/* Schedules in the XML of MSCCL, Microsoft's Collective Communication Library, for alltoall.
 *
 * In it, chunk d * S + k of a GPU's input buffer is segment k of its block for GPU d, and chunk
 * s * S + k of the output buffer is segment k of the block from GPU s. A GPU has thread blocks, each
 * of which sends to one peer, receives from one, or both, on a channel, step by step; a step may
 * wait for a step of another thread block. */
#ifndef TORUSD_CLI_MSCCL_H
#define TORUSD_CLI_MSCCL_H

#include <stdio.h>

#include "daemon/schedule/algorithm.h"

/* Prints an exchange's schedule. GPU r is node r. Each leg is a send to the node where it ends and a
 * receive there, on the channel with the number of the port that it leaves by; blocks on their way
 * wait in the scratch buffer. The torus must be accepted. Returns 0, or -1 with *e set: not an
 * exchange (ERROR_USAGE), more than 2^26 legs (ERROR_REFUSED), no memory. */
int msccl_print(FILE *out, const struct torus *t, const struct algorithm *a, struct error *e);

/* Turns XML into a file as in imported.h, not verified yet. A send goes along one dimension: the way
 * that the channel's number says, if torusd wrote the file and that is the number of a port from which
 * the peer can be reached straight, else the shortest. Steps get new numbers: as early as the blocks
 * are there and the thread block's order allows.
 *
 * Returns 0 with *routes, to be freed by the caller, or -1 with NULL and *e. ERROR_REFUSED names the
 * line, or the GPU, thread block and step: not XML as MSCCL's, not an alltoall for as many GPUs as
 * nodes, a peer that is not in a straight line, two thread blocks at one end of a connection,
 * something other than send, receive, copy and nop, a step that waits for ever, or a block that comes
 * to the wrong place. ERROR_MEMORY: out of memory.
 *
 * Takes time linear in the length of the XML and the number of chunks that its steps move, and memory
 * for at most four times the XML, 4 bytes for each chunk of the GPUs' buffers (scratch buffers as far
 * as they are used) and 21 bytes for each chunk that is sent, beside the routes. Refused by name are
 * more than 2^24 chunks of all buffers, more than 2^24 that are copied, and more than 1677721 that are
 * sent: of those, imported_read() would refuse the legs. */
int msccl_read(const char *xml, size_t length, const struct torus *t, char **routes,
               size_t *routes_length, struct error *e);

#endif
