/* How two neighbours prove to each other that they have the cluster key, before any other frame is read. No
 * I/O: the caller passes received messages to handshake_heard(), sends messages in say(), and watches the
 * deadline.
 *
 *     dialler                                    listener
 *     HELLO  --- hello ---------------------->   HELLO
 *       |                                          |  version, torus, node and port, keys: checked
 *       |  <------------------ hello, proof ---    v
 *       v                                        PROOF
 *     PROOF  (hello checked, then the proof)       |
 *       |   --- proof ---------------------->      |
 *       v                                          v
 *     DONE                                       DONE
 *
 * Without a cluster key there are no proofs, and DONE follows the hello. If only one side has a key, or the
 * two have different keys, each refuses the other, and names the key. The listener sends nothing before it
 * has received the hello of its neighbour, so that strangers cost it little.
 *
 * A proof is a BLAKE2b digest, keyed with the cluster key, of
 *
 *     "torusd link" | role | version | dims | hello of the dialler | hello of the listener
 *
 * (numbers big-endian: role u8, 0 for the dialler's proof and 1 for the listener's; version u32; dims as u8
 * length and text; a hello as rank u32, port u32, boot u64, encrypt u8, minor u32, challenge, ephemeral, u8 number of
 * keys and their ids). The challenges are fresh random bytes, so a recorded proof fits no other connection;
 * the roles differ, so a proof that is sent back to its maker does not fit; the proof covers nodes and ports,
 * so a proof for another link does not fit either.
 *
 * With encryption each side makes an X25519 key pair for the connection. The keys of the two directions are
 * digests like the proofs, with the roles 2 (dialler to listener) and 3, and with the shared secret appended.
 * So traffic that is recorded today stays secret if the cluster key leaks later. */
#pragma once

#include "daemon/lib/base/secrets.h"
#include "daemon/lib/schedule/torus.h"
#include "proto/peer/peer_message.h"

#define CHALLENGE_SIZE 32u
#define PROOF_SIZE 32u
#define CIPHER_KEY_SIZE 32u

/* The position and the surroundings of a handshake; all pointers are borrowed. */
struct handshake_config {
    const struct torus *torus;
    const struct secrets *secrets; /* must not change while a handshake is under way */
    const char *address;           /* of the peer */
    uint32_t rank, neighbour;
    unsigned port;
    uint64_t boot;
    uint32_t minor; /* minor version of the protocol that this node speaks */
    void (*random)(void *context, void *buffer, size_t size);
    void *random_context;
    /* Sends a message to the peer; the message is borrowed. */
    void (*say)(void *context, const struct peer_message *message);
    void *say_context;
};

/* The hello of one side. */
struct handshake_side {
    uint64_t boot;
    bool encrypt;
    uint32_t minor;
    uint8_t challenge[CHALLENGE_SIZE], ephemeral[CHALLENGE_SIZE]; /* zeros: none */
    unsigned keys;
    uint8_t key[SECRETS_MOST][KEY_ID_SIZE];
};

enum handshake_state { HANDSHAKE_HELLO, HANDSHAKE_PROOF, HANDSHAKE_DONE };

struct handshake {
    enum handshake_state state;
    bool dialled;
    /* the peer was refused, because it is another node or port than expected; which one: */
    bool elsewhere;
    uint32_t found_rank, found_port;
    const struct key *key;                    /* the common key, from PROOF on; NULL without keys */
    struct handshake_side mine, theirs;       /* mine: made when this side sends its hello */
    uint8_t ephemeral_secret[CHALLENGE_SIZE]; /* the secret of mine.ephemeral */
};

/* The keys of an encrypted link's two directions. */
struct link_keys {
    uint8_t send[CIPHER_KEY_SIZE], receive[CIPHER_KEY_SIZE];
};

/* Starts the handshake of a new connection: the dialler sends its hello. */
void handshake_begin(struct handshake *h, const struct handshake_config *place, bool dialled);

/* Takes a message of the peer. Returns 0, or -1 with *e: the peer is refused. In DONE the peer is the
 * neighbour, and the handshake takes no more messages. */
int handshake_heard(struct handshake *h, const struct handshake_config *place,
                    const struct peer_message *message, struct error *e);

/* In DONE: computes the keys to encrypt with. Returns 0, or -1 with *e if the peer's ephemeral key is
 * invalid. */
int handshake_keys(const struct handshake *h, const struct handshake_config *place,
                   struct link_keys *keys, struct error *e);

/* Overwrite the secrets with zeros. */
void handshake_forget(struct handshake *h);
void handshake_forget_keys(struct link_keys *keys);
