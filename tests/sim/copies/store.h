/* The trees of a simulated node: a struct tree_store in memory. Its documents and spans have the meaning that
 * daemon/torusd/copy/tree_store.h gives them, its bytes differ from those of daemon/torusd/tree.
 *
 * It checks how it is called, and fails the test if the rules of tree_store.h are broken. Faults of the node's disk
 * (sim_disk_full(), sim_disk_fail()) apply here, too. */
#pragma once

#include "daemon/torusd/copy/tree_store.h"
#include "tests/sim/copies/sim_spans.h"
#include "tests/sim/copies/tree.h"
#include "tests/sim/sim.h"

#define SIM_TREE_LARGE (32u * 1024u) /* a writer wants digests of files of this size, or larger */
#define SIM_TREE_PIECE 4096u

struct node;

enum sim_tree_fault {
    SIM_TREE_READ_OPEN,
    SIM_TREE_DIGEST,
    SIM_TREE_READ,
    SIM_TREE_CHECK,
    SIM_TREE_WRITE_OPEN,
    SIM_TREE_DOCUMENT,
    SIM_TREE_COMPARE,
    SIM_TREE_MISSING,
    SIM_TREE_WRITE,
    SIM_TREE_FINISH,
    SIM_TREE_FAULTS
};

/* A file of an unfinished copy. */
struct staged_file {
    struct staged_file *next;
    char *path; /* in the target */
    uint64_t size, modified;
    uint8_t *bytes;
    struct sim_spans have;
};

struct staged {
    struct staged *next;
    char *target;
    struct staged_file *file;
};

/* What a writer reported when it had finished. */
struct finished_copy {
    struct finished_copy *next;
    char *target;
    struct tree_report report;
};

struct tree_disk {
    struct node *node;
    struct sim_tree tree; /* by absolute paths */
    struct staged *staged;
    struct finished_copy *finished; /* the latest first */
    struct tree_writer *writers;    /* open */
    unsigned readers, writers_open;
    struct chance chance;
    uint64_t room;    /* bytes that fit into unfinished copies, besides what they hold */
    uint64_t padding; /* bytes by which manifests are longer than necessary */
    bool fault[SIM_TREE_FAULTS];
    bool fast_digests; /* that the last reader was asked for */
    bool absent;       /* this node has no trees */
    /* Since the start: */
    uint64_t bytes_read, bytes_written, bytes_ignored;
};

void tree_disk_init(struct tree_disk *disk, struct node *node, struct chance chance);
void tree_disk_free(struct tree_disk *disk);
/* Returns the functions for the daemon of the node. */
struct tree_store tree_disk_store(struct tree_disk *disk);
/* Call this when the process of the node has ended. Returns how many readers and writers were still open. */
unsigned tree_disk_process_ended(struct tree_disk *disk);
/* What was not in place may be lost. */
void tree_disk_power_failure(struct tree_disk *disk);
void tree_disk_lose_staged(struct tree_disk *disk);
/* The bytes of unfinished copies to a target. */
uint64_t tree_disk_staged(const struct tree_disk *disk, const char *target);

/* --- for the store's own files --- */

/* The reasons for which every function may fail: its process ends, it was told to stop, a fault. */
int tree_disk_check(struct tree_disk *disk, enum sim_tree_fault fault,
                    const struct tree_progress *progress, const char *path, struct error *e);

/* What read_open() finds: the items of a manifest, by relative path, and for each the path on the disk. */
struct tree_sources {
    struct sim_tree tree;
    char **origin;
    uint64_t left_out;
    char *first_left_out; /* NULL: nothing was left out */
};
int tree_sources_read(struct tree_sources *sources, const struct sim_tree *disk,
                      const struct tree_read_options *options, struct error *e);
void tree_sources_free(struct tree_sources *sources);

struct staged *tree_disk_find_staged(const struct tree_disk *disk, const char *target);
/* Removes what is empty, or all. */
void tree_disk_tidy_staged(struct tree_disk *disk, const char *target, bool all);

/* Documents. */
struct tree_bytes {
    uint8_t *bytes;
    size_t length, size;
};
void tree_bytes_add(struct tree_bytes *to, const void *bytes, size_t length);

/* An entry of a manifest, as a writer has read it. */
struct sim_entry {
    char *path;
    enum sim_tree_kind kind;
    uint64_t size, modified, hash, begin;
    char *link; /* NULL: it is no link */
};
struct sim_manifest {
    struct sim_entry *entry;
    uint32_t entries;
    uint64_t stream;
    bool has_digests;
};
void sim_manifest_write(struct tree_bytes *to, const struct sim_tree *tree, bool digests,
                        uint64_t padding);
/* Reads bytes from another node. Returns 0, and the caller frees the manifest; or -1 with *e. */
int sim_manifest_read(struct sim_manifest *manifest, const struct tree_bytes *from,
                      struct error *e);
void sim_manifest_free(struct sim_manifest *manifest);

extern const struct tree_store tree_reading, tree_writing; /* one half of a store each */
