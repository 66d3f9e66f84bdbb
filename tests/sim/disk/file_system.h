/* A disk in memory, behind daemon/files/system/file_system.h, with what a failure of power leaves of it:
 * what was synced, and of the rest as much as POSIX allows, by chance. Names in a folder are made
 * last by a sync of the folder, contents by a sync of the file; a folder's changes since its last
 * sync survive up to one of them and not beyond.
 *
 * Two kinds of files have no bytes of their own. Sources: what is read from /same/N and /random/N
 * is the generated pattern. Outputs, files in a temporary folder of an exchange: what is written is
 * compared with the pattern at once, and only where it lies is remembered. */
#ifndef TORUSD_TESTS_SIM_DISK_FILE_SYSTEM_H
#define TORUSD_TESTS_SIM_DISK_FILE_SYSTEM_H

#include "daemon/files/system/file_system.h"
#include "tests/sim/events.h"
#include "tests/sim/sim.h"

#define DISK_NAME 128u

struct node;
struct inode;
struct descriptor;

struct decision { /* to commit, once it was on record */
    char id[EXCHANGE_ID_SIZE];
};

struct disk {
    struct node *node;
    struct file_system files;
    struct inode *root, *all;
    struct descriptor *descriptor;
    size_t descriptors;
    uint64_t numbers;
    struct chance chance;
    uint64_t slowness; /* operations take up to that much longer */
    bool full;
    bool dead; /* it does not change any more, and every operation fails */
    bool fault[SIM_DISK_FAULTS];
    struct decision *decision;
    size_t decisions;
};

void disk_init(struct disk *disk, struct node *node);
void disk_free(struct disk *disk);

/* Its process has ended: locks are gone. Returns how many descriptors it had not closed. */
size_t disk_process_ended(struct disk *disk);
void disk_power_failure(struct disk *disk);

/* The folders that were ever made as temporary outputs of an exchange: what became of the
 * `index`-th one, or false. `name` is its name now, "" if it has none; `request` who asked for it,
 * or NULL. */
struct disk_output {
    const char *id, *name;
    bool temporary; /* the name is that of an output which is not in place */
    struct sim_request *request;
    const struct inode *folder;
};
bool disk_output(const struct disk *disk, size_t index, struct disk_output *out);
/* Bytes of a block that are there; -1: no file, -2: a hole in it. */
int64_t disk_output_size(const struct disk_output *output, uint32_t origin);

/* Calls each() for the names in a folder of the top level. */
void disk_each_name(const struct disk *disk, const char *folder,
                    void (*each)(void *context, const char *name), void *context);

#endif
