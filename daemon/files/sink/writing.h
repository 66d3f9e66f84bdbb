/* Two system calls are not used because they cost more than they save (processor time on two cores, files
 * written in pieces of a segment):
 *
 * posix_fallocate()    ext4: 1.3 to 2.2 times the time for 1000 files of 16 KiB, the same for 1 MiB, 0.8
 *                      to 0.9 for 100 MiB; in memory 0.8 to 1.15, without a trend. Besides, the sizes
 *                      of single blocks are known to their sources only.
 * copy_file_range()    for a node's own block, one of as many as there are nodes. To copy in the kernel
 *                      and to read once more, for a digest, took 1.1 to 1.35 times as long as to read
 *                      and write 200 MB, on ext4 and in memory. */
#ifndef TORUSD_FILES_SINK_WRITING_H
#define TORUSD_FILES_SINK_WRITING_H

#include "daemon/files/sink/sink_record.h"

/* As sink_ops.write() and pending(). */
int sink_write(struct sink *base, uint32_t origin, uint64_t offset, const struct extent *bytes,
               struct error *e);
uint64_t sink_pending(struct sink *base);

/* Starts to write the bytes that sinks have received since the last call; files in memory are written at
 * once. Returns whether an exchange has been told of an event. */
bool folder_sinks_flush(struct folders *folders);

#endif
