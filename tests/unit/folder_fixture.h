/* A temporary folder, removed with all that is in it; and short ways to make and read files. */
#ifndef TORUSD_TESTS_UNIT_FOLDER_FIXTURE_H
#define TORUSD_TESTS_UNIT_FOLDER_FIXTURE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

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

#endif
