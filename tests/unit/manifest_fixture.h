/* Manifests in memory, for tests. */
#pragma once

#include "daemon/torusd/tree/manifest.h"

/* An empty file in memory, which the caller closes. */
int memory_file(void);

struct entry folder_entry(const char *path);
struct entry file_entry(const char *path, uint64_t size);
struct entry symlink_entry(const char *path, const char *text);
struct entry hardlink_entry(const char *path, const char *earlier, uint64_t linked);

/* Adds an entry, or fails the test. */
void add(struct manifest_maker *m, struct entry entry);

/* Completes a manifest, and opens it. */
void finish_and_open(struct manifest_maker *maker, int file, struct manifest *m);

/* Computes the digest of a manifest again, after its bytes were changed. */
void seal(uint8_t *bytes, size_t size);

/* Makes a small manifest with everything that there is. Returns its file, and its size. */
int small_manifest(uint64_t *size);

/* Reads all entries, and seeks each of them. Fails the test if something is not consistent. */
void walk_through(const struct manifest *m);
