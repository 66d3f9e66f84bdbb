/* The connection of a discovery process to torusd-setup, which keeps the secrets of the host. */
#ifndef TORUSD_DISCOVERY_PROCESS_SETUP_LINK_H
#define TORUSD_DISCOVERY_PROCESS_SETUP_LINK_H

#include <uv.h>

#include "daemon/discovery/discovery.h"

/* The state of the host, as torusd-setup says. */
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
    /* At each connection, and at each change; borrowed. */
    void (*told)(void *context, const struct host_facts *facts);
    /* The setup that was handed over has ended; borrowed. If torusd-setup goes away, it is refused. */
    void (*ended)(void *context, const struct setup_end *end);
    void (*closed)(void *context);
    void *context;
};

/* Connects to the socket (the path must outlive the link), now or as soon as torusd-setup serves it, and again when the
 * connection is lost. It must be served by root or by the user of this process. Returns NULL if there is no memory. */
struct setup_link *setup_link_open(uv_loop_t *loop, const char *path,
                                   const struct setup_link_user *user);

/* Hands over a sealed setup (borrowed); ended() follows, but not from inside this function. One at a time. */
void setup_link_hand_over(struct setup_link *l, const uint8_t id[SETUP_ID_SIZE],
                          const struct host_id *from, const uint8_t *sealed, size_t size);

/* Says that an interface has appeared, and is down. */
void setup_link_say_appeared(struct setup_link *l, const char *interface);

/* Closes the connection; closed() follows when the loop has closed the handles, and the link is freed. */
void setup_link_close(struct setup_link *l);

#endif
