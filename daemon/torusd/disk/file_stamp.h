/* What ties a record about a file to the file: a record says "these bytes have arrived", and counts as long as nobody
 * has written to the file since. Its inode number, its size and the time of its last change of any kind, which no
 * program can set, make up a number that is kept with the record and compared when the record is used. What somebody
 * else writes between a write of torusd and the check of the file after it counts as torusd's. */
#pragma once

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "proto/error.h"

#define FILE_STAMP_NONE                                                                            \
    0u /* the stamp of a file that does not exist, or was never looked at: no file has it */

/* Returns the stamp of a file; `about` says what the record is about, so that stamps of several files cannot be taken
 * for each other. Never FILE_STAMP_NONE. */
uint64_t file_stamp(uint64_t about, uint64_t number, uint64_t size, struct timespec changed);

/* Fills *e: somebody has changed the new file with this path since its bytes arrived. `again` says what to do then,
 * such as "copy again". Returns -1. */
int file_stamp_changed(const char *path, const char *again, struct error *e);

/* Fills *e: something of this kind (S_IFMT of a mode; 0: not known) is where torusd keeps its new files, and has to be
 * removed. Returns -1. */
int file_stamp_refuse(const char *path, mode_t kind, const char *again, struct error *e);

/* Warns that files with this path are from a release that recorded no stamps. */
void file_stamp_warn_of_none(const char *path);
