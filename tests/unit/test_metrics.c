/* The text of metrics, read by a strict parser; and which format a client gets. */
#include "daemon/torusd/metrics/exposition.h"
#include "openmetrics.h"
#include "tests/support/cmocka.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct metric gauge = {"a_gauge", "", METRIC_GAUGE, "A value"};
static const struct metric counter = {"b_bytes", "bytes", METRIC_COUNTER, "Bytes"};
static const struct metric info = {"c", "", METRIC_INFO, "Texts"};
static const struct metric times = {"d_seconds", "seconds", METRIC_HISTOGRAM, "Times"};

/* Writes metrics of all kinds; the caller frees the text. */
static char *write_all(bool openmetrics, size_t *length)
{
    static const char hostile[] = "\"}\\ \n# EOF\n\x01\xff{a=\"b\"} 7";
    const struct label labels[] = {{"one", hostile}, {"two", ""}};
    struct histogram h = {0};
    struct exposition x;

    histogram_add(&h, 0.001); /* a bound belongs to its bucket */
    histogram_add(&h, 0.002);
    histogram_add(&h, 1e9);
    exposition_begin(&x, openmetrics);
    exposition_single(&x, &gauge, -1.5);
    exposition_metric(&x, &counter);
    exposition_value(&x, labels, 2, 9007199254740991.0);
    exposition_value(&x, labels, 1, 0);
    exposition_metric(&x, &info);
    exposition_value(&x, labels, 2, 1);
    exposition_metric(&x, &times);
    exposition_histogram(&x, &h);
    return exposition_end(&x, length);
}

static void check_line(const char *text, const char *line)
{
    char whole[200];

    (void)snprintf(whole, sizeof whole, "\n%s\n", line);
    if (strstr(text, whole) == NULL)
        fail_msg("no line %s in:\n%s", line, text);
}

TEST(the_text_is_openmetrics)
{
    size_t length;
    unsigned line;
    char *text = write_all(true, &length);

    assert_non_null(text);
    const char *fault = openmetrics_fault(text, length, &line);
    if (fault != NULL)
        fail_msg("line %u: %s in:\n%s", line, fault, text);
    check_line(text, "a_gauge -1.5");
    check_line(text, "# UNIT b_bytes bytes");
    check_line(
        text,
        "b_bytes_total{one=\"\\\"}\\\\ ?# EOF???{a=\\\"b\\\"} 7\",two=\"\"} 9007199254740991");
    check_line(text, "d_seconds_bucket{le=\"0.001\"} 1");
    check_line(text, "d_seconds_bucket{le=\"0.003\"} 2");
    check_line(text, "d_seconds_bucket{le=\"3000.0\"} 2");
    check_line(text, "d_seconds_bucket{le=\"+Inf\"} 3");
    check_line(text, "d_seconds_sum 1000000000.003");
    free(text);
}

TEST(the_older_format_names_counters_in_full)
{
    size_t length;
    char *text = write_all(false, &length);

    assert_non_null(text);
    check_line(text, "# TYPE b_bytes_total counter");
    check_line(text, "# HELP b_bytes_total Bytes.");
    check_line(text, "# TYPE c_info gauge");
    check_line(text, "# TYPE d_seconds histogram");
    assert_null(strstr(text, "# EOF\n\n"));
    assert_null(strstr(text, "# UNIT"));
    assert_int_equal(strlen(text), length);
    free(text);
}

TEST(the_parser_is_strict)
{
    static const char *const wrong[] = {
        "# TYPE a gauge\n# HELP a A.\na 1\n",                                      /* no end */
        "# TYPE a gauge\n# HELP a A.\na 1\n# EOF\n\n",                             /* more */
        "# TYPE a gauge\n# HELP a A.\na 1\n\n# EOF\n",                             /* empty line */
        "# TYPE a gauge\na 1\n# EOF\n",                                            /* no HELP */
        "# TYPE a gauge\n# HELP a A.\na 1\na 2\n# EOF\n",                          /* twice */
        "# TYPE a gauge\n# HELP a A.\nb 1\n# EOF\n",                               /* another */
        "# TYPE a gauge\n# HELP a A.\na x\n# EOF\n",                               /* no number */
        "# TYPE a gauge\n# HELP a A.\na{b=\"\\x\"} 1\n# EOF\n",                    /* escape */
        "# TYPE a gauge\n# HELP a A.\na{b=\"1\",b=\"2\"} 1\n# EOF\n",              /* label */
        "# TYPE a gauge\n# HELP a A.\na{b=\"1\" 1\n# EOF\n",                       /* no } */
        "# TYPE a_total counter\n# HELP a_total A.\na_total 1\n# EOF\n",           /* suffix */
        "# TYPE a counter\n# HELP a A.\na 1\n# EOF\n",                             /* no suffix */
        "# TYPE a counter\n# HELP a A.\na_total -1\n# EOF\n",                      /* below 0 */
        "# TYPE a gauge\n# UNIT a seconds\n# HELP a A.\na 1\n# EOF\n",             /* unit */
        "# TYPE a info\n# HELP a A.\na_info 2\n# EOF\n",                           /* value */
        "# TYPE a histogram\n# HELP a A.\na_bucket{le=\"1.0\"} 1\n# EOF\n",        /* no +Inf */
        "# TYPE a histogram\n# HELP a A.\na_bucket{le=\"1\"} 1\n# EOF\n",          /* spelling */
        "# TYPE a gauge\n# HELP a A.\n# TYPE b gauge\n# HELP b B.\na 1\n# EOF\n",  /* mixed */
        "# TYPE a gauge\n# HELP a A.\n# TYPE a gauge\n# HELP a A.\na 1\n# EOF\n"}; /* again */
    unsigned line;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (openmetrics_fault(wrong[i], strlen(wrong[i]), &line) == NULL)
            fail_msg("accepted:\n%s", wrong[i]);
}

TEST(a_text_that_is_too_long_is_given_up)
{
    struct exposition x;
    size_t length = 1;

    exposition_begin(&x, true);
    exposition_metric(&x, &gauge);
    for (unsigned i = 0; x.text != NULL; i++) {
        assert_true(x.length <= EXPOSITION_MOST);
        exposition_value(&x, NULL, 0, i);
    }
    exposition_value(&x, NULL, 0, 1);
    assert_null(exposition_end(&x, &length));
    assert_int_equal(length, 0);
}

TEST(clients_get_the_format_that_they_prefer)
{
    static const struct {
        const char *header;
        bool openmetrics;
    } cases[] = {
        {NULL, true},
        {"", true},
        {"*/*", true},
        {"text/plain", false},
        {"Text/Plain;version=0.0.4;q=0.5, */*;q=0.1", false},
        {"text/html,application/xhtml+xml,*/*;q=0.8", false},
        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
         "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
         true},
        {"application/openmetrics-text; version=1.0.0; q=0.2,text/plain;q=0.3", false},
        {"application/openmetrics-text;q=0", false},
        {"application/openmetrics-text;q=1e999, text/plain", true},
        {"application/openmetrics-text;q=-1, text/plain;q=x", false},
        {",,;;q=;q,q;=\x80;;;q", true},
        {"text/plain;q", false},
        {";", true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (accept_openmetrics(cases[i].header) != cases[i].openmetrics)
            fail_msg("Accept: %s", cases[i].header);
}
