#include "client/theory/multistage.h"

#include "daemon/lib/schedule/algorithms/banyan.h"

const char *multistage_name(enum multistage kind)
{
    switch (kind) {
    case MULTISTAGE_BANYAN:
        return "banyan";
    case MULTISTAGE_OMEGA:
        return "omega";
    case MULTISTAGE_BASELINE:
        return "baseline";
    }
    return "unknown";
}

/* A perfect shuffle of 2^m lines: rotates the m bits of a number left. */
static uint32_t shuffle(unsigned m, uint32_t line)
{
    return m == 0 ? line : (line << 1 | line >> (m - 1)) & ((1u << m) - 1);
}

/* Rotates the lowest `bits` bits of a number right. */
static uint32_t unshuffle_block(unsigned bits, uint32_t line)
{
    uint32_t block = (1u << bits) - 1, low = line & block;
    return (line & ~block) | low >> 1 | (low & 1) << (bits - 1);
}

uint32_t multistage_enter(enum multistage kind, unsigned m, uint32_t input)
{
    return kind == MULTISTAGE_OMEGA ? shuffle(m, input) : input;
}

uint32_t multistage_link(enum multistage kind, unsigned m, unsigned stage, uint32_t line)
{
    if (stage + 1 == m)
        return line;
    switch (kind) {
    case MULTISTAGE_BANYAN:
        return banyan_link(stage, line);
    case MULTISTAGE_OMEGA:
        return shuffle(m, line);
    case MULTISTAGE_BASELINE:
        return unshuffle_block(m - stage, line);
    }
    return line;
}

uint32_t multistage_switch(enum multistage kind, unsigned m, unsigned stage, uint32_t line,
                           uint32_t output)
{
    if (kind == MULTISTAGE_BANYAN)
        return banyan_switch(m, stage, line, output);
    return (line & ~1u) | (output >> (m - 1 - stage) & 1);
}

uint32_t multistage_straight(enum multistage kind, unsigned m, uint32_t input)
{
    uint32_t line = multistage_enter(kind, m, input);

    for (unsigned stage = 0; stage < m; stage++)
        line = multistage_link(kind, m, stage, line);
    return line;
}
