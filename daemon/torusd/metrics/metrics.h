/* The metrics of a daemon. daemon/doc/monitoring.md lists them. */
#pragma once

#include "daemon/torusd/metrics/exposition.h"
#include "daemon/torusd/metrics/view.h"

/* Write all metrics of a subject. */
void metrics_of_node(struct exposition *x, struct metrics_view *v);   /* and of the torus */
void metrics_of_links(struct exposition *x, struct metrics_view *v);  /* of this node's ports */
void metrics_of_routes(struct exposition *x, struct metrics_view *v); /* of torus-routed */
void metrics_of_room(struct exposition *x, struct metrics_view *v);   /* of the data roots */
void metrics_of_work(struct exposition *x, struct metrics_view *v); /* exchanges, groups, copies */
void metrics_of_process(struct exposition *x,
                        struct metrics_view *v); /* processor, memory, requests */
