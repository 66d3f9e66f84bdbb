/* Copies data from one file to another, with the holes of both; blocks are shared if the file system can do that. */
#pragma once

#include "daemon/torusd/tree/file_data.h"

/* Finds where a place of the data of a file is: returns its offset in the file, and sets *run to the bytes up to the next
 * hole or the end of the data. */
uint64_t copy_data_offset(const struct file_data *d, uint64_t place, uint64_t *run);

/* Copies `length` bytes from a place of the data of one file to a place of that of another one. Returns 0 or -errno; -EIO
 * if the source is shorter than its data. */
int copy_data(int from, const struct file_data *from_data, uint64_t from_place, int to,
              const struct file_data *to_data, uint64_t to_place, uint64_t length);

/* Writes bytes to a place of the data of a file. Returns 0 or -errno. */
int copy_data_write(int file, const struct file_data *d, uint64_t place, const uint8_t *bytes,
                    size_t length);
