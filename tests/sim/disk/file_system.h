/* A disk in memory behind daemon/torusd/disk/file_system.h. A power failure keeps what was synced, and a random
 * part of the rest, as POSIX allows. A sync of a folder makes its names durable, a sync of a file makes its contents
 * durable. A random number of the first changes of a folder since its last sync survive.
 *
 * Two kinds of files store no bytes. Reads of sources, /same/N and /random/N, return the generated pattern. Writes
 * to outputs, files in a temporary folder of an exchange, are compared with the pattern at once, and only their
 * offsets are kept. */
#pragma once

#include "daemon/torusd/disk/file_system.h"
#include "tests/sim/events.h"
#include "tests/sim/sim.h"

#define DISK_NAME 128u

struct node;
struct inode;
struct descriptor;

struct decision { /* decided to commit, once that was on record */
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
    uint64_t slowness; /* operations take up to this much longer */
    bool full;
    bool dead; /* the disk does not change any more, and every operation fails */
    bool fault[SIM_DISK_FAULTS];
    struct decision *decision;
    size_t decisions;
};

void disk_init(struct disk *disk, struct node *node);
void disk_free(struct disk *disk);

/* Call this when the process of the disk has ended: releases locks. Returns the number of descriptors that were
 * still open. */
size_t disk_process_ended(struct disk *disk);
void disk_power_failure(struct disk *disk);

/* Reports on the `index`-th temporary output that was ever made, by the attempt `id` unless that is NULL; false if
 * there is none. `name` is its present name, "" if it has none; `request` is the request for it, or NULL. */
struct disk_output {
    const char *id, *name;
    bool temporary; /* the name belongs to an output that is not in place */
    struct sim_request *request;
    const struct inode *folder;
};
bool disk_output(const struct disk *disk, const char *id, size_t index, struct disk_output *out);
/* The bytes of a block that were written; -1 without a file, -2 if there is a hole. */
int64_t disk_output_size(const struct disk_output *output, uint32_t origin);

/* Calls each() for the names in a folder of the top level. */
void disk_each_name(const struct disk *disk, const char *folder,
                    void (*each)(void *context, const char *name), void *context);
