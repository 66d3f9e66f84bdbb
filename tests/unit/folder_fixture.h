/* A temporary folder, removed with all that is in it; short ways to make and read files; workers
 * that run one job after the other, where the test says so; and a file system of which one call
 * fails. */
#ifndef TORUSD_TESTS_UNIT_FOLDER_FIXTURE_H
#define TORUSD_TESTS_UNIT_FOLDER_FIXTURE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/work.h"
#include "daemon/files/system/file_system.h"

#define FIXTURE_PATH (PATH_MAX / 4)

/* cmocka setup and teardown: *state is the folder's path (resolved). */
int folder_setup(void **state);
int folder_teardown(void **state);

/* "folder/name" in one of many static buffers. `name` may be a format. */
const char *at(void **state, const char *name, ...) __attribute__((format(printf, 2, 3)));
void make_folder(const char *path);
void make_file(const char *path, const void *bytes, size_t length);
bool exists(const char *path);
/* How many entries a folder has, 0 if there is none. */
unsigned entries(const char *path);
/* Fails the test unless the file holds these bytes. */
void check_file(const char *path, const void *bytes, size_t length);

/* --- jobs --- */

#define STEPPER_MOST 64

/* Jobs that were submitted, and those of them that have run and are not done. */
struct stepper {
    struct workers workers;
    struct work *submitted[STEPPER_MOST], *ran[STEPPER_MOST];
    unsigned submitted_count, ran_count;
    unsigned chance; /* 0: in their order; else the seed of any other */
    bool refuse;     /* submit() fails */
};

void stepper_init(struct stepper *s, unsigned seed);
/* Runs one job, or tells that one is done. Returns false if there is none. */
bool stepper_step(struct stepper *s);
void stepper_finish(struct stepper *s); /* until there is none */

/* --- failures --- */

/* The system's file system, of which one call fails: the `left`th from now. */
struct faulty_files {
    struct file_system files;
    long left; /* negative: none */
    int error; /* such as EIO */
    bool failed;
    const char *call; /* the one that failed */
    long open;        /* descriptors */
    size_t read_most; /* bytes by a call; 0: as many as are asked for */
    bool cached;      /* read_cached() is the system's; else it cannot tell */
    bool in_memory;   /* in_memory() says so */
    /* Called before that call, instead of its failure, if not NULL. */
    void (*before)(void *argument);
    void *argument;
};

void faulty_files_init(struct faulty_files *f);

#endif
