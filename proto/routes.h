/* By what torusd tells the IP routes of torus-routed from all others. */
#ifndef TORUSD_PROTO_ROUTES_H
#define TORUSD_PROTO_ROUTES_H

/* The routing protocol number of the routes (rtm_protocol in <linux/rtnetlink.h>). */
#define ROUTE_PROTOCOL 84

#endif
