/* What `torusctl serve` stands on: the history of an hour, the events of the pages, and who may see the page. */
#include <sys/utsname.h>
#include <unistd.h>

#include "client/cli/serving/door.h"
#include "client/cli/serving/history.h"
#include "client/cli/serving/watchers.h"
#include "tests/support/cmocka.h"

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
static char *read_all(struct place *p, const struct bulletin *b, size_t size)
{
    static char text[8192];
    size_t used = 0, n;

    while ((n = place_read(p, b, text + used, size)) > 0)
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
    struct place p = {0};

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
    place_free(&p);
    bulletin_free(&b);
}

TEST(a_slow_watcher_misses_events_and_holds_one)
{
    struct bulletin b = {0};
    struct place slow = {0};
    char out[10];

    assert_int_equal(bulletin_publish(&b, EVENT_STATE, number(0)), 0);
    assert_int_equal(place_read(&slow, &b, out, sizeof out), sizeof out);
    for (int i = 1; i <= 100; i++)
        assert_int_equal(bulletin_publish(&b, EVENT_STATE, number(i)), 0);
    /* The rest of the one that it reads, then the newest. */
    assert_string_equal(read_all(&slow, &b, 64), "te\ndata: {\"n\":0}\n\n"
                                                 "event: state\ndata: {\"n\":100}\n\n");
    assert_int_equal(bulletin_publish(&b, EVENT_STATE, number(101)), 0);
    assert_int_equal(place_read(&slow, &b, out, 3), 3);
    bulletin_free(&b);
    place_free(&slow); /* it held the event until now */
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
    assert_non_null(strstr(d.url, text));
    (void)snprintf(text, sizeof text, "%s:%s", d.url[7] == '[' ? "[::1]" : "127.0.0.1", port);
    assert_int_equal(door_parse(&other, text, &e), 0);
    assert_int_equal(door_open(&other, &e), -1);
    assert_int_equal(e.code, ERROR_IO);
    (void)close(fd);
}
