/* The reading functions of daemon/torusd/copy/tree_store.h. */
#pragma once

#include "daemon/torusd/copy/tree_store.h"

/* Sets the reading functions; store->context must be a struct tree_files. */
void tree_reader_add(struct tree_store *store);
