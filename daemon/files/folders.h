/* Folders as sources and sinks of blocks, on a libuv loop: reads and writes run in its thread pool,
 * so that no disk ever stops the links. Implements daemon/exchange/storage.h. */
#ifndef TORUSD_FILES_FOLDERS_H
#define TORUSD_FILES_FOLDERS_H

#include <uv.h>

#include "daemon/exchange/storage.h"
#include "daemon/files/roots.h"

struct folders {
    uv_loop_t *loop;
    struct slab_pool *pool;
    const struct roots *roots;
    const char *state_folder;
};

/* Fills *storage for the core; *folders must outlive it. Cleans up after a crash: outputs that were
 * never finished are removed. Returns 0, or -1 with *e (state folder cannot be used). */
int folders_init(struct folders *folders, struct storage *storage, struct error *e);

/* The two halves, used by folders.c. */
struct source *folder_source(struct folders *folders, const struct folder_request *request,
                             const struct block_events *events, struct error *e);
struct sink *folder_sink(struct folders *folders, const struct folder_request *request,
                         const struct block_events *events, struct error *e);

/* Removes an output folder with the files that are named by ranks in it. */
void folder_remove_output(const char *path);

/* Puts a finished output under its final name, durably. Returns 0, or -1 with *e. */
int folder_publish(const char *temporary, const char *final, struct error *e);

#endif
