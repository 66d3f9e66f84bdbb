/* Setups: bytes for one host, which gives them to its command, and sends back the exit status and the output. Here they
 * only travel: sealed for the host that may open them (seal.h), from neighbour to neighbour, by hosts that can neither
 * read nor change them.
 *
 * The host answers the announcement (Ask) with a challenge. The setup contains the challenge, so that an old
 * setup cannot be sent again; if the host has a cluster key, the setup must be authenticated by it. The receiver
 * of each transfer asks for the parts that it has not got, so that lost packets are sent again. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/lib/discovery/host_id.h"
#include "proto/error.h"

#define DISCOVERY_SETUP_MOST (256u * 1024u) /* bytes of a setup */
#define SETUP_ID_SIZE 16u
#define NONCE_SIZE 32u
#define SETUPS_OUT_MOST 16u /* that this host sends at the same time */
#define SETUPS_IN_MOST                                                                             \
    4u /* that this host receives at the same time; one of them is applied at a time */

struct discovery;
struct outgoing_setup;
struct incoming_setup;

struct setups {
    struct outgoing_setup *out[SETUPS_OUT_MOST];
    struct incoming_setup *in[SETUPS_IN_MOST];
    struct incoming_setup *given; /* to io.apply(); NULL: none, or its sender has been forgotten */
    bool busy;                    /* io.apply() has one */
    uint8_t nonce[NONCE_SIZE];    /* for challenges */
};

/* What a setup has to be sealed with; everything is borrowed. */
struct setup_challenge {
    const uint8_t *id; /* SETUP_ID_SIZE bytes */
    const struct host_id *from;
    const uint8_t *key;   /* PUBLIC_KEY_SIZE bytes: the receiver's */
    const uint8_t *nonce; /* NONCE_SIZE bytes */
};

/* The end of a setup: its sealed result; or, with e.code other than ERROR_NONE, why there is none. */
struct setup_end {
    struct error e;
    const uint8_t *sealed;
    size_t size;
};

/* Called from discovery_tick(), discovery_receive() or discovery_send_sealed(); everything is borrowed. After ended(),
 * the setup does not exist any more. */
struct setup_user {
    void (*challenged)(void *context, const struct setup_challenge *challenge);
    void (*ended)(void *context, const struct setup_end *end);
    void *context;
};

/* Announces a setup to another host, whose challenge follows. Returns a setup, or NULL with *e and no call of *user. */
struct outgoing_setup *discovery_send_setup(struct discovery *d, const struct host_id *host,
                                            const struct setup_user *user, struct error *e);

/* Sends the sealed setup (copied) that the challenge has asked for. */
void discovery_send_sealed(struct discovery *d, struct outgoing_setup *setup, const uint8_t *bytes,
                           size_t size);

/* Forgets a setup; ended() is not called. The host may apply it all the same. */
void discovery_cancel_setup(struct discovery *d, struct outgoing_setup *setup);

/* The setup that io.apply() was given has ended. With e.code other than ERROR_NONE it was refused. */
void discovery_setup_ended(struct discovery *d, const struct setup_end *end);
