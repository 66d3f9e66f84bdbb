#include "client/theory/multistage.h"

#include <stdlib.h>
#include <string.h>

#include "client/theory/timed.h"

const char *multistage_name(enum multistage_kind kind)
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

/* ---- Digits in base r ------------------------------------------------------------------------ */

/* r^digits */
static uint32_t power(const struct multistage *net, unsigned digits)
{
    uint32_t product = 1;

    for (unsigned i = 0; i < digits; i++)
        product *= net->radix;
    return product;
}

static uint32_t digit(const struct multistage *net, uint32_t number, unsigned place)
{
    return number / power(net, place) % net->radix;
}

/* Adds each digit of `more`, modulo r. */
static uint32_t add_digits(const struct multistage *net, uint32_t number, uint32_t more)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < net->stages; i++)
        sum += (digit(net, number, i) + digit(net, more, i)) % net->radix * power(net, i);
    return sum;
}

/* Takes from each digit the next higher one, modulo r: a Gray code, in which one digit rises by one from one number
 * to the next. */
static uint32_t gray(const struct multistage *net, uint32_t number)
{
    uint32_t code = 0;

    for (unsigned i = 0; i < net->stages; i++)
        code += (digit(net, number, i) + net->radix - digit(net, number, i + 1)) % net->radix *
                power(net, i);
    return code;
}

/* ---- Networks -------------------------------------------------------------------------------- */

uint32_t multistage_inputs(const struct multistage *net)
{
    return power(net, net->stages);
}

/* A perfect shuffle of all lines: the highest digit becomes the lowest. */
static uint32_t shuffle(const struct multistage *net, uint32_t line)
{
    uint32_t n = multistage_inputs(net);

    return line * net->radix % n + line * net->radix / n;
}

/* Makes the lowest of the first `digits` digits the highest of them. */
static uint32_t unshuffle_block(const struct multistage *net, unsigned digits, uint32_t line)
{
    uint32_t block = power(net, digits), low = line % block;

    return line - low + low / net->radix + low % net->radix * (block / net->radix);
}

static uint32_t swap_digits(const struct multistage *net, unsigned place, uint32_t line)
{
    uint32_t low = digit(net, line, 0), high = digit(net, line, place);

    return line - low - high * power(net, place) + high + low * power(net, place);
}

uint32_t multistage_enter(const struct multistage *net, uint32_t input)
{
    return net->kind == MULTISTAGE_OMEGA ? shuffle(net, input) : input;
}

uint32_t multistage_link(const struct multistage *net, unsigned stage, uint32_t line)
{
    if (stage + 1 == net->stages)
        return line;
    switch (net->kind) {
    case MULTISTAGE_BANYAN:
        return swap_digits(net, stage + 1, line);
    case MULTISTAGE_OMEGA:
        return shuffle(net, line);
    case MULTISTAGE_BASELINE:
        return unshuffle_block(net, net->stages - stage, line);
    }
    return line;
}

/* The digit of the output's number that a stage decides. In a banyan network, what a stage leaves in digit 0 the next link
 * swaps to digit stage+1, where it stays; what the last stage leaves in digit 0 is digit 0. */
static unsigned decides(const struct multistage *net, unsigned stage)
{
    return net->kind == MULTISTAGE_BANYAN ? (stage + 1) % net->stages : net->stages - 1 - stage;
}

uint32_t multistage_switch(const struct multistage *net, unsigned stage, uint32_t line,
                           uint32_t output)
{
    return line - line % net->radix + digit(net, output, decides(net, stage));
}

uint32_t multistage_straight(const struct multistage *net, uint32_t input)
{
    uint32_t line = multistage_enter(net, input);

    for (unsigned stage = 0; stage < net->stages; stage++)
        line = multistage_link(net, stage, line);
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

uint32_t banyan_entry(const struct multistage *net, enum banyan_square s, uint32_t row,
                      uint32_t input)
{
    uint32_t first = multistage_straight(net, input);

    switch (s) {
    case BANYAN_ITERATED:
        return add_digits(net, first, gray(net, row));
    case BANYAN_PRODUCTS:
        return add_digits(net, first, row);
    case BANYAN_SHIFT:
        return (row + input) % multistage_inputs(net);
    }
    return 0;
}

/* How a turn is shown. */
static char turn_text(const struct multistage *net, uint32_t turn)
{
    if (turn == 0)
        return '=';
    if (net->radix == 2)
        return 'x';
    return turn < 10 ? (char)('0' + turn) : '+';
}

char *banyan_row_settings(const struct multistage *net, enum banyan_square s, uint32_t row,
                          char *text)
{
    uint32_t turn[BANYAN_RUN_MOST_STAGES] = {0};

    for (uint32_t input = 0; input < multistage_inputs(net); input++) {
        uint32_t line = multistage_enter(net, input), to = banyan_entry(net, s, row, input);
        for (unsigned stage = 0; stage < net->stages; stage++) {
            uint32_t out = multistage_switch(net, stage, line, to);
            uint32_t by = (out + net->radix - line % net->radix) % net->radix;
            if (input == 0) {
                turn[stage] = by;
                text[stage] = turn_text(net, by);
            } else if (turn[stage] != by) {
                text[stage] = '*';
            }
            line = multistage_link(net, stage, out);
        }
    }
    text[net->stages] = '\0';
    return text;
}

/* The channel is the line on which a stage puts out a message. */
static uint32_t line_of(const struct multistage *net, unsigned stage, uint32_t line)
{
    return stage * multistage_inputs(net) + line;
}

/* The path of a message, which finds its way by the digits of its output. Returns -1 without memory; otherwise the
 * output that it comes to. */
static int add_path(struct timed *t, const struct multistage *net, uint32_t input, uint32_t output)
{
    uint32_t line = multistage_enter(net, input);

    for (unsigned stage = 0; stage < net->stages; stage++) {
        line = multistage_switch(net, stage, line, output);
        if (timed_add_hop(t, line_of(net, stage, line)) != 0)
            return -1;
        line = multistage_link(net, stage, line);
    }
    return (int)line;
}

static int add_messages(struct timed *t, const struct multistage *net, enum banyan_square s,
                        bool *has, struct error *e)
{
    const uint32_t n = multistage_inputs(net);

    for (uint32_t i = 0; i < net->stages * n; i++)
        if (timed_add_channel(t, &(struct timed_channel){.unit = 1, .entry = i + 1}) != 0)
            return error_set(e, ERROR_MEMORY, "out of memory to simulate %u inputs", n);
    for (uint32_t row = 0; row < n; row++) {
        for (uint32_t input = 0; input < n; input++) {
            const uint32_t output = banyan_entry(net, s, row, input);
            const struct timed_message message = {.units = 1, .step = row, .earliest = row};
            int to = timed_add_message(t, &message);
            if (to == 0)
                to = add_path(t, net, input, output);
            if (to < 0)
                return error_set(e, ERROR_MEMORY, "out of memory to simulate %u inputs", n);
            if ((uint32_t)to != output || has[(size_t)output * n + input])
                return error_set(e, ERROR_DAMAGED,
                                 "row %u: the message of input %u comes to output %u, which must "
                                 "not receive it",
                                 row, input, (uint32_t)to);
            has[(size_t)output * n + input] = true;
        }
    }
    return 0;
}

/* A message had to wait for a line. */
static int conflict(uint32_t n, const struct timed_wait *w, struct error *e)
{
    return error_set(e, ERROR_DAMAGED,
                     "conflict in row %u, stage %u: the messages of inputs %u and %u both need "
                     "line %u",
                     w->message / n, w->channel / n, w->behind % n, w->message % n, w->channel % n);
}

static bool is_whole(const struct multistage *net, enum banyan_square s)
{
    char text[BANYAN_RUN_MOST_STAGES + 1];

    for (uint32_t row = 0; row < multistage_inputs(net); row++)
        if (strchr(banyan_row_settings(net, s, row, text), '*') != NULL)
            return false;
    return true;
}

int banyan_run(const struct multistage *net, enum banyan_square s, struct banyan_report *r,
               struct error *e)
{
    const struct timed_model model = {.switching = TIMED_STORE};
    const uint32_t n = multistage_inputs(net);
    struct timed_report report;
    struct timed *t = timed_new(1);
    bool *has = calloc((size_t)n * n, sizeof *has);
    int rc;

    *r = (struct banyan_report){0};
    if (t == NULL || has == NULL)
        rc = error_set(e, ERROR_MEMORY, "out of memory to simulate %u inputs", n);
    else
        rc = add_messages(t, net, s, has, e);
    if (rc == 0)
        rc = timed_run(t, &model, NULL, NULL, &report, e);
    if (rc == 0 && report.waited > 0)
        rc = conflict(n, &report.first, e);
    if (rc == 0) {
        r->ticks = net->stages == 0 ? 1 : (uint32_t)report.time;
        r->delivered = report.arrived;
        r->whole_stages = is_whole(net, s);
    }
    free(has);
    timed_free(t);
    return rc;
}
