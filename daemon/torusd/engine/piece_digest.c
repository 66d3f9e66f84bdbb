#include "daemon/torusd/engine/piece_digest.h"

#include <stdlib.h>

#include <xxhash.h>
#ifdef TORUS_XXHASH_DISPATCH
#include <xxh_x86dispatch.h> /* the same functions, twice as fast with the processor's vector
                              * instructions */
#endif

#include "daemon/torusd/engine/digest.h"

struct piece_state {
    XXH3_state_t *bytes;
    struct piece_state *next_unused, *next;
};

void piece_states_free(struct piece_states *states)
{
    while (states->all != NULL) {
        struct piece_state *state = states->all;
        states->all = state->next;
        (void)XXH3_freeState(state->bytes);
        free(state);
    }
    *states = (struct piece_states){0};
}

static struct piece_state *take_state(struct piece_states *states)
{
    struct piece_state *state = states->unused;

    if (state != NULL) {
        states->unused = state->next_unused;
    } else {
        state = calloc(1, sizeof *state);
        if (state == NULL)
            return NULL;
        state->next = states->all;
        states->all = state;
        state->bytes = XXH3_createState();
    }
    if (state->bytes == NULL || XXH3_64bits_reset(state->bytes) != XXH_OK)
        return NULL;
    return state;
}

/* Mixes the name of a piece into the digest of its bytes. To use the name as the seed of the digest would
 * take longer than to digest a short piece. */
static uint64_t with_name(uint64_t bytes, const struct block_piece *piece)
{
    uint64_t name = digest_mix((uint64_t)piece->source << 32 | piece->destination);

    return bytes ^ digest_mix(digest_mix(name ^ piece->begin) ^ piece->length);
}

int piece_pass(struct piece_states *states, struct piece_mark *mark,
               const struct block_piece *piece, uint32_t offset, const struct extent *bytes)
{
    if (bytes->length == piece->length) {
        mark->digest = with_name(XXH3_64bits(bytes->data, bytes->length), piece);
        return 0;
    }
    if (offset == 0)
        mark->state = take_state(states);
    if (mark->state == NULL)
        return -1;
    (void)XXH3_64bits_update(mark->state->bytes, bytes->data, bytes->length);
    if (offset + bytes->length < piece->length)
        return 0;
    mark->digest = with_name(XXH3_64bits_digest(mark->state->bytes), piece);
    mark->state->next_unused = states->unused;
    states->unused = mark->state;
    mark->state = NULL;
    return 0;
}

void piece_is_damaged(const struct block_piece *piece, const struct sink *sink, uint32_t rank,
                      struct error *e)
{
    uint64_t end = piece->begin + piece->length;

    (void)error_set(
        e, ERROR_DAMAGED, "block from node %u to node %u is damaged in its bytes %llu to %llu",
        piece->source, rank, (unsigned long long)place_in_block(sink, piece->source, piece->begin),
        (unsigned long long)place_in_block(sink, piece->source, end - 1));
}
