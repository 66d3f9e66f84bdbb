/* Times of discovery, in nanoseconds, and its limits. */
#pragma once

#include "daemon/lib/base/limits.h"

/* Hellos are sent at short intervals while something changes, and at long ones when nothing has changed for
 * DISCOVERY_SETTLED and DISCOVERY_CALM. A neighbour is dropped after HOLD intervals without a hello. */
#define DISCOVERY_HELLO_FIRST (500 * MILLISECONDS)
#define DISCOVERY_HELLO (1 * SECONDS)
#define DISCOVERY_HELLO_CALM (3 * SECONDS)
#define DISCOVERY_SETTLED (10 * SECONDS)
#define DISCOVERY_CALM (60 * SECONDS)
#define DISCOVERY_HOLD_INTERVALS 8u
#define DISCOVERY_HOLD_MOST_MS 60000u /* what a neighbour's hello may ask for */
/* Changes that come within this time go into one report. */
#define DISCOVERY_REPORT_PAUSE (150 * MILLISECONDS)
/* Reports of one host that come closer together are not taken, and so not passed on. */
#define DISCOVERY_REPORT_SPACING (50 * MILLISECONDS)
#define DISCOVERY_REPORT_RENEWAL (60 * SECONDS)
/* A report that its host has not renewed is dropped, even if other hosts vouch for the host. */
#define DISCOVERY_REPORT_LIFE (200 * SECONDS)
/* How long a host is kept that no confirmed cable leads to. */
#define DISCOVERY_LOST_LIFE (10 * SECONDS)
/* Hellos of a host that does not answer for so long are reported, until none has come for a hold time. */
#define DISCOVERY_UNANSWERED (5 * SECONDS)
/* A summary is sent to one neighbour at most once in this time. */
#define DISCOVERY_SUMMARY_PAUSE (400 * MILLISECONDS)
/* How many packets of strangers each interface may bring: signatures to check, and answers that are sent. */
#define DISCOVERY_RATE 500u /* a second */
#define DISCOVERY_BURST 2000u
