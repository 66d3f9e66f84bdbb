#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/file/imported_parts.h"
#include "proto/text.h"

/* Where the routes of a schedule are stored, and which torus it is for. */

static uint32_t class_of(const struct imported *s, const uint32_t *at)
{
    uint32_t class = 0;

    for (unsigned i = 0; i < s->torus.dims; i++)
        class = class * s->period[i] + at[i] % s->period[i];
    return class;
}

struct imported_route *imported_route_at(const struct imported *s, uint32_t class,
                                         uint32_t destination, uint32_t segment)
{
    return &s->route[((size_t) class * s->torus.nodes + destination) * s->algorithm.segments +
                     segment];
}

struct imported_route *imported_find_route(const struct imported *s, uint32_t source,
                                           uint32_t destination, uint32_t segment)
{
    const struct torus *t = &s->torus;
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];

    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++)
        to[i] = (to[i] + t->size[i] - from[i] / s->period[i] * s->period[i]) % t->size[i];
    return imported_route_at(s, class_of(s, from), torus_rank(t, to), segment);
}

uint32_t imported_representative(const struct imported *s, uint32_t class)
{
    uint32_t at[TORUS_MAX_DIMS];

    for (unsigned i = s->torus.dims; i-- > 0;) {
        at[i] = class % s->period[i];
        class /= s->period[i];
    }
    return torus_rank(&s->torus, at);
}

int imported_check_torus(const struct imported *s, const struct torus *t, struct error *e)
{
    char dims[TORUS_TEXT_SIZE];

    if (torus_equal(&s->torus, t))
        return 0;
    return error_set(e, ERROR_REFUSED, "schedule %s is for a torus of %s, not %s", s->name, s->dims,
                     torus_format(t, dims));
}

int imported_no_memory(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for a schedule");
}

#define KEY_SIZE 32u

int json_line_error(const struct json_line *line, struct error *e, const char *format, ...)
{
    char text[sizeof((struct error *)NULL)->text];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return error_set(e, ERROR_REFUSED, "line %" PRIu32 ", column %zu: %s", line->number,
                     (size_t)(line->at - line->begin) + 1, text);
}

static void skip_spaces(struct json_line *line)
{
    while (line->at < line->end && (*line->at == ' ' || *line->at == '\t' || *line->at == '\r'))
        line->at++;
}

bool json_line_is_empty(struct json_line *line)
{
    skip_spaces(line);
    return line->at == line->end;
}

bool json_line_has(struct json_line *line, char mark)
{
    if (json_line_is_empty(line) || *line->at != mark)
        return false;
    line->at++;
    return true;
}

int json_line_need(struct json_line *line, char mark, struct error *e)
{
    if (json_line_has(line, mark))
        return 0;
    if (line->at == line->end)
        return json_line_error(line, e, "expected '%c', but the line ends", mark);
    return json_line_error(line, e, "expected '%c'", mark);
}

/* Reads a string of less than `size` bytes; errors call it `what`. */
static int json_line_string(struct json_line *line, const char *what, char *text, size_t size,
                            struct error *e)
{
    size_t length = 0;

    if (!json_line_has(line, '"'))
        return json_line_error(line, e, "%s must be a string", what);
    for (; line->at < line->end && *line->at != '"'; line->at++) {
        if (*line->at == '\\' || *line->at < ' ' || *line->at > '~')
            return json_line_error(line, e, "%s cannot have this character", what);
        if (length + 1 >= size)
            return json_line_error(line, e, "%s is longer than %zu characters", what, size - 1);
        text[length++] = *line->at;
    }
    text[length] = '\0';
    return json_line_need(line, '"', e);
}

int json_line_number(struct json_line *line, const char *what, int64_t least, int64_t most,
                     int64_t *number, struct error *e)
{
    bool negative = json_line_has(line, '-');
    const char *first = line->at;
    int64_t value = 0;

    while (line->at < line->end && *line->at >= '0' && *line->at <= '9' && value <= INT32_MAX)
        value = 10 * value + (*line->at++ - '0');
    bool whole = line->at > first && (*first != '0' || line->at == first + 1) &&
                 (line->at == line->end || strchr("0123456789.eE+-", *line->at) == NULL);
    *number = negative ? -value : value;
    if (!whole || *number < least || *number > most || (negative && value == 0))
        return json_line_error(line, e, "%s must be a number from %" PRId64 " to %" PRId64, what,
                               least, most);
    return 0;
}

static int read_member(struct json_line *line, const struct json_key *keys, unsigned count,
                       void *into, uint32_t *seen, struct error *e)
{
    char name[KEY_SIZE];
    unsigned i = 0;

    if (json_line_string(line, "a key", name, sizeof name, e) != 0)
        return -1;
    while (i < count && strcmp(keys[i].name, name) != 0)
        i++;
    if (i == count)
        return json_line_error(line, e, "unknown key \"%s\"", name);
    if ((*seen & UINT32_C(1) << i) != 0)
        return json_line_error(line, e, "key \"%s\" appears twice", name);
    *seen |= UINT32_C(1) << i;
    if (json_line_need(line, ':', e) != 0)
        return -1;
    return keys[i].read(line, into, e);
}

int json_line_object(struct json_line *line, const struct json_key *keys, unsigned count,
                     void *into, uint32_t *seen, struct error *e)
{
    *seen = 0;
    if (json_line_need(line, '{', e) != 0)
        return -1;
    if (!json_line_has(line, '}')) {
        do {
            if (read_member(line, keys, count, into, seen, e) != 0)
                return -1;
        } while (json_line_has(line, ','));
        if (json_line_need(line, '}', e) != 0)
            return -1;
    }
    if (!json_line_is_empty(line))
        return json_line_error(line, e, "expected the end of the line after the object");
    return 0;
}

/* Reads the first line of a schedule. */

static int read_version(struct json_line *line, void *into, struct error *e)
{
    int64_t version;

    (void)into;
    return json_line_number(line, "the version", IMPORTED_VERSION, IMPORTED_VERSION, &version, e);
}

static int read_dims(struct json_line *line, void *into, struct error *e)
{
    struct imported *s = into;
    struct error why;

    if (json_line_string(line, "dims", s->dims, sizeof s->dims, e) != 0)
        return -1;
    int rc = s->known ? torus_parse_known(&s->torus, s->dims, &why)
                      : torus_parse_named(&s->torus, s->dims, &why);
    return rc == 0 ? 0 : json_line_error(line, e, "dims: %s", why.text);
}

static int read_name(struct json_line *line, void *into, struct error *e)
{
    struct imported *s = into;

    if (json_line_string(line, "name", s->name, sizeof s->name, e) != 0)
        return -1;
    if (s->name[0] == '\0' ||
        s->name[strspn(
            s->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] != '\0')
        return json_line_error(line, e, "name must be 1 to %u letters, digits, '-', '_' or '.'",
                               IMPORTED_NAME_SIZE - 1);
    return 0;
}

/* Reads one of two words; *chosen: it is `yes`. */
static int read_choice(struct json_line *line, const char *what, const char *no, const char *yes,
                       bool *chosen, struct error *e)
{
    char text[16];

    if (json_line_string(line, what, text, sizeof text, e) != 0)
        return -1;
    *chosen = strcmp(text, yes) == 0;
    if (*chosen || strcmp(text, no) == 0)
        return 0;
    return json_line_error(line, e, "%s must be \"%s\" or \"%s\"", what, no, yes);
}

static int read_operation(struct json_line *line, void *into, struct error *e)
{
    struct imported *s = into;
    bool allgather;

    if (read_choice(line, "operation", "exchange", "allgather", &allgather, e) != 0)
        return -1;
    s->algorithm.operation = allgather ? OPERATION_ALLGATHER : OPERATION_EXCHANGE;
    return 0;
}

/* Reads the port model, by the names that algorithm_bound_name() uses. */
static int read_ports(struct json_line *line, void *into, struct error *e)
{
    struct imported *s = into;
    char text[32];

    if (json_line_string(line, "ports", text, sizeof text, e) != 0)
        return -1;
    s->algorithm.single_hops = strcmp(text, "one-port, single hops") == 0;
    s->algorithm.port_model =
        s->algorithm.single_hops || strcmp(text, "one-port") == 0 ? PORT_MODEL_ONE : PORT_MODEL_ALL;
    if (s->algorithm.port_model == PORT_MODEL_ONE || strcmp(text, "all-port") == 0)
        return 0;
    return json_line_error(line, e,
                           "ports must be \"all-port\", \"one-port\" or \"one-port, single "
                           "hops\"");
}

static int read_mode(struct json_line *line, void *into, struct error *e)
{
    struct imported *s = into;

    return read_choice(line, "mode", "stepped", "streaming", &s->algorithm.streaming, e);
}

static int read_segments(struct json_line *line, void *into, struct error *e)
{
    struct imported *s = into;
    int64_t segments;

    if (json_line_number(line, "segments", 1, IMPORTED_SEGMENTS_MOST, &segments, e) != 0)
        return -1;
    s->algorithm.segments = (uint32_t)segments;
    return 0;
}

/* Only reads the period. check_period() checks it against the torus, which may come later in the
 * line. */
static int read_period(struct json_line *line, void *into, struct error *e)
{
    struct imported *s = into;
    unsigned count = 0;
    int64_t one;

    if (json_line_need(line, '[', e) != 0)
        return -1;
    do {
        if (count == TORUS_MAX_DIMS)
            return json_line_error(line, e, "period has more numbers than a torus has dimensions");
        if (json_line_number(line, "a period", 1, TORUS_MAX_NODES, &one, e) != 0)
            return -1;
        s->period[count++] = (uint32_t)one;
    } while (json_line_has(line, ','));
    return json_line_need(line, ']', e);
}

enum { KEY_VERSION, KEY_DIMS };
static const struct json_key header_keys[] = {
    [KEY_VERSION] = {"schedule", read_version},
    [KEY_DIMS] = {"dims", read_dims},
    {"name", read_name},
    {"operation", read_operation},
    {"ports", read_ports},
    {"mode", read_mode},
    {"segments", read_segments},
    {"period", read_period},
};

/* Whether moving all nodes along a dimension, modulo its size, moves links to links. */
static bool moves(const struct torus *t, unsigned dim)
{
    return t->wrap[dim] || (t->graph[dim] != NULL && t->graph[dim]->moves);
}

/* Sets the default period if the header has none, checks the period, and counts the classes.
 * Returns 0, or -1 with *e. */
static int check_period(struct imported_reader *r, struct error *e)
{
    struct imported *s = r->s;
    const struct torus *t = &s->torus;
    bool given = s->period[0] != 0;

    s->classes = 1;
    for (unsigned i = 0; i < TORUS_MAX_DIMS; i++) {
        if (given && (i < t->dims) != (s->period[i] != 0))
            return json_line_error(&r->line, e, "period must have %u %s, one for each dimension",
                                   t->dims, text_plural(t->dims, "number", "numbers"));
        if (i >= t->dims)
            break;
        if (!given)
            s->period[i] = t->size[i];
        if (t->size[i] % s->period[i] != 0 || (!moves(t, i) && s->period[i] != t->size[i]))
            return json_line_error(&r->line, e,
                                   "period %" PRIu32 " of dimension %u must %s its size %" PRIu32,
                                   s->period[i], i, moves(t, i) ? "divide" : "be", t->size[i]);
        s->classes *= s->period[i];
    }
    return 0;
}

int imported_read_header(struct imported_reader *r, struct error *e)
{
    static const uint32_t needed = 1u << KEY_VERSION | 1u << KEY_DIMS;
    struct imported *s = r->s;
    uint32_t seen;

    if (r->line.end - r->line.at >= 6 && memcmp(r->line.at, "{\"src\"", 6) == 0)
        return json_line_error(&r->line, e,
                               "expected the header, {\"schedule\":%d,\"dims\":...}, not a route",
                               IMPORTED_VERSION);
    if (json_line_object(&r->line, header_keys, sizeof header_keys / sizeof *header_keys, s, &seen,
                         e) != 0)
        return -1;
    if ((seen & needed) != needed)
        return json_line_error(
            &r->line, e, "the header has no \"%s\"",
            header_keys[(seen & 1u << KEY_VERSION) != 0 ? KEY_DIMS : KEY_VERSION].name);
    if (r->only != NULL && imported_check_torus(s, r->only, e) != 0)
        return -1;
    if (s->algorithm.streaming && s->algorithm.port_model == PORT_MODEL_ONE)
        return json_line_error(&r->line, e, "mode \"streaming\" needs ports \"all-port\"");
    if (check_period(r, e) != 0)
        return -1;
    uint64_t routes = (uint64_t)s->classes * s->torus.nodes * s->algorithm.segments;
    if (routes > IMPORTED_ROUTES_MOST)
        return json_line_error(&r->line, e,
                               "%" PRIu64 " routes are more than the limit of %u: a period makes "
                               "them fewer",
                               routes, IMPORTED_ROUTES_MOST);
    s->routes = (size_t)routes;
    s->route = calloc(s->routes, sizeof *s->route);
    if (s->route == NULL)
        return imported_no_memory(e);
    r->has_header = true;
    return 0;
}
