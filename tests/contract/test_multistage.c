/* Banyan, omega and baseline networks of switches of 2 to 5 inputs, against wirings written out independently: as the
 * slides say for banyan, as a shuffle of cards for omega, recursively for baseline. There is one path from each
 * input to each output. Setting whole stages as banyan_row_settings() says passes every row of both
 * Latin squares, each row with other settings. Messages that route themselves take these paths, no
 * two of them on one line. */
#include "client/theory/multistage.h"
#include "daemon/lib/schedule/algorithms/banyan.h"
#include "tests/support/cmocka.h"

enum { MOST_STAGES = 6, MOST = 1 << MOST_STAGES, MOST_RADIX = 5 };

/* Lines by place: before[i] leads from an input to stage 0, after[stage][line] from a stage to the next one, or
 * to the outputs. */
struct wires {
    struct multistage net;
    uint32_t r, n;
    unsigned m;
    uint32_t before[MOST], after[MOST_STAGES][MOST];
};

/* ---- The wirings ----------------------------------------------------------------------------- */

/* "p_{m-1} ... p_{i+2} p_{i+1} p_i ... p_1 p_0" becomes "p_{m-1} ... p_{i+2} p_0 p_i ... p_1 p_{i+1}". */
static void wire_banyan(struct wires *w)
{
    for (unsigned i = 0; i + 1 < w->m; i++) {
        for (uint32_t line = 0; line < w->n; line++) {
            unsigned p[MOST_STAGES + 1];
            uint32_t rest = line, to = 0;
            for (unsigned place = 0; place < w->m; place++, rest /= w->r)
                p[place] = rest % w->r;
            unsigned kept = p[0];
            p[0] = p[i + 1];
            p[i + 1] = kept;
            for (unsigned place = w->m; place-- > 0;)
                to = to * w->r + p[place];
            w->after[i][line] = to;
        }
    }
}

/* A perfect shuffle of cards before each stage: r piles of lines, from which one is taken in turn. */
static void wire_omega(struct wires *w)
{
    uint32_t shuffled[MOST] = {0};

    for (uint32_t place = 0; place < w->n; place++)
        shuffled[place % w->r * (w->n / w->r) + place / w->r] = place;
    memcpy(w->before, shuffled, sizeof shuffled);
    for (unsigned i = 0; i + 1 < w->m; i++)
        memcpy(w->after[i], shuffled, sizeof shuffled);
}

/* The baseline network of `n` lines from `line` on, whose first stage is `stage`: the outputs j of the
 * switches lead to the j-th of r baseline networks of n/r lines. */
static void wire_baseline(struct wires *w, unsigned stage, uint32_t line, uint32_t n)
{
    const uint32_t part = n / w->r;

    if (part <= 1)
        return;
    for (uint32_t j = 0; j < w->r; j++) {
        for (uint32_t i = 0; i < part; i++)
            w->after[stage][line + w->r * i + j] = line + j * part + i;
        wire_baseline(w, stage + 1, line + j * part, part);
    }
}

static void wire(struct wires *w, enum multistage_kind kind, uint32_t r, unsigned m)
{
    *w = (struct wires){.net = {kind, r, m}, .r = r, .m = m};
    w->n = multistage_inputs(&w->net);
    for (uint32_t line = 0; line < w->n; line++) {
        w->before[line] = line;
        for (unsigned stage = 0; stage < m; stage++)
            w->after[stage][line] = line;
    }
    if (kind == MULTISTAGE_BANYAN)
        wire_banyan(w);
    else if (kind == MULTISTAGE_OMEGA)
        wire_omega(w);
    else
        wire_baseline(w, 0, 0, w->n);
}

/* ---- Tests ----------------------------------------------------------------------------------- */

/* Calls `f` for each network of up to MOST inputs. */
static void for_each(void (*f)(const struct wires *))
{
    for (enum multistage_kind kind = MULTISTAGE_BANYAN; kind < MULTISTAGE_KINDS; kind++) {
        for (uint32_t r = 2; r <= MOST_RADIX; r++) {
            uint32_t n = 1;
            for (unsigned m = 0; n <= MOST; m++, n *= r) {
                struct wires w;
                wire(&w, kind, r, m);
                assert_int_equal(w.n, n);
                f(&w);
            }
        }
    }
}

static void check_links(const struct wires *w)
{
    for (uint32_t line = 0; line < w->n; line++) {
        assert_int_equal(multistage_enter(&w->net, line), w->before[line]);
        for (unsigned stage = 0; stage < w->m; stage++)
            assert_int_equal(multistage_link(&w->net, stage, line), w->after[stage][line]);
    }
}

TEST(links)
{
    for_each(check_links);
}

static void check_paths(const struct wires *w)
{
    uint32_t n = w->n;

    for (uint32_t input = 0; input < n; input++) {
        uint32_t paths[MOST] = {0};
        paths[w->before[input]] = 1;
        for (unsigned stage = 0; stage < w->m; stage++) {
            uint32_t next[MOST] = {0};
            for (uint32_t line = 0; line < n; line++)
                for (uint32_t j = 0; j < w->r; j++)
                    next[w->after[stage][line / w->r * w->r + j]] += paths[line];
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

static uint32_t turn_of(char setting)
{
    return setting == '=' ? 0 : setting == 'x' ? 1 : (uint32_t)(setting - '0');
}

/* Sends a row through the wires with the switches set as `settings` says. Every message that routes
 * itself must leave each stage on the line that the switch leads it to. */
static void pass_row(const struct wires *w, enum banyan_square square, uint32_t row,
                     const char *settings)
{
    uint32_t n = w->n, line[MOST];
    bool reached[MOST] = {false};

    for (uint32_t input = 0; input < n; input++)
        line[input] = w->before[input];
    for (unsigned stage = 0; stage < w->m; stage++) {
        bool busy[MOST] = {false};
        for (uint32_t input = 0; input < n; input++) {
            uint32_t to = banyan_entry(&w->net, square, row, input), j = line[input] % w->r;
            uint32_t out = line[input] - j + (j + turn_of(settings[stage])) % w->r;
            assert_int_equal(multistage_switch(&w->net, stage, line[input], to), out);
            assert_false(busy[out]);
            busy[out] = true;
            line[input] = w->after[stage][out];
        }
    }
    for (uint32_t input = 0; input < n; input++) {
        assert_int_equal(line[input], banyan_entry(&w->net, square, row, input));
        assert_false(reached[line[input]]);
        reached[line[input]] = true;
    }
}

static void check_rows(const struct wires *w)
{
    uint32_t n = w->n;

    for (enum banyan_square square = BANYAN_ITERATED; square <= BANYAN_PRODUCTS; square++) {
        bool met[MOST][MOST] = {{false}}, used[MOST] = {false};
        char before[BANYAN_RUN_MOST_STAGES + 1] = "";
        for (uint32_t row = 0; row < n; row++) {
            char settings[BANYAN_RUN_MOST_STAGES + 1];
            uint32_t turns = 0, changed = 0;
            (void)banyan_row_settings(&w->net, square, row, settings);
            assert_int_equal(strlen(settings), w->m);
            assert_int_equal(strspn(settings, w->r == 2 ? "=x" : "=1234"), w->m); /* whole stages */
            for (unsigned stage = 0; stage < w->m; stage++) {
                turns = turns * w->r + turn_of(settings[stage]);
                if (row == 0 || settings[stage] == before[stage])
                    continue;
                changed++;
                if (square == BANYAN_ITERATED)
                    assert_int_equal((turn_of(before[stage]) + 1) % w->r, turn_of(settings[stage]));
            }
            assert_true(square != BANYAN_ITERATED || changed == (row > 0));
            memcpy(before, settings, sizeof before);
            assert_false(used[turns]);
            used[turns] = true;
            pass_row(w, square, row, settings);
            for (uint32_t input = 0; input < n; input++) {
                bool *pair = &met[input][banyan_entry(&w->net, square, row, input)];
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

static void check_run(const struct wires *w)
{
    uint64_t n = w->n;

    for (enum banyan_square square = BANYAN_ITERATED; square <= BANYAN_PRODUCTS; square++) {
        struct banyan_report r;
        assert_int_equal(banyan_run(&w->net, square, &r, NULL), 0);
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
        const struct multistage omega = {MULTISTAGE_OMEGA, 2, m},
                                baseline = {MULTISTAGE_BASELINE, 2, m},
                                banyan = {MULTISTAGE_BANYAN, 2, m};
        struct banyan_report r;
        struct error e;
        assert_int_equal(banyan_run(&omega, BANYAN_SHIFT, &r, &e), 0);
        assert_int_equal(r.delivered, 1u << 2 * m);
        assert_false(r.whole_stages);
        assert_fails(banyan_run(&baseline, BANYAN_SHIFT, &r, &e), e, ERROR_DAMAGED, "");
        assert_fails(banyan_run(&banyan, BANYAN_SHIFT, &r, &e), e, ERROR_DAMAGED, "");
    }
}

/* The first rows: for banyan banyan_straight(), for omega the identity, for baseline the bits in
 * reverse. */
TEST(first_rows)
{
    for (unsigned m = 0; m <= MOST_STAGES; m++) {
        const struct multistage omega = {MULTISTAGE_OMEGA, 2, m},
                                baseline = {MULTISTAGE_BASELINE, 2, m},
                                banyan = {MULTISTAGE_BANYAN, 2, m};
        for (uint32_t input = 0; input < 1u << m; input++) {
            uint32_t reverse = 0;
            for (unsigned bit = 0; bit < m; bit++)
                reverse |= (input >> bit & 1) << (m - 1 - bit);
            assert_int_equal(multistage_straight(&banyan, input), banyan_straight(m, input));
            assert_int_equal(multistage_straight(&omega, input), input);
            assert_int_equal(multistage_straight(&baseline, input), reverse);
        }
    }
}
