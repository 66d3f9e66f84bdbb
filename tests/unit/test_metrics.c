/* The text of metrics, read by a strict parser; and which format a client gets. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/torusd/metrics/exposition.h"
#include "daemon/torusd/metrics/room.h"
#include "tests/support/cmocka.h"

#define NAMES_MOST 200u
#define SAMPLES_MOST 200u
#define LABELS_MOST 10u
#define TEXT_MOST 1000u

enum kind { GAUGE, COUNTER, INFO, HISTOGRAM, KINDS };
static const char *const kind_names[KINDS] = {"gauge", "counter", "info", "histogram"};

/* The metric whose lines are being read. */
struct family {
    char name[TEXT_MOST];
    enum kind kind;
    bool has_unit, has_help;
    unsigned samples;
    char sample[SAMPLES_MOST][TEXT_MOST]; /* names with labels */
    double bound, bucket;                 /* of the last bucket */
    bool is_complete, has_count, has_sum; /* complete: the bucket +Inf was there */
};

struct parser {
    char names[NAMES_MOST][TEXT_MOST]; /* of all metrics so far */
    unsigned count;
    struct family family;
};

static bool is_name(const char *name)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    return name[0] != '\0' && strchr(first, name[0]) != NULL && name[strspn(name, rest)] == '\0';
}

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), size = strlen(end);

    return length > size && strcmp(text + length - size, end) == 0;
}

/* What must hold when all lines of a metric have been read. */
static const char *end_family(const struct family *f)
{
    if (f->name[0] == '\0')
        return NULL;
    if (!f->has_help)
        return "the metric before has no HELP";
    if (f->kind == HISTOGRAM && (!f->is_complete || !f->has_count || !f->has_sum))
        return "the histogram before has no +Inf, _count or _sum";
    return NULL;
}

static const char *begin_family(struct parser *p, const char *name, const char *kind)
{
    const char *fault = end_family(&p->family);
    unsigned i = 0;

    if (fault != NULL)
        return fault;
    if (!is_name(name))
        return "the name of the metric is invalid";
    for (unsigned j = 0; j < p->count; j++)
        if (strcmp(p->names[j], name) == 0)
            return "the metric was there before";
    while (i < KINDS && strcmp(kind_names[i], kind) != 0)
        i++;
    if (i == KINDS || p->count == NAMES_MOST)
        return "unknown type, or too many metrics";
    if (ends_with(name, "_total") || ends_with(name, "_info") || ends_with(name, "_bucket"))
        return "the name of a metric has no suffix";
    (void)strcpy(p->names[p->count++], name);
    memset(&p->family, 0, sizeof p->family);
    (void)strcpy(p->family.name, name);
    p->family.kind = (enum kind)i;
    p->family.bound = -INFINITY;
    return NULL;
}

static const char *metadata(struct parser *p, const char *line)
{
    struct family *f = &p->family;
    char what[5], name[TEXT_MOST], rest[TEXT_MOST], unit[TEXT_MOST + 1];

    if (sscanf(line, "# %4s %999s %999[^\n]", what, name, rest) != 3)
        return "a comment is not TYPE, UNIT or HELP with a name and a text";
    if (snprintf(unit, sizeof unit, "# %s %s %s", what, name, rest) < 0 || strcmp(unit, line) != 0)
        return "more than one space";
    if (strcmp(what, "TYPE") == 0)
        return begin_family(p, name, rest);
    if (strcmp(name, f->name) != 0 || f->samples > 0)
        return "the line does not belong to the metric before, or follows its samples";
    if (strcmp(what, "UNIT") == 0) {
        (void)snprintf(unit, sizeof unit, "_%s", rest);
        if (f->has_unit || f->kind == INFO || !ends_with(name, unit))
            return "the name does not end with the unit, or a second unit";
        f->has_unit = true;
        return NULL;
    }
    if (strcmp(what, "HELP") != 0 || f->has_help || strpbrk(rest, "\\\"") != NULL)
        return "not a HELP, or a second one, or it needs escapes";
    f->has_help = true;
    return NULL;
}

/* Reads labels, "{name=\"value\",...}", from *at, which moves behind them; sets `le` to the value of that label. */
static const char *labels(const char **at, char le[TEXT_MOST])
{
    char names[LABELS_MOST][TEXT_MOST];
    const char *c = *at;

    for (unsigned count = 0; *c == (count == 0 ? '{' : ','); count++) {
        const size_t length = strcspn(++c, "=");
        size_t used = 0;
        char value[TEXT_MOST];
        if (count == LABELS_MOST || length >= TEXT_MOST || c[length] != '=')
            return "too many labels, or no =";
        memcpy(names[count], c, length);
        names[count][length] = '\0';
        for (unsigned i = 0; i < count; i++)
            if (strcmp(names[i], names[count]) == 0)
                return "a label twice";
        if (!is_name(names[count]) || c[length + 1] != '"')
            return "the name of a label is invalid, or its value has no quotes";
        for (c += length + 2; *c != '"'; c++) {
            if ((unsigned char)*c < ' ' || (unsigned char)*c > 0x7e || used + 1 == sizeof value)
                return "a label ends early, or has a byte that is not printable";
            if (*c == '\\' && (*++c == '\0' || strchr("\\\"n", *c) == NULL))
                return "an escape that does not exist";
            value[used++] = *c;
        }
        value[used] = '\0';
        if (strcmp(names[count], "le") == 0)
            (void)strcpy(le, value);
        c++;
    }
    if (c != *at && *c++ != '}')
        return "the labels do not end";
    *at = c;
    return NULL;
}

static const char *bucket(struct family *f, const char *le, double value)
{
    char *end, spelled[64];
    const double bound = strtod(le, &end);

    if (le[0] == '\0' || *end != '\0' || f->is_complete || !(bound > f->bound) || value < f->bucket)
        return "buckets are not in order, or not cumulative";
    (void)snprintf(spelled, sizeof spelled, "%.9g%s", bound, bound == floor(bound) ? ".0" : "");
    if (strcmp(le, isinf(bound) ? "+Inf" : spelled) != 0)
        return "a bound is not in the canonical spelling";
    f->bound = bound;
    f->bucket = value;
    f->is_complete = isinf(bound);
    return NULL;
}

/* Checks the suffix of a sample and its value. */
static const char *check_sample(struct family *f, const char *suffix, const char *le, double value)
{
    if (f->kind == GAUGE)
        return suffix[0] == '\0' ? NULL : "a gauge has no suffix";
    if (!(value >= 0) || isinf(value))
        return "a value that is not finite, or below 0";
    if (f->kind == COUNTER)
        return strcmp(suffix, "_total") == 0 ? NULL : "a counter has the suffix _total";
    if (f->kind == INFO)
        return strcmp(suffix, "_info") == 0 && value == 1 ? NULL : "an info is not _info and 1";
    if (strcmp(suffix, "_bucket") == 0)
        return bucket(f, le, value);
    if (strcmp(suffix, "_count") == 0) {
        f->has_count = true;
        return f->is_complete && value == f->bucket ? NULL : "the count is not that of +Inf";
    }
    f->has_sum = true;
    return strcmp(suffix, "_sum") == 0 ? NULL : "a suffix that a histogram does not have";
}

static const char *sample(struct parser *p, const char *line)
{
    struct family *f = &p->family;
    const char *at = line + strcspn(line, "{ "), *fault;
    char name[TEXT_MOST], le[TEXT_MOST] = "", *end;
    const size_t name_length = (size_t)(at - line), family_length = strlen(f->name);

    if (name_length >= TEXT_MOST || family_length == 0 ||
        strncmp(line, f->name, family_length) != 0)
        return "the sample does not belong to the metric before";
    memcpy(name, line, name_length);
    name[name_length] = '\0';
    fault = labels(&at, le);
    if (fault != NULL)
        return fault;
    for (unsigned i = 0; i < f->samples; i++)
        if (strlen(f->sample[i]) == (size_t)(at - line) &&
            memcmp(f->sample[i], line, (size_t)(at - line)) == 0)
            return "the sample was there before";
    if (f->samples == SAMPLES_MOST || *at != ' ' || strchr("+-0123456789", at[1]) == NULL)
        return "too many samples, or no number";
    memcpy(f->sample[f->samples], line, (size_t)(at - line));
    f->sample[f->samples++][at - line] = '\0';
    const double value = strtod(at + 1, &end);
    return *end != '\0' ? "more than a number" : check_sample(f, name + family_length, le, value);
}

/* Returns NULL if the text follows the format, else what is wrong with it; *line is the number of the line, from 1. */
static const char *openmetrics_fault(const char *text, size_t length, unsigned *line)
{
    struct parser *p = calloc(1, sizeof *p);
    const char *fault = NULL, *at = text;
    char one[TEXT_MOST] = "";

    for (*line = 1; p != NULL && fault == NULL; (*line)++) {
        const char *end = memchr(at, '\n', length - (size_t)(at - text));
        if (end == NULL || (size_t)(end - at) >= sizeof one ||
            memchr(at, '\0', (size_t)(end - at))) {
            fault = "a line does not end, is too long or has a zero";
            break;
        }
        memcpy(one, at, (size_t)(end - at));
        one[end - at] = '\0';
        at = end + 1;
        if (strcmp(one, "# EOF") == 0)
            break;
        fault = one[0] == '#' ? metadata(p, one) : sample(p, one);
        if (fault != NULL)
            break;
    }
    if (fault == NULL)
        fault = p == NULL             ? "out of memory"
                : at != text + length ? "something follows the end"
                                      : end_family(&p->family);
    free(p);
    return fault;
}

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

/* Room on the data roots: what is known of a file system that answers, fails, or holds whoever asks it. */

enum { GOOD, DEAD, BROKEN, ROOTS };

static uv_loop_t loop;
static struct {
    char path[64];
    struct stat status;
} folder[ROOTS];
static pthread_mutex_t dead = PTHREAD_MUTEX_INITIALIZER; /* locked: DEAD does not answer */

static bool is(int fd, unsigned which)
{
    struct stat status;

    return fstat(fd, &status) == 0 && status.st_ino == folder[which].status.st_ino;
}

static int ask(int fd, struct statvfs *out)
{
    *out = (struct statvfs){
        .f_frsize = 4096, .f_bsize = 512, .f_blocks = 100, .f_bfree = 30, .f_bavail = 20};
    if (is(fd, DEAD)) {
        (void)pthread_mutex_lock(&dead);
        (void)pthread_mutex_unlock(&dead);
    }
    if (!is(fd, BROKEN))
        return 0;
    errno = EIO;
    return -1;
}

static void on_closed(void *context)
{
    *(bool *)context = true;
}

static void make_roots(struct roots *roots, char *above)
{
    static const char *const names[ROOTS] = {"good", "dead", "broken"};
    struct error e;

    *roots = (struct roots){0};
    assert_non_null(mkdtemp(above));
    for (unsigned i = 0; i < ROOTS; i++) {
        (void)snprintf(folder[i].path, sizeof folder[i].path, "%s/%s", above, names[i]);
        assert_int_equal(mkdir(folder[i].path, 0700), 0);
        assert_int_equal(stat(folder[i].path, &folder[i].status), 0);
        assert_int_equal(roots_add(roots, file_system_posix(), folder[i].path, &e), 0);
    }
}

static void remove_roots(struct roots *roots, const char *above)
{
    roots_free(roots);
    for (unsigned i = 0; i < ROOTS; i++)
        assert_int_equal(rmdir(folder[i].path), 0);
    assert_int_equal(rmdir(above), 0);
}

/* Lets the loop run until the answer of a root is known, and is this. */
static struct room_answer await(struct room *room, unsigned which, bool answers)
{
    struct room_answer answer;

    do {
        (void)uv_run(&loop, UV_RUN_ONCE);
        assert_true(room_tell(room, which, &answer));
    } while (!answer.known || answer.answers != answers);
    assert_string_equal(answer.path, folder[which].path);
    return answer;
}

TEST(a_file_system_that_may_only_be_slow_is_not_known)
{
    char above[] = "/tmp/torus-room-XXXXXX";
    bool closed = false;
    const struct room_setup setup = {.loop = &loop,
                                     .ask = ask,
                                     .every_ms = 5,
                                     .keep_ms = 3600 * 1000,
                                     .closed = on_closed,
                                     .context = &closed};
    struct room_answer answer;
    struct roots roots;

    make_roots(&roots, above);
    assert_int_equal(uv_loop_init(&loop), 0);
    (void)pthread_mutex_lock(&dead);
    struct room *room = room_open(&setup);
    assert_non_null(room);
    room_of(room, &roots);
    (void)await(room, GOOD, true);
    assert_true(room_tell(room, DEAD, &answer));
    assert_false(answer.known);
    room_close(room);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(closed);
    assert_int_equal(uv_loop_close(&loop), 0);
    (void)pthread_mutex_unlock(&dead);
    remove_roots(&roots, above);
}

TEST(a_file_system_without_an_answer_holds_nothing_else)
{
    char above[] = "/tmp/torus-room-XXXXXX";
    bool closed = false;
    const struct room_setup setup = {.loop = &loop,
                                     .ask = ask,
                                     .every_ms = 5,
                                     .keep_ms = 200,
                                     .closed = on_closed,
                                     .context = &closed};
    struct room_answer answer;
    struct roots roots;

    make_roots(&roots, above);
    assert_int_equal(uv_loop_init(&loop), 0);
    (void)pthread_mutex_lock(&dead);
    struct room *room = room_open(&setup);
    assert_non_null(room);
    room_of(room, &roots);
    answer = await(room, GOOD, true);
    assert_int_equal(answer.size, 100 * 4096);
    assert_int_equal(answer.free, 20 * 4096);
    (void)await(room, BROKEN, false);
    (void)await(room, DEAD, false);
    (void)await(room, GOOD, true);
    (void)pthread_mutex_unlock(&dead);
    (void)await(room, DEAD, true);
    (void)pthread_mutex_lock(&dead);
    (void)await(room, DEAD, false);
    assert_false(room_tell(room, ROOTS, &answer));
    /* Neither other roots nor the end wait for the thread that is held. */
    room_of(room, &(struct roots){0});
    assert_false(room_tell(room, 0, &answer));
    room_close(room);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(closed);
    assert_int_equal(uv_loop_close(&loop), 0);
    (void)pthread_mutex_unlock(&dead);
    remove_roots(&roots, above);
}
