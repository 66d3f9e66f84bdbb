/* An algorithm is a pure function from (torus, source, destination, segment) to a route: a file of
 * arithmetic, and a row in the registry (algorithms/registry.h). Counts, plans, proofs and real
 * exchanges are all derived from the routes.
 *
 * A leg is a straight run in one dimension. Only the node at its end takes the block out; the nodes
 * inside it relay it cut-through. A route is the list of a block's legs, in strictly rising steps.
 * All blocks that a node sends through one port in one step for the same number of hops form a
 * combined message. */
#pragma once

#include "daemon/lib/schedule/torus.h"

struct plan;     /* plan.h */
struct damage;   /* damage.h */
struct family;   /* algorithms/family.h */
struct imported; /* imported.h */
struct detour;   /* detour.h */

struct leg {
    uint32_t step;
    uint16_t hops; /* at least 1 */
    uint8_t dim;
    int8_t direction; /* 1 or -1 */
};

enum port_model { PORT_MODEL_ALL, PORT_MODEL_ONE };

/* The operation that a schedule is for. In an exchange each block is for one node. In an allgather
 * a node has one block for all others, and route(source, destination) is the path by which the
 * block reaches the destination. The routes of a source form a tree: routes that begin with the
 * same legs share them, and the block crosses these once. */
enum schedule_operation {
    OPERATION_EXCHANGE,
    OPERATION_ALLGATHER,
    /* Carried out by the algorithms for allgathers: a broadcast is an allgather of one node's
     * block, a barrier has no blocks. */
    OPERATION_BROADCAST,
    OPERATION_BARRIER,
    /* Not a schedule: the calls of a group of programs. */
    OPERATION_GROUP,
};
#define OPERATIONS (OPERATION_GROUP + 1u)

struct algorithm;

/* Takes one of the messages that a node sends: its leg and its number of blocks. Returns 0, or -1
 * to end the list. */
typedef int message_fn(void *context, const struct leg *leg, uint64_t blocks);

/* The functions of an algorithm that is made while the program runs. They receive the algorithm
 * itself. Where one is NULL, the function of that name in struct algorithm is called. */
struct algorithm_methods {
    int (*accepts)(const struct algorithm *a, const struct torus *t, struct error *e);
    uint32_t (*max_legs)(const struct algorithm *a, const struct torus *t);
    void (*period)(const struct algorithm *a, const struct torus *t, uint32_t *period);
    uint32_t (*route)(const struct algorithm *a, const struct torus *t, uint32_t source,
                      uint32_t destination, uint32_t segment, struct leg *legs);
    double (*bound)(const struct algorithm *a); /* in blocks; NULL: algorithm_bound() computes it */
    /* NULL, or sets the hops of the longest route, and the blocks on the busiest channel when streamed. */
    void (*streamed)(const struct algorithm *a, uint32_t *longest, double *blocks);
    const char *(*bound_name)(const struct algorithm *a); /* NULL: by operation, ports and hops */
    const struct damage *(*damage)(
        const struct algorithm *a); /* NULL: the routes are for all links alike */
};

struct algorithm {
    /* NULL, or the functions that are called instead of those below, and their data: a schedule
     * that was read from a file, or routes that avoid what is down. */
    const struct algorithm_methods *methods;
    const struct imported *imported;
    const struct detour *detour;

    const char *name;         /* "at2" */
    const char *summary;      /* one line, for people */
    const char *accepts_text; /* which tori it takes, in words */
    const char *startups;     /* formula, for people: "c/2 + 2" */
    const char *transmission; /* formula, for people: "r*c^2/8" */
    const char *source;       /* paper and section */
    enum schedule_operation operation;
    enum port_model port_model;
    unsigned ports;    /* 0, or the most messages that a node sends, or receives, at a time */
    uint32_t segments; /* equal parts that a block is split into; 1: it is not split */
    bool streaming;    /* runs without steps unless the client asks for steps; all legs are
                        * single hops */
    bool any_graph;    /* may accept networks with factors that are neither rings nor lines */
    bool by_lines;     /* blocks go through the dimensions one after another, in an order of each
                        * segment's own, and in a dimension all blocks of a line that have the same
                        * ends there have the same legs. So the routes between the nodes of each line
                        * make up all others */
    bool only_by_name; /* `auto` does not choose it: nodes of an older release would refuse it */
    bool single_hops;  /* one-port: a node receives a block before it passes the block on, so
                        * that every hop costs time; algorithm_bound() is that of this model */

    /* Whether the algorithm takes this torus; NULL: it takes all that any_graph allows. */
    bool (*takes)(const struct torus *t);

    /* The most legs of any route on this torus. */
    uint32_t (*max_legs)(const struct torus *t);

    /* Writes the translation period of each dimension, a divisor of its size, into an array of
     * t->dims. If source and destination move together by a multiple of the period, the route moves
     * with them, and nothing else changes. With a period of 1 all nodes of a line do the same;
     * t->size[i] promises nothing. */
    void (*period)(const struct torus *t, uint32_t *period);

    /* NULL, or a second symmetry, for algorithms made of XOR: XOR takes the place of addition, and
     * sizes and periods are powers of two. If the coordinates of source and destination are XORed
     * with multiples of the period, so are the ends of the route's legs; their steps and dimensions
     * stay. Each leg is the shortest path between its ends, in the same direction as before if both
     * are equally long. Unlike under translation, the nodes inside a leg do not move along. */
    void (*xor_period)(const struct torus *t, uint32_t *period);

    /* NULL, or for algorithms whose blocks all go through the dimensions in ascending order: the
     * highest step of the schedule + 1. Then a node's plan can leave out blocks that cannot pass
     * the node. */
    uint32_t (*ordered_steps)(const struct torus *t);

    /* Writes the route of one segment of block (source, destination), source != destination.
     * Returns the number of legs, 1..max_legs(t), or 0 if there is no such block because one of the
     * two nodes is down (detour.h). The torus must be accepted. */
    uint32_t (*route)(const struct torus *t, uint32_t source, uint32_t destination,
                      uint32_t segment, struct leg *legs);

    /* NULL, or rules that replace a walk over all routes, for an algorithm without a period. plan()
     * fills a node's plan and returns 0, or -1 with nothing to free if there is no memory.
     * peak_transit() returns the most blocks in transit at any node. The torus must be accepted. */
    int (*plan)(struct plan *p, const struct torus *t, uint32_t rank);
    uint64_t (*peak_transit)(const struct torus *t);

    /* NULL, or a rule for the messages of a node, on tori and meshes whose routes are too many to
     * follow (schedule_verify()). Calls `fn` for each message that the node sends. Returns 0, or -1
     * once `fn` has. */
    int (*messages)(const struct algorithm *a, const struct torus *t, uint32_t rank, message_fn *fn,
                    void *context);

    /* NULL, or the family that the algorithm belongs to, and its degree there. Members that are not
     * in the registry have no route(): use algorithm_route(). */
    const struct family *family;
    uint32_t degree;
};

/* Call the functions above, for any algorithm: of the registry, of a family, from a file, or a
 * detour. */
int algorithm_accepts(const struct algorithm *a, const struct torus *t, struct error *e);
uint32_t algorithm_max_legs(const struct algorithm *a, const struct torus *t);
void algorithm_period(const struct algorithm *a, const struct torus *t, uint32_t *period);
uint32_t algorithm_route(const struct algorithm *a, const struct torus *t, uint32_t source,
                         uint32_t destination, uint32_t segment, struct leg *legs);

/* The rates of the links for which the routes were found; NULL for the algorithms of the registry and of files. */
const struct damage *algorithm_damage(const struct algorithm *a);

/* Sets *e (ERROR_REFUSED), naming the tori that the algorithm takes, and this one.
 * Returns -1. */
int algorithm_refuse(const struct algorithm *a, const struct torus *t, struct error *e);

const char *port_model_name(enum port_model model); /* "all-port", "one-port" */
/* "all-port", "one-port" or, if the algorithm limits the ports, "2-port". */
const char *algorithm_ports_name(const struct algorithm *a);

const char *schedule_operation_name(enum schedule_operation operation); /* "exchange", "barrier" */

/* The operation of the algorithms that carry out this operation: OPERATION_EXCHANGE or
 * OPERATION_ALLGATHER. */
static inline enum schedule_operation
schedule_operation_of_algorithms(enum schedule_operation operation)
{
    return operation == OPERATION_EXCHANGE ? OPERATION_EXCHANGE : OPERATION_ALLGATHER;
}

/* A lower bound in blocks on the transmission, for the algorithm's operation, port model and hops:
 * see torus.h, and product.h for single hops. The other function returns its name: "one-port,
 * single hops". */
double algorithm_bound(const struct algorithm *a, const struct torus *t);
const char *algorithm_bound_name(const struct algorithm *a);
