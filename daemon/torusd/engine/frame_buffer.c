#include "daemon/torusd/engine/frame_buffer.h"

#include <stdlib.h>

void frame_buffer_init(struct frame_buffer *c, struct engine *engine, uint32_t longest)
{
    *c = (struct frame_buffer){.engine = engine};
    chunks_init(&c->waiting);
    if (longest <= FRAME_BUFFER_COPIED_MOST)
        c->room = longest > 0 ? longest : 1;
}

void frame_buffer_close(struct frame_buffer *c)
{
    chunks_free(&c->waiting);
    slab_writer_close(&c->body);
    slab_writer_close(&c->kept);
    piece_states_free(&c->digests);
}

int frame_buffer_room(const struct frame_buffer *c, size_t holds, uint8_t **room)
{
    *room = NULL;
    if (c->room == 0 || holds == 0)
        return 0;
    *room = calloc(holds, c->room);
    return *room != NULL ? 0 : -1;
}

struct hold frame_buffer_hold(const struct frame_buffer *c, uint8_t *room, size_t index)
{
    if (c->room > 0)
        return (struct hold){.copy = room + index * c->room};
    return (struct hold){.chain = chain_empty()};
}

static bool has_failed(const struct frame_buffer *c)
{
    return c->engine->failure.code != ERROR_NONE;
}

/* --- waiting bytes --- */

void frame_buffer_put_chunk(struct frame_buffer *c, struct hold *hold, const struct extent *piece)
{
    struct extent bytes;

    if (has_failed(c) || piece->length == 0)
        return;
    if (extent_keep(&c->kept, router_pool(c->engine->set.router), piece, &bytes) != 0) {
        (void)engine_no_memory(c->engine);
        return;
    }
    if (!chain_extend(&c->waiting, &hold->chain, &bytes) &&
        chain_append(&c->waiting, &hold->chain, &bytes) != 0)
        (void)engine_no_memory(c->engine);
    slab_unref(bytes.slab);
}

void frame_buffer_drop(struct frame_buffer *c, struct hold *hold)
{
    if (c->room == 0)
        chain_clear(&c->waiting, &hold->chain);
}

/* --- loading --- */

static int add_extent(struct frame_buffer *c, struct outgoing *frame, const struct extent *bytes)
{
    if (extents_add(&frame->body, bytes->slab, bytes->data, bytes->length) != 0)
        return engine_no_memory(c->engine);
    frame->body_length += bytes->length;
    return 0;
}

/* Consecutive copies lie next to each other in a slab, so a frame of copies has one or two extents. */
static int add_copy(struct frame_buffer *c, struct outgoing *frame, const uint8_t *data,
                    uint32_t length)
{
    if (extents_copy(&frame->body, &c->body, router_pool(c->engine->set.router), data, length) != 0)
        return engine_no_memory(c->engine);
    frame->body_length += length;
    return 0;
}

static bool has_extents(const struct outgoing *frame)
{
    return frame->body.count < OUTGOING_MAX_EXTENTS;
}

uint32_t frame_buffer_fits(const struct outgoing *frame, uint32_t fill, uint32_t rest)
{
    uint32_t room = fill > frame->body_length ? fill - frame->body_length : 0;

    if (rest <= room || (uint64_t)frame->body_length + rest <= FRAME_BUFFER_FRAME_MOST(fill))
        return rest;
    return room;
}

/* Returns the next bytes at a place, and advances the place. */
static struct extent next_bytes(const struct frame_buffer *c, const struct hold *hold,
                                struct hold_place *place, uint32_t most)
{
    const struct chunk *p =
        &c->waiting.chunk[place->chunk > 0 ? place->chunk - 1 : hold->chain.first];
    struct extent bytes = p->bytes;

    bytes.data += place->offset;
    bytes.length -= place->offset;
    if (bytes.length > most) {
        bytes.length = most;
        place->offset += most;
    } else {
        place->chunk = p->next + 1;
        place->offset = 0;
    }
    return bytes;
}

/* Removes the first bytes from the hold, because a frame has them now. */
static void take_from_hold(struct frame_buffer *c, struct hold *hold, uint32_t length)
{
    struct extent *bytes = &c->waiting.chunk[hold->chain.first].bytes;

    bytes->data += length;
    bytes->length -= length;
    if (bytes->length == 0)
        slab_unref(chain_pop(&c->waiting, &hold->chain).slab);
}

uint32_t frame_buffer_load(struct frame_buffer *c, struct hold *hold, uint32_t offset,
                           struct hold_place *place, uint32_t most, struct outgoing *frame)
{
    uint32_t moved = 0;

    if (c->room > 0)
        return add_copy(c, frame, hold->copy + offset, most) == 0 ? most : 0;
    while (moved < most && has_extents(frame)) {
        struct hold_place start = {0};
        struct extent bytes = next_bytes(c, hold, place != NULL ? place : &start, most - moved);
        if (add_extent(c, frame, &bytes) != 0)
            break;
        moved += bytes.length;
        if (place == NULL)
            take_from_hold(c, hold, bytes.length);
    }
    return moved;
}

/* Adds bytes of a piece to its digest. Returns whether the piece ends with them, and its digest is known. */
static bool pass_to_digest(struct frame_buffer *c, struct piece_mark *mark,
                           const struct block_piece *piece, uint32_t offset,
                           const struct extent *bytes)
{
    if (mark == NULL)
        return false;
    if (piece_pass(&c->digests, mark, piece, offset, bytes) != 0)
        return engine_no_memory(c->engine) == 0;
    return offset + bytes->length == piece->length;
}

uint32_t frame_buffer_load_own(struct frame_buffer *c, const struct block_piece *piece,
                               uint32_t offset, struct piece_mark *mark, uint32_t most,
                               struct outgoing *frame)
{
    struct source *source = c->engine->set.source;
    uint32_t moved = 0;

    while (moved < most && has_extents(frame)) {
        struct extent bytes;
        struct error e;
        int result = source->ops->read(source, piece->destination, piece->begin + offset + moved,
                                       most - moved, &bytes, &e);
        if (result < 0)
            (void)engine_fail(c->engine, &e);
        if (result <= 0)
            break;
        if (pass_to_digest(c, mark, piece, offset + moved, &bytes))
            c->engine->sent_digest += mark->digest;
        result = c->room > 0 ? add_copy(c, frame, bytes.data, bytes.length)
                             : add_extent(c, frame, &bytes);
        slab_unref(bytes.slab);
        if (result != 0)
            break;
        moved += bytes.length;
    }
    return moved;
}

/* --- delivering --- */

static int write_out(struct frame_buffer *c, uint32_t origin, uint64_t offset,
                     const struct extent *piece)
{
    struct sink *sink = c->engine->set.sink;
    struct error e;

    if (has_failed(c))
        return -1;
    return sink->ops->write(sink, origin, offset, piece, &e) == 0 ? 0 : engine_fail(c->engine, &e);
}

/* Appends the name of the piece to an error about a damaged block. */
static void name_piece(const struct frame_buffer *c, const struct block_piece *piece,
                       struct error *e)
{
    const struct sink *sink = c->engine->set.sink;
    uint64_t end = piece->begin + piece->length;
    struct error what = *e;

    (void)error_set(e, ERROR_DAMAGED, "%s, in its piece of bytes %llu to %llu", what.text,
                    (unsigned long long)place_in_block(sink, piece->source, piece->begin),
                    (unsigned long long)place_in_block(sink, piece->source, end - 1));
}

int frame_buffer_deliver(struct frame_buffer *c, const struct block_piece *piece, uint32_t offset,
                         struct piece_mark *mark, const struct extent *bytes)
{
    struct sink *sink = c->engine->set.sink;
    struct error e;

    if (has_failed(c))
        return -1;
    if (sink->ops->write(sink, piece->source, piece->begin + offset, bytes, &e) != 0) {
        if (e.code == ERROR_DAMAGED)
            name_piece(c, piece, &e);
        return engine_fail(c->engine, &e);
    }
    c->engine->counts.bytes_delivered += bytes->length;
    if (pass_to_digest(c, mark, piece, offset, bytes))
        c->engine->delivered_digest += mark->digest;
    return has_failed(c) ? -1 : 0;
}

int frame_buffer_compare(struct frame_buffer *c, const struct block_piece *piece,
                         const struct piece_mark *mark, uint64_t sent)
{
    struct error e;

    if (has_failed(c))
        return -1;
    if (!piece_has_digest(piece->length) || mark->digest == sent)
        return 0;
    if (c->engine->set.repairs && c->engine->damaged_count < ENGINE_DAMAGED_MOST) {
        c->engine->delivered_digest -= mark->digest;
        c->engine->damaged[c->engine->damaged_count++] =
            (struct engine_damaged){*piece, sent, mark->digest};
        return 0;
    }
    piece_is_damaged(piece, c->engine->set.sink, router_rank(c->engine->set.router), &e);
    return engine_fail(c->engine, &e);
}

void frame_buffer_deliver_nothing(struct frame_buffer *c, uint32_t origin, uint64_t offset)
{
    const struct extent nothing = {0};

    (void)write_out(c, origin, offset, &nothing);
}

static bool read_own(struct frame_buffer *c, uint32_t me, uint64_t offset, uint32_t most,
                     struct extent *bytes)
{
    struct source *source = c->engine->set.source;
    struct error e;
    int result = has_failed(c) ? 0 : source->ops->read(source, me, offset, most, bytes, &e);

    if (result < 0)
        (void)engine_fail(c->engine, &e);
    if (result > 0)
        (void)write_out(c, me, offset, bytes);
    return result > 0;
}

bool frame_buffer_read_own(struct frame_buffer *c, const struct block_piece *piece, uint32_t offset,
                           struct piece_mark *mark, uint32_t most, struct extent *bytes)
{
    uint32_t others = engine_torus(&c->engine->set)->nodes - 1;

    if (!read_own(c, piece->source, piece->begin + offset, most, bytes))
        return false;
    if (pass_to_digest(c, mark, piece, offset, bytes))
        c->engine->sent_digest += others * mark->digest;
    return true;
}

void frame_buffer_deliver_own(struct frame_buffer *c, uint32_t me, const struct cut_round *cut,
                              struct own_block *own)
{
    struct source *source = c->engine->set.source;
    uint64_t end = cut->begin + cut_whole(cut, source->ops->size(source, me));

    while (own->at < end && !has_failed(c)) {
        struct extent piece;
        if (!read_own(c, me, own->at, (uint32_t)(end - own->at), &piece))
            return;
        own->at += piece.length;
        slab_unref(piece.slab);
    }
    own->delivered = !has_failed(c);
}

/* --- frames --- */

struct outgoing *frame_buffer_new_frame(struct frame_buffer *c)
{
    struct outgoing *frame = outgoing_new(router_outgoing(c->engine->set.router));

    if (frame == NULL)
        (void)engine_no_memory(c->engine);
    return frame;
}

void frame_buffer_pass_on(struct frame_buffer *c, struct outgoing *frame,
                          const struct extent *bytes)
{
    struct extent kept;

    if (has_failed(c))
        return;
    if (extent_keep(&c->kept, router_pool(c->engine->set.router), bytes, &kept) != 0) {
        (void)engine_no_memory(c->engine);
        return;
    }
    if (extents_add(&frame->body, kept.slab, kept.data, kept.length) != 0)
        (void)engine_no_memory(c->engine);
    slab_unref(kept.slab);
}

struct outgoing *frame_buffer_ship(struct frame_buffer *c, unsigned port, struct outgoing *frame,
                                   const struct peer_message *message, bool loaded)
{
    if (loaded && !has_failed(c) && outgoing_set_message(frame, message) != 0)
        (void)engine_no_memory(c->engine);
    if (!loaded || has_failed(c)) {
        outgoing_free(router_outgoing(c->engine->set.router), frame);
        return NULL;
    }
    c->engine->counts.port[port].tx_bytes += frame->body_length;
    return frame;
}
