/* Checks at the end that no file was changed while it was sent. */
#pragma once

#include "daemon/torusd/files/source/source_record.h"

/* As source_ops.finish(). */
bool source_finish(struct source *base);
