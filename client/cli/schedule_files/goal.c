#include "client/cli/schedule_files/goal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "daemon/lib/schedule/routes.h"
#include "daemon/lib/schedule/work.h"

/* A combined message, or the share of a block in it. */
struct message {
    uint64_t key; /* key_of(): ordered by class of node, then by step */
    uint64_t bytes;
};

struct list {
    struct message *at;
    size_t count, room;
};

/* The messages of one node of each class; all nodes of a class send and receive the same. */
struct goal {
    FILE *out;
    const struct routes *routes;
    uint64_t block_bytes;
    struct list sends, arrivals;
    uint32_t label;        /* of the next line */
    uint32_t previous_end; /* label of the line that ended the previous step; 0: none */
};

/* Makes a key. Port and hops describe the path from the node to its peer. */
static uint64_t key_of(uint32_t class, uint32_t step, unsigned port, uint16_t hops)
{
    return (uint64_t) class << 44 | (uint64_t)step << 21 | (uint64_t)port << 16 | hops;
}

static uint32_t class_of_key(uint64_t key)
{
    return (uint32_t)(key >> 44);
}

static uint32_t step_of_key(uint64_t key)
{
    return (uint32_t)(key >> 21) & ((1u << 23) - 1);
}

static int compare_messages(const void *a, const void *b)
{
    const struct message *x = a, *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

/* Adds up all shares with the same key to one message, and sorts the messages. */
static void combine(struct list *list)
{
    size_t used = 0;

    if (list->count == 0)
        return;
    qsort(list->at, list->count, sizeof *list->at, compare_messages);
    for (size_t i = 1; i < list->count; i++) {
        if (list->at[i].key == list->at[used].key)
            list->at[used].bytes += list->at[i].bytes;
        else
            list->at[++used] = list->at[i];
    }
    list->count = used + 1;
}

/* Adds a share. The list has room for at most four times the number of messages, or 1024. */
static int add(struct list *list, uint64_t key, uint64_t bytes)
{
    if (list->count == list->room) {
        combine(list);
        if (list->count >= list->room / 2) {
            size_t room = list->room == 0 ? 1024 : 2 * list->room;
            struct message *more = reallocarray(list->at, room, sizeof *more);
            if (more == NULL)
                return -1;
            list->at = more;
            list->room = room;
        }
    }
    list->at[list->count++] = (struct message){key, bytes};
    return 0;
}

/* Returns the bytes of a segment. All segments have the same length, except that the last ones may be shorter
 * (engine/cut.h). */
static uint64_t segment_bytes(const struct goal *g, uint32_t segment)
{
    uint32_t segments = g->routes->algorithm->segments;
    uint64_t stride = (g->block_bytes + segments - 1) / segments;
    uint64_t begin = segment * stride;

    if (begin >= g->block_bytes)
        return 0;
    return g->block_bytes - begin < stride ? g->block_bytes - begin : stride;
}

/* Adds the current route's segment to the messages at both ends of each of its legs. */
static int add_route(struct goal *g)
{
    const struct routes *r = g->routes;
    uint64_t bytes = segment_bytes(g, r->segment);
    uint32_t here = r->source;

    for (uint32_t i = 0; i < r->legs; i++) {
        const struct leg *leg = &r->leg[i];
        unsigned port = torus_port(r->torus, leg->dim, leg->direction);
        uint32_t end = routes_leg_end(r, here, leg);
        if (i >= routes_new_legs(r) &&
            (add(&g->sends, key_of(r->class_of[here], leg->step, port, leg->hops), bytes) != 0 ||
             add(&g->arrivals,
                 key_of(r->class_of[end], leg->step, torus_port_opposite(r->torus, port),
                        leg->hops),
                 bytes) != 0))
            return -1;
        here = end;
    }
    return 0;
}

static void print_message(struct goal *g, const struct message *m, uint32_t node, bool sends)
{
    const struct torus *t = g->routes->torus;
    unsigned here = (unsigned)(m->key >> 16) & (TORUS_MAX_PORTS - 1);
    unsigned port = sends ? here : torus_port_opposite(t, here); /* where it is sent */
    uint32_t peer = torus_walk(t, node, torus_port_dim(t, here), torus_port_direction(t, here),
                               (uint16_t)m->key);

    /* The tag is unique, because no two messages of a step between the same nodes leave by the same port. */
    (void)fprintf(g->out, "l%" PRIu32 ": %s %" PRIu64 "b %s %" PRIu32 " tag %" PRIu32 " nic %u\n",
                  g->label, sends ? "send" : "recv", m->bytes, sends ? "to" : "from", peer,
                  step_of_key(m->key) * TORUS_MAX_PORTS + port, here);
    if (g->previous_end != 0)
        (void)fprintf(g->out, "l%" PRIu32 " requires l%" PRIu32 "\n", g->label, g->previous_end);
    g->label++;
}

/* Prints a line that waits for all lines from `first` on. */
static void print_end_of_step(struct goal *g, uint32_t first)
{
    (void)fprintf(g->out, "l%" PRIu32 ": calc 0\n", g->label);
    for (uint32_t i = first; i < g->label; i++)
        (void)fprintf(g->out, "l%" PRIu32 " requires l%" PRIu32 "\n", g->label, i);
    g->previous_end = g->label++;
}

/* Returns the index of the first message of a class, or of a later class, in a sorted list. */
static size_t find_class(const struct list *list, uint32_t class)
{
    size_t low = 0, high = list->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (class_of_key(list->at[middle].key) < class)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns whether the message at this index is of this class, with its *step. */
static bool has_next(const struct list *list, size_t at, uint32_t class, uint32_t *step)
{
    if (at == list->count || class_of_key(list->at[at].key) != class)
        return false;
    *step = step_of_key(list->at[at].key);
    return true;
}

static void print_node(struct goal *g, uint32_t node)
{
    uint32_t class = g->routes->class_of[node], sent, arrived;
    size_t send = find_class(&g->sends, class), arrival = find_class(&g->arrivals, class);

    g->label = 1;
    g->previous_end = 0;
    (void)fprintf(g->out, "\nrank %" PRIu32 " {\n", node);
    for (;;) {
        bool sends = has_next(&g->sends, send, class, &sent);
        bool arrives = has_next(&g->arrivals, arrival, class, &arrived);
        if (!sends && !arrives)
            break;
        uint32_t first = g->label, step = sends && (!arrives || sent < arrived) ? sent : arrived;
        for (; has_next(&g->sends, send, class, &sent) && sent == step; send++)
            print_message(g, &g->sends.at[send], node, true);
        for (; has_next(&g->arrivals, arrival, class, &arrived) && arrived == step; arrival++)
            print_message(g, &g->arrivals.at[arrival], node, false);
        print_end_of_step(g, first);
    }
    (void)fputs("}\n", g->out);
}

int goal_print(FILE *out, const struct torus *t, const struct algorithm *a, uint64_t block_bytes,
               struct error *e)
{
    struct routes routes;
    struct goal g = {.out = out, .routes = &routes, .block_bytes = block_bytes};
    uint64_t followed = 0;
    int rc = 0;

    if (routes_open(&routes, t, a, e) != 0)
        return -1;
    const uint64_t all = (uint64_t)routes.classes * (t->nodes - 1) * a->segments;
    while (rc == 0 && routes_next(&routes)) {
        rc = add_route(&g);
        watch_count(&followed, all);
    }
    combine(&g.sends);
    combine(&g.arrivals);
    if (rc == 0)
        (void)fprintf(out, "num_ranks %" PRIu32 "\n", t->nodes);
    else
        (void)error_set(e, ERROR_MEMORY, "out of memory for the messages of %s", a->name);
    for (uint32_t node = 0; node < t->nodes && rc == 0 && !ferror(out); node++)
        print_node(&g, node);
    free(g.sends.at);
    free(g.arrivals.at);
    routes_close(&routes);
    return rc;
}
