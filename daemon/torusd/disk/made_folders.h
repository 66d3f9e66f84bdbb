/* Folders above targets: which of them exist only because a copy or an exchange needs them. Several may use such a folder,
 * and none of them knows whether it ends as the last one; so all of them enter here, and whoever leaves as the last one
 * without a result removes what was made, whoever has made it.
 *
 * All functions may be called from any thread. Those that touch the disk block. */
#pragma once

#include <pthread.h>

#include "daemon/torusd/disk/roots.h"

struct made_use; /* one target's use of the folders above it */

struct made_folders {
    pthread_mutex_t lock;
    struct made_use *uses;
    struct made_folder *folders;
};

void made_folders_init(struct made_folders *m);
/* Frees what users that never left have noted. */
void made_folders_free(struct made_folders *m);

/* Begins to use the folder at a place and all folders above it, whether they exist or not; to be called before they are
 * looked for. Returns NULL if there is no memory. */
struct made_use *made_folders_enter(struct made_folders *m, const struct roots *roots,
                                    const struct location *place);
/* Ends the use, and frees *use, which may be NULL. `keep`: there is a result, so the folders above it stay. */
void made_folders_leave(struct made_folders *m, struct made_use *use, bool keep);

/* --- on the disk --- */

/* Opens the deepest folder that exists on the way to a place, and sets *missing to the number of those below it. Returns
 * its descriptor or -errno. */
int made_folders_open(const struct roots *roots, const struct location *place, unsigned *missing);
/* Makes the last `missing` folders of a place, one after the other below the open folder *folder, with `mode` and
 * what is inherited, and syncs the folder above each. *folder moves down. Without memory a folder is not noted as made, and
 * stays. Returns 0 or -errno: -ENOENT if somebody has removed a folder meanwhile. */
int made_folders_make(struct made_folders *m, const struct made_use *use, const struct roots *roots,
                      const struct location *place, int *folder, unsigned missing, mode_t mode);
/* Removes the folders on the way to a place that were made and have no other user, as far as they are empty; if `use` is NULL,
 * because the daemon has been restarted since, the last `made` ones. *folder, which is open or -1, moves up to the
 * deepest one that remains if any is removed. */
void made_folders_remove(struct made_folders *m, const struct made_use *use,
                         const struct roots *roots, const struct location *place, unsigned made,
                         int *folder);
