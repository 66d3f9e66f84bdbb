/* Adds the figures of a schedule to a JSON object. All functions return 0, or another value if memory is short. */
#pragma once

#include <jansson.h>

#include "daemon/lib/schedule/plan.h"
#include "daemon/lib/schedule/verify.h"

/* Adds startups, transmission, critical_path, bound, bound_of, contended_steps, port_model_kept and minimal, in
 * blocks. */
int plan_set_report(json_t *object, const struct algorithm *a, const struct schedule_report *r);

/* Adds efficiency: bound / transmission, or null if nothing is sent. */
int plan_set_efficiency(json_t *object, const struct algorithm *a, const struct schedule_report *r);

/* For routes that were found (detour.h): adds the figures of streaming, because these routes are not made for steps;
 * for an allgather, of its disjoint trees. Returns another value with *e if the routes cannot be simulated. */
int plan_set_found(json_t *object, const struct torus *t, const struct algorithm *a,
                   const struct schedule_report *report, struct error *e);

/* Adds messages: an object for each combined message that the node sends, relays or receives, by step. It has the
 * port through which the message leaves or arrives, and the node at the other end of the leg. */
int plan_set_messages(json_t *object, const struct torus *t, const struct plan *p);
