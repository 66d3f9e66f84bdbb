#include "daemon/files/digests.h"

#include <stdlib.h>

#ifdef TORUS_XXHASH_DISPATCH
#include <xxh_x86dispatch.h> /* the same functions for the processor's vector length: twice as fast */
#endif

/* A block for all is the one that its source has for itself. */
static bool has_block(const struct folder_request *r, bool sending, uint32_t file)
{
    if (r->operation == OPERATION_EXCHANGE)
        return !folder_is_gone(r, file);
    return sending ? file == r->rank && folder_sends(r, file) : folder_sends(r, file);
}

int digests_init(struct digests *d, const struct folder_request *request, bool sending,
                 uint64_t round_bytes, uint32_t segments)
{
    *d = (struct digests){
        .files = request->nodes,
        .segments = segments > 1 ? segments : 1,
        .round_bytes = round_bytes,
        .run_bytes = run_bytes(round_bytes, segments),
    };
    bool for_all = request->operation != OPERATION_EXCHANGE;
    size_t count = (size_t)d->files * d->segments;
    d->copies = for_all && sending ? request->nodes : 1;
    d->state = calloc(count, sizeof(XXH3_state_t *));
    if (d->state == NULL)
        return -1;
    for (size_t i = 0; i < count; i++) {
        uint64_t other = i / d->segments, here = for_all ? other : request->rank;
        uint64_t block = sending ? here << 32 | other : other << 32 | here;
        if (!has_block(request, sending, (uint32_t)other))
            continue;
        d->state[i] = XXH3_createState();
        if (d->state[i] == NULL ||
            XXH3_64bits_reset_withSeed(d->state[i], block * d->segments + i % d->segments) !=
                XXH_OK)
            return -1;
    }
    return 0;
}

void digests_free(struct digests *d)
{
    for (size_t i = 0; d->state != NULL && i < (size_t)d->files * d->segments; i++)
        if (d->state[i] != NULL)
            (void)XXH3_freeState(d->state[i]);
    free(d->state);
    d->state = NULL;
}

bool digests_has(const struct digests *d, uint32_t file)
{
    return d->state[(size_t)file * d->segments] != NULL;
}

uint32_t digests_segment(const struct digests *d, uint64_t offset)
{
    return d->segments == 1 ? 0 : (uint32_t)(offset % d->round_bytes / d->run_bytes);
}

int digests_update(struct digests *d, uint32_t file, uint64_t offset, const void *data,
                   size_t length)
{
    XXH3_state_t *state = d->state[(size_t)file * d->segments + digests_segment(d, offset)];

    return XXH3_64bits_update(state, data, length) == XXH_OK ? 0 : -1;
}

uint64_t digests_sum(const struct digests *d)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < (size_t)d->files * d->segments; i++)
        if (d->state[i] != NULL)
            sum += d->copies * XXH3_64bits_digest(d->state[i]);
    return sum;
}
