#include "daemon/lib/schedule/predict.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/damage.h"
#include "daemon/lib/schedule/product.h"
#include "daemon/lib/schedule/reduction.h"
#include "daemon/lib/schedule/routes.h"
#include "daemon/lib/schedule/tally.h"
#include "daemon/lib/schedule/verify.h"
#include "daemon/lib/schedule/work.h"

#define UNKNOWN_MBIT 1000.0
/* Seconds of a processor for a message, as measured on tori of 16 to 64 nodes; and seconds of a
 * step between machines, and between processes of one machine. */
#define MESSAGE 10e-6
#define LONG_STEP 40e-6
#define SHORT_STEP 10e-6
/* The part of a nominal rate that blocks get: 1448 of 1514 bytes, after the headers of TCP, IP and
 * Ethernet. */
#define GOODPUT 0.956

struct predict_costs predict_default_costs(double link_mbit, double nodes_per_processor)
{
    double mbit = link_mbit > 0 ? link_mbit : UNKNOWN_MBIT;
    bool shared = nodes_per_processor > 1;

    return (struct predict_costs){.step = shared ? SHORT_STEP : LONG_STEP,
                                  .message = MESSAGE * (shared ? nodes_per_processor : 1),
                                  .bytes_per_second = mbit * 1e6 / 8 * GOODPUT};
}

/* TCP's payload in a full packet of Ethernet, over IPv6 with time stamps; and the part of it that
 * the prefix and the head of a frame take. */
#define PACKET 1428u
#define HEAD 28u

/* A frame takes FRAME_COSTS times as long on its link as it costs a processor. A node of a torus of two dimensions
 * whose links are all busy in both directions then spends half of a processor on frames. */
#define FRAME_COSTS 16
#define FRAMES_A_MESSAGE 64u /* frames of a message that make a further hop cheap */

/* The largest frame of at most `bytes` that fills whole packets, but at least one packet, and at
 * most RELAY_FRAME_MOST. */
static uint32_t whole_packets(double bytes)
{
    if (bytes >= RELAY_FRAME_MOST)
        return RELAY_FRAME_MOST;
    uint32_t packets = ((uint32_t)bytes + HEAD) / PACKET;
    return (packets > 0 ? packets : 1) * PACKET - HEAD;
}

uint32_t relay_frame(double link_mbit, double nodes_per_processor, uint64_t link_burst)
{
    const struct predict_costs costs = predict_default_costs(link_mbit, nodes_per_processor);
    double bytes = costs.bytes_per_second * costs.message * FRAME_COSTS;

    if (link_mbit <= 0)
        return RELAY_FRAME_MOST;
    return whole_packets((double)link_burst > bytes ? (double)link_burst : bytes);
}

uint32_t relay_frame_of(uint32_t frame, uint64_t message_bytes)
{
    uint32_t many = whole_packets((double)message_bytes / FRAMES_A_MESSAGE);

    return many > frame ? many : frame;
}

#define QUICK_ROUTES 4e6
/* Extra time of a step, as a part of the time of its busiest channel. Links are not equally fast at
 * every moment, and a step waits for the slowest. Observed on links at their limit. */
#define STEP_SKEW 0.04
#define STREAM_HOPS 0.9 /* messages through each link for every hop after the first */
#define FRAME 4096.0    /* bytes of a broadcast for which a relay waits at most */
/* How many messages an allgather whose blocks travel in segments sends for each message in the steps of its trees.
 * Counted: 8 to 11 through each link of a 4x4, where there are 7 steps. */
#define PARTS_APART 1.5
/* A message of a broadcast comes alone and wakes its node, whereas a node handles several messages
 * of an exchange or allgather at a time. Measured with small blocks, whole and in segments: 0.39
 * and 1.5 ms on 4x8, 0.16 and 0.8 ms on 4x4. */
#define ALONE 2.5
/* Short blocks of an allgather that are not split come one by one, too, and each wakes a node.
 * Measured with 8 bytes: 2.0 ms where the model has 0.6 on 4x4 at 50 Mbit/s, 4.8 ms where it has
 * 2.4 on 4x8 at 20 Mbit/s. */
#define GATHER_APART 2.0
/* Nodes handle some messages while others are on the links. The time of both is between the longer
 * of the two (a high exponent) and their sum (exponent 1). Observed on 8x8 at 10 Mbit/s with blocks
 * of 64 and 256 bytes: 4.9 and 14.5 ms, of 2.5 ms for messages and 3.4 and 13.8 ms for bytes. */
#define OVERLAP 1.5

bool predict_is_quick(const struct torus *t, const struct algorithm *a)
{
    if (a->detour != NULL)
        return true; /* see predict_count() */
    /* In graphs all legs are single hops, so that long routes take most of the time. */
    return work_routes(t, a) <= QUICK_ROUTES &&
           (torus_is_plain(t) || work_of(t, a) <= (double)WORK_QUICK);
}

/* Sets counts->messages to the messages that a node sends or passes on, on average over the
 * nodes. */
static int count_messages(const struct torus *t, const struct algorithm *a,
                          struct predict_counts *counts, struct error *e)
{
    struct tally messages = {0};
    struct routes r;
    int rc = 0;

    if (routes_open(&r, t, a, e) != 0)
        return -1;
    while (rc == 0 && routes_next(&r)) {
        uint32_t here = r.source;
        for (uint32_t i = 0; i < r.legs && rc == 0; i++) {
            const struct leg *leg = &r.leg[i];
            unsigned port = torus_port(t, leg->dim, leg->direction);
            uint64_t at = (uint64_t)r.class_of[here] * TORUS_MAX_PORTS + port;
            if (i >= routes_new_legs(&r))
                rc = tally_add(&messages, at << 40 | (uint64_t)leg->step << 16 | leg->hops);
            here = routes_leg_end(&r, here, leg);
        }
    }
    if (rc == 0)
        rc = tally_sort(&messages);
    double crossed = 0;
    for (size_t i = 0; i < messages.count; i++)
        crossed += (double)(messages.at[i].key & UINT16_MAX);
    counts->messages = crossed / r.classes;
    tally_free(&messages);
    routes_close(&r);
    return rc == 0 ? 0 : error_set(e, ERROR_MEMORY, "out of memory to count messages");
}

static double links_of_a_node(const struct torus *t)
{
    return 2.0 * (double)torus_links(t) / t->nodes;
}

/* Small blocks: a node sends to every neighbour what it has itself and then, for at most the hops of the longest
 * path, what has come from farther away. Counted: 12, 18 to 24, and 24 to 40 messages on 4x4, 5x7 and 8x8. */
static void count_streaming(const struct torus *t, uint32_t longest, double busiest,
                            struct predict_counts *counts)
{
    counts->steps = longest;
    counts->messages = links_of_a_node(t);
    if (torus_diameter(t) > 1)
        counts->messages *= 1 + STREAM_HOPS * (torus_diameter(t) - 1);
    counts->blocks = counts->busiest = busiest;
}

int predict_count(const struct torus *t, const struct algorithm *a, bool streaming,
                  struct predict_counts *counts, struct error *e)
{
    return predict_count_rated(t, a, streaming, algorithm_damage(a), counts, e);
}

int predict_count_rated(const struct torus *t, const struct algorithm *a, bool streaming,
                        const struct damage *rates, struct predict_counts *counts, struct error *e)
{
    struct schedule_report report;

    *counts = (struct predict_counts){.streaming = streaming, .segments = a->segments};
    if (a->operation != OPERATION_EXCHANGE)
        return error_set(e, ERROR_USAGE, "%s is not an algorithm for exchanges", a->name);
    if (streaming && a->detour != NULL) { /* found routes know their counts */
        if (algorithm_accepts(a, t, e) != 0)
            return -1;
        uint32_t longest;
        double blocks;
        a->methods->streamed(a, &longest, &blocks);
        count_streaming(t, longest, blocks, counts);
        return 0;
    }
    if (count_messages(t, a, counts, e) != 0)
        return -1;
    if (streaming) {
        count_streaming(t, torus_diameter(t), torus_bound_all_port(t), counts);
        return 0;
    }
    if (schedule_verify_rated(t, a, rates, &report, e) != 0)
        return -1;
    counts->steps = report.startups;
    counts->hops = (double)(report.hops - report.startups);
    counts->blocks = report.critical_path / a->segments;
    counts->busiest = report.busiest / a->segments;
    return 0;
}

/* Sets *most to the segments of one node's block on the busiest channel: of the first node that has a block or, with
 * different rates, of the node that needs the most time. */
static int count_branches(const struct torus *t, const struct algorithm *a, double *most,
                          struct error *e)
{
    const struct damage *damage = algorithm_damage(a);
    const bool rated = damage != NULL && damage->rate != NULL;
    unsigned ports = torus_ports(t);
    uint32_t *load = calloc((size_t)t->nodes * ports, sizeof *load);
    uint32_t class = UINT32_MAX; /* of the current node */
    struct routes r;

    *most = 0;
    if (load == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory to count messages");
    if (routes_open(&r, t, a, e) != 0) {
        free(load);
        return -1;
    }
    while (routes_next(&r)) {
        uint32_t here = r.source;
        if (r.source_class != class && class != UINT32_MAX && !rated)
            break;
        if (r.source_class != class)
            memset(load, 0, (size_t)t->nodes * ports * sizeof *load);
        class = r.source_class;
        for (uint32_t i = 0; i < r.legs; i++) {
            unsigned port = torus_port(t, r.leg[i].dim, r.leg[i].direction);
            for (uint16_t hop = 0; hop < r.leg[i].hops; hop++) {
                load[here * ports + port] += i >= routes_new_legs(&r);
                double its = load[here * ports + port];
                if (rated)
                    its *= (double)DAMAGE_FULL_RATE / damage_rate(damage, here, port);
                *most = its > *most ? its : *most;
                here = routes_neighbour(&r, here, port);
            }
        }
    }
    routes_close(&r);
    free(load);
    return 0;
}

int predict_count_gather(const struct torus *t, const struct algorithm *a, bool one, bool streaming,
                         struct predict_counts *counts, struct error *e)
{
    struct schedule_report report;
    double branches;

    *counts = (struct predict_counts){.streaming = streaming, .segments = a->segments};
    if (a->operation != OPERATION_ALLGATHER)
        return error_set(e, ERROR_USAGE, "%s is not an algorithm for allgathers", a->name);
    if (count_messages(t, a, counts, e) != 0 || schedule_verify(t, a, &report, e) != 0 ||
        count_branches(t, a, &branches, e) != 0)
        return -1;
    counts->steps = report.startups;
    counts->blocks = (double)(streaming ? report.busiest : report.critical_path) / a->segments;
    if (streaming && a->segments > 1)
        counts->messages *= PARTS_APART;
    if (one) {
        counts->messages = ALONE * a->segments * (t->nodes - 1) / t->nodes;
        counts->blocks = branches / a->segments * (streaming ? 1 : report.startups);
        if (streaming && report.startups > 0)
            counts->relays = report.startups - 1;
    }
    counts->busiest = counts->blocks;
    return 0;
}

#define LONG_REDUCTION 1e9 /* bytes: longer vectors are always combined on all trees */

/* Seconds of an allreduce on a single tree. The first chunk goes up and down level by level. The
 * others follow at the rate of a channel, or of a node that handles each of them on every port. */
static double reduce_on_one_tree(const struct torus *t, const struct predict_costs *costs,
                                 double bytes)
{
    double hops = 2.0 * torus_diameter(t), chunk = fmin(bytes, REDUCTION_LEAST_CHUNK);
    double crossing = chunk / costs->bytes_per_second;
    double handling = torus_ports(t) * costs->message;

    return hops * (costs->step + costs->message + (costs->frame > 0 ? crossing : 0)) +
           (ceil(bytes / chunk) - 1) * fmax(crossing, handling);
}

/* Seconds of an allreduce on the trees of all nodes: all channels share the bytes, and carry a
 * message on each level. */
static double reduce_on_all_trees(const struct torus *t, const struct predict_costs *costs,
                                  double bytes)
{
    double hops = 2.0 * torus_diameter(t);

    return hops * (costs->step + torus_ports(t) * costs->message) +
           torus_bound_allreduce(t) * bytes / costs->bytes_per_second;
}

uint64_t predict_long_reduction(const struct torus *t, const struct predict_costs *costs)
{
    double bytes = t->nodes;

    /* On a line a single tree is as good as any number. */
    if (t->nodes <= 2 || costs->bytes_per_second <= 0 || torus_bound_allreduce(t) >= 1)
        return UINT64_MAX;
    while (bytes < LONG_REDUCTION &&
           reduce_on_one_tree(t, costs, bytes) < reduce_on_all_trees(t, costs, bytes))
        bytes *= 1.1;
    return (uint64_t)bytes;
}

uint32_t predict_frame(double link_mbit, double nodes_per_processor, uint64_t link_burst)
{
    uint32_t frame = relay_frame(link_mbit, nodes_per_processor, link_burst);

    return link_mbit > 0 && link_burst < frame ? frame : 0;
}

/* Bytes for which a node waits: the `blocks` of its own messages and, for each of their further
 * hops, the bytes for which a relay waits. */
static double bytes_waited_for(const struct predict_counts *c, const struct predict_costs *costs,
                               double blocks, uint64_t block_bytes)
{
    double own = blocks * (double)block_bytes;
    double taken_in = fmin((double)block_bytes / c->segments, FRAME);
    double bytes = own + (taken_in > (double)costs->burst ? c->relays * taken_in : 0);

    if (c->hops <= 0 || c->steps <= 0 || costs->frame == 0)
        return bytes;
    double message = own / c->steps;
    double frame = relay_frame_of(costs->frame, message < 1e15 ? (uint64_t)message : UINT64_MAX);
    return bytes + c->hops * (message < frame ? message : frame);
}

/* Seconds of an operation for which `bytes` cross the links one after another. */
static double seconds_of(const struct predict_counts *c, const struct predict_costs *costs,
                         double bytes)
{
    double handled = c->messages * costs->message;
    double sent = bytes / costs->bytes_per_second;

    /* The costs of the many frames of a long message are part of the measured rate. */
    if (!c->streaming)
        sent *= 1 + STEP_SKEW;
    return c->steps * costs->step + pow(pow(handled, OVERLAP) + pow(sent, OVERLAP), 1 / OVERLAP);
}

double predict_seconds(const struct predict_counts *c, const struct predict_costs *costs,
                       uint64_t block_bytes)
{
    return seconds_of(c, costs, bytes_waited_for(c, costs, c->blocks, block_bytes));
}

double predict_unmeasured_seconds(const struct predict_counts *c, const struct predict_costs *costs,
                                  uint64_t block_bytes)
{
    double bytes = bytes_waited_for(c, costs, c->blocks, block_bytes);
    double at_once = seconds_of(c, costs, bytes > (double)costs->burst ? bytes : 0);
    double sustained = seconds_of(c, costs, bytes_waited_for(c, costs, c->busiest, block_bytes));

    return hypot(at_once, fmax(sustained - at_once, 0));
}

/* Seconds of an allgather as a reduction. The vector of all blocks goes up and down the tree, and
 * every link of the tree carries all of it. Half of the time for the bytes always counts, because
 * bytes that a link has passed at once delay the next call. */
static double joined_seconds(const struct torus *t, const struct predict_costs *costs, double bytes)
{
    double hops = 2.0 * torus_diameter(t);
    double crossing = bytes > (double)costs->burst
                          ? fmin(bytes, REDUCTION_LEAST_CHUNK) / costs->bytes_per_second
                          : 0;
    double at_once = hops * (costs->step + costs->message + crossing);

    return at_once + bytes / costs->bytes_per_second / 2;
}

bool predict_joins_gather(const struct torus *t, const struct predict_counts *streaming,
                          const struct predict_costs *costs, uint64_t block_bytes)
{
    double apart = streaming->segments > 1 ? 1 : GATHER_APART;

    return joined_seconds(t, costs, (double)t->nodes * (double)block_bytes) <
           predict_unmeasured_seconds(streaming, costs, block_bytes) +
               (apart - 1) * streaming->messages * costs->message;
}

double predict_rate(const struct predict_counts *c, const struct predict_costs *costs,
                    uint64_t block_bytes, double seconds)
{
    double handled = c->messages * costs->message;
    double rest = seconds - c->steps * costs->step;
    double sent = rest > handled ? pow(pow(rest, OVERLAP) - pow(handled, OVERLAP), 1 / OVERLAP) : 0;

    /* If hardly any time is left for bytes, the time was not taken by bytes. */
    if (sent < seconds / 2)
        sent = seconds;
    if (!c->streaming)
        sent /= 1 + STEP_SKEW;
    return bytes_waited_for(c, costs, c->blocks, block_bytes) / sent;
}

void predict_fit(const struct predict_counts *counts, const double *seconds, size_t count,
                 struct predict_costs *costs)
{
    double aa = 0, ab = 0, bb = 0, a = 0, b = 0;

    /* Solves steps * x + messages * y = seconds, each equation divided by its seconds. */
    for (size_t i = 0; i < count; i++) {
        double s = counts[i].steps / seconds[i], m = counts[i].messages / seconds[i];
        aa += s * s;
        ab += s * m;
        bb += m * m;
        a += s;
        b += m;
    }
    double determinant = aa * bb - ab * ab;
    double step = fabs(determinant) > 1e-9 * aa * bb ? (a * bb - b * ab) / determinant : -1;
    double message = fabs(determinant) > 1e-9 * aa * bb ? (b * aa - a * ab) / determinant : -1;

    if (step < 0 || message < 0) { /* the one that explains more alone */
        double by_step = aa > 0 ? a / aa : 0, by_message = bb > 0 ? b / bb : 0;
        bool steps_explain_more = by_step * a >= by_message * b;
        step = steps_explain_more ? by_step : 0;
        message = steps_explain_more ? 0 : by_message;
    }
    costs->step = step;
    costs->message = message;
}
