/* The reading functions of daemon/copy/tree_store.h. */
#ifndef TORUSD_TREE_READER_H
#define TORUSD_TREE_READER_H

#include "daemon/copy/tree_store.h"

/* Sets the reading functions; store->context must be a struct tree_files. */
void tree_reader_add(struct tree_store *store);

#endif
