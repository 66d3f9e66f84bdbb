/* Gathers facts on a worker thread, once for all who ask meanwhile. */
#pragma once

#include "daemon/lib/base/work.h"
#include "daemon/lib/host/facts.h"

struct gathering {
    struct work work;
    const struct workers *workers;
    /* Called on the loop with the facts, valid during the call; "" if they could not be gathered. */
    void (*done)(void *context, const char *facts);
    void *context;
    struct past *past; /* of the owner; NULL: none */
    struct work noting_work;
    bool noting;               /* that work is under way */
    struct gather_setup setup; /* of the gathering that runs, with copies of the texts */
    char *settings;
    struct facts *facts; /* NULL: nothing runs */
    bool stopped;
};

/* Begins to gather, unless that is under way; done() follows, from inside the call only without memory. `settings` are
 * lines of facts that come first. All texts are copied. */
void gathering_start(struct gathering *g, const char *settings, const struct gather_setup *setup);
/* Notes on a worker thread what the interfaces have counted: to be called every five minutes. */
void gathering_note(struct gathering *g);
/* done() is not called any more. *g and its `past` must live until the work is over, which the loop waits for. */
void gathering_stop(struct gathering *g);
