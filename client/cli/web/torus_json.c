#include "client/cli/web/torus_json.h"

#include <inttypes.h>
#include <stdio.h>

#include "client/cli/drawing/svg_layout.h"

static enum channel_shape shape_of(const struct svg_layout *l, uint32_t node, unsigned port)
{
    const struct torus *t = l->torus;
    unsigned dim = torus_port_dim(t, port);
    uint32_t at[TORUS_MAX_DIMS];

    if (l->places != NULL)
        return CHANNEL_STRAIGHT;
    if (svg_layout_leaves_plane(l, port))
        return CHANNEL_LEAVES;
    torus_coordinates(t, node, at);
    bool plus = torus_port_direction(t, port) > 0;
    return at[dim] == (plus ? t->size[dim] - 1 : 0) ? CHANNEL_WRAPS : CHANNEL_STRAIGHT;
}

static void format_coordinates(const struct svg_layout *l, uint32_t node, bool plane, char *text,
                               size_t size)
{
    uint32_t at[TORUS_MAX_DIMS];
    size_t n = 1;

    torus_coordinates(l->torus, node, at);
    (void)snprintf(text, size, "(");
    for (unsigned i = 0; i < l->torus->dims && n < size; i++) {
        bool any = plane && l->torus->size[i] > 1 && l->axis[i] < 2;
        n += (size_t)(any ? snprintf(text + n, size - n, "%s*", i > 0 ? ", " : "")
                          : snprintf(text + n, size - n, "%s%" PRIu32, i > 0 ? ", " : "", at[i]));
    }
    if (n < size)
        (void)snprintf(text + n, size - n, ")");
}

static int add_node(json_t *places, json_t *coordinates, json_t *frames, const struct svg_layout *l,
                    uint32_t node)
{
    struct point at = svg_layout_node(l, node), frame = svg_layout_frame(l, node);
    char text[12 * TORUS_MAX_DIMS];

    format_coordinates(l, node, false, text, sizeof text);
    int r = json_array_append_new(places, json_pack("[f, f]", at.x, at.y)) |
            json_array_append_new(coordinates, json_string(text));
    if (!svg_layout_begins_plane(l, node))
        return r;
    format_coordinates(l, node, true, text, sizeof text);
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
        if (l->places != NULL)
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
    json_t *o = json_object(), *places = json_array(), *coordinates = json_array();
    json_t *frames = json_array(), *channels = json_array();
    char dims[TORUS_TEXT_SIZE];
    int r = 0;

    for (uint32_t node = 0; node < t->nodes; node++)
        r |= add_node(places, coordinates, frames, l, node) | add_channels(channels, l, node);
    r |= json_object_set_new(o, "dims", json_string(torus_format(t, dims))) |
         json_object_set_new(o, "node_count", json_integer(t->nodes)) |
         json_object_set_new(o, "width", json_integer(l->width)) |
         json_object_set_new(o, "height", json_integer(l->height)) |
         json_object_set_new(o, "margin", json_integer(SVG_MARGIN)) |
         json_object_set_new(o, "place", places) |
         json_object_set_new(o, "coordinates", coordinates) |
         json_object_set_new(o, "frames", frames) | json_object_set_new(o, "channels", channels);
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

json_t *torus_json(const struct torus *t, struct error *e)
{
    struct drawing_part part = drawing_part_choose(t, TORUS_JSON_MOST_NODES, TORUS_NO_NODE);
    struct network_places places = {0};
    json_t *o = NULL;

    if (t->nodes > TORUS_JSON_MOST_NODES)
        return (void)error_set(e, ERROR_REFUSED,
                               "a page can show at most %u nodes, and this torus has %" PRIu32,
                               TORUS_JSON_MOST_NODES, t->nodes),
               NULL;
    if (network_places_make(&places, t, &part) == 0) {
        const struct svg_layout l = svg_layout_make(t, &part, &places);
        o = make(&l);
    }
    network_places_free(&places);
    if (o == NULL)
        (void)error_set(e, ERROR_MEMORY, "out of memory for the page");
    return o;
}
