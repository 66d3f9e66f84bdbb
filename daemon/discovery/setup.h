/* Setups: bytes for one host, which gives them to its command, and sends back the exit status and the output.
 * They pass from neighbour to neighbour, sealed so that only that host can read them.
 *
 * The host answers the announcement (Ask) with a challenge. The setup contains the challenge, so that an old
 * setup cannot be sent again; if the host has a cluster key, the setup must be authenticated by it. The receiver
 * of each transfer asks for the parts that it has not got, so that lost packets are sent again. */
#ifndef TORUSD_DISCOVERY_SETUP_H
#define TORUSD_DISCOVERY_SETUP_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/discovery/host_id.h"
#include "proto/error.h"

#define SETUP_ID_SIZE 16u
#define SETUPS_OUT_MOST 16u /* that this host sends at the same time */
#define SETUPS_IN_MOST 4u /* that this host receives at the same time; one command runs at a time */

struct discovery;
struct outgoing_setup;
struct incoming_setup;

struct setups {
    struct outgoing_setup *out[SETUPS_OUT_MOST];
    struct incoming_setup *in[SETUPS_IN_MOST];
    /* This host's own command runs. It goes on if whoever asked for it goes away; then both are NULL. */
    bool running;
    struct outgoing_setup
        *sent_here;                  /* it runs for this one, which this host has sent to itself, */
    struct incoming_setup *received; /* or for this one */
};

/* The end of a setup. With e.code ERROR_NONE the command has run, otherwise it has not, or its result is not
 * known. */
struct setup_answer {
    struct error e;
    uint32_t status; /* exit status of the command */
    const uint8_t *output;
    size_t size;
    const uint8_t *errors; /* what the command has printed on standard error */
    size_t errors_size;
};

/* Called once, from discovery_tick() or discovery_receive(); everything is borrowed. */
typedef void setup_done_fn(void *context, const struct setup_answer *answer);

/* Sends a setup (the bytes are copied) to a host, which shows it or (`apply`) applies it. Returns a setup for
 * discovery_cancel_setup(), or NULL with *e and no call of done(). */
struct outgoing_setup *discovery_send_setup(struct discovery *d, const struct host_id *host,
                                            bool apply, const uint8_t *bytes, size_t size,
                                            setup_done_fn *done, void *context, struct error *e);

/* Forgets a setup; done() is not called. The host may apply it all the same, and no other setup starts before that
 * ends. */
void discovery_cancel_setup(struct discovery *d, struct outgoing_setup *setup);

/* The command that io.run() started has ended. */
void discovery_command_ended(struct discovery *d, const struct setup_answer *answer);

#endif
