/* A router without a network: the test moves time, and makes connections. */
#pragma once

#include "daemon/torusd/router/handshake.h"
#include "daemon/torusd/router/router.h"
#include "proto/peer/peer_message.h"
#include "tests/unit/message_bytes.h"

#define FIXTURE_CONNECTIONS 64u

struct fixture_connection {
    struct router_fixture *fixture;
    struct link *link; /* NULL: closed */
    unsigned wakes;
    struct link_keys keys; /* zeros: not encrypted */
    struct connection_stat stat;
    unsigned stats; /* how often it was asked for */
    char last[256]; /* reason in the last word; "" : none */
};

struct router_fixture {
    struct torus torus;
    uint32_t rank;
    struct slab_pool pool;
    struct router *router;
    uint64_t now, random;
    uint32_t minor; /* of the protocol, in the hellos of neighbours */
    unsigned dials[TORUS_MAX_PORTS];
    unsigned topology_changes, confirmations;
    struct fixture_connection connection[FIXTURE_CONNECTIONS];
    unsigned connections;
    struct fixture_connection *up[TORUS_MAX_PORTS]; /* by fixture_link_up() */
};

/* With `handler` NULL, frames of exchanges are refused. */
void fixture_open(struct router_fixture *f, const char *dims, uint32_t rank,
                  const struct router_handler *handler);
/* ROUTER_TEST(NAME) { ... }: a test with the router of node 5 of a torus of 4 x 4, as `f`. */
#define ROUTER_TEST(name)                                                                          \
    FIXTURE_TEST(struct router_fixture, f, fixture_open_usual, fixture_close, name)
void fixture_open_usual(struct router_fixture *f);
/* The same with cluster keys. */
void fixture_open_keyed(struct router_fixture *f, const char *dims, uint32_t rank,
                        const struct router_handler *handler, const struct secrets *secrets);
/* Fails the test if buffers have leaked. */
void fixture_close(struct router_fixture *f);

/* The same for a router that the caller makes from the returned functions, sets as f->router and frees before
 * fixture_end(). */
struct router_io fixture_begin(struct router_fixture *f, const char *dims, uint32_t rank);
void fixture_end(struct router_fixture *f);

/* A connection that has sent nothing. */
struct fixture_connection *fixture_connect(struct router_fixture *f, unsigned port, bool dialled);
/* Feeds bytes, as many at a time as the router has room for. */
void fixture_feed(struct fixture_connection *c, const uint8_t *bytes, size_t length);
void fixture_say(struct fixture_connection *c, const struct peer_message *head, const void *body,
                 uint32_t body_length);
/* The hello of the neighbour at this port. `dims` has room for TORUS_TEXT_SIZE bytes. */
void fixture_hello(const struct router_fixture *f, unsigned port, struct peer_hello *hello,
                   char *dims);
void fixture_say_hello(struct fixture_connection *c, const struct peer_hello *hello);
/* The neighbour's frames after the handshake: a probe, the answer to the router's probe, or both. */
void fixture_say_probe(struct fixture_connection *c);
void fixture_answer_probe(struct fixture_connection *c);
void fixture_pass_probe(struct fixture_connection *c);
/* Connects and says hello. `segment`: that of the connection, or 0. */
struct fixture_connection *fixture_shake(struct router_fixture *f, unsigned port, uint32_t segment);
/* Connects, says hello and passes the probe. Discards what the router sends at first. */
void fixture_link_up(struct router_fixture *f, unsigned port);

/* The next frame that the router sends on a connection (body: as many bytes as fit), or NULL. The caller frees it
 * with message_forget(). */
struct peer_message *fixture_next(struct fixture_connection *c, uint8_t *body, size_t size,
                                  uint32_t *body_length);

/* The state of a port. */
enum port_state fixture_state_of(struct router_fixture *f, unsigned port);
/* The neighbour sends a heartbeat. */
void fixture_say_heartbeat(struct fixture_connection *c);
/* Says a message of a kind that does not exist, with a body. */
void fixture_say_unknown(struct fixture_connection *c);
/* The link at a port is lost. */
void fixture_lose(struct router_fixture *f, unsigned port);
/* A neighbour reports the links of a node, that many hops away from it. */
void fixture_say_entry(struct fixture_connection *c, const struct peer_link_state_entry *entry);
/* Lets time pass, tick by tick. */
void fixture_pass(struct router_fixture *f, uint64_t time);
/* Fails the test unless the reason why the port is not up contains this text. */
void fixture_check_reason(struct router_fixture *f, unsigned port, const char *part);
void fixture_stay_up(struct router_fixture *f, unsigned port, uint64_t time);
/* Discards what the router has sent. Returns how often the state of a node was among it; *confirmed (unless NULL) is what
 * that node had confirmed the last time. */
unsigned fixture_entries_sent(struct fixture_connection *c, uint32_t rank, uint64_t *confirmed);
