/* A temporary folder that is removed with its contents; helpers to make and read files; workers that run one job
 * at a time when the test says so; and a file system in which one call fails. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "daemon/lib/base/work.h"
#include "daemon/torusd/disk/file_system.h"
#include "tests/support/cmocka.h"

#define FIXTURE_PATH (PATH_MAX / 4)

/* cmocka setup and teardown: *state is the folder's path (resolved). */
int folder_setup(void **state);
int folder_teardown(void **state);

/* A test in a temporary folder of its own. */
#define FOLDER_TEST(name) TEST_WITH(folder_setup, folder_teardown, name)

/* "folder/name" in one of many static buffers. `name` may be a format. */
const char *at(void **state, const char *name, ...) __attribute__((format(printf, 2, 3)));
void make_folder(const char *path);
void make_file(const char *path, const void *bytes, size_t length);
/* Writes a text into a file; a negative offset counts from its end. */
void overwrite(const char *path, long offset, const char *text);
bool exists(const char *path);
/* The number of entries of a folder; 0 if there is no folder. */
unsigned entries(const char *path);
/* Fails the test unless the file holds these bytes. */
void check_file(const char *path, const void *bytes, size_t length);

/* --- jobs --- */

#define STEPPER_MOST 64

/* Submitted jobs, and those of them that have run and are not reported as done. */
struct stepper {
    struct workers workers;
    struct work *submitted[STEPPER_MOST], *ran[STEPPER_MOST];
    unsigned submitted_count, ran_count;
    unsigned chance; /* 0: in order; otherwise the seed of a random order */
    bool refuse;     /* submit() fails */
};

void stepper_init(struct stepper *s, unsigned seed);
/* Runs one job, or reports that one is done. Returns false if there is none. */
bool stepper_step(struct stepper *s);
void stepper_finish(struct stepper *s); /* until there is none */

/* --- failures --- */

/* The system's file system, in which one call fails: the `left`-th from now. */
struct faulty_files {
    struct file_system files;
    long left; /* negative: none */
    int error; /* such as EIO */
    bool failed;
    const char *call; /* the one that failed */
    long open;        /* descriptors */
    size_t read_most; /* most bytes of a call; 0: as many as requested */
    bool cached;      /* read_cached() is the system's; otherwise it cannot tell */
    bool in_memory;   /* in_memory() says so */
    /* If not NULL, called before that call, which then does not fail. */
    void (*before)(void *argument);
    void *argument;
};

void faulty_files_init(struct faulty_files *f);
