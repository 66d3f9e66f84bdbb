/* Two system calls are not used, because they cost more processor time than they save (measured on two
 * cores, with files that are written in pieces of a segment):
 *
 * posix_fallocate()    On ext4 1000 files of 16 KiB take 1.3 to 2.2 times as long with it, files of 1 MiB
 *                      as long as without it, files of 100 MiB 0.8 to 0.9 times as long; in memory 0.8 to
 *                      1.15 times, without a trend. Also, only its source knows the size of a block.
 * copy_file_range()    It would serve only one block of each node, the node's block for itself. To copy
 *                      200 MB in the kernel, and to read them for the digest, took 1.1 to 1.35 times as
 *                      long as to read and write them, on ext4 and in memory. */
#pragma once

#include "daemon/torusd/files/sink/sink_record.h"

/* As sink_ops.write() and pending(). */
int sink_write(struct sink *base, uint32_t origin, uint64_t offset, const struct extent *bytes,
               struct error *e);
uint64_t sink_pending(struct sink *base);

/* Starts to write the bytes that sinks have received since the last call; files in memory are written at
 * once. Returns whether an exchange has been told of an event. */
bool folder_sinks_flush(struct folders *folders);
