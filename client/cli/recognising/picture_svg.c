#include <math.h>
#include <stdlib.h>

#include "client/cli/recognising/picture.h"
#include "client/cli/terminal/output_file.h"

enum { ACROSS = 150, DOWN = 110, BORDER = 90, NODE_WIDTH = 84, NODE_HEIGHT = 26, TITLE = 40 };
#define CLEARANCE 12.0 /* between a host and the names of its interfaces */
#define BULGE 0.22     /* of the length of a cable that passes other hosts */

struct place {
    double x, y;
};

struct svg {
    FILE *out;
    const struct recognised *r;
    uint32_t columns, rows; /* of the grid of places */
    uint32_t beside;        /* hosts without a rank that have a place already */
    struct place *place;    /* of each host of the input */
    double width, height;
};

/* Texts of hosts are letters, digits and a few marks, which need no escapes; the sentence may quote others. */
static void put_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '<':
            (void)fputs("&lt;", out);
            break;
        case '&':
            (void)fputs("&amp;", out);
            break;
        default:
            (void)fputc(*text, out);
        }
}

/* --- places --- */

/* The grid has the planes of the last two dimensions one below the other; other graphs are drawn as a circle. */
static void place_on_grid(struct svg *s, uint32_t host, uint32_t rank)
{
    s->place[host] = (struct place){BORDER + NODE_WIDTH / 2.0 + rank % s->columns * ACROSS,
                                    TITLE + BORDER + rank / s->columns * DOWN};
}

static void place_on_circle(struct svg *s, uint32_t host, uint32_t rank)
{
    const double nodes = s->r->result.torus.nodes, radius = fmax(120, nodes * 26);
    const double angle = 2 * M_PI * rank / nodes - M_PI / 2;

    s->place[host] = (struct place){BORDER + NODE_WIDTH / 2.0 + radius * (1 + cos(angle)),
                                    TITLE + BORDER + radius * (1 + sin(angle))};
}

/* Hosts that have no place in the network are in rows of their own. */
static void place_beside(struct svg *s, uint32_t host)
{
    const uint32_t columns = s->columns > 0 ? s->columns : 6;

    s->place[host] =
        (struct place){BORDER + NODE_WIDTH / 2.0 + s->beside % columns * ACROSS,
                       TITLE + BORDER + (double)(s->rows + s->beside / columns) * DOWN};
    s->beside++;
}

static void find_places(struct svg *s)
{
    const struct cabling_result *result = &s->r->result;
    const bool clear = result->finding != CABLING_UNCLEAR;
    const bool grid = clear && torus_is_plain(&result->torus);

    if (grid) {
        s->columns = result->torus.size[result->torus.dims - 1];
        s->rows = result->torus.nodes / s->columns;
    } else if (clear) {
        s->rows = (uint32_t)ceil(2 * fmax(120, result->torus.nodes * 26) / DOWN) + 1;
    }
    for (uint32_t i = 0; i < s->r->input.hosts; i++) {
        uint32_t rank = clear ? result->rank_of_host[i] : CABLING_NONE;
        if (rank == CABLING_NONE)
            place_beside(s, i);
        else if (grid)
            place_on_grid(s, i, rank);
        else
            place_on_circle(s, i, rank);
        s->width = fmax(s->width, s->place[i].x + NODE_WIDTH / 2.0 + BORDER);
        s->height = fmax(s->height, s->place[i].y + BORDER);
    }
}

/* --- cables --- */

static const char *class_of(const struct cabling_cable *c)
{
    return c->state == CABLING_CABLE_WRONG     ? "wrong"
           : c->state == CABLING_CABLE_ONE_WAY ? "half"
                                               : "cable";
}

/* Writes the name of an interface beside its host, on the way to `middle`. */
static void put_interface(const struct svg *s, const struct cabling_end *end, struct place middle)
{
    const struct place at = s->place[end->host];
    const double x = middle.x - at.x, y = middle.y - at.y, length = fmax(hypot(x, y), 1);
    /* How far the edge of the host is away in this direction. */
    const double edge = fmin(NODE_WIDTH / 2.0 / fmax(fabs(x / length), 0.01),
                             NODE_HEIGHT / 2.0 / fmax(fabs(y / length), 0.01));

    (void)fprintf(s->out, "<text class=\"i\" x=\"%.0f\" y=\"%.0f\">",
                  at.x + x / length * (edge + CLEARANCE),
                  at.y + y / length * (edge + CLEARANCE) + 3);
    put_text(s->out, s->r->input.host[end->host].interface[end->interface].name);
    (void)fputs("</text>\n", s->out);
}

/* Draws a cable as a curve that passes beside the hosts between its ends. */
static void put_cable(const struct svg *s, const struct cabling_cable *c)
{
    const struct place a = s->place[c->end[0].host], b = s->place[c->end[1].host];
    const double x = b.x - a.x, y = b.y - a.y, length = hypot(x, y);
    const bool is_far = fabs(x) > 1.2 * ACROSS || fabs(y) > 1.2 * DOWN;
    const double bulge = is_far ? fmax(BULGE * length, 1.3 * NODE_WIDTH) : 8;
    const struct place middle = {(a.x + b.x) / 2 - y / fmax(length, 1) * bulge,
                                 (a.y + b.y) / 2 + x / fmax(length, 1) * bulge};

    if (length < 1) { /* both ends are at one host */
        (void)fprintf(s->out,
                      "<ellipse class=\"%s\" cx=\"%.0f\" cy=\"%.0f\" rx=\"16\" ry=\"22\"/>\n",
                      class_of(c), a.x, a.y - NODE_HEIGHT / 2.0);
        return;
    }
    (void)fprintf(s->out, "<path class=\"%s\" d=\"M%.0f %.0fQ%.0f %.0f %.0f %.0f\"/>\n",
                  class_of(c), a.x, a.y, middle.x, middle.y, b.x, b.y);
    put_interface(s, &c->end[0], middle);
    put_interface(s, &c->end[1], middle);
}

/* --- hosts --- */

static void put_host(const struct svg *s, uint32_t host)
{
    const struct place at = s->place[host];
    const uint32_t rank =
        s->r->result.finding != CABLING_UNCLEAR ? s->r->result.rank_of_host[host] : CABLING_NONE;

    (void)fprintf(s->out,
                  "<rect class=\"host\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"6\"/>"
                  "<text class=\"h\" x=\"%.0f\" y=\"%.0f\">",
                  at.x - NODE_WIDTH / 2.0, at.y - NODE_HEIGHT / 2.0, NODE_WIDTH, NODE_HEIGHT, at.x,
                  at.y + 4);
    if (rank != CABLING_NONE)
        (void)fprintf(s->out, "%u ", rank);
    put_text(s->out, s->r->input.host[host].name);
    (void)fputs("</text>\n", s->out);
}

static void put_all(const struct svg *s)
{
    (void)fprintf(
        s->out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\">\n"
        "<style>text{font-family:sans-serif;fill:#222}.page{fill:#fff}"
        ".host{fill:#eef1f4;stroke:#59626b}.h{font-size:12px;text-anchor:middle}"
        ".i{font-size:9px;text-anchor:middle}.t{font-size:15px;font-weight:bold}"
        "path,ellipse{fill:none;stroke-width:2}.cable{stroke:#8a949d}.wrong{stroke:#e5262c}"
        ".half{stroke:#d55e00;stroke-dasharray:6 4}"
        "@media (prefers-color-scheme:dark){text{fill:#e4e6e8}.page{fill:#15181b}"
        ".host{fill:#2a3036;stroke:#98a2ac}}</style>\n"
        "<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n"
        "<text class=\"t\" x=\"20\" y=\"28\">",
        s->width, s->height);
    put_text(s->out, s->r->result.text);
    (void)fputs("</text>\n", s->out);
    for (uint32_t i = 0; i < s->r->result.cables; i++)
        put_cable(s, &s->r->result.cable[i]);
    for (uint32_t i = 0; i < s->r->input.hosts; i++)
        put_host(s, i);
    (void)fputs("</svg>\n", s->out);
}

int picture_svg(const struct recognised *r, const char *path, struct error *e)
{
    struct svg s = {.r = r, .width = 500, .height = 120};
    struct output_file file;

    s.place = calloc(r->input.hosts + 1, sizeof s.place[0]);
    if (s.place == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the picture");
    if (output_file_open(&file, path, e) != 0) {
        free(s.place);
        return -1;
    }
    s.out = file.stream;
    find_places(&s);
    put_all(&s);
    free(s.place);
    return output_file_finish(&file, e);
}
