/* Files in the state folder. Whoever can write there must not lead a process of root to other files. */
#pragma once

#include <stdio.h>

/* Opens a regular file, which is made if it does not exist and `flags` (of open(2)) have O_CREAT. Returns a descriptor;
 * or -1 with errno, ELOOP if it is a link or anything else but a file. */
int state_file_descriptor(const char *path, int flags);

/* The same as a stream: mode "r", "w" or "a". */
FILE *state_file_open(const char *path, const char *mode);
