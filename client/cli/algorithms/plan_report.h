/* The figures of a schedule as JSON. All return 0, or -1 if out of memory. */
#ifndef TORUSD_CLI_PLAN_REPORT_H
#define TORUSD_CLI_PLAN_REPORT_H

#include <jansson.h>

#include "daemon/schedule/plan.h"
#include "daemon/schedule/verify.h"

/* startups, transmission, critical_path, bound, bound_of, contended_steps, port_model_kept, minimal;
 * in blocks, of which the algorithm's segments are parts */
int plan_set_report(json_t *object, const struct algorithm *a, const struct schedule_report *r);

/* efficiency: bound / transmission; null if nothing is sent */
int plan_set_efficiency(json_t *object, const struct algorithm *a, const struct schedule_report *r);

/* messages: what the node sends, relays and receives, an object for each combined message, by step;
 * with the port that it leaves or arrives through, and the node where the leg of a sent one ends,
 * or where that of another one began */
int plan_set_messages(json_t *object, const struct torus *t, const struct plan *p);

#endif
