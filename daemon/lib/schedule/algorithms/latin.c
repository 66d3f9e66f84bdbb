#include "daemon/lib/schedule/algorithms/latin.h"

#include "daemon/lib/schedule/bits.h"

/* The basic permutation phi_k. */
static uint32_t basic(unsigned k, uint32_t number)
{
    return number ^ 1u << (k - 1);
}

void latin_square_products(unsigned m, uint32_t *square)
{
    size_t n = (size_t)1 << m;

    for (size_t i = 1; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            uint32_t entry = square[j];
            for (unsigned k = m; k >= 1; k--)
                if ((i >> (k - 1) & 1) != 0)
                    entry = basic(k, entry);
            square[i * n + j] = entry;
        }
    }
}

void latin_square_iterated(unsigned m, uint32_t *square)
{
    size_t n = (size_t)1 << m;

    /* The paper builds the list of permutations recursively: the list for k-1, phi_k, the list for
     * k-1 again. So its i-th permutation, from 1 on, is that of the lowest bit set in i. */
    for (uint32_t i = 1; i < n; i++)
        for (size_t j = 0; j < n; j++)
            square[i * n + j] = basic(1 + lowest_bit(i), square[(i - 1) * n + j]);
}

uint32_t latin_entry(uint32_t i, uint32_t first)
{
    return first ^ i ^ i >> 1;
}

uint32_t latin_row(uint32_t first, uint32_t entry)
{
    uint32_t row = first ^ entry;
    for (unsigned shift = 1; shift < 32; shift *= 2)
        row ^= row >> shift;
    return row;
}
