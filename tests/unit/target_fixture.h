/* A target in a temporary folder, with two files. */
#pragma once

#include <sys/types.h>

#include "daemon/torusd/files/target.h"
#include "folder_fixture.h"

#define ID "0-0000beef-1"

struct fixture {
    struct faulty_files files;
    struct roots roots;
    struct journal journal;
    struct made_folders made;
    struct place place;
    struct target target;
    mode_t output_mode;
};

/* A data root "data" and a state folder. */
void open_fixture(struct fixture *f, void **state);

/* Fails the test if anything is left open. */
void close_fixture(struct fixture *f);

/* Makes an output that can be placed, of two files. */
int fill(struct fixture *f, bool replace, struct error *e);

/* The same; fails the test unless it succeeds. */
void fill_well(struct fixture *f, bool replace);

/* Puts the output in place. */
void place_well(struct fixture *f);

/* Fails the test unless the target is refused with this text and nothing is left. */
void check_refused(struct fixture *f, bool replace, const char *text);

/* Fails the test unless the file has this mode, owner and group. */
void check_status(const char *path, mode_t mode, uid_t owner, gid_t group);

/* Checks that the new result is in place, and nothing else. */
void check_new(void **state);
