/* One value, as JSON and as text. */
#include <math.h>

#include "client/cli/exchanging/exchange_report.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/quantile.h"
#include "client/cli/terminal/writer.h"
#include "daemon/lib/command_line/wrap.h"
#include "tests/support/cmocka.h"

/* The printed value: as text with a view, otherwise as JSON. */
static void check(const json_t *value, const struct view *view, const char *expected)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);

    assert_non_null(out);
    if (view != NULL)
        writer_text(out, value, view);
    else
        writer_json(out, value);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, expected);
    free(text);
}

/* Takes the next part of a text, which must be this one. */
static void check_part(const char **text, size_t columns, const char *expected, size_t width)
{
    const struct wrap_part part = wrap_next(text, columns);

    assert_int_equal(part.length, strlen(expected));
    assert_memory_equal(part.text, expected, part.length);
    assert_int_equal(part.columns, width);
}

TEST(test_texts_are_divided_at_words)
{
    const char *text = "h\xc3\xa4ngt  an\ndiesemlangenwort, fest";

    assert_int_equal(wrap_longest(text), 17);
    assert_int_equal(wrap_longest(""), 0);
    check_part(&text, 9, "h\xc3\xa4ngt  an", 9);
    check_part(&text, 9, "diesemlangenwort,", 17); /* a word that is too long */
    check_part(&text, 4, "fest", 4);
    assert_string_equal(text, "");
    check_part(&text, 4, "", 0);
    text = "two  spaces";
    check_part(&text, 11, "two  spaces", 11); /* it fits: unchanged */
    text = "one ";
    check_part(&text, 3, "one", 3);
    assert_string_equal(text, "");
}

static json_t *sample(void)
{
    json_t *value =
        json_loads("{\"dims\":[4,8],\"wrap\":[true,false],\"whole\":false,"
                   "\"bytes\":65536,\"unknown\":null,\"empty\":\"\",\"none\":[],"
                   "\"fault\":[\"first\",\"second\"],"
                   "\"link\":[{\"port\":\"+0\",\"tx\":1000,\"rate\":0.1},"
                   "{\"port\":\"-0\",\"tx\":5,\"rate\":null,\"reason\":\"h\xc3\xa4ngt\"}],"
                   "\"node\":[{\"rank\":3,\"ports\":{\"+0\":{\"tx\":1},\"-0\":{\"tx\":2}}}]}",
                   0, NULL);
    assert_non_null(value);
    return value;
}

TEST(test_json)
{
    json_t *value = sample();

    check(value, NULL,
          "{\"dims\":[4,8],\"wrap\":[true,false],\"whole\":false,\"bytes\":65536,"
          "\"unknown\":null,\"empty\":\"\",\"none\":[],\"fault\":[\"first\",\"second\"],"
          "\"link\":[{\"port\":\"+0\",\"tx\":1000,\"rate\":0.1},"
          "{\"port\":\"-0\",\"tx\":5,\"rate\":null,\"reason\":\"h\xc3\xa4ngt\"}],"
          "\"node\":[{\"rank\":3,\"ports\":{\"+0\":{\"tx\":1},\"-0\":{\"tx\":2}}}]}\n");
    json_decref(value);
}

TEST(test_text)
{
    static const struct field record[] = {
        {"torus", "dims", FORMAT_TORUS},
        {"whole torus", "whole", FORMAT_PLAIN},
        {"size", "bytes", FORMAT_BYTES},
        {"rate", "unknown", FORMAT_RATE},
        {"left out", "empty", FORMAT_PLAIN},
        {"left out too, wide", "none", FORMAT_LINES},
        {"and missing", "no", FORMAT_PLAIN},
        {"faults", "fault", FORMAT_LINES},
        {0},
    };
    static const struct field links[] = {
        FIELD("port"),
        FIELD("nothing"),
        FIELD("sent", "tx"),
        FIELD("reason"),
        {"rate", "rate", FORMAT_PERCENT},
        {0},
    };
    static const struct field ports[] = {
        {"node", "rank", FORMAT_PLAIN},
        {"port", "name", FORMAT_PLAIN},
        {"sent", "tx", FORMAT_BYTES},
        {0},
    };
    static const struct section sections[] = {
        {.layout = LAYOUT_RECORD, .fields = record},
        {.layout = LAYOUT_TABLE, .key = "missing", .title = "missing", .fields = links},
        {.layout = LAYOUT_TABLE, .key = "none", .title = "empty", .fields = links},
        {.layout = LAYOUT_TABLE, .key = "link", .title = "links", .fields = links},
        {.layout = LAYOUT_TABLE, .key = "node", .each = "ports", .fields = ports},
    };
    json_t *value = sample();

    check(value, &(struct view){sections, 5},
          "torus        4x8m\n"
          "whole torus  no\n"
          "size         64 KiB\n"
          "rate         -\n"
          "faults       first\n"
          "             second\n"
          "\n"
          "links\n"
          "port  sent  reason    rate\n"
          "+0    1000          10.0 %\n"
          "-0       5  h\xc3\xa4ngt        -\n"
          "\n"
          "node  port  sent\n"
          "   3  +0     1 B\n"
          "   3  -0     2 B\n");
    json_decref(value);
}

TEST(test_formats)
{
    static const struct {
        enum format format;
        double value;
        const char *text;
    } cases[] = {
        {FORMAT_BYTES, 0, "0 B"},
        {FORMAT_BYTES, 1023, "1023 B"},
        {FORMAT_BYTES, 1024, "1 KiB"},
        {FORMAT_BYTES, 1536, "1.5 KiB"},
        {FORMAT_BYTES, 100 * 1024, "100 KiB"},
        {FORMAT_BYTES, 1048575, "1 MiB"},
        {FORMAT_BYTES, 15728640, "15 MiB"},
        {FORMAT_BYTES, 9.2e18, "7.98 EiB"},
        {FORMAT_SECONDS, 0, "0 us"},
        {FORMAT_SECONDS, 0.000012, "12 us"},
        {FORMAT_SECONDS, 0.0123, "12.3 ms"},
        {FORMAT_SECONDS, 0.9996, "1 s"},
        {FORMAT_SECONDS, 3.51, "3.51 s"},
        {FORMAT_SECONDS, 59.96, "1 min 0 s"},
        {FORMAT_SECONDS, 83, "1 min 23 s"},
        {FORMAT_SECONDS, 7260, "2 h 1 min"},
        {FORMAT_SECONDS, 90000, "1 d 1 h"},
        {FORMAT_MICROS, 150, "150 us"},
        {FORMAT_RATE, 940e6, "940 Mbit/s"},
        {FORMAT_RATE, 999.6e6, "1 Gbit/s"},
        {FORMAT_MBIT, 50, "50 Mbit/s"},
        {FORMAT_MBIT, 2500, "2.5 Gbit/s"},
        {FORMAT_PERCENT, 0.9567, "95.7 %"},
        {FORMAT_PLAIN, 4.5, "4.5"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[FORMAT_SIZE];
        json_t *object = json_pack("{s:f}", "x", cases[i].value);
        size_t n = format_field(text, object, "x", cases[i].format);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(n, strlen(text));
        json_decref(object);
    }
}

TEST(test_numbers)
{
    json_t *list = json_array();

    (void)json_array_append_new(list, json_number(64));
    (void)json_array_append_new(list, json_number(4.5));
    (void)json_array_append_new(list, json_number((double)NAN));
    (void)json_array_append_new(list, json_count(UINT64_MAX));
    (void)json_array_append_new(list, json_known(0));
    (void)json_array_append_new(list, json_real(0.123456789));
    (void)json_array_append_new(list, json_real(0));
    check(list, NULL, "[64,4.5,null,9223372036854775807,null,0.123456789,0.0]\n");
    json_decref(list);
}

/* ---- The report of an exchange --------------------------------------------------------------- */

static const struct torus_port port = {"+0", 1, 2, 3, 4, 5, 6};
static const struct torus_port *const ports[] = {&port};
static const struct torus_node node = {.rank = 1,
                                       .nanoseconds = 99000000,
                                       .most_starts = 4,
                                       .most_ends = 2,
                                       .port_count = 1,
                                       .port = ports};
static const struct torus_node *const nodes[] = {&node};
static const struct torus_result result = {
    .id = "0.7.1",
    .dims = "4x4",
    .algorithm = "at2",
    .operation = TORUS_EXCHANGE,
    .mode = TORUS_MODE_STEPPED,
    .nodes = 16,
    .block_bytes = 65536,
    .nanoseconds = 100000000,
    .bound = 8,
    .link_mbit = 50,
    .startups = 4,
    .transmission = 8,
    .rounds = 1,
    .blocks_delivered = 240,
    .bytes_delivered = 15728640,
    .check = TORUS_CHECK_BYTES,
    .node_count = 1,
    .node = nodes,
    .without = "",
};

TEST(test_report)
{
    struct view brief = exchange_report_view(false, false),
                full = exchange_report_view(false, true);
    struct error e;
    json_t *value = exchange_report(&result, 0.125, false, &e);

    assert_non_null(value);
    check(value, NULL,
          "{\"id\":\"0.7.1\",\"operation\":\"exchange\",\"algorithm\":\"at2\",\"mode\":\"stepped\","
          "\"node_count\":16,\"block_bytes\":65536,\"rounds\":1,\"blocks_delivered\":240,"
          "\"bytes_delivered\":15728640,\"verified\":\"every byte\",\"dims\":[4,4],\"seconds\":0.1,"
          "\"bound_seconds\":0.08388608,\"bound_of\":\"all-port\",\"efficiency\":0.8388608,"
          "\"startups\":4,\"transmission\":8,\"call_seconds\":0.125,"
          "\"per_node\":[{\"rank\":1,\"seconds\":0.099,\"most_starts\":4,\"most_ends\":2,\"ports\":"
          "{\"+0\":"
          "{\"tx_bytes\":1,\"rx_bytes\":2,\"tx_blocks\":3,\"combined_messages\":4,\"min_rtt_us\":5,"
          "\"rate_bps\":6}}}]}\n");
#define SUMMARY                                                                                    \
    "exchange          0.7.1\n"                                                                    \
    "operation         exchange\n"                                                                 \
    "torus             4x4\n"                                                                      \
    "nodes             16\n"                                                                       \
    "algorithm         at2\n"                                                                      \
    "mode              stepped\n"                                                                  \
    "block             64 KiB\n"                                                                   \
    "time              100 ms\n"                                                                   \
    "lower bound       83.9 ms\n"                                                                  \
    "bound of          all-port\n"                                                                 \
    "efficiency        83.9 %\n"                                                                   \
    "whole call        125 ms\n"                                                                   \
    "startups          4\n"                                                                        \
    "transmission      8\n"                                                                        \
    "rounds            1\n"                                                                        \
    "delivered blocks  240\n"                                                                      \
    "delivered bytes   15 MiB\n"                                                                   \
    "verified          every byte\n"
    check(value, &brief, SUMMARY);
    check(value, &full,
          SUMMARY "\n"
                  "node   time  port  sent  received  blocks sent  messages  min rtt     rate\n"
                  "   1  99 ms  +0     1 B       2 B            3         4     5 us  6 bit/s\n");
    json_decref(value);
}

/* Only where there was one. */
TEST(test_report_of_damage)
{
    struct torus_result r = result;
    struct error e;

    r.without = "link 3:+0";
    r.reroutes = 2;
    r.replans = 3;
    r.damages = 1;
    json_t *value = exchange_report(&r, 0.125, false, &e);
    assert_string_equal(json_string_value(json_object_get(value, "without")), "link 3:+0");
    assert_string_equal(json_string_value(json_object_get(value, "bound_of")),
                        "all-port, what is in order");
    assert_int_equal(json_integer_value(json_object_get(value, "reroutes")), 2);
    assert_int_equal(json_integer_value(json_object_get(value, "replans")), 3);
    assert_int_equal(json_integer_value(json_object_get(value, "damages")), 1);
    json_decref(value);
}

/* Files that were not moved are counted; there is a warning unless the user asked for it. */
TEST(test_report_of_files_not_moved)
{
    struct torus_node with = node;
    const struct torus_node *const list[] = {&with, &with, &with};
    struct torus_result r = result;
    struct error e;
    char warning[512];

    exchange_report_warning(&r, warning, sizeof warning);
    assert_string_equal(warning, "");
    r.missing_files = 9;
    exchange_report_warning(&r, warning, sizeof warning);
    assert_string_equal(warning, "");
    with.unused_files = 1;
    r.unused_files = 1;
    r.node = list;
    r.node_count = 1;
    exchange_report_warning(&r, warning, sizeof warning);
    assert_string_equal(
        warning, "1 source file was not sent, because a file must be named by the rank of its "
                 "destination, 0 to 15 (node 1: 1)");
    with.unused_files = r.unused_files = UINT64_MAX;
    with.rank = UINT32_MAX;
    r.node_count = 3;
    exchange_report_warning(&r, warning, 100);
    assert_int_equal(strlen(warning), 99);
    json_t *value = exchange_report(&r, 0.125, false, &e);
    assert_int_equal(json_integer_value(json_object_get(value, "missing_files")), 9);
    assert_int_equal(json_integer_value(json_object_get(value, "unused_files")), INT64_MAX);
    json_decref(value);
}

TEST(test_report_of_repetitions)
{
    static const uint64_t each[] = {400000000, 100000000, 200000000, 300000000, 1000000000};
    struct view view = exchange_report_view(true, false);
    struct torus_result r = result;
    struct error e;

    r.repeat = 5;
    r.each_count = 5;
    r.each = each;
    r.nanoseconds = each[4];
    r.all_nanoseconds = 2500000000;
    json_t *value = exchange_report(&r, 3, true, &e);
    json_t *list = json_object_get(value, "seconds_each");
    assert_int_equal(json_array_size(list), 5);
    for (size_t i = 0; i < 5; i++) /* in the order in which they were */
        assert_true(json_real_value(json_array_get(list, i)) == (double)each[i] / 1e9);
    (void)json_object_del(value, "seconds_each");
    (void)json_object_del(value, "per_node");
    check(value, NULL,
          "{\"id\":\"0.7.1\",\"operation\":\"exchange\",\"algorithm\":\"at2\","
          "\"mode\":\"stepped\",\"node_count\":16,\"block_bytes\":65536,\"rounds\":1,"
          "\"blocks_delivered\":240,\"bytes_delivered\":15728640,\"verified\":\"every byte\","
          "\"dims\":[4,4],\"repeat\":5,\"seconds\":0.3,\"seconds_min\":0.1,\"seconds_max\":1.0,"
          "\"seconds_spread\":0.2,\"sustained_seconds\":0.5,\"bound_seconds\":0.08388608,"
          "\"bound_of\":\"all-port\",\"efficiency\":0.279620266666667,\"startups\":4,"
          "\"transmission\":8,\"call_seconds\":3.0}\n");
    check(value, &view,
          "exchange                0.7.1\n"
          "operation               exchange\n"
          "torus                   4x4\n"
          "nodes                   16\n"
          "algorithm               at2\n"
          "mode                    stepped\n"
          "block                   64 KiB\n"
          "repetitions             5\n"
          "median time             300 ms\n"
          "shortest                100 ms\n"
          "longest                 1 s\n"
          "interquartile range     200 ms\n"
          "sustained, each         500 ms\n"
          "lower bound             83.9 ms\n"
          "bound of                all-port\n"
          "efficiency              28.0 %\n"
          "whole call              3 s\n"
          "startups                4\n"
          "transmission            8\n"
          "rounds, each            1\n"
          "delivered blocks, each  240\n"
          "delivered bytes, each   15 MiB\n"
          "verified                every byte\n");
    json_decref(value);
}

TEST(test_quantiles)
{
    double values[] = {4, 1, 3, 2};

    assert_true(quantile(values, 0, 0.5) == 0);
    assert_true(quantile(values, 1, 0.5) == 4);
    sort_values(values, 4);
    assert_true(quantile(values, 4, 0) == 1);
    assert_true(quantile(values, 4, 0.25) == 1.75);
    assert_true(quantile(values, 4, 0.5) == 2.5);
    assert_true(quantile(values, 4, 1) == 4);
    assert_true(quantile(values, 3, 0.5) == 2);
}

TEST(test_report_without_rate)
{
    struct torus_result r = result;
    struct error e;
    json_t *value;

    r.link_mbit = 0;
    r.dims = "2x3m";
    r.nodes = 6;
    r.node_count = 0;
    value = exchange_report(&r, 1, false, &e);
    assert_true(json_is_null(json_object_get(value, "bound_seconds")));
    assert_true(json_is_null(json_object_get(value, "efficiency")));
    assert_true(json_is_false(json_array_get(json_object_get(value, "wrap"), 1)));
    assert_int_equal(json_array_size(json_object_get(value, "per_node")), 0);
    json_decref(value);

    r.link_mbit = 50;
    r.nanoseconds = 0;
    value = exchange_report(&r, 1, false, &e);
    assert_true(json_is_real(json_object_get(value, "bound_seconds")));
    assert_true(json_is_null(json_object_get(value, "efficiency")));
    json_decref(value);

    r.nodes = 7;
    assert_null(exchange_report(&r, 1, false, &e));
    assert_int_equal(e.code, ERROR_PROTOCOL);
    r.dims = "four by four";
    assert_null(exchange_report(&r, 1, false, &e));
    assert_int_equal(e.code, ERROR_PROTOCOL);
}
