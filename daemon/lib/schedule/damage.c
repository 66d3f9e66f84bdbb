#include "daemon/lib/schedule/damage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

#define NEARLY_FULL (DAMAGE_FULL_RATE - DAMAGE_FULL_RATE / 40) /* as fast as the fastest ones */
/* The fastest links count as at most this many times faster than the median, so that two nodes with an invented rate do
 * not make all other links look alike. */
#define FASTEST 64u

int damage_init(struct damage *d, const struct torus *t, struct error *e)
{
    *d = (struct damage){.torus = *t};
    d->dead = calloc(t->nodes, sizeof *d->dead);
    d->gone = calloc(t->nodes, sizeof *d->gone);
    if (d->dead != NULL && d->gone != NULL)
        return 0;
    damage_free(d);
    return error_set(e, ERROR_MEMORY, "out of memory for the links of %u %s", t->nodes,
                     text_plural(t->nodes, "node", "nodes"));
}

void damage_free(struct damage *d)
{
    free(d->dead);
    free(d->gone);
    free(d->rate);
    *d = (struct damage){0};
}

static size_t channels_of(const struct torus *t)
{
    return (size_t)t->nodes * torus_ports(t);
}

static int make_rates(struct damage *d, struct error *e)
{
    const size_t channels = channels_of(&d->torus);

    d->rate = calloc(channels, sizeof *d->rate);
    if (d->rate == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the links of %u %s", d->torus.nodes,
                         text_plural(d->torus.nodes, "node", "nodes"));
    for (size_t i = 0; i < channels; i++)
        d->rate[i] = DAMAGE_FULL_RATE;
    return 0;
}

/* Whether some link that is up has a lower rate. */
static bool has_rates(const struct damage *d)
{
    for (uint32_t rank = 0; d->rate != NULL && rank < d->torus.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&d->torus); port++)
            if (damage_has_link(d, rank, port) && damage_rate(d, rank, port) != DAMAGE_FULL_RATE)
                return true;
    return false;
}

int damage_copy(struct damage *d, const struct damage *from, struct error *e)
{
    if (damage_init(d, &from->torus, e) != 0)
        return -1;
    memcpy(d->dead, from->dead, from->torus.nodes * sizeof *d->dead);
    memcpy(d->gone, from->gone, from->torus.nodes * sizeof *d->gone);
    if (!has_rates(from))
        return 0;
    if (make_rates(d, e) != 0) {
        damage_free(d);
        return -1;
    }
    memcpy(d->rate, from->rate, channels_of(&d->torus) * sizeof *d->rate);
    d->full_kbit = from->full_kbit;
    return 0;
}

/* Whether the links that are up, the same in both, have the same rates. */
static bool rates_equal(const struct damage *a, const struct damage *b)
{
    for (uint32_t rank = 0; (a->rate != NULL || b->rate != NULL) && rank < a->torus.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&a->torus); port++)
            if (damage_has_link(a, rank, port) &&
                damage_rate(a, rank, port) != damage_rate(b, rank, port))
                return false;
    return true;
}

bool damage_equal(const struct damage *a, const struct damage *b)
{
    return torus_equal(&a->torus, &b->torus) &&
           memcmp(a->dead, b->dead, a->torus.nodes * sizeof *a->dead) == 0 &&
           memcmp(a->gone, b->gone, a->torus.nodes * sizeof *a->gone) == 0 && rates_equal(a, b);
}

void damage_add_link(struct damage *d, uint32_t rank, unsigned port)
{
    d->dead[rank] |= 1u << port;
    d->dead[torus_neighbour(&d->torus, rank, port)] |= 1u << torus_port_opposite(&d->torus, port);
}

void damage_add_node(struct damage *d, uint32_t rank)
{
    d->gone[rank] = true;
    for (unsigned port = 0; port < torus_ports(&d->torus); port++)
        if (torus_neighbour(&d->torus, rank, port) != TORUS_NO_NODE)
            damage_add_link(d, rank, port);
}

void damage_clear_rates(struct damage *d)
{
    free(d->rate);
    d->rate = NULL;
    d->full_kbit = 0;
}

int damage_set_rate(struct damage *d, uint32_t rank, unsigned port, uint16_t rate, struct error *e)
{
    if (d->rate == NULL && make_rates(d, e) != 0)
        return -1;
    d->rate[(size_t)rank * torus_ports(&d->torus) + port] = rate;
    return 0;
}

static int compare_rates(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

uint32_t damage_full_rate(const uint32_t *kbit, size_t channels)
{
    uint32_t *known = malloc(channels * sizeof *known), full = 0;
    size_t count = 0;

    for (size_t i = 0; known != NULL && i < channels; i++)
        if (kbit[i] > 0)
            known[count++] = kbit[i];
    if (count > 0) {
        qsort(known, count, sizeof *known, compare_rates);
        const uint64_t most = (uint64_t)known[count / 2] * FASTEST;
        full = known[count - 1] < most ? known[count - 1] : (uint32_t)most;
    }
    free(known);
    return full;
}

static uint16_t relative(uint32_t kbit, uint32_t full)
{
    const uint64_t rate = ((uint64_t)kbit * DAMAGE_FULL_RATE + full / 2) / full;

    if (kbit == 0 ||
        rate >= NEARLY_FULL) /* a link of which nothing is known counts as the fastest ones */
        return DAMAGE_FULL_RATE;
    return rate > 0 ? (uint16_t)rate : 1;
}

bool damage_relative_rates(const uint32_t *kbit, size_t channels, uint16_t *rates)
{
    const uint32_t full = damage_full_rate(kbit, channels);
    bool differ = false;

    for (size_t i = 0; i < channels; i++) {
        rates[i] = full > 0 ? relative(kbit[i], full) : DAMAGE_FULL_RATE;
        differ = differ || rates[i] != DAMAGE_FULL_RATE;
    }
    return differ;
}

uint16_t damage_slowest(const struct damage *d)
{
    uint16_t slowest = DAMAGE_FULL_RATE;

    for (uint32_t rank = 0; d->rate != NULL && rank < d->torus.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&d->torus); port++)
            if (damage_has_link(d, rank, port) && damage_rate(d, rank, port) < slowest)
                slowest = damage_rate(d, rank, port);
    return slowest;
}

void damage_level_links(struct damage *d)
{
    const struct torus *t = &d->torus;

    for (uint32_t rank = 0; d->rate != NULL && rank < t->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (damage_has_link(d, rank, port))
                d->rate[rank * torus_ports(t) + port] = damage_link_rate(d, rank, port);
}

bool damage_is_whole(const struct damage *d)
{
    for (uint32_t rank = 0; rank < d->torus.nodes; rank++)
        if (d->dead[rank] != 0 || d->gone[rank])
            return false;
    return true;
}

bool damage_is_none(const struct damage *d)
{
    return damage_is_whole(d) && !has_rates(d);
}

/* --- as text --- */

/* Reads the rank at the beginning of a part of `length` bytes, up to `*end`. Returns 0, or -1 with *e. */
static int parse_rank(const struct torus *t, const char *text, size_t length, uint32_t *rank,
                      char **end, const char *wanted, struct error *e)
{
    char dims[TORUS_TEXT_SIZE];
    unsigned long number = 0;

    *end = (char *)(uintptr_t)text;
    if (*text >= '0' && *text <= '9')
        number = strtoul(text, end, 10);
    if (*end == text || (**end != ':' && **end != ',' && **end != '\0'))
        return error_set(e, ERROR_USAGE, "'%.*s' is %s", (int)(length < 40 ? length : 40), text,
                         wanted);
    if (number >= t->nodes)
        return error_set(e, ERROR_USAGE, "'%.*s': a torus of %s has the nodes 0 to %u",
                         (int)(length < 40 ? length : 40), text, torus_format(t, dims),
                         t->nodes - 1);
    *rank = (uint32_t)number;
    return 0;
}

/* Returns the port of a node with this name, if it has a link; otherwise -1. */
static int find_port(const struct torus *t, uint32_t rank, const char *text, size_t length)
{
    char name[TORUS_PORT_NAME_SIZE] = "";

    if (length < sizeof name)
        memcpy(name, text, length);
    const int port = torus_port_parse(t, rank, name);
    return port >= 0 && torus_neighbour(t, rank, (unsigned)port) != TORUS_NO_NODE ? port : -1;
}

/* As find_port(), with *e. */
static int parse_port(const struct torus *t, const char *text, size_t length, uint32_t rank,
                      const char *port_text, size_t port_length, struct error *e)
{
    const int port = find_port(t, rank, port_text, port_length);
    char dims[TORUS_TEXT_SIZE];

    return port >= 0
               ? port
               : error_set(e, ERROR_USAGE,
                           "'%.*s': node %u of a torus of %s has no link at that port",
                           (int)(length < 40 ? length : 40), text, rank, torus_format(t, dims));
}

/* Reads one link or node, up to the comma or the end. */
static int parse_one(struct damage *d, const char *text, struct error *e)
{
    const size_t length = strcspn(text, ",");
    uint32_t rank;
    char *end;

    if (parse_rank(&d->torus, text, length, &rank, &end,
                   "neither a link, such as 3:+0, nor a node, such as 7", e) != 0)
        return -1;
    if (*end != ':') {
        damage_add_node(d, rank);
        return 0;
    }
    int port =
        parse_port(&d->torus, text, length, rank, end + 1, length - (size_t)(end + 1 - text), e);
    if (port < 0)
        return -1;
    damage_add_link(d, rank, (unsigned)port);
    return 0;
}

/* Reads "0.4", "1" or ".125", rounded to thousandths. Returns 0 if the text is something else, or if the rate is not in
 * the range. */
static uint16_t parse_rate(const char *text, size_t length)
{
    const size_t whole = strspn(text, "0123456789") < length ? strspn(text, "0123456789") : length;
    uint32_t rate = 0, digits = 0;

    for (size_t i = 0; i < whole; i++)
        rate = rate < 10 ? 10 * rate + (uint32_t)(text[i] - '0') : rate;
    if (whole < length && text[whole] != '.')
        return 0;
    for (size_t i = whole + 1; i < length; i++, digits++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        if (digits < 4)
            rate = 10 * rate + (uint32_t)(text[i] - '0');
    }
    if (whole + digits == 0)
        return 0;
    for (; digits < 4; digits++)
        rate *= 10;
    _Static_assert(DAMAGE_FULL_RATE == 1000, "three decimal places, and one to round");
    rate = (rate + 5) / 10;
    return rate <= DAMAGE_FULL_RATE ? (uint16_t)rate : 0;
}

static int set_rate(struct damage *d, uint32_t rank, unsigned port, uint16_t rate, bool both,
                    struct error *e)
{
    if (damage_set_rate(d, rank, port, rate, e) != 0)
        return -1;
    return !both ? 0
                 : damage_set_rate(d, torus_neighbour(&d->torus, rank, port),
                                   torus_port_opposite(&d->torus, port), rate, e);
}

/* Sets the rate of a port of all nodes that have it. */
static int set_all(struct damage *d, const char *text, size_t length, size_t port_length,
                   uint16_t rate, bool both, struct error *e)
{
    char dims[TORUS_TEXT_SIZE];
    bool found = false;

    for (uint32_t rank = 0; rank < d->torus.nodes; rank++) {
        const int port = find_port(&d->torus, rank, text + 2, port_length);
        if (port >= 0 && set_rate(d, rank, (unsigned)port, rate, both, e) != 0)
            return -1;
        found = found || port >= 0;
    }
    return found ? 0
                 : error_set(e, ERROR_USAGE,
                             "'%.*s': no node of a torus of %s has a link at that port",
                             (int)(length < 40 ? length : 40), text, torus_format(&d->torus, dims));
}

/* Reads "6:-1=0.4", up to the comma or the end. */
static int parse_one_rate(struct damage *d, const char *text, bool both, struct error *e)
{
    static const char wanted[] = "not the rate of a link, such as 6:-1=0.4";
    const size_t length = strcspn(text, ","), before = strcspn(text, "=,");
    const bool all = strncmp(text, "*:", 2) == 0;
    char *end = (char *)(uintptr_t)text + 1;
    uint32_t rank;

    if (!all && parse_rank(&d->torus, text, length, &rank, &end, wanted, e) != 0)
        return -1;
    if (*end != ':' || before == length)
        return error_set(e, ERROR_USAGE, "'%.*s' is %s", (int)(length < 40 ? length : 40), text,
                         wanted);
    const uint16_t rate = parse_rate(text + before + 1, length - before - 1);
    if (rate == 0)
        return error_set(e, ERROR_USAGE,
                         "'%.*s': a rate is a part of that of the fastest links, 0.001 to 1; links "
                         "that are down "
                         "are for --without",
                         (int)(length < 40 ? length : 40), text);
    const size_t port_length = before - (size_t)(end + 1 - text);
    if (all)
        return set_all(d, text, length, port_length, rate, both, e);
    const int port = parse_port(&d->torus, text, length, rank, end + 1, port_length, e);
    return port < 0 ? -1 : set_rate(d, rank, (unsigned)port, rate, both, e);
}

int damage_parse_rates(struct damage *d, const char *text, bool both, struct error *e)
{
    for (;;) {
        if (parse_one_rate(d, text, both, e) != 0)
            return -1;
        text += strcspn(text, ",");
        if (*text++ == '\0')
            return 0;
    }
}

int damage_parse(struct damage *d, const struct torus *t, const char *text, struct error *e)
{
    if (damage_init(d, t, e) != 0)
        return -1;
    for (;;) {
        if (parse_one(d, text, e) != 0) {
            damage_free(d);
            return -1;
        }
        text += strcspn(text, ",");
        if (*text++ == '\0')
            return 0;
    }
}

struct writer {
    char *text;
    size_t size, used;
    bool full;
};

/* Appends the part if it fits, otherwise "..."; there is always room left for "...". */
static void append(struct writer *w, const char *separator, const char *part)
{
    const size_t kept = sizeof "...";
    size_t more = strlen(part) + (w->used > 0 ? strlen(separator) : 0);

    if (w->full)
        return;
    if (w->used + more + kept > w->size) {
        w->full = true;
        separator = "";
        part = "...";
    }
    if (w->used + kept <= w->size)
        w->used += (size_t)snprintf(w->text + w->used, w->size - w->used, "%s%s",
                                    w->used > 0 ? separator : "", part);
}

static char *write_all(const struct damage *d, struct writer w, const char *separator,
                       const char *link, const char *node)
{
    char part[48], name[TORUS_PORT_NAME_SIZE];

    if (w.size > 0)
        w.text[0] = '\0';
    for (uint32_t rank = 0; rank < d->torus.nodes; rank++) {
        if (d->gone[rank]) {
            (void)snprintf(part, sizeof part, "%s%u", node != NULL ? node : "", rank);
            if (node != NULL)
                append(&w, separator, part);
            continue;
        }
        for (unsigned port = 0; port < torus_ports(&d->torus); port++) {
            /* Name each link at the end that dials. */
            if (!torus_port_dials(&d->torus, rank, port) || (d->dead[rank] & 1u << port) == 0 ||
                d->gone[torus_neighbour(&d->torus, rank, port)])
                continue;
            (void)snprintf(part, sizeof part, "%s%u:%s", link, rank,
                           torus_port_name(&d->torus, rank, port, name));
            append(&w, separator, part);
        }
    }
    return w.text;
}

char *damage_format(const struct damage *d, char *text, size_t size)
{
    return write_all(d, (struct writer){.text = text, .size = size}, ",", "", "");
}

char *damage_format_rates(const struct damage *d, char *text, size_t size)
{
    struct writer w = {.text = text, .size = size};
    char part[48], name[TORUS_PORT_NAME_SIZE];

    if (size > 0)
        text[0] = '\0';
    for (uint32_t rank = 0; d->rate != NULL && rank < d->torus.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&d->torus); port++) {
            const uint16_t rate = damage_rate(d, rank, port);
            if (rate == DAMAGE_FULL_RATE)
                continue;
            (void)snprintf(part, sizeof part, "%u:%s=%g", rank,
                           torus_port_name(&d->torus, rank, port, name),
                           rate / (double)DAMAGE_FULL_RATE);
            append(&w, ",", part);
        }
    return text;
}

char *damage_describe_links(const struct damage *d, char *text, size_t size)
{
    return write_all(d, (struct writer){.text = text, .size = size}, ", ", "link ", NULL);
}

char *damage_describe(const struct damage *d, char *text, size_t size)
{
    return write_all(d, (struct writer){.text = text, .size = size}, ", ", "link ", "node ");
}

/* --- whether the torus is in parts --- */

/* Sets *e, which names the nodes of one part, the smaller of two, as far as there is room. Returns
 * -1. */
static int name_part(const struct damage *d, uint32_t first, const bool *reached, uint32_t known,
                     uint32_t present, struct error *e)
{
    char text[100], part[24];
    struct writer w = {.text = text, .size = sizeof text};
    bool which = known < present - known; /* whether to name the nodes that were reached */
    uint32_t count = which ? known : present - known, from = first;

    for (uint32_t rank = d->torus.nodes; which && rank-- > 0;)
        if (!d->gone[rank] && !reached[rank])
            from = rank;
    for (uint32_t rank = 0; rank < d->torus.nodes; rank++) {
        if (d->gone[rank] || reached[rank] != which)
            continue;
        (void)snprintf(part, sizeof part, "%u", rank);
        append(&w, ", ", part);
    }
    return error_set(e, ERROR_LINK,
                     "the torus is in parts: node%s %s cannot be reached from node %u",
                     count == 1 ? "" : "s", text, from);
}

int damage_is_connected(const struct damage *d, struct error *e)
{
    uint32_t nodes = d->torus.nodes, first = 0, seen = 0, known = 0, present = 0;
    bool *reached = calloc(nodes, sizeof *reached);
    uint32_t *order = calloc(nodes, sizeof *order);
    int rc = 0;

    if (reached == NULL || order == NULL) {
        rc = error_set(e, ERROR_MEMORY, "out of memory for the links of %u %s", nodes,
                       text_plural(nodes, "node", "nodes"));
        goto done;
    }
    for (uint32_t rank = 0; rank < nodes; rank++)
        present += !d->gone[rank];
    while (first < nodes && d->gone[first])
        first++;
    if (first < nodes) {
        reached[first] = true;
        order[known++] = first;
    }
    for (; seen < known; seen++) {
        for (unsigned port = 0; port < torus_ports(&d->torus); port++) {
            uint32_t there = torus_neighbour(&d->torus, order[seen], port);
            if (!damage_has_link(d, order[seen], port) || reached[there])
                continue;
            reached[there] = true;
            order[known++] = there;
        }
    }
    if (known < present)
        rc = name_part(d, first, reached, known, present, e);
done:
    free(reached);
    free(order);
    return rc;
}
