/* Blocks of an attempt that goes on where another one was. Each function does nothing to any other attempt. */
#ifndef TORUSD_EXCHANGE_RECORD_RESUMED_BLOCKS_H
#define TORUSD_EXCHANGE_RECORD_RESUMED_BLOCKS_H

#include "daemon/exchange/record/attempt.h"

/* Takes what is kept here. Returns 0, or -1 with *e. */
int resumed_blocks_begin(struct attempt *x, struct error *e);
/* Asks for the kept output, and for files as they were. */
void resumed_blocks_ask(const struct attempt *x, struct folder_request *request);
/* Source and sink are open: they leave out what is here. Returns 0, or -1 with *e. */
int resumed_blocks_wrap(struct attempt *x, struct error *e);
/* All have told what has arrived: what is missing is known. Returns 0, or -1 with *e. */
int resumed_blocks_lay_out(struct attempt *x, struct error *e);
/* Generated blocks: the largest one, and bytes, of what is missing here. */
void resumed_blocks_sizes(struct attempt *x);
/* Root, all have told: the same of files, everywhere. Returns 0, or -1 with *e. */
int resumed_blocks_largest(struct attempt *x, struct error *e);

#endif
