#include "client/cli/serving/faults.h"

#include <stdio.h>

#include "proto/text.h"

/* Writes a sentence, and why it is so, as far as a node has told that. */
static void describe(const struct scene *s, const struct fault *f, char *text, char *why,
                     size_t size)
{
    const struct torus *t = &s->seen.now.torus;
    char name[TORUS_PORT_NAME_SIZE], here[SCENE_NAME_SIZE];

    why[0] = '\0';
    (void)snprintf(here, sizeof here, "%s", scene_name(s, f->node));
    if (f->kind == FAULT_NODE) {
        (void)snprintf(text, size, "%s %s", here, all_nodes_missing(&s->seen.now, f->node));
    } else if (f->kind == FAULT_CABLE) {
        (void)snprintf(text, size, "%s: %.480s", here, f->text);
    } else {
        const struct observed_link l = observed_link(&s->seen, f->node, f->port);
        (void)snprintf(text, size, "the link from port %s of %s to %s is down",
                       torus_port_name(t, f->node, f->port, name), here,
                       scene_name(s, l.neighbour));
        (void)snprintf(why, size, "%.300s", observed_reason(&l));
    }
    text_clean(text);
    text_clean(why);
}

static json_t *fault_value(const struct scene *s, const struct fault *f)
{
    char text[640], why[sizeof text];
    json_t *o = json_object();

    describe(s, f, text, why, sizeof text);
    int r = json_object_set_new(o, "node", json_integer(f->node));
    r |=
        json_object_set_new(o, "port", f->kind != FAULT_NODE ? json_integer(f->port) : json_null());
    r |= json_object_set_new(o, "text", json_string(text));
    r |= json_object_set_new(o, "why", json_string(why));
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

json_t *faults_value(const struct scene *s)
{
    json_t *list = json_array();
    int r = list != NULL ? 0 : -1;

    for (size_t i = 0; i < s->seen.fault_count && i < FAULTS_MOST; i++)
        r |= json_array_append_new(list, fault_value(s, &s->seen.faults[i]));
    if (r == 0)
        return list;
    json_decref(list);
    return NULL;
}
