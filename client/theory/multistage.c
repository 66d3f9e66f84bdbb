#include "client/theory/multistage.h"

#include <stdlib.h>
#include <string.h>

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

/* ---- A complete exchange, tick by tick ------------------------------------------------------- */

const char *banyan_square_name(enum banyan_square s)
{
    switch (s) {
    case BANYAN_ITERATED:
        return "iterated";
    case BANYAN_PRODUCTS:
        return "products";
    case BANYAN_SHIFT:
        return "shift";
    }
    return "unknown";
}

uint32_t banyan_entry(enum multistage network, unsigned m, enum banyan_square s, uint32_t row,
                      uint32_t input)
{
    uint32_t first = multistage_straight(network, m, input);

    switch (s) {
    case BANYAN_ITERATED:
        return latin_entry(row, first);
    case BANYAN_PRODUCTS:
        return first ^ row; /* the product of phi_k for the bits of row */
    case BANYAN_SHIFT:
        return (row + input) % (1u << m);
    }
    return 0;
}

char *banyan_row_settings(enum multistage network, unsigned m, enum banyan_square s, uint32_t row,
                          char *text)
{
    uint32_t lines = 1u << m;

    for (unsigned stage = 0; stage < m; stage++)
        text[stage] = '\0';
    for (uint32_t input = 0; input < lines; input++) {
        uint32_t line = multistage_enter(network, m, input);
        uint32_t to = banyan_entry(network, m, s, row, input);
        for (unsigned stage = 0; stage < m; stage++) {
            uint32_t out = multistage_switch(network, m, stage, line, to);
            char set = out == line ? '=' : 'x';
            text[stage] = text[stage] == '\0' || text[stage] == set ? set : '*';
            line = multistage_link(network, m, stage, out);
        }
    }
    text[m] = '\0';
    return text;
}

struct message {
    bool there;
    uint32_t row, source, destination;
};

/* A running network: the lines before each stage, and those after the last one. */
struct run {
    enum multistage network;
    unsigned m;
    enum banyan_square square;
    struct message *line; /* stage * n + line */
    bool *has;            /* output * n + input: that message has arrived */
    uint64_t delivered;
};

static int run_stage(struct run *run, unsigned stage, struct error *e)
{
    uint32_t n = 1u << run->m;
    const struct message *in = &run->line[(size_t)stage * n];
    struct message *out = &run->line[(size_t)(stage + 1) * n];

    memset(out, 0, n * sizeof *out);
    for (uint32_t line = 0; line < n; line++) {
        if (!in[line].there)
            continue;
        uint32_t way = multistage_switch(run->network, run->m, stage, line, in[line].destination);
        uint32_t end = multistage_link(run->network, run->m, stage, way);
        if (out[end].there)
            return error_set(e, ERROR_DAMAGED,
                             "conflict in row %u, stage %u: the messages of inputs %u and %u both "
                             "need line %u",
                             in[line].row, stage, out[end].source, in[line].source, way);
        out[end] = in[line];
    }
    return 0;
}

static int deliver(struct run *run, struct error *e)
{
    uint32_t n = 1u << run->m;
    const struct message *line = &run->line[(size_t)run->m * n];

    for (uint32_t output = 0; output < n; output++) {
        if (!line[output].there)
            continue;
        bool *has = &run->has[(size_t)output * n + line[output].source];
        if (line[output].destination != output || *has)
            return error_set(e, ERROR_DAMAGED,
                             "row %u: the message of input %u came to output %u, which must not "
                             "receive it",
                             line[output].row, line[output].source, output);
        *has = true;
        run->delivered++;
    }
    return 0;
}

/* One tick: row `row` enters if there is one, and all messages move on by a stage. */
static int tick(struct run *run, uint32_t row, struct error *e)
{
    uint32_t n = 1u << run->m;

    for (uint32_t input = 0; input < n; input++)
        run->line[multistage_enter(run->network, run->m, input)] = (struct message){
            row < n, row, input,
            row < n ? banyan_entry(run->network, run->m, run->square, row, input) : 0};
    for (unsigned stage = run->m; stage-- > 0;) /* last stage first: each makes room for the one
                                                 * before */
        if (run_stage(run, stage, e) != 0)
            return -1;
    return deliver(run, e);
}

static bool is_whole(enum multistage network, unsigned m, enum banyan_square s)
{
    char text[BANYAN_RUN_MOST_STAGES + 1];

    for (uint32_t row = 0; row < 1u << m; row++)
        if (strchr(banyan_row_settings(network, m, s, row, text), '*') != NULL)
            return false;
    return true;
}

int banyan_run(enum multistage network, unsigned m, enum banyan_square s, struct banyan_report *r,
               struct error *e)
{
    uint32_t n = 1u << m;
    struct run run = {.network = network,
                      .m = m,
                      .square = s,
                      .line = calloc((size_t)(m + 1) * n, sizeof *run.line),
                      .has = calloc((size_t)n * n, sizeof *run.has)};
    int rc = 0;

    *r = (struct banyan_report){0};
    if (run.line == NULL || run.has == NULL)
        rc = error_set(e, ERROR_MEMORY, "out of memory to simulate %u inputs", n);
    while (rc == 0 && run.delivered < (uint64_t)n * n)
        rc = tick(&run, r->ticks++, e);
    r->delivered = run.delivered;
    r->whole_stages = rc == 0 && is_whole(network, m, s);
    free(run.line);
    free(run.has);
    return rc;
}
