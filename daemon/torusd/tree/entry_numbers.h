/* The number (of the inode) of each entry's file, in a temporary file: so a reader finds out that a file was replaced. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"

struct entry_numbers;
/* `file` is open and empty; it is closed with the numbers. NULL: no memory; then it stays open. */
struct entry_numbers *entry_numbers_new(int file);
void entry_numbers_free(struct entry_numbers *n);

/* Adds the number of the next entry. Returns 0, or -1 with *e. */
int entry_numbers_add(struct entry_numbers *n, uint64_t number, struct error *e);
/* To be called after the last one was added. */
int entry_numbers_finish(struct entry_numbers *n, struct error *e);
/* Reads a number; several threads may do so. Returns 0, or -1 with *e. */
int entry_numbers_get(const struct entry_numbers *n, uint64_t index, uint64_t *number,
                      struct error *e);
