/* Files of the corpora. */
#ifndef TORUSD_TESTS_FUZZ_SEEDS_H
#define TORUSD_TESTS_FUZZ_SEEDS_H

#include <stdio.h>

/* Opens FOLDER/TARGET/NAME, and writes the byte `first` to its front unless `first` is negative. Only one file
 * is open at a time. */
FILE *open_seed(const char *folder, const char *target, const char *name, int first);
void close_seed(void);

void discovery_seeds(const char *folder);
void manifest_seeds(const char *folder);
void msccl_seeds(const char *folder);
void peer_seeds(const char *folder);

#endif
