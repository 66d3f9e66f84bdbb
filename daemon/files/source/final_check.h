/* Checks at the end that no file was changed while it was sent. */
#ifndef TORUSD_FILES_SOURCE_FINAL_CHECK_H
#define TORUSD_FILES_SOURCE_FINAL_CHECK_H

#include "daemon/files/source/source_record.h"

/* As source_ops.finish(). */
bool source_finish(struct source *base);

#endif
