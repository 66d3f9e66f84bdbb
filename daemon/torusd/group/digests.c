#include "daemon/torusd/group/digests.h"

#include <stdbool.h>
#include <stdlib.h>

#include "daemon/torusd/engine/digest.h"

/* Pieces have about 16 KiB, so few pages are shared by two of them. */
#define PAGE 2048u
#define WORD 64u

/* A bijection that changes about half of the bits, so that exchanging pages changes the sum. */
static uint64_t mix_bits(uint64_t x)
{
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

static uint64_t page_digest(const uint8_t *bytes, uint64_t length, uint64_t page, uint64_t seed)
{
    return mix_bits(digest_bytes(bytes, length, 0) + mix_bits(seed ^ mix_bits(page + 1)));
}

static uint64_t page_length(uint64_t page, uint64_t size)
{
    return size - page * PAGE < PAGE ? size - page * PAGE : PAGE;
}

static bool is_added(const struct passing_digest *d, uint64_t page)
{
    return d->added != NULL && (d->added[page / WORD] >> page % WORD & 1) != 0;
}

void digest_pass(struct passing_digest *d, const uint8_t *piece, uint64_t offset, uint64_t length,
                 uint64_t size, uint64_t seed)
{
    uint64_t pages = size / PAGE + (size % PAGE != 0), page = (offset + PAGE - 1) / PAGE;

    if (length < PAGE)
        return;
    if (d->added == NULL)
        d->added = calloc(pages / WORD + 1, sizeof *d->added);
    if (d->added == NULL)
        return;
    for (; page < pages && page * PAGE + page_length(page, size) <= offset + length; page++) {
        if (is_added(d, page))
            continue;
        d->sum += page_digest(piece + (page * PAGE - offset), page_length(page, size), page, seed);
        d->added[page / WORD] |= UINT64_C(1) << page % WORD;
    }
}

uint64_t digest_finish(struct passing_digest *d, const uint8_t *data, uint64_t size, uint64_t seed)
{
    uint64_t sum = d->sum;

    for (uint64_t page = 0; page * PAGE < size; page++)
        if (!is_added(d, page))
            sum += page_digest(data + page * PAGE, page_length(page, size), page, seed);
    digest_drop(d);
    return sum;
}

void digest_drop(struct passing_digest *d)
{
    free(d->added);
    *d = (struct passing_digest){0};
}
