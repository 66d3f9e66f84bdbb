/* By what the IP routes of torus-routed are told from all others. Those of 'torusctl ip-routes' have the same protocol
 * number, but not the metric. */
#ifndef TORUSD_PROTO_ROUTES_H
#define TORUSD_PROTO_ROUTES_H

/* The routing protocol number of the routes (rtm_protocol in <linux/rtnetlink.h>). */
#define ROUTE_PROTOCOL 84
#define ROUTE_METRIC 84

#endif
