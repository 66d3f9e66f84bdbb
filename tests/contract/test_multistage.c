/* Banyan, omega and baseline networks, against wirings written out independently: as the slides say
 * for banyan, as a shuffle of cards for omega, recursively for baseline. There is one path from each
 * input to each output. Setting whole stages as banyan_row_settings() says passes every row of both
 * Latin squares, each row with other settings. Messages that route themselves take these paths, no
 * two of them on one line. */
#include "client/theory/multistage.h"
#include "daemon/lib/schedule/algorithms/banyan.h"
#include "tests/support/cmocka.h"

enum { MOST_STAGES = 6, MOST = 1 << MOST_STAGES };

/* Lines by place: before[i] leads from an input to stage 0, after[stage][line] from a stage to the next one, or
 * to the outputs. */
struct wires {
    unsigned m;
    uint32_t before[MOST], after[MOST_STAGES][MOST];
};

/* ---- The wirings ----------------------------------------------------------------------------- */

/* "p_{m-1} ... p_{i+2} p_{i+1} p_i ... p_1 p_0" becomes "p_{m-1} ... p_{i+2} p_0 p_i ... p_1 p_{i+1}". */
static void wire_banyan(struct wires *w)
{
    for (unsigned i = 0; i + 1 < w->m; i++) {
        for (uint32_t line = 0; line < 1u << w->m; line++) {
            unsigned p[MOST_STAGES + 1];
            uint32_t to = 0;
            for (unsigned bit = 0; bit < w->m; bit++)
                p[bit] = line >> bit & 1;
            unsigned kept = p[0];
            p[0] = p[i + 1];
            p[i + 1] = kept;
            for (unsigned bit = 0; bit < w->m; bit++)
                to |= p[bit] << bit;
            w->after[i][line] = to;
        }
    }
}

/* A perfect shuffle of cards before each stage: the upper half of the lines and the lower half, taken
 * alternately. */
static void wire_omega(struct wires *w)
{
    uint32_t n = 1u << w->m, shuffled[MOST] = {0};

    for (uint32_t place = 0; place < n; place++)
        shuffled[place % 2 == 0 ? place / 2 : n / 2 + place / 2] = place;
    memcpy(w->before, shuffled, sizeof shuffled);
    for (unsigned i = 0; i + 1 < w->m; i++)
        memcpy(w->after[i], shuffled, sizeof shuffled);
}

/* The baseline network of `n` lines from `line` on, whose first stage is `stage`: the upper outputs of
 * the switches lead to a baseline network of n/2 lines, the lower ones to another. */
static void wire_baseline(struct wires *w, unsigned stage, uint32_t line, uint32_t n)
{
    if (n <= 2)
        return;
    for (uint32_t i = 0; i < n / 2; i++) {
        w->after[stage][line + 2 * i] = line + i;
        w->after[stage][line + 2 * i + 1] = line + n / 2 + i;
    }
    wire_baseline(w, stage + 1, line, n / 2);
    wire_baseline(w, stage + 1, line + n / 2, n / 2);
}

static void wire(struct wires *w, enum multistage kind, unsigned m)
{
    *w = (struct wires){.m = m};
    for (uint32_t line = 0; line < 1u << m; line++) {
        w->before[line] = line;
        for (unsigned stage = 0; stage < m; stage++)
            w->after[stage][line] = line;
    }
    if (kind == MULTISTAGE_BANYAN)
        wire_banyan(w);
    else if (kind == MULTISTAGE_OMEGA)
        wire_omega(w);
    else
        wire_baseline(w, 0, 0, 1u << m);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* Calls `f` for each network of up to MOST_STAGES stages. */
static void for_each(void (*f)(const struct wires *, enum multistage))
{
    for (enum multistage kind = MULTISTAGE_BANYAN; kind < MULTISTAGE_KINDS; kind++) {
        for (unsigned m = 0; m <= MOST_STAGES; m++) {
            struct wires w;
            wire(&w, kind, m);
            f(&w, kind);
        }
    }
}

static void check_links(const struct wires *w, enum multistage kind)
{
    for (uint32_t line = 0; line < 1u << w->m; line++) {
        assert_int_equal(multistage_enter(kind, w->m, line), w->before[line]);
        for (unsigned stage = 0; stage < w->m; stage++)
            assert_int_equal(multistage_link(kind, w->m, stage, line), w->after[stage][line]);
    }
}

TEST(links)
{
    for_each(check_links);
}

static void check_paths(const struct wires *w, enum multistage kind)
{
    uint32_t n = 1u << w->m;

    for (uint32_t input = 0; input < n; input++) {
        uint32_t paths[MOST] = {0};
        paths[w->before[input]] = 1;
        for (unsigned stage = 0; stage < w->m; stage++) {
            uint32_t next[MOST] = {0};
            for (uint32_t line = 0; line < n; line++) {
                next[w->after[stage][line]] += paths[line];
                next[w->after[stage][line ^ 1]] += paths[line];
            }
            memcpy(paths, next, sizeof paths);
        }
        for (uint32_t output = 0; output < n; output++)
            assert_int_equal(paths[output], 1);
    }
}

TEST(one_path)
{
    for_each(check_paths);
}

/* Sends a row through the wires with the switches set as `settings` says. Every message that routes
 * itself must leave each stage on the line that the switch leads it to. */
static void pass_row(const struct wires *w, enum multistage kind, enum banyan_square square,
                     uint32_t row, const char *settings)
{
    uint32_t n = 1u << w->m, line[MOST];
    bool reached[MOST] = {false};

    for (uint32_t input = 0; input < n; input++)
        line[input] = w->before[input];
    for (unsigned stage = 0; stage < w->m; stage++) {
        bool busy[MOST] = {false};
        for (uint32_t input = 0; input < n; input++) {
            uint32_t to = banyan_entry(kind, w->m, square, row, input);
            uint32_t out = line[input] ^ (settings[stage] == 'x');
            assert_int_equal(multistage_switch(kind, w->m, stage, line[input], to), out);
            assert_false(busy[out]);
            busy[out] = true;
            line[input] = w->after[stage][out];
        }
    }
    for (uint32_t input = 0; input < n; input++) {
        assert_int_equal(line[input], banyan_entry(kind, w->m, square, row, input));
        assert_false(reached[line[input]]);
        reached[line[input]] = true;
    }
}

static void check_rows(const struct wires *w, enum multistage kind)
{
    uint32_t n = 1u << w->m;

    for (enum banyan_square square = BANYAN_ITERATED; square <= BANYAN_PRODUCTS; square++) {
        bool met[MOST][MOST] = {{false}}, used[MOST] = {false};
        for (uint32_t row = 0; row < n; row++) {
            char settings[BANYAN_RUN_MOST_STAGES + 1];
            uint32_t crossed = 0;
            (void)banyan_row_settings(kind, w->m, square, row, settings);
            assert_int_equal(strlen(settings), w->m);
            assert_int_equal(strspn(settings, "=x"), w->m); /* whole stages */
            for (unsigned stage = 0; stage < w->m; stage++)
                crossed |= (uint32_t)(settings[stage] == 'x') << stage;
            assert_false(used[crossed]);
            used[crossed] = true;
            pass_row(w, kind, square, row, settings);
            for (uint32_t input = 0; input < n; input++) {
                bool *pair = &met[input][banyan_entry(kind, w->m, square, row, input)];
                assert_false(*pair); /* each input sends to each output once */
                *pair = true;
            }
        }
    }
}

TEST(rows)
{
    for_each(check_rows);
}

static void check_run(const struct wires *w, enum multistage kind)
{
    uint64_t n = UINT64_C(1) << w->m;

    for (enum banyan_square square = BANYAN_ITERATED; square <= BANYAN_PRODUCTS; square++) {
        struct banyan_report r;
        assert_int_equal(banyan_run(kind, w->m, square, &r, NULL), 0);
        assert_int_equal(r.delivered, n * n);
        assert_int_equal(r.ticks, n + w->m - (w->m > 0));
        assert_true(r.whole_stages);
    }
}

TEST(runs)
{
    for_each(check_run);
}

/* Cyclic shifts: omega networks pass them, though not by whole stages; the others do not. */
TEST(shifts)
{
    for (unsigned m = 2; m <= MOST_STAGES; m++) {
        struct banyan_report r;
        struct error e;
        assert_int_equal(banyan_run(MULTISTAGE_OMEGA, m, BANYAN_SHIFT, &r, &e), 0);
        assert_int_equal(r.delivered, 1u << 2 * m);
        assert_false(r.whole_stages);
        assert_fails(banyan_run(MULTISTAGE_BASELINE, m, BANYAN_SHIFT, &r, &e), e, ERROR_DAMAGED,
                     "");
        assert_fails(banyan_run(MULTISTAGE_BANYAN, m, BANYAN_SHIFT, &r, &e), e, ERROR_DAMAGED, "");
    }
}

/* The first rows: for banyan banyan_straight(), for omega the identity, for baseline the bits in
 * reverse. */
TEST(first_rows)
{
    for (unsigned m = 0; m <= MOST_STAGES; m++) {
        for (uint32_t input = 0; input < 1u << m; input++) {
            uint32_t reverse = 0;
            for (unsigned bit = 0; bit < m; bit++)
                reverse |= (input >> bit & 1) << (m - 1 - bit);
            assert_int_equal(multistage_straight(MULTISTAGE_BANYAN, m, input),
                             banyan_straight(m, input));
            assert_int_equal(multistage_straight(MULTISTAGE_OMEGA, m, input), input);
            assert_int_equal(multistage_straight(MULTISTAGE_BASELINE, m, input), reverse);
        }
    }
}
