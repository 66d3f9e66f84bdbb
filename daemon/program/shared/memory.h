/* Memory that the daemon shares with a program: a memfd of a fixed size, made here. The program
 * allocates all of it before it is mapped here, so that no access can fail for want of memory. */
#ifndef TORUSD_PROGRAM_SHARED_MEMORY_H
#define TORUSD_PROGRAM_SHARED_MEMORY_H

#include <uv.h>

#include "daemon/group/data/group_call.h"
#include "proto/error.h"

/* A memfd of that size, which cannot be changed any more. Returns its descriptor, or -1 with *e. */
int memory_file(uint64_t size, struct error *e);

/* Maps all of such a file, which the caller may close afterwards. Returns the memory, with one
 * reference, or NULL with *e: parts of it have not been allocated, no room. What is large is unmapped
 * off the loop, which has to run until that is done: it takes some 0.1 s for 1 GiB, and more if the
 * program has gone, whose memory is freed then. */
struct program_memory *memory_map(int fd, uv_loop_t *loop, struct error *e);

/* What all programs of a machine can have allocated together at the most. */
uint64_t memory_most(void);

/* Copies from memory that may change meanwhile: what is checked afterwards is the copy. */
void memory_copy_once(void *to, const void *from, size_t size);

#endif
