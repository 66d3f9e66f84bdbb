#include "daemon/lib/schedule/graph/graph_exchange.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/graph/graph_group.h"

#define NONE UINT32_MAX
#define PASSES 6 /* how often each source chooses its paths, knowing those of the others */

/* With all ports, exchanges are made several times, with other choices where the rules leave one, until
 * one has as few steps as possible: at most so many times, and so many hops in all. */
#define TRIALS_MOST 1024u
#define TRIALS_HOPS (1u << 17)

/* The lists only grow at their beginning, and are read without a lock. Exchanges in them never change,
 * and are never freed. */
static struct graph_exchange *_Atomic exchanges[GRAPH_PORTS];

/* An exchange while it is made. If all nodes do the same, there is one place, and one source, node 0: if the graph
 * moves or, with one port, has a regular group of automorphisms. Otherwise each node is a place and a source. */
struct maker {
    const struct graph *g;
    struct graph_exchange *x;
    enum graph_ports ports;
    const uint16_t *moves; /* that group (graph_group()), or NULL */
    uint16_t *found;       /* the same, if it is to be freed */
    uint32_t trial;        /* 0: where there is a choice, the first one is taken */
    uint32_t places, channels, blocks;
    uint8_t *kind; /* node * directions + direction: with one place, the same direction at node 0 */
    uint32_t *load;             /* by channel: blocks that will still cross it */
    uint32_t *sends, *receives; /* by place: blocks that it will still send, and receive */

    /* Blocks that wait for a channel, by channel and hops left: the first and last of a list. */
    uint32_t *head, *tail, *next;
    uint32_t *waiting;     /* by channel: how many */
    uint32_t *expected;    /* the same, with the blocks that reach its node in this step */
    uint64_t *cost;        /* by node: the squares of the loads along the path from the source */
    uint32_t *here, *done; /* by block: the node that has it, and the hops made */

    uint32_t *order; /* the places in the order of how much they have to send, most first */
    uint32_t *sender,
        *along;             /* by receiving place: who sends to it in this step, by which channel */
    uint32_t *seen, search; /* by place: the search that has visited it last */
};

static uint32_t place_of(const struct maker *m, uint32_t node)
{
    return m->places == 1 ? 0 : node;
}

static uint32_t channel_of(const struct maker *m, uint32_t node, unsigned direction)
{
    if (m->places == 1)
        return m->kind[(size_t)node * m->g->directions + direction];
    return node * m->g->directions + direction;
}

/* Sources are the first `places` nodes; a block has the number source * n + destination. */
static uint32_t hops_of(const struct maker *m, uint32_t block)
{
    return graph_distance(m->g, block / m->g->nodes, block % m->g->nodes);
}

/* In which order a trial prefers one of several equal choices: the least first. */
static uint32_t preference(const struct maker *m, uint32_t choice)
{
    uint32_t mixed = (choice + 1) * UINT32_C(0x9e3779b1) + m->trial * UINT32_C(0x85ebca6b);

    if (m->trial == 0)
        return 0;
    mixed = (mixed ^ mixed >> 15) * UINT32_C(0x2c1b3c6d);
    mixed = (mixed ^ mixed >> 12) * UINT32_C(0x297a2d39);
    return mixed ^ mixed >> 15;
}

/* ---- Paths ----------------------------------------------------------------------------------- */

/* Adds a block's path to the loads (`by` 1), or subtracts it (-1). */
static void count_path(struct maker *m, uint32_t block, uint32_t by)
{
    const struct graph_hop *hop = m->x->hop + m->x->first[block];
    uint32_t node = block / m->g->nodes;

    for (uint32_t i = 0; i < hops_of(m, block); i++) {
        m->load[channel_of(m, node, hop[i].direction)] += by;
        m->sends[place_of(m, node)] += by;
        node = graph_neighbour(m->g, node, hop[i].direction);
        m->receives[place_of(m, node)] += by;
    }
}

/* Adds a node to the tree of a source, and writes the path to the node. */
static void choose_path(struct maker *m, uint32_t source, uint32_t node)
{
    const struct graph *g = m->g;
    uint32_t best = NONE, distance = graph_distance(g, source, node);
    uint64_t least = UINT64_MAX;
    uint32_t liked = 0;
    unsigned last = 0;

    for (unsigned i = 0; i < g->directions; i++) {
        uint32_t there = graph_neighbour(g, node, i);
        if (there == GRAPH_NO_NODE || graph_distance(g, source, there) >= distance)
            continue;
        uint64_t load = m->ports == GRAPH_ALL_PORTS ? m->load[channel_of(m, there, g->opposite[i])]
                                                    : m->sends[place_of(m, there)];
        uint64_t cost = m->cost[there] + load * load;
        uint32_t likes = preference(m, (source * g->nodes + node) * g->directions + i);
        if (cost < least || (cost == least && likes < liked)) {
            least = cost;
            liked = likes;
            best = there;
            last = g->opposite[i];
        }
    }
    struct graph_hop *path = m->x->hop + m->x->first[source * g->nodes + node];
    if (best != source)
        memcpy(path, m->x->hop + m->x->first[source * g->nodes + best],
               (distance - 1) * sizeof *path);
    path[distance - 1].direction = (uint8_t)last;
    m->cost[node] = least;
    count_path(m, source * g->nodes + node, 1);
}

static void choose_paths(struct maker *m)
{
    uint32_t n = m->g->nodes;

    for (unsigned pass = 0; pass < PASSES; pass++)
        for (uint32_t source = 0; source < m->places; source++) {
            for (uint32_t node = 0; pass > 0 && node < n; node++)
                count_path(m, source * n + node, (uint32_t)-1);
            for (uint32_t distance = 1; distance <= m->g->diameter; distance++)
                for (uint32_t node = 0; node < n; node++)
                    if (graph_distance(m->g, source, node) == distance)
                        choose_path(m, source, node);
        }
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* The channel that the next hop of a block crosses after `made` hops, which lead to `node`. */
static uint32_t next_channel(const struct maker *m, uint32_t block, uint32_t made, uint32_t node)
{
    return channel_of(m, node, m->x->hop[m->x->first[block] + made].direction);
}

/* Puts a block in the queue of the channel that its next hop crosses. */
static void queue_block(struct maker *m, uint32_t block)
{
    uint32_t left = hops_of(m, block) - m->done[block];
    uint32_t channel = next_channel(m, block, m->done[block], m->here[block]);
    size_t list = (size_t)channel * (m->g->diameter + 1) + left;

    m->waiting[channel]++;
    m->next[block] = NONE;
    if (m->head[list] == NONE)
        m->head[list] = block;
    else
        m->next[m->tail[list]] = block;
    m->tail[list] = block;
}

/* Takes a block out of the queue of a channel: one with the most hops left. If there are several, takes the one whose
 * next channel expects the fewest blocks, so that no channel runs out of blocks. */
static uint32_t take_block(struct maker *m, uint32_t channel)
{
    size_t list = (size_t)channel * (m->g->diameter + 1) + m->g->diameter;
    uint32_t best = NONE, before_best = NONE, before = NONE, fewest = NONE, liked = 0;

    while (m->head[list] == NONE)
        list--;
    for (uint32_t block = m->head[list]; block != NONE; before = block, block = m->next[block]) {
        bool ends = m->done[block] + 1 == hops_of(m, block);
        uint32_t to = graph_neighbour(m->g, m->here[block],
                                      m->x->hop[m->x->first[block] + m->done[block]].direction);
        uint32_t wait = ends ? 0 : m->expected[next_channel(m, block, m->done[block] + 1, to)];
        uint32_t likes = preference(m, block);
        if (wait < fewest || (wait == fewest && likes < liked)) {
            fewest = wait;
            liked = likes;
            best = block;
            before_best = before;
        }
    }
    if (before_best == NONE)
        m->head[list] = m->next[best];
    else
        m->next[before_best] = m->next[best];
    if (m->tail[list] == best)
        m->tail[list] = before_best;
    m->waiting[channel]--;
    m->expected[channel]--;
    return best;
}

/* Sends a block of a channel, and adds it to the list of those on their way. */
static void send_block(struct maker *m, uint32_t channel, uint32_t *moving)
{
    uint32_t block = take_block(m, channel);
    struct graph_hop *hop = m->x->hop + m->x->first[block] + m->done[block];

    hop->step = m->x->steps;
    m->sends[place_of(m, m->here[block])]--;
    m->here[block] = graph_neighbour(m->g, m->here[block], hop->direction);
    m->receives[place_of(m, m->here[block])]--;
    m->done[block]++;
    if (m->done[block] < hops_of(m, block))
        m->expected[next_channel(m, block, m->done[block], m->here[block])]++;
    m->next[block] = *moving;
    *moving = block;
}

/* The receiver that has most left to receive. Considers receivers for which the place has a block, and which this
 * search has not visited. */
static uint32_t best_channel(const struct maker *m, uint32_t place, uint32_t *receiver)
{
    uint32_t best = NONE;

    for (unsigned i = 0; i < m->g->directions; i++) {
        uint32_t channel = place * m->g->directions + i, there = graph_neighbour(m->g, place, i);
        if (there == GRAPH_NO_NODE || m->seen[place_of(m, there)] == m->search ||
            m->waiting[channel] == 0)
            continue;
        there = place_of(m, there);
        if (best == NONE || m->receives[there] > m->receives[*receiver]) {
            best = channel;
            *receiver = there;
        }
    }
    return best;
}

/* Finds a receiver for a place. If another place has that receiver, the other place must find a new
 * one. */
static bool find_receiver(struct maker *m, uint32_t place)
{
    uint32_t receiver = NONE, channel;

    while ((channel = best_channel(m, place, &receiver)) != NONE) {
        m->seen[receiver] = m->search;
        if (m->sender[receiver] == NONE || find_receiver(m, m->sender[receiver])) {
            m->sender[receiver] = place;
            m->along[receiver] = channel;
            return true;
        }
    }
    return false;
}

/* Keeps the order of the places, which changes little from step to step. */
static void sort_places(struct maker *m)
{
    for (uint32_t i = 1; i < m->places; i++) {
        uint32_t place = m->order[i], j = i;
        for (; j > 0 && (m->sends[m->order[j - 1]] < m->sends[place] ||
                         (m->sends[m->order[j - 1]] == m->sends[place] && m->order[j - 1] > place));
             j--)
            m->order[j] = m->order[j - 1];
        m->order[j] = place;
    }
}

static void match(struct maker *m)
{
    for (uint32_t i = 0; i < m->places; i++)
        m->sender[i] = NONE;
    sort_places(m);
    for (uint32_t i = 0; i < m->places && m->sends[m->order[i]] > 0; i++) {
        m->search++;
        (void)find_receiver(m, m->order[i]);
    }
}

/* Fills one step. Returns how many blocks move. */
static uint32_t fill_step(struct maker *m)
{
    uint32_t moving = NONE, count = 0;

    if (m->ports == GRAPH_ONE_PORT) {
        match(m);
        for (uint32_t i = 0; i < m->places; i++)
            if (m->sender[i] != NONE)
                send_block(m, m->along[i], &moving);
    } else {
        for (uint32_t channel = 0; channel < m->channels; channel++)
            if (m->waiting[channel] > 0)
                send_block(m, channel, &moving);
    }
    m->x->steps++;
    for (uint32_t block = moving, following; block != NONE; block = following, count++) {
        following = m->next[block];
        if (m->done[block] < hops_of(m, block))
            queue_block(m, block);
    }
    return count;
}

/* ---- Making and finding ---------------------------------------------------------------------- */

void graph_exchange_free(struct graph_exchange *x)
{
    if (x == NULL)
        return;
    free(x->hops_before);
    free(x->first);
    free(x->hop);
    free(x);
}

static struct graph_exchange *exchange_new(const struct graph *g, uint32_t sources)
{
    struct graph_exchange *x = calloc(1, sizeof *x);
    uint32_t n = g->nodes, hops = 0;

    if (x == NULL)
        return NULL;
    x->graph = g;
    x->hops_before = calloc((size_t)n + 1, sizeof *x->hops_before);
    x->first = calloc((size_t)sources * n, sizeof *x->first);
    x->hop = calloc(sources == 1 ? graph_status(g, 0) : (size_t)graph_hops(g), sizeof *x->hop);
    if (x->hops_before == NULL || x->first == NULL || x->hop == NULL) {
        graph_exchange_free(x);
        return NULL;
    }
    for (uint32_t node = 0; node < n; node++)
        x->hops_before[node + 1] = x->hops_before[node] + graph_status(g, node);
    for (uint32_t block = 0; block < sources * n; block++) {
        x->first[block] = hops;
        hops += graph_distance(g, block / n, block % n);
    }
    return x;
}

static void maker_free(struct maker *m)
{
    free(m->found);
    free(m->kind);
    free(m->load);
    free(m->sends);
    free(m->receives);
    free(m->head);
    free(m->tail);
    free(m->next);
    free(m->waiting);
    free(m->expected);
    free(m->cost);
    free(m->here);
    free(m->done);
    free(m->order);
    free(m->sender);
    free(m->along);
    free(m->seen);
}

/* The direction in which a node's neighbour is; there is one. */
static unsigned direction_to(const struct graph *g, uint32_t from, uint32_t to)
{
    unsigned direction = 0;

    while (graph_neighbour(g, from, direction) != to)
        direction++;
    return direction;
}

/* Sets the kind of each direction of a node. There is one place. */
static void set_kinds(struct maker *m)
{
    const struct graph *g = m->g;

    for (unsigned direction = 0; direction < g->directions; direction++) {
        uint32_t there = graph_neighbour(g, 0, direction);
        for (uint32_t node = 0; there != GRAPH_NO_NODE && node < g->nodes; node++) {
            const uint16_t *move = m->moves != NULL ? m->moves + (size_t)node * g->nodes : NULL;
            unsigned here = move != NULL ? direction_to(g, node, move[there]) : direction;
            m->kind[(size_t)node * g->directions + here] = (uint8_t)direction;
        }
    }
}

/* `m` has the graph, the ports, and moves if they are given. */
static int maker_init(struct maker *m)
{
    const struct graph *g = m->g;
    int found = g->moves || m->ports != GRAPH_ONE_PORT ? 0 : graph_group(g, &m->found);
    if (found == 1)
        m->moves = m->found;
    uint32_t places = g->moves || m->moves != NULL ? 1 : g->nodes;
    size_t lists = (size_t)places * g->directions * (g->diameter + 1);

    m->places = places;
    m->channels = places * g->directions;
    m->blocks = places * g->nodes;
    m->kind = calloc((size_t)g->nodes * g->directions, sizeof *m->kind);
    m->load = calloc(m->channels, sizeof *m->load);
    m->sends = calloc(places, sizeof *m->sends);
    m->receives = calloc(places, sizeof *m->receives);
    m->head = malloc(lists * sizeof *m->head);
    m->tail = malloc(lists * sizeof *m->tail);
    m->next = calloc(m->blocks, sizeof *m->next);
    m->waiting = calloc(m->channels, sizeof *m->waiting);
    m->expected = calloc(m->channels, sizeof *m->expected);
    m->cost = calloc(g->nodes, sizeof *m->cost);
    m->here = calloc(m->blocks, sizeof *m->here);
    m->done = calloc(m->blocks, sizeof *m->done);
    m->order = calloc(places, sizeof *m->order);
    m->sender = calloc(places, sizeof *m->sender);
    m->along = calloc(places, sizeof *m->along);
    m->seen = calloc(places, sizeof *m->seen);
    if (found < 0 || m->kind == NULL || m->load == NULL || m->sends == NULL ||
        m->receives == NULL || m->head == NULL || m->tail == NULL || m->next == NULL ||
        m->waiting == NULL || m->expected == NULL || m->cost == NULL || m->here == NULL ||
        m->done == NULL || m->order == NULL || m->sender == NULL || m->along == NULL ||
        m->seen == NULL)
        return -1;
    for (size_t i = 0; i < lists; i++)
        m->head[i] = NONE;
    for (uint32_t i = 0; i < places; i++)
        m->order[i] = i;
    if (places == 1)
        set_kinds(m);
    return 0;
}

/* Moves the path of a block of node 0 to another source. */
static void move_path(const struct maker *m, uint32_t source, uint32_t block,
                      struct graph_hop *path)
{
    const struct graph_hop *hop = m->x->hop + m->x->first[block];
    const uint16_t *move = m->moves + (size_t)source * m->g->nodes;
    uint32_t node = 0;

    for (uint32_t i = 0; i < hops_of(m, block); i++) {
        uint32_t there = graph_neighbour(m->g, node, hop[i].direction);
        path[i].step = hop[i].step;
        path[i].direction = (uint8_t)direction_to(m->g, move[node], move[there]);
        node = there;
    }
}

/* Returns the exchange of all sources, given that of node 0, which is freed; NULL without memory. */
static struct graph_exchange *move_to_all(struct maker *m)
{
    struct graph_exchange *all = exchange_new(m->g, m->g->nodes);
    uint32_t n = m->g->nodes;

    for (uint32_t source = 0; all != NULL && source < n; source++)
        for (uint32_t node = 1; node < n; node++) {
            uint32_t to = m->moves[(size_t)source * n + node];
            move_path(m, source, node, all->hop + all->first[source * n + to]);
        }
    if (all != NULL)
        all->steps = m->x->steps;
    graph_exchange_free(m->x);
    return all;
}

/* `moves`: NULL, or a group of automorphisms under which the hops of a block move. */
static struct graph_exchange *make(const struct graph *g, enum graph_ports ports,
                                   const uint16_t *moves, uint32_t trial)
{
    struct graph_exchange *x = NULL;
    struct maker m = {.g = g, .ports = ports, .moves = moves, .trial = trial};
    uint32_t left = 0;

    if (maker_init(&m) == 0 && (x = exchange_new(g, m.places)) != NULL) {
        m.x = x;
        choose_paths(&m);
        for (uint32_t block = 0; block < m.blocks; block++) {
            m.here[block] = block / g->nodes;
            left += hops_of(&m, block);
            if (hops_of(&m, block) == 0)
                continue;
            m.expected[next_channel(&m, block, 0, m.here[block])]++;
            queue_block(&m, block);
        }
        while (left > 0)
            left -= fill_step(&m);
        if (m.moves != NULL)
            x = move_to_all(&m);
    }
    maker_free(&m);
    return x;
}

/* The best of several trials; those end when one has `least` steps. */
static struct graph_exchange *make_best(const struct graph *g, enum graph_ports ports,
                                        const uint16_t *moves, uint32_t least)
{
    uint64_t hops = g->moves || moves != NULL ? graph_status(g, 0) : graph_hops(g);
    uint64_t trials = ports == GRAPH_ONE_PORT ? 1 : 1 + TRIALS_HOPS / hops;
    struct graph_exchange *best = make(g, ports, moves, 0);

    for (uint32_t i = 1; best != NULL && i < trials && i < TRIALS_MOST && best->steps > least;
         i++) {
        struct graph_exchange *x = make(g, ports, moves, i);
        if (x == NULL || x->steps >= best->steps) {
            graph_exchange_free(x);
            continue;
        }
        graph_exchange_free(best);
        best = x;
    }
    return best;
}

struct graph_exchange *graph_exchange_new(const struct graph *g, const uint16_t *moves,
                                          uint32_t least)
{
    return make_best(g, GRAPH_ALL_PORTS, moves, least);
}

static const struct graph_exchange *find(const struct graph_exchange *x, const struct graph *g)
{
    while (x != NULL && x->graph != g)
        x = x->next;
    return x;
}

const struct graph_exchange *graph_exchange(const struct graph *g, enum graph_ports ports)
{
    struct graph_exchange *first = atomic_load(&exchanges[ports]), *x;
    const struct graph_exchange *found = find(first, g);

    if (found != NULL || graph_hops(g) > GRAPH_EXCHANGE_HOPS_MOST)
        return found;
    x = make_best(g, ports, NULL, (uint32_t)ceil(g->least_load));
    if (x == NULL)
        return NULL;
    do { /* another thread may have made the same exchange */
        found = find(first, g);
        if (found != NULL) {
            graph_exchange_free(x);
            return found;
        }
        x->next = first;
    } while (!atomic_compare_exchange_weak(&exchanges[ports], &first, x));
    return x;
}

/* ---- Distances ------------------------------------------------------------------------------- */

uint32_t graph_status(const struct graph *g, uint32_t node)
{
    uint32_t sum = 0;

    for (uint32_t to = 0; to < g->nodes; to++)
        sum += graph_distance(g, node, to);
    return sum;
}

uint64_t graph_hops(const struct graph *g)
{
    uint64_t sum = 0;

    for (uint32_t node = 0; node < g->nodes; node++)
        sum += graph_status(g, node);
    return sum;
}

/* The nodes that a node reaches without passing `barrier`, itself included. Marks them. */
static uint32_t reached(const struct graph *g, uint32_t from, uint32_t barrier, bool *marked)
{
    uint32_t queue[GRAPH_NODES_MOST], known = 1;

    queue[0] = from;
    marked[from] = true;
    for (uint32_t i = 0; i < known; i++)
        for (unsigned direction = 0; direction < g->directions; direction++) {
            uint32_t there = graph_neighbour(g, queue[i], direction);
            if (there == GRAPH_NO_NODE || there == barrier || marked[there])
                continue;
            marked[there] = true;
            queue[known++] = there;
        }
    return known;
}

uint64_t graph_relayed_most(const struct graph *g)
{
    uint64_t others = g->nodes - 1, most = 0;

    for (uint32_t node = 0; node < g->nodes; node++) {
        bool marked[GRAPH_NODES_MOST] = {false};
        uint64_t within = 0; /* pairs that are in the same part without the node */
        for (uint32_t i = 0; i < g->nodes; i++)
            if (i != node && !marked[i]) {
                uint64_t part = reached(g, i, node, marked);
                within += part * part;
            }
        most = others * others - within > most ? others * others - within : most;
    }
    return most;
}
