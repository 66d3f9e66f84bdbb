/* Trees in a temporary folder, and readers of them. */
#pragma once

#include "daemon/torusd/tree/tree_files.h"
#include "folder_fixture.h"
#include "manifest_fixture.h"

struct trees {
    char *folder; /* "data" below it is the data root, "state" the state folder */
    struct roots roots;
    struct tree_files files;
    const struct tree_store *store;
};

/* cmocka setup and teardown: *state is a struct trees. */
int trees_setup(void **state);
int trees_teardown(void **state);
#define TREES_TEST(name) TEST_WITH(trees_setup, trees_teardown, name)

/* "folder/data/name" in one of many static buffers. `name` may be a format. */
const char *data_at(void **state, const char *name, ...) __attribute__((format(printf, 2, 3)));
/* Makes files below data: a folder if the name ends with '/', otherwise a file that holds the name. NULL ends the list. */
void make_tree(void **state, const char *const *names);

/* Opens a reader, or fails the test; or checks that it fails with this code and a text that contains `text`. */
struct tree_reader *open_reader(void **state, const struct tree_read_options *options);
struct tree_reader *open_reader_of(void **state,
                                   const char *name); /* one source below data, without its name */
void check_open_fails(void **state, const struct tree_read_options *options, enum error_code code,
                      const char *text);

/* A document of a reader as a file in memory, which the caller closes; and its size. */
int document_of(void **state, struct tree_reader *r, enum tree_document which, uint64_t *size);
/* Opens the manifest of a reader. Returns its file. */
int manifest_of(void **state, struct tree_reader *r, struct manifest *m);
/* Checks paths and kinds: "PATH/" is a folder, "PATH@" a symbolic link, "PATH=" a hard link. NULL ends the list. */
void check_paths(void **state, struct tree_reader *r, const char *const *paths);
/* Finds an entry, which lives until the next call; *c stays open for its memory. Fails the test if it is not there. */
struct entry entry_at(struct manifest_cursor *c, const char *path);

/* The number of descriptors that this process has open. */
unsigned descriptors(void);
