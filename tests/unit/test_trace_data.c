/* Trace files from others: whatever they hold, they are read or refused, and a page is made of them. */
#include <unistd.h>

#include "client/cli/reporting/findings.h"
#include "client/cli/reporting/report_page.h"
#include "tests/support/cmocka.h"
#include "tests/unit/trace_fixture.h"

static uint64_t chance = 99;

static size_t below(size_t most)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(chance >> 33) % most;
}

TEST(a_trace_is_read)
{
    json_t *file = trace_fixture_new("2x3");
    struct trace_data d;
    struct error e;

    (void)json_object_del(trace_fixture_node(file, 4), "used");
    trace_fixture_add_event(file, 1, 0.5, TORUS_TRACE_STEP, 3, 0);
    assert_int_equal(trace_fixture_read(file, &d, &e), 0);
    assert_int_equal(d.torus.nodes, 6);
    assert_string_equal(d.id, "0-1-2");
    assert_false(d.node[4].traced);
    assert_string_equal(d.node[4].name, "host4");
    assert_true(d.node[1].traced);
    assert_int_equal(d.node[1].port[0].neighbour, torus_neighbour(&d.torus, 1, 0));
    assert_true(d.node[1].port[0].bytes == 1e6 * TRACE_FIXTURE_INTERVALS);
    double busy = d.node[1].port[0].state[TORUS_TRACE_LINK];
    assert_true(busy > 0.599 && busy < 0.601);
    assert_int_equal(json_array_size(d.node[1].events), 1);
    trace_data_free(&d);
}

/* Refused, with the member's name. */
static void check_refused(json_t *file, const char *word)
{
    struct trace_data d;
    struct error e;

    assert_int_equal(trace_fixture_read(file, &d, &e), -1);
    assert_int_equal(e.code, ERROR_USAGE);
    if (strstr(e.text, word) == NULL)
        fail_msg("'%s' does not name '%s'", e.text, word);
}

TEST(what_does_not_fit_is_refused)
{
    static const char *const lists[] = {"sent",   "received", "queue",   "unacked", "resent",
                                        "state",  "used",     "delayed", "writing", "neighbour",
                                        "loaded", "drained",  "no_room", "carried"};
    static const char *const times[] = {"began", "ended", "interval", "clock_error"};
    json_t *file;

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        char quoted[32];
        /* A change of "used" is a change of the number of intervals. */
        bool counts = strcmp(lists[i], "used") == 0;
        (void)snprintf(quoted, sizeof quoted, "\"%s\"", lists[i]);
        file = trace_fixture_new("4");
        (void)json_array_remove(json_object_get(trace_fixture_node(file, 2), lists[i]), 0);
        check_refused(file, counts ? "node 2" : quoted);
        file = trace_fixture_new("4");
        trace_fixture_set(file, 2, lists[i], 0, -1);
        check_refused(file, quoted);
        file = trace_fixture_new("4");
        (void)json_array_set_new(json_object_get(trace_fixture_node(file, 2), lists[i]), 0,
                                 json_string("<b>"));
        check_refused(file, quoted);
    }
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        file = trace_fixture_new("4");
        (void)json_object_set_new(trace_fixture_node(file, 0), times[i], json_string("1"));
        check_refused(file, times[i]);
    }
}

TEST(contradictions_are_refused)
{
    static const double lengths[] = {-1, 1e300};
    json_t *file;

    file = trace_fixture_new("4");
    trace_fixture_set(file, 1, "state", 3, 256);
    check_refused(file, "\"state\"");
    file = trace_fixture_new("4");
    (void)json_object_set_new(trace_fixture_node(file, 1), "interval", json_real(0));
    check_refused(file, "\"interval\"");
    file = trace_fixture_new("4");
    (void)json_object_set_new(trace_fixture_node(file, 1), "interval", json_real(1e308));
    check_refused(file, "\"interval\"");
    file = trace_fixture_new("4");
    trace_fixture_set(file, 1, "neighbour", 0, 3);
    check_refused(file, "\"neighbour\"");
    file = trace_fixture_new("6x6"); /* cables that a mesh does not have */
    (void)json_object_set_new(json_object_get(file, "torusd"), "dims", json_string("6mx6m"));
    check_refused(file, "\"neighbour\"");
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        file = trace_fixture_new("4");
        (void)json_object_set_new(json_object_get(file, "torusd"), "seconds",
                                  json_real(lengths[i]));
        check_refused(file, "\"seconds\"");
    }
    file = trace_fixture_new("4");
    (void)json_array_append_new(json_object_get(trace_fixture_node(file, 1), "events"),
                                json_pack("[f, i, i, s]", 0.5, 1, 2, "<i>"));
    check_refused(file, "\"events\"");
    file = trace_fixture_new("4");
    (void)json_object_set_new(json_object_get(file, "torusd"), "dims", json_string("2x3"));
    check_refused(file, "do not fit together");
    file = trace_fixture_new("4");
    (void)json_object_set_new(json_object_get(file, "torusd"), "version", json_integer(2));
    check_refused(file, "version 1");
}

TEST(other_files_are_refused)
{
    static const struct {
        const char *text;
        enum error_code code;
    } files[] = {{"", ERROR_USAGE},
                 {"{", ERROR_USAGE},
                 {"[]", ERROR_USAGE},
                 {"{}", ERROR_USAGE},
                 {"null", ERROR_USAGE},
                 {"\x80\xff", ERROR_USAGE},
                 {"{\"torusd\": 5}", ERROR_USAGE},
                 {"{\"torusd\": {\"version\": 1, \"dims\": \"1000000x1000000\"}}", ERROR_USAGE}};
    struct trace_data d;
    struct error e;

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *path = file_of(files[i].text, strlen(files[i].text));
        assert_int_equal(trace_data_read(&d, path, &e), -1);
        assert_int_equal(e.code, files[i].code);
        assert_int_equal(unlink(path), 0);
        assert_null(d.file);
    }
    assert_int_equal(trace_data_read(&d, "/nonexistent/trace", &e), -1);
    assert_int_equal(e.code, ERROR_IO);
}

/* Changes some bytes: digits to other digits, any to what is common in JSON or to anything, or moves some. */
static void mutate(char *text, size_t length)
{
    static const char common[] = "0123456789{}[],:\"-.eE \\";

    for (size_t i = 1 + below(3); i-- > 0;) {
        size_t at = below(length), size = below(length - at < 20 ? length - at : 20);
        switch (below(8)) {
        case 0:
            text[at] = common[below(sizeof common - 1)];
            break;
        case 1:
            text[at] = (char)below(256);
            break;
        case 2:
            memmove(text + at, text + below(length - size), size);
            break;
        default:
            if (text[at] >= '0' && text[at] <= '9')
                text[at] = common[below(10)];
            break;
        }
    }
}

/* Of what is still a trace, everything is made that torusctl makes. */
TEST(random_changes)
{
    json_t *file = trace_fixture_new("2x2");
    const unsigned tries = 1500;
    unsigned accepted = 0;
    struct finding list[FINDINGS_MOST];
    const struct cli cli = {.json = false};

    trace_fixture_add_event(file, 1, 0.5, TORUS_TRACE_CALL_BEGUN, 3, 0);
    trace_fixture_add_event(file, 1, 0.6, TORUS_TRACE_CALL_ENDED, 3, 0);
    char *text = json_dumps(file, JSON_COMPACT);
    size_t length = strlen(text);
    json_decref(file);
    char *changed = malloc(length);
    for (unsigned i = 0; i < tries; i++) {
        struct trace_data d;
        struct error e;
        memcpy(changed, text, length);
        mutate(changed, length);
        const char *path = file_of(changed, below(10) == 0 ? below(length) : length);
        int r = trace_data_read(&d, path, &e);
        if (r != 0)
            assert_true(e.code == ERROR_USAGE && e.text[0] != '\0');
        if (r == 0) {
            assert_in_range(findings_make(&d, list), 1, FINDINGS_MOST);
            if (accepted++ % 16 == 0)
                assert_int_equal(report_page_write(&cli, path, &d), EXIT_DONE);
            trace_data_free(&d);
        }
        assert_int_equal(unlink(path), 0);
    }
    assert_true(accepted > tries / 20);
    free(changed);
    free(text);
}

/* A name, an id and states of a file are text on the page, and unknown members do not come there. */
TEST(texts_stay_texts)
{
    const char *evil = "</script><img src=x onerror=alert(1)>";
    json_t *file = trace_fixture_new("2x2"), *own = json_object_get(file, "torusd");
    const struct cli cli = {.json = false};
    struct trace_data d;
    struct error e;
    char *page = NULL;
    size_t length = 0;

    (void)json_object_set_new(trace_fixture_node(file, 0), "name", json_string(evil));
    (void)json_object_set_new(own, "id", json_string(evil));
    (void)json_object_set_new(own, "run",
                              json_pack("{s:s, s:s}", "seconds", evil, "other", "OTHER"));
    (void)json_object_set_new(own, "states", json_pack("[s, s]", "STATE", evil));
    assert_int_equal(trace_fixture_read(file, &d, &e), 0);
    const char *path = file_of("", 0);
    assert_int_equal(report_page_write(&cli, path, &d), EXIT_DONE);
    trace_data_free(&d);
    FILE *in = fopen(path, "r");
    assert_non_null(in);
    assert_true(getdelim(&page, &length, '\0', in) > 0);
    (void)fclose(in);
    assert_null(strstr(page, evil));
    assert_null(strstr(page, "<img"));
    assert_null(strstr(page, "OTHER"));
    assert_null(strstr(page, "STATE\""));
    assert_null(strstr(page, "\"run\":{\"seconds\""));
    assert_non_null(strstr(page, "\\u003c/script>"));
    free(page);
    assert_int_equal(unlink(path), 0);
}

/* As programs write it that have one type for all numbers. */
TEST(numbers_without_a_fraction)
{
    json_t *file = trace_fixture_new("4");
    json_t *node = trace_fixture_node(file, 2), *own = json_object_get(file, "torusd");
    struct trace_data d;
    struct error e;

    (void)json_object_set_new(node, "began", json_integer(0));
    (void)json_object_set_new(node, "ended", json_integer(1));
    (void)json_object_set_new(node, "interval", json_integer(1));
    (void)json_object_set_new(own, "seconds", json_integer(1));
    (void)json_array_append_new(json_object_get(node, "events"),
                                json_pack("[i, i, i, i]", 0, TORUS_TRACE_STEP, 3, 0));
    assert_int_equal(trace_fixture_read(file, &d, &e), 0);
    assert_true(d.seconds == 1);
    assert_true(d.node[2].ended == 1);
    trace_data_free(&d);
}

/* The report prints names on terminals. */
TEST(names_do_not_command_terminals)
{
    json_t *file = trace_fixture_new("4");
    struct trace_data d;
    struct error e;

    (void)json_object_set_new(trace_fixture_node(file, 2), "name", json_string("a\x1b[31mred"));
    (void)json_object_del(trace_fixture_node(file, 3), "used");
    (void)json_object_set_new(trace_fixture_node(file, 3), "name", json_string("b\r"));
    (void)json_object_set_new(json_object_get(file, "torusd"), "id", json_string("\x1b]0;x\x07"));
    assert_int_equal(trace_fixture_read(file, &d, &e), 0);
    assert_string_equal(d.node[2].name, "a?[31mred");
    assert_string_equal(d.node[3].name, "b?");
    assert_string_equal(d.id, "?]0;x?");
    trace_data_free(&d);
}
