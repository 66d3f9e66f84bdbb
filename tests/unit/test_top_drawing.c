/* What `torusctl top` draws, on tori of several shapes, whole and damaged; and its keys. */
#include "client/cli/top/draw.h"
#include "tests/support/cmocka.h"
#include "top_fixture.h"

static char *text; /* what was drawn last */

static void keep(struct top_screen *s)
{
    size_t size;

    free(text);
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    top_screen_print(s, out);
    assert_int_equal(fclose(out), 0);
    top_screen_free(s);
}

static void draw(const struct top_model *m, struct top_view *v, unsigned rows, unsigned columns)
{
    struct top_screen s;

    assert_int_equal(top_screen_make(&s, rows, columns, false), 0);
    top_draw(&s, m, v);
    keep(&s);
}

/* All these lines were drawn, one below the other. */
#define assert_shows(lines) assert_contains(text, lines)

TOP_TEST("4x4", 250000, test_4x4)
{
    struct all_nodes c = fake_survey_full("4x4", 3000, 500000);

    for (unsigned port = 0; port < 4; port++)
        fake_bytes(&c, 5, port, 1500000); /* node 5 sends as fast as it can */
    fake_bytes(&c, 10, 2, 900000);
    fake_bytes(&c, 11, 3, 1200000);
    fake_down(&c, 0, 0, "no carrier");
    take(m, &c, 3);
    draw(m, &(struct top_view){0}, 24, 80);
    assert_shows("4x4  16 of 16 nodes  31 of 32 links up  100 % = 8 Mbit/s\n"
                 "load:  ... none  --- to 40 %  === to 80 %  ### more  XXX down  ??? no answer\n"
                 "  0 ......  1 ......  2 ......  3 ......\n"
                 "  X         ^100      :         :\n"
                 "  4 <100##  5 #100>#  6 ......  7 ......\n"
                 "  :         v100      :         :\n"
                 "  8 ......  9 ...... 10 ==70== 11 ......\n"
                 "  :         :         :         :\n"
                 " 12 ...... 13 ...... 14 ...... 15 ......\n"
                 "  :         :         :         :\n"
                 "\n"
                 "link 0:+0 h0 - 4:-0 h4: no carrier\n");
}

TOP_TEST("8x8", 450000, test_8x8_fits_a_terminal)
{
    struct all_nodes c = fake_survey_full("8x8", 3000, 1350000);
    struct top_view v = {.interactive = true, .node = 63};

    for (uint32_t rank = 0; rank < 64; rank++) {
        struct torus_activity *x = fake_exchange(&c, rank, "7-1-2");
        x->total_bytes = 1000;
        x->done_bytes = 450;
    }
    fake_dead(&c, 18);
    take(m, &c, 3);
    draw(m, &v, 24, 80);
    assert_shows(
        "\n  8 ==45==  9 ==45== 10 ==45== 11 ==45== 12 ==45== 13 ==45== 14 ==45== 15 ==45==\n");
    assert_shows("\n 16 ==45== 17 XXXXXX 18!XXXXXX 19 ==45==");
    assert_shows(
        "\n 56 ==45== 57 ==45== 58 ==45== 59 ==45== 60 ==45== 61 ==45== 62 ==45== 63 ==45==\n"
        "  I45       I45       I45       I45       I45       I45       I45       I45\n"
        "\n"
        "exchange 7-1-2  at2  running [=====       ]  45 %\n"
        "h18 (node 18) is down, or cannot be reached\n");
    assert_shows("node 63 (7, 7) h63  sends 14.4 Mbit/s  receives 14.4 Mbit/s\n"
                 "arrows: choose  tab: links, runs  enter: details  space: pause  ?: help  q: "
                 "quit\n");
}

TOP_TEST("3x4x5", 300000, test_planes)
{
    struct all_nodes c = fake_survey_full("3x4x5", 3000, 900000);

    fake_down(&c, 0, 0, "gone"); /* leaves the plane */
    take(m, &c, 3);
    draw(m, &(struct top_view){0}, 24, 80);
    assert_shows("(0, *, *)                      (1, *, *)\n"
                 "  0 -3  1 -3  2 -3  3 -3  4 -3  20 -3 21 -3 22 -3 23 -3 24 -3\n"
                 "|3/X  |3/3  |3/3  |3/3  |3/3   |3/X  |3/3  |3/3  |3/3  |3/3\n");
    assert_shows("\n(2, *, *)\n 40 -3 41 -3");
    draw(m, &(struct top_view){0}, 60, 120);
    assert_shows("\n  0 --30--  1 --30--  2 --30--");
}

TOP_TEST("10m", 900000, test_a_line)
{
    draw(m, &(struct top_view){0}, 24, 50);
    assert_shows("\n 0 ##90## 1 ##90## 2 ##90## 3 ##90## 4 ##90##\n\n"
                 " 5 ##90## 6 ##90## 7 ##90## 8 ##90## 9\n");
    assert_shows("nothing runs, and no faults are known");
}

TOP_TEST("complete:6", 500000, test_a_complete_graph)
{
    struct all_nodes c = fake_survey_full("complete:6", 3000, 1500000);

    fake_down(&c, 2, 0, "gone");
    take(m, &c, 3);
    draw(m, &(struct top_view){0}, 24, 80);
    assert_shows(" node  host          up    sends        ports, and the load of their links in %\n"
                 "    0  h0            ");
    assert_shows("20 Mbit/s");
    assert_shows("4/5   16 Mbit/s    0:3 X");
}

/* Nothing is written outside a screen, however small it is, on any page. */
TEST(test_every_size)
{
    static const char *const shapes[] = {"1",     "2",       "8x8", "16x16",
                                         "3x4x5", "2x2x2x2", "5m",  "complete:4"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct top_model m = fake_model(shapes[i], 990000);
        for (unsigned rows = 1; rows < 30; rows += 2)
            for (unsigned columns = 1; columns < 100; columns += 7)
                for (unsigned page = 0; page <= TOP_PAGE_HELP; page++) {
                    struct top_view v = {.interactive = true,
                                         .page = (enum top_page)page,
                                         .node = m.seen.now.torus.nodes - 1,
                                         .notice = "news"};
                    draw(&m, &v, rows, columns);
                }
        top_model_free(&m);
    }
}

TOP_TEST("20x30", 0, test_a_large_torus_scrolls)
{
    struct top_view v = {.interactive = true, .node = 0};

    draw(m, &v, 24, 80);
    assert_shows("\n  0 ..  1 ..");
    v.node = 599;
    draw(m, &v, 24, 80);
    assert_shows("598 ..599 ..\n");
    assert_null(strstr(text, "  0 .."));
    v.node = 0;
    draw(m, &v, 24, 80);
    assert_shows("\n  0 ..  1 ..");
}

static void press(struct top_view *v, const struct top_model *m, enum top_key key)
{
    assert_true(top_view_key(v, m, key));
}

TOP_TEST("4x4", 0, test_keys_choose)
{
    struct top_view v = {.interactive = true};

    draw(m, &v, 24, 80);
    press(&v, m, TOP_KEY_RIGHT);
    press(&v, m, TOP_KEY_DOWN);
    assert_int_equal(v.node, 5);
    press(&v, m, TOP_KEY_LEFT);
    press(&v, m, TOP_KEY_LEFT); /* the edge */
    press(&v, m, TOP_KEY_UP);
    assert_int_equal(v.node, 0);
    press(&v, m, TOP_KEY_TAB);
    assert_int_equal(v.focus, TOP_FOCUS_LINK);
    assert_int_equal(v.port, 0);
    press(&v, m, TOP_KEY_RIGHT);
    press(&v, m, TOP_KEY_DOWN);
    assert_int_equal(v.port, 2);
    press(&v, m, TOP_KEY_LEFT);
    assert_int_equal(v.port, 1);
    press(&v, m, TOP_KEY_TAB); /* nothing runs */
    assert_int_equal(v.focus, TOP_FOCUS_NODE);
    press(&v, m, TOP_KEY_PAUSE);
    assert_true(v.paused);
    assert_false(top_view_key(&v, m, TOP_KEY_QUIT));
}

TOP_TEST("3x4x5", 0, test_keys_cross_planes)
{
    struct top_view v = {.interactive = true, .node = 4};

    draw(m, &v, 24, 80); /* three planes side by side */
    press(&v, m, TOP_KEY_RIGHT);
    assert_int_equal(v.node, 20);
    press(&v, m, TOP_KEY_LEFT);
    assert_int_equal(v.node, 4);
}

TOP_TEST("4", 250000, test_a_copy)
{
    struct all_nodes c = fake_survey_full("4", 3000, 750000);
    struct top_view v = {.interactive = true, .focus = TOP_FOCUS_RUN};

    for (uint32_t rank = 0; rank < 4; rank++) {
        struct torus_copy_activity *x = fake_copy(&c, rank, "2-abc");
        x->asker = 2;
        x->bytes = 1024 * (rank + 1);
        x->bytes_of = 12288;
        x->waits_for = rank == 2 ? "h3" : "";
    }
    take(m, &c, 3);
    draw(m, &v, 24, 100);
    assert_shows("\ncopy 2-abc  /data/model  moving [===         ]  25 %  waits for h3\n");
    press(&v, m, TOP_KEY_ENTER);
    draw(m, &v, 24, 100);
    assert_shows("asked for at node 2 (2) h2\n3 KiB of 12 KiB moved\nwaits for h3\n");
    assert_shows("     0  h0            moving          1 KiB of 12 KiB, 0 files\n"
                 "     1  h1            moving          2 KiB of 12 KiB, 0 files\n");
    v = (struct top_view){.interactive = true, .node = 1};
    press(&v, m, TOP_KEY_ENTER);
    draw(m, &v, 24, 100);
    assert_shows("copy 2-abc  /data/model  moving  2 KiB of 12 KiB\n");
}

TOP_TEST("4x4", 250000, test_details)
{
    struct all_nodes c = fake_survey_full("4x4", 3000, 750000);
    struct top_view v = {.interactive = true, .node = 5};

    struct torus_link *l = fake_link(&c, 5, 0);
    l->queue_bytes = 2048;
    l->rtt_us = 120;
    l->mtu = 9000;
    l->retransmits = 30;
    for (uint32_t rank = 0; rank < 3; rank++) {
        struct torus_activity *x = fake_exchange(&c, rank, "9-9-9");
        x->total_bytes = 4096;
        x->done_bytes = 1024 * (3 - rank);
    }
    take(m, &c, 3);
    press(&v, m, TOP_KEY_ENTER);
    draw(m, &v, 24, 80);
    assert_shows("node 5 (1, 1) h5\n");
    assert_shows("+0      9:-0 h9               up       2 Mbit/s      2 Mbit/s      2 KiB\n");
    press(&v, m, TOP_KEY_TAB);
    draw(m, &v, 24, 80);
    assert_shows("                     5:+0 h5                       9:-0 h9\n");
    assert_shows("waits in the daemon  2 KiB                         0 B\n");
    assert_shows("sent again           30 packets, 30/s");
    assert_shows("round trip           120 us");
    assert_shows("MTU                  9000");
    assert_shows("interface            eth0");
    press(&v, m, TOP_KEY_TAB);
    draw(m, &v, 24, 80);
    assert_shows("     2  h2            running         1 KiB of 4 KiB, 0 of 1 rounds\n"
                 "     1  h1            running         2 KiB of 4 KiB, 0 of 1 rounds\n"
                 "     0  h0 ");
    c = fake_survey_make("4x4", 4000); /* the exchange is gone */
    take(m, &c, 4);
    draw(m, &v, 24, 80);
    assert_int_equal(v.page, TOP_PAGE_TORUS);
    assert_int_equal(v.focus, TOP_FOCUS_NODE);
}

/* The words are those of torusctl links. */
TEST(test_security_of_a_link)
{
    static const struct {
        const char *key, *word;
        bool encrypted;
        enum torus_link_state link;
    } cases[] = {{"", "open ", false, TORUS_LINK_UP},
                 {"0123", "proved ", false, TORUS_LINK_UP},
                 {"0123", "encrypted ", true, TORUS_LINK_UP},
                 {"0123", "- ", true, TORUS_LINK_DIALLING}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct top_model m = fake_model("4x4", 250000);
        struct all_nodes c = fake_survey_make("4x4", 3000);
        struct top_view v = {.interactive = true, .node = 5};
        char wanted[64];
        fake_link(&c, 5, 0)->key = cases[i].key;
        fake_link(&c, 5, 0)->encrypted = cases[i].encrypted;
        fake_link(&c, 5, 0)->state = cases[i].link;
        take(&m, &c, 3);
        press(&v, &m, TOP_KEY_ENTER);
        press(&v, &m, TOP_KEY_TAB);
        draw(&m, &v, 40, 80);
        (void)snprintf(wanted, sizeof wanted, "security             %s", cases[i].word);
        assert_shows(wanted);
        top_model_free(&m);
    }
}

/* Texts of other machines cannot move the cursor, nor the columns. */
TOP_TEST("2x2", 0, test_hostile_texts)
{
    struct all_nodes c = fake_survey_make("2x2", 3000);

    fake_down(&c, 0, 2, "a\033[2Jb\tc \xe4\xb8\xad \xff end");
    take(m, &c, 3);
    draw(m, &(struct top_view){0}, 24, 80);
    assert_shows("a?[2Jb?c ? ? end");
    assert_null(strchr(text, '\033'));
}

TOP_TEST("4x4", 500000, test_unicode)
{
    struct top_screen s;

    assert_int_equal(top_draw_all(&s, m, &(struct top_view){0}, 80, false, true), 0);
    keep(&s);
    assert_shows("\n  0 ━━50━━  1 ━━50━━  2 ━━50━━  3 ━━50━━\n"
                 "  ┃50       ┃50       ┃50       ┃50\n");
}

/* ---- What matters is never cut ---------------------------------------------------------------- */

#define REASON                                                                                     \
    "the node at the other end proves itself with another key than this one, and none of its "     \
    "links is open to a node that it does not know"

/* Whether a number has its unit wherever it stands: no line ends between the two. */
static void assert_whole_numbers(const char *number, const char *unit)
{
    for (const char *at = strstr(text, number); at != NULL; at = strstr(at + 1, number))
        if (strncmp(at + strlen(number), unit, strlen(unit)) != 0)
            fail_msg("%s without%s in:\n%s", number, unit, text);
}

/* A run's rate and its remaining time are whole or not there, in a terminal of any width. */
TOP_TEST("4x4", 250000, test_numbers_keep_their_units)
{
    for (unsigned i = 3; i <= 4; i++) {
        struct all_nodes c = fake_survey_full("4x4", 1000 * i, 250000 * i);
        for (uint32_t rank = 0; rank < 16; rank++) {
            struct torus_activity *x = fake_exchange(&c, rank, "12-89abcdef-56369");
            x->total_bytes = 34ull << 20;
            x->done_bytes = (i - 3) * 20ull << 20;
        }
        take(m, &c, i);
    }
    assert_int_equal(m->seen.runs.count, 1);
    m->seen.runs.run[0].rate = 84.0 * (1 << 20);
    m->seen.runs.run[0].left = 0.606;
    for (unsigned columns = 20; columns < 120; columns++) {
        for (unsigned rows = 14; rows < 25; rows += 5) {
            draw(m, &(struct top_view){.interactive = true}, rows, columns);
            assert_whole_numbers(" 606", " ms");
            assert_whole_numbers(" 84", " MiB/s");
        }
    }
    draw(m, &(struct top_view){0}, 24, 50);
    assert_shows("84 MiB/s");
    assert_shows("606 ms left"); /* on the next line */
}

/* A fault takes as many lines as its reason needs; where there are fewer, it ends visibly. */
TOP_TEST("4x4", 0, test_reasons_are_whole)
{
    struct all_nodes c = fake_survey_make("4x4", 3000);
    struct top_view v = {.interactive = true};

    fake_down(&c, 0, 0, REASON);
    take(m, &c, 3);
    draw(m, &(struct top_view){0}, 24, 80);
    assert_shows(
        "link 0:+0 h0 - 4:-0 h4: the node at the other end proves itself with another key\n"
        "  than this one, and none of its links is open to a node that it does not know\n");
    draw(m, &(struct top_view){0}, 7, 80); /* room for one line */
    assert_shows(
        "link 0:+0 h0 - 4:-0 h4: the node at the other end proves itself with another ...\n");
    press(&v, m, TOP_KEY_ENTER);
    draw(m, &v, 24, 80);
    assert_shows("does not know");
    assert_shows("dialling the node at the other end proves");
    press(&v, m, TOP_KEY_TAB);
    draw(m, &v, 24, 80);
    assert_shows(" that it does not know\n");
}

static void draw_all(const struct top_model *m, const struct top_view *v, unsigned columns,
                     bool wrapped)
{
    struct top_screen s;

    assert_int_equal(top_draw_all(&s, m, v, columns, wrapped, false), 0);
    keep(&s);
}

static void assert_fits(size_t columns)
{
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > columns)
            fail_msg("wider than %zu columns:\n%s", columns, text);
}

/* Without keys nothing can be scrolled, so all is printed, in the columns of the terminal. */
TOP_TEST("4x4", 0, test_all_of_it_fits_the_terminal)
{
    struct all_nodes c = fake_survey_full("4x4", 3000, 0);
    const struct top_view v = {.time = "12:34:56"};

    fake_down(&c, 0, 0, REASON);
    take(m, &c, 3);
    draw_all(m, &v, 80, false);
    assert_shows("4x4  16 of 16 nodes  31 of 32 links up  100 % = 8 Mbit/s  0 s old  12:34:56\n"
                 "load: ");
    assert_shows("\n\nlink 0:+0 h0 - 4:-0 h4: " REASON "\n");
    draw_all(m, &v, 80, true);
    assert_shows("itself with another key\n  than this one, and none of its links is open");
    for (unsigned columns = 40; columns < 100; columns++) {
        draw_all(m, &v, columns, true);
        assert_fits(columns);
        assert_shows("8 Mbit/s");
        assert_shows("12:34:56\nload: ");
        assert_shows("no answer\n");
        assert_shows(" know\n");
    }
}

/* A torus that is wider than the terminal is drawn in parts, with all its nodes and links. */
TOP_TEST("2x40", 500000, test_a_wide_torus_is_drawn_in_parts)
{
    const struct top_view v = {0};
    char rank[8];

    draw_all(m, &v, 80, false);
    assert_shows("\n 0 =5 1 =5");
    assert_shows("=538 =539 =5\n");
    draw_all(m, &v, 80, true);
    assert_shows("=514 =515 =5\n");
    assert_shows("\n\n16 =517 =5");
    assert_shows("=530 =531 =5\n");
    assert_shows("=578 =579 =5\n");
    for (unsigned columns = 20; columns < 220; columns += 5) {
        draw_all(m, &v, columns, true);
        assert_fits(columns);
        for (unsigned i = 0; i < 80; i++) {
            (void)snprintf(rank, sizeof rank, "%u =", i);
            assert_shows(rank);
        }
    }
}

/* The news of the daemon, and the keys, in narrow terminals. */
TOP_TEST("4x4", 0, test_narrow_terminals)
{
    struct top_view v = {.interactive = true,
                         .time = "12:34:56",
                         .notice = "trying again: no daemon at /run/torusd/torusd.sock: Connection "
                                   "refused"};

    draw(m, &v, 24, 50);
    assert_shows("trying again: no daemon at\n"
                 "  /run/torusd/torusd.sock: Connection refused\n");
    assert_shows("arrows: choose  tab: links, runs  ?: help  q: quit\n");
    assert_shows("4x4  16 of 16 nodes  32 of 32 links up     0 s old\n");
    draw(m, &v, 24, 40); /* without what would be cut */
    assert_shows("4x4  16 of 16 nodes              0 s old\n");
}

TOP_TEST("4x4", 0, test_the_age_is_shown)
{
    struct top_view v = {.interactive = true, .time = "12:34:56", .age = 7.9, .interval = 1};

    draw(m, &v, 24, 80);
    assert_shows(" 7 s old  12:34:56\n");
    v.age = 75;
    v.paused = true;
    draw(m, &v, 24, 80);
    assert_shows("100 % = 8 Mbit/s  paused, 1 min 15 s old\n");
    draw(m, &v, 24, 100);
    assert_shows(" paused, 1 min 15 s old  12:34:56\n");
}

TOP_TEST("4x4", 0, test_q_leaves_details_first)
{
    struct top_view v = {.interactive = true, .node = 3};

    for (unsigned i = 0; i < 2; i++) {
        press(&v, m, i == 0 ? TOP_KEY_ENTER : TOP_KEY_HELP);
        press(&v, m, TOP_KEY_QUIT);
        assert_int_equal(v.page, TOP_PAGE_TORUS);
        assert_int_equal(v.node, 3);
    }
    assert_false(top_view_key(&v, m, TOP_KEY_QUIT));
}

/* ---- The room of a large terminal ------------------------------------------------------------- */

/* Surveys, one a second from 3 s on, in which all links of a 4x4 carry these parts of 8 Mbit/s. */
static struct top_model model_over_time(const double *loads, unsigned count)
{
    struct top_model m = fake_model("4x4", 0);
    uint64_t bytes = 0;

    for (unsigned i = 0; i < count; i++) {
        bytes += (uint64_t)(loads[i] * 1e6);
        struct all_nodes c = fake_survey_full("4x4", 3000 + 1000 * i, bytes);
        if (i + 1 == count) {
            fake_bytes(&c, 6, 0, bytes + 100000);
            fake_link(&c, 9, 2)->retransmits = 20;
        }
        take(&m, &c, 3 + i);
    }
    return m;
}

TEST(test_a_wide_terminal_is_used)
{
    static const double loads[] = {0.25, 0.5, 0.5, 0.5};
    struct top_model m = model_over_time(loads, 4);
    struct top_view v = {.interactive = true, .interval = 1};

    draw(&m, &v, 50, 160);
    assert_shows("  0 ==50==  1 ==50==  2 ==50==  3 ==50==   all links together\n");
    assert_shows("500 Mbit/s |"); /* 64 directions of 4 Mbit/s */
    assert_shows("         0 |");
    assert_shows("last survey\n");
    assert_shows("sent         load    sent again\n");
    assert_shows("9:+1 h9 to 10 h10");
    const char *again = strstr(text, "9:+1 h9 to 10 h10"),
               *busy = strstr(text, "6:+0 h6 to 10 h10"), *other = strstr(text, "0:+0 h0 to 4 h4");
    assert_true(again != NULL && busy != NULL && other != NULL && again < busy && busy < other);
    assert_shows("4 Mbit/s     50 %    20 /s\n");
    assert_shows("4.8 Mbit/s   60 %\n");
    draw(&m, &v, 24, 80); /* below the lists */
    assert_shows("nothing runs, and no faults are known\n\nall links together\n");
    assert_shows("500 Mbit/s |");
    draw(&m, &v, 14, 80); /* no room */
    assert_null(strstr(text, "all links together"));
    top_model_free(&m);
}

/* The axis of the rates is the time: surveys that are missing are a gap. */
TOP_TEST(NULL, 0, test_rates_over_time)
{
    assert_true(top_model_newest(m) < 0);
    for (unsigned i = 0; i < 6; i++) {
        struct all_nodes c = fake_survey_full("4", 1000 + 1000 * i, 1000ull * i);
        take(m, &c, i < 3 ? i : i + 10);
    }
    assert_float_equal(top_model_newest(m), 15, 1e-9);
    assert_float_equal(top_model_rate_at(m, 15, 1), 8000, 1e-6);
    assert_float_equal(top_model_rate_at(m, 1.9, 1), 8000, 1e-6);
    assert_true(top_model_rate_at(m, 8, 1) < 0);
}
