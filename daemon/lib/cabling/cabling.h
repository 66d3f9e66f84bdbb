/* From cables to a network: recognises the torus, mesh, ring or other product of factors (torus.h) that the cables
 * between hosts make, and finds a rank for each host and a port for each interface. If a few cables are wrong, finds
 * the least re-plugging that makes a network of it. Pure computation without I/O.
 *
 * The names of the hosts determine the numbering: it is the one whose list of names, in the order of ranks, comes first
 * in the alphabet. Names are compared as people sort them: node2 comes before node10. Two lines of two nodes count as a
 * ring of four (`4`, not `2mx2m`), unless dimensions are wanted.
 *
 * Not thread-safe if the network has factors that are neither rings nor lines: see schedule/graph/graph.h. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/lib/schedule/torus.h"
#include "proto/error.h"

#define CABLING_HOSTS_MOST 1024u
#define CABLING_INTERFACES_MOST 64u /* of a host */
#define CABLING_HEARD_MOST 4096u    /* by an interface */
#define CABLING_MOVES_MOST                                                                         \
    4u /* if more is wrong, the finding is CABLING_UNCLEAR or CABLING_GRAPH */
#define CABLING_NONE UINT32_MAX

/* An interface of a host, by their places in the input. */
struct cabling_end {
    uint32_t host, interface; /* CABLING_NONE: not known */
};

struct cabling_interface {
    const char *name;
    bool carrier;
    bool excluded;                   /* not part of the network: its cables are ignored */
    const struct cabling_end *heard; /* the interfaces that are heard here, in any order */
    uint32_t heard_count;
    /* The port that this interface should have, for example as in a cluster file: a port of `wanted` at the rank of
     * the host, or -1. Only hosts with a rank have such ports. */
    int port;
};

struct cabling_host {
    const char *name; /* not empty; all names are different */
    const struct cabling_interface *interface;
    uint32_t interfaces;
    uint32_t rank; /* that this host should have in `wanted`, or CABLING_NONE */
};

/* Everything belongs to the caller, and must live as long as the result is used. */
struct cabling_input {
    const struct cabling_host *host;
    uint32_t hosts;
    const struct torus *wanted; /* the dimensions that the cables should make; NULL: find them */
    const char *const
        *expected; /* names of the hosts of `wanted` by rank, for sentences; NULL: not known */
};

enum cabling_finding {
    CABLING_FITS, /* the cables make the network; a move can only replace a cable that works one way */
    CABLING_NEAR,  /* they make it after the moves; ranks and ports are those after the moves */
    CABLING_GRAPH, /* they make none, and no few moves help: `torus` is one graph of these cables */
    CABLING_UNCLEAR /* too much is wrong, the cables leave the hosts in parts, or there are none */
};

enum cabling_cable_state {
    CABLING_CABLE_KEPT,  /* it stays as it is */
    CABLING_CABLE_WRONG, /* a move moves or removes it */
    CABLING_CABLE_ONE_WAY /* only one end hears the other; it stays where it is, but must be replaced */
};

/* A cable as it is plugged now. */
struct cabling_cable {
    struct cabling_end
        end[2]; /* with CABLING_CABLE_ONE_WAY, end[1] hears end[0], but not the reverse */
    enum cabling_cable_state state;
};

enum cabling_move_kind {
    CABLING_MOVE_END, /* move the end in `from` to `to`; the other end, `stays`, stays */
    CABLING_SWAP,     /* swap the plugs in `from` and `to`, of two cables */
    CABLING_ADD,      /* a cable between `from` and `to` is missing or dead */
    CABLING_PLUG, /* the cable in `from` has a carrier and leads to no known interface: its other end goes to `to` */
    CABLING_CHECK, /* `from` and `to` have a carrier and should hear each other, but neither hears anybody */
    CABLING_REMOVE,    /* remove the cable between `from` and `to` */
    CABLING_REPLACE,   /* `to` hears `from`, but not the reverse: replace the cable */
    CABLING_START_HOST /* the host of rank `rank` is missing: it is down, or is not cabled at all */
};

/* Moves are listed in the order in which to make them: if an interface has to be free for a move, an earlier move
 * frees it. A missing host has host and interface CABLING_NONE; a host without a free interface for a cable has
 * interface CABLING_NONE. */
struct cabling_move {
    enum cabling_move_kind kind;
    struct cabling_end from, to, stays;
    uint32_t rank;
};

/* A network card may show one port as several interfaces (functions). Only one of them is taken. */
struct cabling_twin {
    struct cabling_end left_out;
    uint32_t taken; /* the interface of the same host that has the cable */
};

struct cabling_result {
    enum cabling_finding finding;
    char text[512];         /* one sentence: what the cables make, or why that is not clear */
    struct torus torus;     /* not with CABLING_UNCLEAR */
    uint32_t *host_of_rank; /* CABLING_NONE: the host is missing */
    uint32_t *rank_of_host; /* CABLING_NONE: the host has no place */
    uint32_t *interface_at; /* by rank * torus_ports() + port: the interface; CABLING_NONE: none */
    struct cabling_cable *cable;
    uint32_t cables;
    struct cabling_move *move;
    uint32_t moves;
    struct cabling_end *
        shared; /* interfaces that hear more than one other host: a switch, not a cable; left out */
    uint32_t shared_count;
    struct cabling_twin
        *twin; /* interfaces that are left out, because another one has their cable */
    uint32_t twins;
};

/* Finds the network. Returns 0 with *result, to be freed by cabling_free(); -1 with *e if the input is invalid (too
 * many hosts or interfaces, places that do not exist, two hosts with one rank or name: ERROR_USAGE) or there is no
 * memory, with nothing to free. The time is bounded: milliseconds up to 8x8, less than a second up to 1024 hosts. */
int cabling_find(struct cabling_result *result, const struct cabling_input *input, struct error *e);
void cabling_free(struct cabling_result *result);

/* Writes the dimensions as torus_parse() reads them. A graph that is not a known kind is written as
 * "graph:" and `graph_file`, to which the caller writes the edges (graph_edges()); NULL: as torus_format() does.
 * Returns the length that the text needs, as snprintf(). */
int cabling_dims(const struct torus *t, const char *graph_file, char *text, size_t size);

/* Writes what to do as one sentence without a full stop: "move the cable in gamma's eth2 to delta's eth1 (its other
 * end stays in beta's eth0)". Returns the length that the text needs, as snprintf(). */
int cabling_move_text(const struct cabling_result *result, const struct cabling_input *input,
                      uint32_t move, char *text, size_t size);
