/* All files of a source are found, and opened. */
#ifndef TORUSD_FILES_SOURCE_OPENING_H
#define TORUSD_FILES_SOURCE_OPENING_H

#include "daemon/files/source/source_record.h"

/* Begins to open them. Returns false without memory. */
bool source_open(struct folder_source *s);

/* Opening or checking is over: on to `state`, or it has failed. */
void source_step_over(struct folder_source *s, enum source_state state);

/* As source_ops.opened(), size() and mark(). */
bool source_opened(struct source *base);
uint64_t source_size(struct source *base, uint32_t destination);
uint64_t source_mark(const struct source *base, uint32_t destination);

#endif
