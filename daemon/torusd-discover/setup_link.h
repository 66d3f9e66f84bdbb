/* The connection of a discovery process to torusd-setup, which keeps the secrets of the host. */
#pragma once

#include <uv.h>

#include "daemon/lib/discovery/discovery.h"

/* What torusd-setup says about this host. */
struct host_facts {
    struct identity identity;
    struct secrets secrets; /* derived keys */
    uint8_t nonce[NONCE_SIZE];
    bool accepts_setups;
    char dims[TORUS_TEXT_SIZE]; /* as configured; "": not configured */
    bool have_rank;
    uint32_t rank;
};

struct setup_link;

struct setup_link_user {
    /* torusd-setup has said how the host is: after each connection, and after each change. *facts is borrowed. */
    void (*told)(void *context, const struct host_facts *facts);
    /* The setup that was handed over has ended; *end is borrowed. It is a refusal if torusd-setup went away. */
    void (*ended)(void *context, const struct setup_end *end);
    void (*closed)(void *context);
    void *context;
};

/* Connects to the socket as soon as torusd-setup serves it, and again whenever the connection is lost. Accepts a server
 * that runs as root or as the user of this process only. The path must outlive the link. Returns NULL if there is not
 * enough memory. */
struct setup_link *setup_link_open(uv_loop_t *loop, const char *path,
                                   const struct setup_link_user *user);

/* Hands a sealed setup (borrowed) to torusd-setup. ended() is called later, never from inside this function; until
 * then, no other setup may be handed over. */
void setup_link_hand_over(struct setup_link *l, const uint8_t id[SETUP_ID_SIZE],
                          const struct host_id *from, const uint8_t *sealed, size_t size);

/* Tells torusd-setup that an interface has appeared that is down. */
void setup_link_say_appeared(struct setup_link *l, const char *interface);

/* Closes the connection. When the loop has closed the handles, closed() is called and the link is freed. */
void setup_link_close(struct setup_link *l);
