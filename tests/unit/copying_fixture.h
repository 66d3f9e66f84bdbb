/* Copies of trees in a temporary folder, from a reader to a writer without a network; random trees; and an independent
 * comparison. */
#pragma once

#include "daemon/torusd/tree/tree_files.h"
#include "folder_fixture.h"

struct copying {
    struct roots roots; /* one: "data" in the temporary folder */
    struct tree_files files;
    const struct tree_store *store;
    char state_folder[FIXTURE_PATH];
    unsigned long descriptors; /* that were open before */
};

/* A data root "data" and a state folder "state". */
void copying_open(struct copying *c, void **state);
/* Fails the test if anything is left open. */
void copying_close(struct copying *c);

/* How to copy; all 0: everything, in order, in pieces of 100 KB. */
struct how {
    struct tree_read_options read;
    struct tree_write_options write;
    const char *from, *to; /* absolute paths, instead of those in `read` and `write` */
    uint32_t most;         /* ranges; 0: 64 */
    bool everything;       /* all of the stream comes, since other nodes lack it */
    size_t piece;          /* bytes of a call of write(); 0: 100000 */
    unsigned seed;         /* not 0: pieces in a random order */
    unsigned threads;      /* that write; 0: none but the caller */
    uint64_t stop_after;   /* bytes of the stream after which the copy is abandoned; 0: never */
    bool no_finish;        /* abandoned before finish() */
    struct tree_progress *progress; /* of all steps; NULL: its own */
    /* called before data is read, before check(), and before finish(); NULL: nothing */
    void (*before_read)(void *argument);
    void (*before_check)(void *argument);
    void (*before_finish)(void *argument);
    void *argument;
};

struct copied {
    struct tree_report report;
    uint64_t moved; /* bytes that were written */
    uint32_t spans;
    uint32_t changed;   /* files that changed meanwhile, with write.skip_changing */
    struct error error; /* of the step that failed */
};

/* Copies. Returns 0, or -1 with result->error. */
int copying_run(struct copying *c, const struct how *how, struct copied *result);
/* Copies one tree to a path, and fails the test unless that succeeds. Returns the bytes that were moved. */
uint64_t copying_well(struct copying *c, const char *from, const char *to);

/* --- tests with one copy after another --- */

/* Open in a COPYING_TEST, which runs in a temporary folder of its own. */
extern struct copying copying;
/* At first from data/from to data/to. */
extern struct how how;
extern struct copied result;

#define COPYING_TEST(name) TEST_WITH(copying_setup, copying_teardown, name)
int copying_setup(void **state);
int copying_teardown(void **state);
/* Begins again with an empty folder. */
void start_anew(void **state);

/* Copies as `how` says. Returns 0, or -1 with result.error. */
int copy(void);
/* The same, and fails the test unless it succeeds. */
void copy_well(void);
/* Fails the test unless the copy fails with this error, whose text contains `text`. */
void copy_refused(enum error_code code, const char *text);

/* --- trees --- */

/* Makes a tree of random files, sparse files, links, hard links, folders, modes, times, attributes, from a seed. */
void random_tree(const char *path, unsigned seed, unsigned entries);
/* Changes some of it: contents, sizes, names, kinds, modes. */
void random_changes(const char *path, unsigned seed);
/* Makes a file of random bytes. */
void random_file(const char *path, unsigned seed, size_t length);

/* Fails the test unless two trees are equal: names, kinds, contents, holes, modes, owners, times, attributes, hard links.
 * Returns false instead, if `quiet`. */
bool trees_are_equal(const char *one, const char *other, bool quiet);
void check_equal(const char *one, const char *other);
