/* Finds and opens all files of a source. */
#pragma once

#include "daemon/torusd/files/source/source_record.h"

/* Starts to open the files. Returns false if there is no memory. */
bool source_open(struct folder_source *s);

/* To be called when opening or checking is over: the source enters `state`, unless the step has failed. */
void source_step_over(struct folder_source *s, enum source_state state);

/* As source_ops.opened(), size() and mark(). */
bool source_opened(struct source *base);
uint64_t source_size(struct source *base, uint32_t destination);
uint64_t source_mark(const struct source *base, uint32_t destination);
