#include "openmetrics.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

const char *openmetrics_fault(const char *text, size_t length, unsigned *line)
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
