/* Bytes of a file at an offset: all of them, or an error. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Return 0; -1 with errno, and errno 0 if the file ends before. */
int file_read(int file, void *bytes, size_t length, uint64_t offset);
int file_write(int file, const void *bytes, size_t length, uint64_t offset);
