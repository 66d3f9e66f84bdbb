/* What distinguishes the IP routes of torus-routed from all others. Those of 'torusctl ip-routes' have the same
 * protocol number, but not the metric. */
#pragma once

/* The routing protocol number of the routes (rtm_protocol in <linux/rtnetlink.h>). */
#define ROUTE_PROTOCOL 84
#define ROUTE_METRIC 84

/* What packets to a host take, in the words of 'torusctl routes'. The numbers stand in RouteCounts
 * (control.proto.in). */
enum route_state {
    ROUTE_ROUTED,      /* the shortest paths */
    ROUTE_CHANGES,     /* some of them, because links have changed */
    ROUTE_WAITS,       /* none: links have changed, and packets could go round in a loop */
    ROUTE_DIRECT,      /* the cable to a neighbour whose torusd may not run */
    ROUTE_BLOCKED,     /* none: links lead there, but hosts on the way do not forward */
    ROUTE_UNREACHABLE, /* none: no links lead there */
    ROUTE_DIVERTED,    /* another route of the kernel */
    ROUTE_MISSING,     /* not known: the kernel refused the route */
    ROUTE_STATES
};

/* Returns the name of a state, "routed". */
static inline const char *route_state_name(enum route_state state)
{
    static const char *const names[ROUTE_STATES] = {
        "routed", "changes", "waits", "direct", "blocked", "unreachable", "diverted", "missing",
    };

    return names[state];
}
