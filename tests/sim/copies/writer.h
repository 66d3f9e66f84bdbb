/* A writer of a simulated node's trees. */
#pragma once

#include "tests/sim/copies/store.h"

enum writer_stage { WRITER_OPEN, WRITER_COMPARED, WRITER_KNOWS, WRITER_FINISHED, WRITER_FAILED };

/* An entry of the manifest at this node. */
struct wanted_file {
    bool needed;              /* its data have to be moved, as far as nothing is kept */
    struct staged_file *file; /* of needed files */
};

struct tree_writer {
    struct tree_writer *next;
    struct tree_disk *disk;
    char *path, **pattern;
    uint32_t patterns;
    bool into, delete, checksum, as_it_comes, look_only;
    enum writer_stage stage;
    struct error why; /* it has failed */
    struct tree_bytes document[TREE_DOCUMENTS], wanted;
    struct sim_manifest manifest;
    struct wanted_file *entry;        /* by entry of the manifest */
    struct staged_file *only_looking; /* files that are not in the disk's list */
    struct sim_spans missing, spans;
    struct tree_report report;
};

/* Fails the test if a rule of tree_store.h does not hold, unless a node has lied. */
void tree_writer_rule(const struct tree_writer *writer, bool holds, const char *what);
/* From now on the writer can only be closed. Returns -1. */
int tree_writer_fail(struct tree_writer *writer, const struct error *e);
/* What the target has at the place of an entry; NULL: nothing. */
const struct tree_item *tree_writer_present(const struct tree_writer *writer,
                                            const struct sim_entry *entry);

/* --- store_placing.c --- */

bool staged_file_is_complete(const struct staged_file *file);
uint64_t tree_writer_count_removed(const struct tree_writer *writer);
void tree_writer_place_folders(struct tree_writer *writer);
void tree_writer_place_file(struct tree_writer *writer, const struct sim_entry *entry,
                            const struct staged_file *file);
int tree_writer_finish(struct tree_writer *writer, struct tree_progress *progress, struct error *e);
