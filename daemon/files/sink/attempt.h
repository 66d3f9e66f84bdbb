/* An output that goes on as that of another attempt: of the last one nothing goes on, but that all is written. */
#ifndef TORUSD_FILES_SINK_ATTEMPT_H
#define TORUSD_FILES_SINK_ATTEMPT_H

#include "daemon/files/sink/sink_record.h"

/* Begins: prepares the target. Returns false without memory. */
bool attempt_prepare(struct folder_sink *s);

/* To be called whenever something is over. Returns whether there is another attempt. */
bool attempt_go_on(struct folder_sink *s);

/* As sink_ops.park() and limit(). */
bool sink_park(struct sink *base, const struct block_events *events);
void sink_limit(struct sink *base, uint32_t origin, uint64_t size);

/* A parked sink is that of another attempt from now on. Returns it, or NULL without memory. */
struct sink *attempt_take_over(struct folder_sink *s, const struct folder_request *request,
                               const struct block_events *events);

#endif
