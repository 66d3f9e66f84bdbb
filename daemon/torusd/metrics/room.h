/* Room on the file systems of the data roots. A file system that does not answer, such as NFS without its server, holds
 * whoever asks it, perhaps for ever. So each root has a thread of its own that asks. Neither the loop, nor the threads
 * that read and write files, nor the end of the daemon wait for these threads. */
#pragma once

#include <sys/statvfs.h>
#include <uv.h>

#include "daemon/torusd/disk/roots.h"

#define ROOM_EVERY_MS 10000u /* between two looks at a root */
#define ROOM_KEEP_MS 30000u  /* how long an answer counts */

struct room;

struct room_setup {
    uv_loop_t *loop;
    /* Asks the file system of an open folder, and may block; fstatvfs(). Called by several threads at once. */
    int (*ask)(int folder, struct statvfs *out);
    unsigned every_ms, keep_ms;
    void (*closed)(void *context); /* see room_close() */
    void *context;
};

struct room_answer {
    const char *path;    /* of the root; borrowed until the roots change */
    bool known, answers; /* known: whether the file system answers is known, and in `answers` */
    uint64_t size, free; /* bytes, if it answers; free: for users without privileges */
};

/* Begins to look, at nothing until room_of() is called. The caller calls room_close(). Returns NULL without memory. */
struct room *room_open(const struct room_setup *setup);

/* Looks at these roots from now on. Their descriptors are duplicated. */
void room_of(struct room *room, const struct roots *roots);

/* Sets *answer to what is known about a root. Returns false if there are not that many. */
bool room_tell(struct room *room, size_t index, struct room_answer *answer);

/* Ends it. Threads that are held end when their file systems answer, and nobody waits for them. The memory is freed
 * when the loop has closed the handle; then closed() is called. */
void room_close(struct room *room);
