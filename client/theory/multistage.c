#include "client/theory/multistage.h"

#include <stdlib.h>
#include <string.h>

#include "client/theory/timed.h"
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

/* The channel is the line on which a stage puts out a message. */
static uint32_t line_of(unsigned m, unsigned stage, uint32_t line)
{
    return stage * (1u << m) + line;
}

/* The path of a message, which finds its way by the bits of its output. Returns -1 without memory; otherwise its output
 * XORed with the one that it comes to. */
static int add_path(struct timed *t, enum multistage network, unsigned m, uint32_t input,
                    uint32_t output)
{
    uint32_t line = multistage_enter(network, m, input);

    for (unsigned stage = 0; stage < m; stage++) {
        line = multistage_switch(network, m, stage, line, output);
        if (timed_add_hop(t, line_of(m, stage, line)) != 0)
            return -1;
        line = multistage_link(network, m, stage, line);
    }
    return (int)(line ^ output);
}

static int add_messages(struct timed *t, enum multistage network, unsigned m, enum banyan_square s,
                        bool *has, struct error *e)
{
    const uint32_t n = 1u << m;

    for (uint32_t i = 0; i < m * n; i++)
        if (timed_add_channel(t, &(struct timed_channel){.unit = 1, .entry = i + 1}) != 0)
            return error_set(e, ERROR_MEMORY, "out of memory to simulate %u inputs", n);
    for (uint32_t row = 0; row < n; row++) {
        for (uint32_t input = 0; input < n; input++) {
            const uint32_t output = banyan_entry(network, m, s, row, input);
            const struct timed_message message = {.units = 1, .step = row, .earliest = row};
            int rc = timed_add_message(t, &message);
            if (rc == 0)
                rc = add_path(t, network, m, input, output);
            if (rc < 0)
                return error_set(e, ERROR_MEMORY, "out of memory to simulate %u inputs", n);
            if (rc > 0 || has[(size_t)output * n + input])
                return error_set(e, ERROR_DAMAGED,
                                 "row %u: the message of input %u comes to output %u, which must "
                                 "not receive it",
                                 row, input, output ^ (uint32_t)rc);
            has[(size_t)output * n + input] = true;
        }
    }
    return 0;
}

/* A message had to wait for a line. */
static int conflict(unsigned m, const struct timed_wait *w, struct error *e)
{
    const uint32_t n = 1u << m;

    return error_set(e, ERROR_DAMAGED,
                     "conflict in row %u, stage %u: the messages of inputs %u and %u both need "
                     "line %u",
                     w->message / n, w->channel / n, w->behind % n, w->message % n, w->channel % n);
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
    const struct timed_model model = {.switching = TIMED_STORE};
    const uint32_t n = 1u << m;
    struct timed_report report;
    struct timed *t = timed_new(1);
    bool *has = calloc((size_t)n * n, sizeof *has);
    int rc;

    *r = (struct banyan_report){0};
    if (t == NULL || has == NULL)
        rc = error_set(e, ERROR_MEMORY, "out of memory to simulate %u inputs", n);
    else
        rc = add_messages(t, network, m, s, has, e);
    if (rc == 0)
        rc = timed_run(t, &model, NULL, NULL, &report, e);
    if (rc == 0 && report.waited > 0)
        rc = conflict(m, &report.first, e);
    if (rc == 0) {
        r->ticks = m == 0 ? 1 : (uint32_t)report.time;
        r->delivered = report.arrived;
        r->whole_stages = is_whole(network, m, s);
    }
    free(has);
    timed_free(t);
    return rc;
}
