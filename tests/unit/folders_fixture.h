/* Folders as sources and sinks, in a temporary folder; jobs run when the test says so. */
#pragma once

#include "daemon/torusd/files/folders.h"
#include "folder_fixture.h"
#include "tests/support/cmocka.h"

#define ID "0-0000beef-1"
#define OTHER_ID "0-0000beef-2"
#define MANY (OPEN_FILES_MOST + 50u)

struct fixture {
    struct stepper jobs;
    struct faulty_files files;
    struct slab_pool pool;
    struct roots roots;
    struct made_folders made;
    struct folders folders;
    struct storage storage;
    char state_folder[FIXTURE_PATH];
};

/* The source and the sink of a node, and their events. */
struct ends {
    struct source *source;
    struct sink *sink;
    unsigned wakes, failures, closed;
    struct error failure;
};

/* Whether the file system says that files are in memory. */
enum where { ANYWHERE, CACHED, IN_MEMORY };

/* The events of `ends` (a struct ends). */
void on_wake(void *context);

void on_failed(void *context, const struct error *e);

void on_closed(void *context);

/* The daemon starts. */
void start(struct fixture *f);

/* The daemon ends and starts again. */
void restart(struct fixture *f);

/* A data root "data" and a state folder, and the daemon has started. */
void open_fixture(struct fixture *f, void **state);

/* Fails the test if a buffer, a job or a descriptor is left. */
void close_fixture(struct fixture *f);

/* Begins to open both ends of a node; nothing has run yet. */
void begin_open(struct fixture *f, struct ends *ends, const struct folder_request *request);

/* Writes waiting bytes, or runs one job. Fails the test if there is nothing to do. */
void turn(struct fixture *f);

/* Lays out both ends, until the sink has made its files. */
void lay_out(struct fixture *f, struct ends *ends, uint64_t round_bytes, uint32_t segments);

/* Returns 0, or -1 with ends->failure; they are open in both cases. */
int open_ends(struct fixture *f, struct ends *ends, const struct folder_request *request);

/* The same; fails the test if it does not go well. */
void open_well(struct fixture *f, struct ends *ends, const struct folder_request *request);

/* Closes both ends, and runs pending work; no more events follow. */
void close_ends(struct fixture *f, struct ends *ends, bool keep);

/* Moves the block from node `from` to node `to`. Returns 0, or -1 if one end has failed. */
int move_block(struct fixture *f, struct ends *from, uint32_t origin, struct ends *to,
               uint32_t destination, uint32_t most);

/* Returns 0 when both ends have finished, or -1 if one has failed. */
int finish(struct fixture *f, struct ends *ends);

/* Returns 1 when it is in place, or -1 with *e. */
int commit(struct fixture *f, struct ends *ends, struct error *e);

/* Fails the test if it does not go well. */
void commit_well(struct fixture *f, struct ends *ends);

/* A storage_done_fn: `argument` is a struct error. */
void on_done(void *argument, const char *id, const struct error *e);

/* Tells the node the outcome of ID. Returns 0, or -1 with *e. */
int resolve(struct fixture *f, bool committed, struct error *e);

/* The caller frees them. */
uint8_t *random_bytes(size_t length, unsigned seed);

/* A folder with one block each from and to three nodes, for node 1. */
struct folder_request small(void **state);

/* Runs an exchange up to its finished output. */
void fill(struct fixture *f, struct ends *ends, const struct folder_request *request);

/* Opening is refused with this code, and leaves nothing behind. */
void check_refused(struct fixture *f, const struct folder_request *request, enum error_code code);

/* Appends an id to `argument`. */
void note_id(void *argument, const char *id);

/* Fails the test unless these exchanges are in doubt. */
void check_in_doubt(struct fixture *f, const char *expected);

/* The root records its decision to commit ID. */
void record(struct fixture *f, struct error *e);

/* Fails the test unless these decisions are on record. */
void check_committed(struct fixture *f, const char *expected);

/* Files with their number in them, for as many nodes. */
struct folder_request many(void **state);
