/* What `torusctl serve` stands on: the history of an hour, the events of the pages, and who may see the page. */
#include <sys/utsname.h>
#include <unistd.h>

#include "client/cli/serving/door.h"
#include "client/cli/serving/history.h"
#include "client/cli/serving/scene.h"
#include "client/cli/serving/watchers.h"
#include "client/cli/web/page.h"
#include "doctor_fixture.h"
#include "tests/support/cmocka.h"
#include "tests/unit/json_expect.h"

/* --- history --- */

#define LAST (HISTORY_POINTS - 1)

static void reduce(const struct history *h, struct history_points *p, size_t channel)
{
    history_reduce(h, &channel, 1, p);
}

static void check_near(double value, double expected)
{
    assert_true(value >= expected * 0.999 && value <= expected * 1.001);
}

TEST(a_rate_is_kept_with_small_error)
{
    static const double rates[] = {0, 1, 1000, 123456789, 1e12};
    struct history_points p;
    struct history h;

    assert_int_equal(history_begin(&h, 2), 0);
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        history_move(&h, 100 + i * HISTORY_STEP);
        history_set(&h, 1, HISTORY_STEP, rates[i]);
        reduce(&h, &p, 1);
        check_near(p.mean[LAST], rates[i]);
        check_near(p.peak[LAST], rates[i]);
        reduce(&h, &p, 0);
        assert_true(p.mean[LAST] < 0 && p.peak[LAST] < 0);
    }
    history_free(&h);
}

TEST(points_have_mean_and_peak_of_sums)
{
    static const size_t both[] = {0, 1};
    struct history_points p;
    struct history h;

    assert_int_equal(history_begin(&h, 2), 0);
    for (uint64_t second = 1; second <= HISTORY_STEP; second++) {
        history_move(&h, 1000 + second);
        history_set(&h, 0, 1, second == 3 ? 1000 : 0);
        history_set(&h, 1, 1, second == 3 ? 500 : -1);
    }
    history_reduce(&h, both, 2, &p);
    check_near(p.peak[LAST], 1500);
    check_near(p.mean[LAST], 150);
    assert_true(p.mean[LAST - 1] < 0);
    history_free(&h);
}

TEST(what_is_older_than_an_hour_is_forgotten)
{
    struct history_points p;
    struct history h;

    assert_int_equal(history_begin(&h, 1), 0);
    history_move(&h, 50);
    history_set(&h, 0, 1, 77);
    history_move(&h, 50 + HISTORY_SECONDS - 1);
    reduce(&h, &p, 0);
    check_near(p.peak[0], 77);
    history_move(&h, 50 + HISTORY_SECONDS);
    reduce(&h, &p, 0);
    for (size_t i = 0; i < HISTORY_POINTS; i++)
        assert_true(p.peak[i] < 0);
    history_set(&h, 0, UINT64_MAX, 5);
    history_move(&h, UINT64_MAX / 2);
    history_move(&h, 3); /* earlier: changes nothing */
    assert_true(h.newest == UINT64_MAX / 2);
    reduce(&h, &p, 0);
    assert_true(p.peak[LAST] < 0);
    history_free(&h);
}

TEST(no_number_is_not_known)
{
    struct history_points p;
    struct history h;

    assert_int_equal(history_begin(&h, 1), 0);
    history_move(&h, 9);
    history_set(&h, 0, 1, 0.0 / 0.0);
    reduce(&h, &p, 0);
    assert_true(p.peak[LAST] < 0);
    history_set(&h, 0, 1, 1e300);
    reduce(&h, &p, 0);
    assert_true(p.peak[LAST] > 1e18);
    history_free(&h);
}

/* --- events --- */

/* Reads all that a watcher has not seen, in pieces of `size`. */
static char *read_all(struct event_cursor *p, const struct bulletin *b, size_t size)
{
    static char text[8192];
    size_t used = 0, n;

    while ((n = event_cursor_read(p, b, text + used, size)) > 0)
        used += n;
    text[used] = '\0';
    return text;
}

static json_t *number(int n)
{
    return json_pack("{s:i}", "n", n);
}

TEST(a_new_watcher_gets_all_kinds_in_order)
{
    struct bulletin b = {0};
    struct event_cursor p = {0};

    assert_int_equal(bulletin_publish(&b, EVENT_STATE, number(2)), 0);
    assert_int_equal(bulletin_publish(&b, EVENT_TORUS, json_pack("{s:s}", "t", "a\nb</script>")),
                     0);
    assert_string_equal(read_all(&p, &b, 7), "event: torus\ndata: {\"t\":\"a\\nb</script>\"}\n\n"
                                             "event: state\ndata: {\"n\":2}\n\n");
    assert_string_equal(read_all(&p, &b, 7), "");
    assert_int_equal(bulletin_publish(&b, EVENT_LOST, number(3)), 0);
    assert_string_equal(read_all(&p, &b, 4096), "event: lost\ndata: {\"n\":3}\n\n");
    assert_int_equal(bulletin_publish(&b, EVENT_LOST, NULL), 0);
    assert_string_equal(read_all(&p, &b, 4096), "");
    event_cursor_free(&p);
    bulletin_free(&b);
}

TEST(a_slow_watcher_misses_events_and_holds_one)
{
    struct bulletin b = {0};
    struct event_cursor slow = {0};
    char out[10];

    assert_int_equal(bulletin_publish(&b, EVENT_STATE, number(0)), 0);
    assert_int_equal(event_cursor_read(&slow, &b, out, sizeof out), sizeof out);
    for (int i = 1; i <= 100; i++)
        assert_int_equal(bulletin_publish(&b, EVENT_STATE, number(i)), 0);
    /* The rest of the one that it reads, then the newest. */
    assert_string_equal(read_all(&slow, &b, 64), "te\ndata: {\"n\":0}\n\n"
                                                 "event: state\ndata: {\"n\":100}\n\n");
    assert_int_equal(bulletin_publish(&b, EVENT_STATE, number(101)), 0);
    assert_int_equal(event_cursor_read(&slow, &b, out, 3), 3);
    bulletin_free(&b);
    event_cursor_free(&slow); /* it held the event until now */
}

/* --- door --- */

TEST(addresses_are_read)
{
    static const struct {
        const char *text;
        bool fine, loopback;
    } cases[] = {
        {"127.0.0.1:8080", true, true},
        {"localhost:0", true, true},
        {"[::1]:80", true, true},
        {"0.0.0.0:8080", true, false},
        {"10.1.2.3:65535", true, false},
        {"[::]:1", true, false},
        {"127.1.2.3:1", true, true},
        {"127.0.0.1", false, false},
        {"::1:80", false, false},
        {"127.0.0.1:65536", false, false},
        {":8080", false, false},
        {"127.0.0.1:", false, false},
        {"", false, false},
        {"[::1", false, false},
        {"[::1]80", false, false},
        {"example.org:80", false, false},
        {"127.0.0.1:8x", false, false},
        {"127.0.0.1:-1", false, false},
    };
    struct error e;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct door d;
        assert_int_equal(door_parse(&d, cases[i].text, &e), cases[i].fine ? 0 : -1);
        if (cases[i].fine)
            assert_int_equal(d.loopback, cases[i].loopback);
        else
            assert_int_equal(e.code, ERROR_USAGE);
    }
}

TEST(only_names_of_this_machine_are_allowed)
{
    static const char *const never[] = {"evil.example",
                                        "evil.example:8080",
                                        "127.0.0.1.evil.example",
                                        "localhost.evil.example",
                                        "",
                                        "[::1",
                                        "127.0.0.1:x",
                                        "127.0.0.1:80:80",
                                        "a b",
                                        ":80",
                                        "[]:80",
                                        "localhost:123456"};
    static const char *const always[] = {"127.0.0.1",       "127.0.0.1:8080", "[::1]:9",
                                         "localhost",       "LocalHost:9999", "127.0.0.1:1",
                                         "localhost:65535", "[::1]"};
    struct door near, far;
    struct utsname name;

    assert_int_equal(door_parse(&near, "127.0.0.1:8080", NULL), 0);
    assert_int_equal(door_parse(&far, "0.0.0.0:8080", NULL), 0);
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        assert_false(door_allows_host(&near, never[i]) || door_allows_host(&far, never[i]));
    assert_false(door_allows_host(&near, NULL) || door_allows_host(&far, NULL));
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        assert_true(door_allows_host(&near, always[i]) && door_allows_host(&far, always[i]));
    assert_false(door_allows_host(&near, "10.0.0.1:8080"));
    assert_true(door_allows_host(&far, "10.0.0.1:8080"));
    assert_int_equal(uname(&name), 0);
    assert_true(door_allows_host(&far, name.nodename));
}

TEST(tokens_are_random_or_given)
{
    struct door a = {0}, b = {0};
    struct error e;

    assert_false(door_is_token(&a, ""));
    assert_int_equal(door_set_token(&a, NULL, &e), 0);
    assert_int_equal(door_set_token(&b, NULL, &e), 0);
    assert_int_equal(strlen(a.token), 32);
    assert_string_not_equal(a.token, b.token);
    assert_true(door_is_token(&a, a.token));
    assert_false(door_is_token(&a, b.token) || door_is_token(&a, NULL) || door_is_token(&a, ""));
    assert_int_equal(door_set_token(&a, "0123456789abcdeF", &e), 0);
    assert_true(door_is_token(&a, "0123456789abcdeF"));
    assert_false(door_is_token(&a, "0123456789abcdef"));
    assert_int_equal(door_set_token(&a, "0123456789abcde", &e), -1);
    assert_int_equal(door_set_token(&a, "0123456789abcde;x=y", &e), -1);
}

TEST(the_door_opens_at_a_free_port)
{
    struct door d, other;
    struct error e;
    char text[64];

    assert_int_equal(door_parse(&d, "[::1]:0", &e), 0);
    assert_int_equal(door_set_token(&d, "0123456789abcdef", &e), 0);
    int fd = door_open(&d, &e);
    if (fd < 0) { /* a machine without IPv6 */
        assert_int_equal(door_parse(&d, "127.0.0.1:0", &e), 0);
        assert_int_equal(door_set_token(&d, "0123456789abcdef", &e), 0);
        fd = door_open(&d, &e);
    }
    assert_true(fd >= 0);
    const char *port = strrchr(d.cookie, '-') + 1;
    (void)snprintf(text, sizeof text, ":%s/?token=0123456789abcdef", port);
    assert_contains(d.url, text);
    (void)snprintf(text, sizeof text, "%s:%s", d.url[7] == '[' ? "[::1]" : "127.0.0.1", port);
    assert_int_equal(door_parse(&other, text, &e), 0);
    assert_fails(door_open(&other, &e), e, ERROR_IO, "");
    (void)close(fd);
}

/* The scene of `torusctl serve`, and what the page is told: rates, faults, runs. Surveys are made up. */

/* Surveys are parts of the fixture, and not freed. */
void __wrap_torus_survey_free(struct torus_survey *survey);
void __wrap_torus_survey_free(struct torus_survey *survey)
{
}

struct made {
    struct ring ring;
    struct torus_node_answer answer[RING];
    const struct torus_node_answer *list[RING];
    struct torus_survey survey;
    struct torus_activity activity[RING];
    const struct torus_activity *activities[RING][1];
};

static struct made made[2]; /* the survey now, and the one before */
static struct scene scene;
static unsigned turn;
static double now;

/* A survey like the one before, `seconds` later. */
static struct made *next(double seconds)
{
    struct made *m = &made[turn++ % 2];

    ring_begin(&m->ring);
    now += seconds;
    for (uint32_t i = 0; i < RING; i++) {
        m->ring.status[i].dims = "4";
        m->ring.status[i].pid = 100 + i;
        m->ring.status[i].uptime_ms = (uint64_t)(now * 1000);
        m->answer[i] = (struct torus_node_answer){.rank = i,
                                                  .outcome = TORUS_SURVEY_ANSWERED,
                                                  .host = m->ring.node[i].host,
                                                  .status = &m->ring.status[i],
                                                  .links = &m->ring.links[i]};
        m->list[i] = &m->answer[i];
    }
    m->survey = (struct torus_survey){.count = RING, .nodes = m->list, .took_us = 1500};
    return m;
}

static void lose(struct made *m, uint32_t node)
{
    m->answer[node].outcome = TORUS_SURVEY_UNREACHABLE;
    m->answer[node].host = "";
    m->answer[node].status = NULL;
    m->answer[node].links = NULL;
}

static void run_exchange(struct made *m, uint64_t done, enum torus_state state)
{
    for (uint32_t i = 0; i < RING; i++) {
        m->activity[i] = (struct torus_activity){.id = "1-abc",
                                                 .algorithm = "at2",
                                                 .state = state,
                                                 .reason = "",
                                                 .coordinator = 2,
                                                 .age_ms = 5000,
                                                 .rounds = 1,
                                                 .done_bytes = done,
                                                 .total_bytes = 1000};
        m->activities[i][0] = &m->activity[i];
        m->ring.status[i].exchange_count = 1;
        m->ring.status[i].exchanges = m->activities[i];
    }
}

/* Takes the survey over. What the page is told must have this: see json_expect(). "end" has two channels a node. */
static void take(struct made *m, const char *wanted)
{
    struct torus_error e;
    struct all_nodes all;

    assert_int_equal(all_nodes_make(&all, &m->ring.status[0], &m->survey, &e), 0);
    assert_int_equal(scene_take(&scene, &all, now), 0);
    json_t *value = scene_state_value(&scene, 42);
    assert_non_null(value);
    json_expect(value, wanted);
    json_decref(value);
}

static int begin(void **state)
{
    scene_free(&scene);
    now = 1000;
    return 0;
}

static int end(void **state)
{
    scene_free(&scene);
    return 0;
}

TEST_WITH(begin, end, rates_come_from_two_surveys)
{
    struct made *m;

    take(next(1), "end.2.1=null");
    assert_true(scene.new_torus);
    m = next(2);
    m->ring.link[1][0].tx_bytes += 5000;
    m->ring.link[1][0].retransmits = 8;
    take(m, "end.2.0=true end.2.1=2500 end.2.6=4 end.3.1=0 end=#8 links=4 links_up=4 faults=#0 "
            "capacity=125000000");
    assert_false(scene.new_torus);
    json_t *value = scene_history_value(&scene, 1, 0);
    const json_t *sent = json_at(value, "series.0.peak");
    assert_in_range(json_integer_value(json_array_get(sent, HISTORY_POINTS - 1)), 2498, 2502);
    json_decref(value);
    assert_null(scene_history_value(&scene, RING, TORUS_RANK_NONE));
    assert_null(scene_history_value(&scene, 0, 2));
}

TEST_WITH(begin, end, another_connection_or_daemon_gives_no_rate)
{
    struct made *m;

    take(next(1), "links=4");
    m = next(1);
    m->ring.link[0][0].connects = 2;
    m->ring.status[1].pid = 999;
    m->ring.link[2][0].tx_bytes = 5; /* less than before */
    take(m, "end.0.1=null end.2.1=null end.4.1=null end.6.1=0");
    take(next(SCENE_GAP_SECONDS + 5), "end.6.1=null"); /* nobody has looked */
}

TEST_WITH(begin, end, faults_name_machines)
{
    struct made *m;

    take(next(1), "faults=#0");
    m = next(1);
    lose(m, 2);
    m->ring.link[0][0].state = TORUS_LINK_DIALLING;
    m->ring.link[0][0].reason = "connection refused <b>\x01";
    /* The links of gamma are up at their other ends; alpha's is down at both. */
    take(m, "faults=#2 faults.0.text=gamma_is_down,_or_cannot_be_reached "
            "faults.1.text=the_link_from_port_+0_of_alpha_to_beta_is_down "
            "faults.1.why=connection_refused_<b>? links_up=3 end.4=null end.3.0=false");
}

TEST_WITH(begin, end, cables_that_lead_elsewhere_are_faults)
{
    struct made *m = next(1);

    ring_fault(&m->ring, 0, 1, "wrong-cable", 1, 0);
    take(m, "faults.0.text=alpha:_a_text");
}

TEST_WITH(begin, end, an_exchange_has_progress_rate_and_time_left)
{
    struct made *m = next(1);

    run_exchange(m, 100, TORUS_STATE_RUNNING);
    take(m, "runs=#1");
    m = next(1);
    run_exchange(m, 300, TORUS_STATE_RUNNING);
    m->activity[3].state = TORUS_STATE_DONE;
    take(m, "runs=#1 runs.0.root=gamma runs.0.state=running_3,_done_1 runs.0.done=1200 "
            "runs.0.total=4000 runs.0.rate=800 runs.0.part=0.3 runs.0.left=3.5 runs.0.ended=false");
    m = next(1);
    run_exchange(m, 1000, TORUS_STATE_COMMITTED);
    take(m, "runs=#1 runs.0.ended=true runs.0.left=null");
}

/* A torus whose daemon says what cannot be: it must not matter. */
TEST_WITH(begin, end, nonsense_does_no_harm)
{
    struct made *m = next(1);

    m->ring.link[0][0].port = 31;
    m->ring.link[1][1].rtt_us = UINT32_MAX;
    m->ring.link[1][1].queue_bytes = UINT64_MAX;
    run_exchange(m, UINT64_MAX, (enum torus_state)77);
    take(m, "end.0=null runs=#1 runs.0.state=unknown");
}

TEST_WITH(begin, end, each_channel_has_its_opposite)
{
    struct error e;

    take(next(1), "links=4");
    json_t *torus = scene_torus_value(&scene, &e);
    const json_t *channels = json_object_get(torus, "channels"),
                 *opposite = json_object_get(torus, "opposite");
    assert_int_equal(json_array_size(channels), 2 * RING);
    for (size_t i = 0; i < 2 * (size_t)RING; i++) {
        const json_t *a = json_array_get(channels, i);
        const size_t k = (size_t)json_integer_value(json_array_get(opposite, i));
        const json_t *b = json_array_get(channels, k);
        assert_int_equal(json_integer_value(json_array_get(opposite, k)), i);
        assert_int_equal(json_integer_value(json_array_get(a, 0)),
                         json_integer_value(json_array_get(b, 2)));
    }
    json_decref(torus);
}

/* Pages for a browser: their parts are in place, and no text of the data can end a script. */

#define DATA_BEGIN "<script>const DATA = "
#define DATA_END ";</script>\n"

static char *write_page(const struct page *p)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    page_write(out, p);
    assert_int_equal(fclose(out), 0);
    return text;
}

TEST(parts_are_in_place)
{
    static const char *const scripts[] = {"first();\n", "second();\n", NULL};
    char *text =
        write_page(&(struct page){.body = "<html>\n<!--style-->\n<p>text</p>\n<!--data-->\n"
                                          "<!--scripts-->\n</html>",
                                  .style = "a {}\n",
                                  .more_style = "b {}\n",
                                  .scripts = scripts,
                                  .data = NULL});

    assert_string_equal(
        text, "<html>\n<style>\na {}\nb {}\n</style>\n<p>text</p>\n<script>\nfirst();\n</script>\n"
              "<script>\nsecond();\n</script>\n</html>\n");
    free(text);
}

/* Whatever is in it, the data is one script, and its value is the same. */
static void check_data(const char *text)
{
    static const char *const none[] = {NULL};
    json_t *data = json_pack("{s:s, s:[s]}", "key", text, "list", text);

    assert_non_null(data);
    (void)json_object_set_new(data, text, json_integer(1)); /* as a key, too */
    char *page = write_page(
        &(struct page){.body = "<!--data-->", .style = "", .scripts = none, .data = data});
    assert_int_equal(strncmp(page, DATA_BEGIN, strlen(DATA_BEGIN)), 0);
    char *begin = page + strlen(DATA_BEGIN), *end = strstr(begin, DATA_END);
    assert_non_null(end);
    assert_int_equal(end[strlen(DATA_END)], '\0');
    for (const char *c = begin; c < end;
         c++) /* neither a tag, a comment, nor a line separator of JavaScript */
        assert_true(*c != '<' && (unsigned char)*c < 0x7f && (unsigned char)*c >= ' ');
    *end = '\0';
    json_t *read = json_loads(begin, 0, NULL);
    assert_true(json_equal(read, data));
    json_decref(read);
    json_decref(data);
    free(page);
}

TEST(no_text_ends_the_script)
{
    static const char *const texts[] = {"</script>",
                                        "</ScRiPt >",
                                        "<!--<script>",
                                        "<!--data-->",
                                        "\n<!--scripts-->\n",
                                        "<\\/script>",
                                        "\\u003c/script>",
                                        "\"; alert(1); \"",
                                        "\\\"; alert(1)",
                                        "]]>",
                                        "\xe2\x80\xa8\xe2\x80\xa9",
                                        "</script\t><img src=x onerror=alert(1)>",
                                        "${alert(1)}`"};
    uint64_t chance = 5;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        check_data(texts[i]);
    for (unsigned i = 0; i < 2000; i++) {
        static const char letters[] = "<>/!-\\\"'scriptSCRIPT \n\t\x01&;u03c";
        char text[24];
        size_t length = 0;
        while (length < sizeof text - 1) {
            chance = chance * 6364136223846793005u + 1442695040888963407u;
            text[length++] = letters[(chance >> 33) % (sizeof letters - 1)];
        }
        text[length] = '\0';
        check_data(text);
    }
}

/* Each channel leads to the node where the torus says it does, and all nodes lie within the drawing. */
TEST(a_torus_is_described)
{
    static const char *const tori[] = {"1",     "2",       "4x4",        "3mx5",
                                       "3x4x5", "2x2x2x2", "complete:5", "complete:5x3"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t;
        struct error e;
        size_t channels = 0, k;
        json_t *value;
        assert_int_equal(torus_parse(&t, tori[i], NULL), 0);
        json_t *o = torus_json(&t, &e);
        assert_non_null(o);
        double width = json_number_value(json_object_get(o, "width"));
        double height = json_number_value(json_object_get(o, "height"));
        assert_int_equal(json_array_size(json_object_get(o, "place")), t.nodes);
        json_array_foreach(json_object_get(o, "place"), k, value)
        {
            double x = json_number_value(json_array_get(value, 0)),
                   y = json_number_value(json_array_get(value, 1));
            assert_true(x > 0 && x < width && y > 0 && y < height);
        }
        for (uint32_t node = 0; node < t.nodes; node++)
            for (unsigned port = 0; port < torus_ports(&t); port++)
                channels += torus_neighbour(&t, node, port) != TORUS_NO_NODE;
        assert_int_equal(json_array_size(json_object_get(o, "channels")), channels);
        json_array_foreach(json_object_get(o, "channels"), k, value) assert_int_equal(
            json_integer_value(json_array_get(value, 2)),
            torus_neighbour(&t, (uint32_t)json_integer_value(json_array_get(value, 0)),
                            (unsigned)json_integer_value(json_array_get(value, 1))));
        json_decref(o);
    }
}

TEST(large_tori_are_refused)
{
    struct torus t;
    struct error e;

    assert_int_equal(torus_parse(&t, "32x33", NULL), 0);
    assert_null(torus_json(&t, &e));
    assert_int_equal(e.code, ERROR_REFUSED);
}
