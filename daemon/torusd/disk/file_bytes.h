/* Bytes of files at an offset, by calls of the system; and small files as a whole. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/torusd/disk/file_system.h"

/* Closes a descriptor, unless it is negative, and sets it to -1. */
void file_close(int *file);

/* Read or write all bytes at an offset. Return 0; -1 with errno, and errno 0 if the file ends before. */
int file_read(int file, void *bytes, size_t length, uint64_t offset);
int file_write(int file, const void *bytes, size_t length, uint64_t offset);

/* Reads at most `most` bytes of a file of a folder. Returns their number or -errno. */
ssize_t file_fetch(const struct file_system *files, int folder, const char *name, void *bytes,
                   size_t most);
/* Replaces a file of a folder: the bytes are written to the file `next`, which then gets the name. A crash leaves the old or
 * the new bytes, and perhaps `next`; so does a power failure if `sync`. Returns 0 or -errno. */
int file_replace(const struct file_system *files, int folder, const char *next, const char *name,
                 const void *bytes, size_t length, bool sync);

/* Says which run of the system this is; "": not known. */
#define BOOT_ID_SIZE 40u
void read_boot_id(char id[BOOT_ID_SIZE]);
