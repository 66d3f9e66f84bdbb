#include "client/cli/web/page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/drawing/node_positions.h"
#include "client/cli/terminal/json.h"
#include "client/cli/terminal/output_file.h"

/* Writes data into a script: "<" becomes an escape, because "</script" would end it. */
static void write_data(FILE *out, const json_t *data)
{
    char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(8) | JSON_ENSURE_ASCII);

    (void)fputs("<script>const DATA = ", out);
    for (const char *c = text != NULL ? text : "null"; *c != '\0'; c++)
        if (*c == '<')
            (void)fputs("\\u003c", out);
        else
            (void)fputc(*c, out);
    (void)fputs(";</script>\n", out);
    free(text);
}

static void write_part(FILE *out, const struct page *p, const char *line, size_t length)
{
    if (length == strlen("<!--style-->") && strncmp(line, "<!--style-->", length) == 0) {
        (void)fprintf(out, "<style>\n%s%s</style>\n", p->style,
                      p->more_style != NULL ? p->more_style : "");
    } else if (length == strlen("<!--data-->") && strncmp(line, "<!--data-->", length) == 0) {
        if (p->data != NULL)
            write_data(out, p->data);
    } else if (length == strlen("<!--scripts-->") && strncmp(line, "<!--scripts-->", length) == 0) {
        for (const char *const *s = p->scripts; *s != NULL; s++)
            (void)fprintf(out, "<script>\n%s</script>\n", *s);
    } else {
        (void)fprintf(out, "%.*s\n", (int)length, line);
    }
}

void page_write(FILE *out, const struct page *p)
{
    for (const char *line = p->body; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        write_part(out, p, line, length);
        line += length + (line[length] == '\n');
    }
}

int page_file_write(const struct cli *cli, const char *file, const struct page *p)
{
    struct output_file output;
    struct error e;

    if (p->data == NULL)
        return cli_fail(
            cli, &(struct error){.code = ERROR_MEMORY, .text = "out of memory for the page"});
    int r = output_file_open(&output, file, &e);
    if (r == 0) {
        page_write(output.stream, p);
        r = output_file_finish(&output, &e);
    }
    json_decref(p->data);
    return r == 0 ? EXIT_DONE : cli_fail(cli, &e);
}

/* ---- The torus ------------------------------------------------------------------------------- */

static enum channel_shape shape_of(const struct svg_layout *l, uint32_t node, unsigned port)
{
    const struct torus *t = l->torus;
    unsigned dim = torus_port_dim(t, port);
    uint32_t at[TORUS_MAX_DIMS];

    if (l->places.used)
        return CHANNEL_STRAIGHT;
    if (svg_layout_leaves_plane(l, port))
        return CHANNEL_LEAVES;
    torus_coordinates(t, node, at);
    bool plus = torus_port_direction(t, port) > 0;
    return at[dim] == (plus ? t->size[dim] - 1 : 0) ? CHANNEL_WRAPS : CHANNEL_STRAIGHT;
}

static int add_node(json_t *places, json_t *coordinates, json_t *frames, const struct svg_layout *l,
                    uint32_t node)
{
    struct point at = svg_layout_node(l, node), frame = svg_layout_frame(l, node);
    char text[COORDINATES_SIZE] = "";
    int r = json_array_append_new(places, json_pack("[f, f]", at.x, at.y));

    r |= json_array_append_new(
        coordinates, json_string(coordinates_text(l->torus, node, NULL, text, sizeof text)));
    if (!svg_layout_begins_plane(l, node))
        return r;
    (void)coordinates_text(l->torus, node, l->dim, text, sizeof text);
    return r | json_array_append_new(frames,
                                     json_pack("[f, f, i, i, s]", frame.x, frame.y, l->frame_width,
                                               l->frame_height, l->axes > 2 ? text : ""));
}

static int add_channels(json_t *channels, const struct svg_layout *l, uint32_t node)
{
    const struct torus *t = l->torus;
    char name[TORUS_PORT_NAME_SIZE];
    int r = 0;

    for (unsigned port = 0; port < torus_ports(t); port++) {
        uint32_t next = torus_neighbour(t, node, port);
        struct point v = svg_layout_port(l, port);
        if (next == TORUS_NO_NODE)
            continue;
        if (l->places.used)
            v = point_towards(svg_layout_node(l, node), svg_layout_node(l, next));
        r |=
            json_array_append_new(channels, json_pack("[i, i, i, i, f, f, s]", (int)node, (int)port,
                                                      (int)next, (int)shape_of(l, node, port), v.x,
                                                      v.y, torus_port_name(t, node, port, name)));
    }
    return r;
}

static json_t *make(const struct svg_layout *l)
{
    const struct torus *t = l->torus;
    json_t *places = json_array(), *coordinates = json_array();
    json_t *frames = json_array(), *channels = json_array();
    char dims[TORUS_TEXT_SIZE];
    int r = 0;

    for (uint32_t node = 0; node < t->nodes; node++)
        r |= add_node(places, coordinates, frames, l, node) | add_channels(channels, l, node);
    json_t *o = json_pack("{s:s, s:I, s:i, s:i, s:i, s:o, s:o, s:o, s:o}", "dims",
                          torus_format(t, dims), "node_count", (json_int_t)t->nodes, "width",
                          l->width, "height", l->height, "margin", SVG_MARGIN, "place", places,
                          "coordinates", coordinates, "frames", frames, "channels", channels);
    return json_checked(o, r);
}

json_t *torus_json(const struct torus *t, struct error *e)
{
    const struct drawing_part all = drawing_part_choose(t, TORUS_JSON_MOST_NODES, TORUS_NO_NODE);
    struct svg_layout l;
    json_t *o = NULL;

    if (t->nodes > TORUS_JSON_MOST_NODES) {
        (void)error_set(e, ERROR_REFUSED,
                        "a page can show at most %u nodes, and this torus has %" PRIu32,
                        TORUS_JSON_MOST_NODES, t->nodes);
        return NULL;
    }
    if (svg_layout_make(&l, t, &all) == 0)
        o = make(&l);
    svg_layout_free(&l);
    if (o == NULL)
        (void)error_set(e, ERROR_MEMORY, "out of memory for the page");
    return o;
}
