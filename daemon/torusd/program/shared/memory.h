/* Memory that the daemon shares with a program: a memfd of a fixed size, made here. The program allocates all
 * of it before it is mapped here, so that no access can fail for lack of memory. */
#pragma once

#include <uv.h>

#include "daemon/torusd/group/data/group_call.h"
#include "proto/error.h"

/* Makes a memfd of that size, which cannot be changed any more. Returns its descriptor, or -1 with *e. */
int memory_file(uint64_t size, struct error *e);

/* Maps all of such a file, which the caller may close afterwards. Returns the memory with one reference, or
 * NULL with *e if parts of it are not allocated or there is no room. Large memory is unmapped in a worker
 * thread, and the loop must run until that is done. That takes about 0.1 s for 1 GiB, and longer if the program
 * is gone, because its memory is freed then. */
struct program_memory *memory_map(int fd, uv_loop_t *loop, struct error *e);

/* Returns how many bytes all programs of a machine may have allocated together. */
uint64_t memory_most(void);

/* Copies from memory that a program may change meanwhile. Check the copy only. */
void memory_copy_once(void *to, const void *from, size_t size);
