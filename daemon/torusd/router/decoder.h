/* Finds the frames in the bytes of a connection. Bodies are not copied, but stay in the slabs that they were
 * read into. Only a head that straddles two slabs is copied into a buffer. */
#pragma once

#include "daemon/lib/base/slab.h"
#include "proto/frame.h"
#include "proto/peer/peer_message.h"

struct decoder {
    struct frame_prefix prefix;
    uint8_t prefix_bytes[FRAME_PREFIX_SIZE];
    uint32_t prefix_have;
    uint8_t *head; /* malloc'ed, only while a head arrives in pieces */
    uint32_t head_have;
    struct Peer__Head *unpacked; /* while the body arrives, of a short head */
    struct extents body;
    uint32_t body_have;
    uint32_t max_head, max_body;
    uint32_t max_more;  /* see decoder_init() */
    bool skips_unknown; /* leaves out frames of unknown kinds; otherwise they are errors */
};

/* Called for every complete frame; message and body are borrowed. Returns 0 to continue, or -1 with *e: the
 * connection must be closed, and the decoder gets no more bytes. */
typedef int (*decoder_frame_fn)(void *context, const struct peer_message *message,
                                const struct extents *body, uint32_t body_length, struct error *e);

/* Initialises *d. Heads and bodies of frames may have at most that many bytes. A decoded message takes more
 * memory than its packed head: a few times as much, but many times as much if it has lists of empty
 * messages. A message that takes more than DECODER_TIMES the length of its head, plus max_more bytes, is
 * refused. The caller may raise max_more where it expects long lists. */
#define DECODER_TIMES 8u
#define DECODER_MORE (256u * 1024u)
void decoder_init(struct decoder *d, uint32_t max_head, uint32_t max_body);
/* Drops a frame of which a part has arrived. */
void decoder_free(struct decoder *d);

/* Feeds bytes that lie in a slab; the decoder takes references where it needs them. Returns 0, or -1 with
 * *e if the bytes are not frames, or frame() has failed. frame() may change d->max_*. */
int decoder_feed(struct decoder *d, struct slab *slab, const uint8_t *data, size_t length,
                 decoder_frame_fn frame, void *context, struct error *e);

/* Returns the head of the frame whose body is arriving, and in *left how many bytes of it are missing; NULL if
 * none is, or its head is kept packed. */
static inline const struct Peer__Head *decoder_awaits_body(const struct decoder *d, uint32_t *left)
{
    *left = d->unpacked != NULL ? d->prefix.body - d->body_have : 0;
    return d->unpacked;
}

/* Returns how many bytes are missing of the frame that is arriving, as far as its prefix tells. */
static inline uint32_t decoder_left(const struct decoder *d)
{
    if (d->prefix_have < FRAME_PREFIX_SIZE)
        return 0;
    return d->prefix.head - d->head_have + d->prefix.body - d->body_have;
}
