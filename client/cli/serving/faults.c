#include "client/cli/serving/faults.h"

#include <stdarg.h>
#include <stdio.h>

#include "proto/text.h"

struct list {
    json_t *value;
    size_t more;
    int r;
};

/* Adds a fault of a port, or of a node (`port` NULL). */
static void add(struct list *list, uint32_t node, const unsigned *port, const char *why,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

static void add(struct list *list, uint32_t node, const unsigned *port, const char *why,
                const char *format, ...)
{
    char text[640], clean[320];
    va_list ap;

    if (json_array_size(list->value) >= FAULTS_MOST) {
        list->more++;
        return;
    }
    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    text_clean(text);
    json_t *o = json_object();
    list->r |= json_object_set_new(o, "node", json_integer(node));
    list->r |= json_object_set_new(o, "port", port != NULL ? json_integer(*port) : json_null());
    list->r |= json_object_set_new(o, "text", json_string(text));
    list->r |= json_object_set_new(o, "why", json_string(text_printable(clean, sizeof clean, why)));
    list->r |= json_array_append_new(list->value, o);
}

static const struct torus_link *other_end(const struct scene *s, uint32_t rank, unsigned port)
{
    const uint32_t next = torus_neighbour(&s->now.torus, rank, port);

    return scene_end(s, next, torus_port_opposite(&s->now.torus, port))->link;
}

bool faults_link_down(const struct scene *s, uint32_t rank, unsigned port)
{
    const struct torus_link *a = scene_end(s, rank, port)->link, *b = other_end(s, rank, port);

    return (a != NULL && a->state != TORUS_LINK_UP) || (b != NULL && b->state != TORUS_LINK_UP);
}

bool faults_link_up(const struct scene *s, uint32_t rank, unsigned port)
{
    return (scene_end(s, rank, port)->link != NULL || other_end(s, rank, port) != NULL) &&
           !faults_link_down(s, rank, port);
}

/* Adds a link that is not up, unless the fault is that the node at one of its ends is missing. */
static void add_link(struct list *list, const struct scene *s, uint32_t rank, unsigned port)
{
    const struct torus *t = &s->now.torus;
    const uint32_t next = torus_neighbour(t, rank, port);
    const struct torus_link *l = scene_end(s, rank, port)->link;
    char name[TORUS_PORT_NAME_SIZE], here[SCENE_NAME_SIZE], why[300];

    if (!all_nodes_answered(&s->now, rank) || !all_nodes_answered(&s->now, next) ||
        !faults_link_down(s, rank, port))
        return;
    if (l == NULL || l->state == TORUS_LINK_UP)
        l = other_end(s, rank, port);
    (void)snprintf(here, sizeof here, "%s", scene_name(s, rank));
    (void)snprintf(why, sizeof why, "%s%s%.250s", torus_link_state_name(l->state),
                   l->reason[0] != '\0' ? ": " : "", l->reason);
    add(list, rank, &port, why, "the link from port %s of %s to %s is down",
        torus_port_name(t, rank, port, name), here, scene_name(s, next));
}

json_t *faults_value(const struct scene *s, const struct torus_status *status, size_t *more)
{
    const struct torus *t = &s->now.torus;
    struct list list = {.value = json_array()};

    for (uint32_t rank = 0; rank < t->nodes; rank++)
        if (!all_nodes_answered(&s->now, rank))
            add(&list, rank, NULL, "", "%s %s", scene_name(s, rank),
                all_nodes_missing(&s->now, rank));
    for (size_t i = 0; status != NULL && i < status->link_fault_count; i++) {
        const struct torus_link_fault *f = status->link_faults[i];
        if (f->node < t->nodes && f->port < s->ports)
            add(&list, f->node, &f->port, "", "%s: %.480s", scene_name(s, f->node), f->text);
    }
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        for (unsigned port = 0; port < s->ports; port++)
            if (torus_neighbour(t, rank, port) != TORUS_NO_NODE && torus_port_dials(t, rank, port))
                add_link(&list, s, rank, port);
    *more = list.more;
    if (list.r == 0 && list.value != NULL)
        return list.value;
    json_decref(list.value);
    return NULL;
}
