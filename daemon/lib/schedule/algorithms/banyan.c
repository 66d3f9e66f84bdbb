#include "daemon/lib/schedule/algorithms/banyan.h"

#include "daemon/lib/schedule/algorithms/latin.h"

uint32_t banyan_link(unsigned stage, uint32_t line)
{
    unsigned high = stage + 1;
    uint32_t differ = (line ^ line >> high) & 1;
    return line ^ differ ^ differ << high;
}

uint32_t banyan_permutation(unsigned m, uint32_t crossed, uint32_t input)
{
    uint32_t line = input;
    for (unsigned stage = 0; stage < m; stage++) {
        line ^= crossed >> stage & 1;
        if (stage + 1 < m)
            line = banyan_link(stage, line);
    }
    return line;
}

/* The bit of the output's number that a stage decides. What a stage leaves in bit 0 the next link
 * swaps to bit stage+1, where it stays; what the last stage leaves in bit 0 is bit 0. */
static unsigned decides(unsigned m, unsigned stage)
{
    return (stage + 1) % m;
}

uint32_t banyan_settings(unsigned m, uint32_t row)
{
    uint32_t flips = latin_entry(row, 0), crossed = 0;
    for (unsigned stage = 0; stage < m; stage++)
        crossed |= (flips >> decides(m, stage) & 1) << stage;
    return crossed;
}

uint32_t banyan_switch(unsigned m, unsigned stage, uint32_t line, uint32_t output)
{
    return (line & ~1u) | (output >> decides(m, stage) & 1);
}

uint32_t banyan_steps(unsigned m)
{
    return (1u << m) + m - (m > 0);
}
