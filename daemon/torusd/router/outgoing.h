/* A frame on its way out: an encoded prefix and head, and references to the bytes of its body. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/base/slab.h"
#include "proto/frame.h"
#include "proto/peer/peer_message.h"

#define OUTGOING_INLINE_HEAD 72u
#define OUTGOING_MAX_EXTENTS 256u /* in one body, so that several frames fit into one writev */

struct outgoing {
    struct outgoing *next;
    struct extents body;
    uint32_t body_length;
    uint32_t head_length; /* prefix included */
    /* the receiver acts on this frame, or relays it, at once: it must end its packet */
    bool immediate;
    bool plain;    /* part of a handshake: never encrypted */
    uint8_t *head; /* `inline_head`, or malloc'ed when longer */
    uint8_t inline_head[OUTGOING_INLINE_HEAD];
};

struct outgoing_queue {
    struct outgoing *first, *last;
    size_t bytes; /* of memory that its frames take */
};

/* Free frames for reuse; each keeps the memory of its list of extents. Zero-initialise. */
struct outgoing_pool {
    struct outgoing *free;
    unsigned count;
};

/* Returns an empty frame, or NULL if there is no memory. The owner of the frame frees it with
 * outgoing_free(). */
struct outgoing *outgoing_new(struct outgoing_pool *pool);
/* Returns a frame to the pool, and drops the references of its body. */
void outgoing_free(struct outgoing_pool *pool, struct outgoing *frame);
/* Frees all frames of the pool. */
void outgoing_pool_close(struct outgoing_pool *pool);

/* Encodes the prefix and the message with its check. The frame's body must be complete. Returns 0, or -1 if
 * there is no memory. */
int outgoing_set_message(struct outgoing *frame, const struct peer_message *message);

/* Returns a frame without a body, with this message; or NULL if there is no memory. */
struct outgoing *outgoing_make(struct outgoing_pool *pool, const struct peer_message *message);

/* Appends a frame; the queue owns it. */
void outgoing_push(struct outgoing_queue *queue, struct outgoing *frame);
struct outgoing *outgoing_pop(struct outgoing_queue *queue); /* NULL when empty */
/* Frees all frames of the queue. */
void outgoing_clear(struct outgoing_pool *pool, struct outgoing_queue *queue);

/* --- Head.check, at the end of each head ---
 *
 * A checksum of the head and of the lengths in front of it. TCP's
 * checksum misses some damage; without this check a damaged head could be taken for data of another exchange
 * or call. Bodies are not covered, because blocks have digests. */

#define HEAD_CHECK_SIZE 6u /* bytes: a tag of two, and fixed32 */

/* Writes the check and the prefix of a frame whose body has `body` bytes. `frame` has room for the prefix,
 * then the `length` bytes of the packed head, then room for HEAD_CHECK_SIZE bytes. Returns how many bytes
 * prefix, head and check have together. */
uint32_t head_check_write(uint8_t *frame, uint32_t length, uint32_t body);

/* Whether a head of `length` bytes, which include its check at the end, and the two lengths in the prefix
 * are as they were written. */
bool head_check_holds(const uint8_t *head, uint32_t length, uint32_t body);
