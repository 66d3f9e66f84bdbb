/* Traces of exchanges and groups that ask for one (Spec.trace): which are kept, and what is sampled. A trace goes through
 * all attempts of a job. */
#pragma once

#include "daemon/torusd/exchange/attempt.h"

/* Begins the trace of an attempt whose spec asks for one, or continues that of the job's former attempt. Without memory,
 * or if others are traced now, there is none. */
void tracing_begin(struct attempt *x);
/* Notes that the attempt has entered its state. */
void tracing_note_state(struct attempt *x);
/* Gives up the attempt's reference. */
void tracing_leave(struct attempt *x);
/* Notes links that have gone down or come up, in all traces under way. */
void tracing_note_links(struct exchanges *exchanges, uint32_t before, uint32_t now);

/* When the next sample is due, or ROUTER_NEVER; takes the samples that are due. */
uint64_t tracing_deadline(const struct exchanges *exchanges);
void tracing_tick(struct exchanges *exchanges, uint64_t now);

/* Frees all traces. */
void tracing_free(struct exchanges *exchanges);
