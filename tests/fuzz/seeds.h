/* Files of the corpora. */
#pragma once

#include <stdio.h>

/* Opens FOLDER/TARGET/NAME, and writes the byte `first` to its front unless `first` is negative. Only one file
 * is open at a time. */
FILE *open_seed(const char *folder, const char *target, const char *name, int first);
void close_seed(void);

void discovery_seeds(const char *folder);
void manifest_seeds(const char *folder);
void peer_seeds(const char *folder);
