/* One-port: the end of a leg tells its start when it is ready. */
#pragma once

#include "daemon/torusd/engine/stepped/state.h"

/* One-port: sends a clear for the first leg that ends here and has not arrived. */
void stepped_clear_next(struct stepped *s);

/* engine_ops.clear */
int stepped_clear(struct engine *engine, unsigned port, const struct peer_clear *clear,
                  struct error *e);
