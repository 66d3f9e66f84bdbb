/* Hands an output from one attempt to the next. The writes of one attempt end before the next attempt
 * starts. */
#pragma once

#include "daemon/torusd/files/sink/sink_record.h"

/* Starts to prepare the target. Returns false if there is no memory. */
bool attempt_prepare(struct folder_sink *s);

/* To be called whenever a job is over: if a next attempt waits for the output and no job is under way, starts
 * it. Returns whether a next attempt waits. */
bool attempt_start_next(struct folder_sink *s);

/* As sink_ops.keep_output(), lost() and limit(). */
bool sink_keep_output(struct sink *base, const struct block_events *events);
bool sink_lost(struct sink *base, uint32_t origin);
void sink_limit(struct sink *base, uint32_t origin, uint64_t size);

/* Gives a kept sink to the next attempt. Returns the sink, or NULL if there is no memory. */
struct sink *attempt_take_over(struct folder_sink *s, const struct folder_request *request,
                               const struct block_events *events);
