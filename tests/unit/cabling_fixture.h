/* Machines with interfaces and cables for the tests of daemon/lib/cabling/: builds a network in any order of hosts and
 * interfaces, makes faults, and carries out the moves that are found. */
#pragma once

#include "daemon/lib/cabling/cabling.h"

#define WORLD_INTERFACES 12u /* of a host, at most */

enum plugged_state {
    PLUGGED_GOOD,
    PLUGGED_ONE_WAY, /* end[1] hears end[0], not the reverse */
    PLUGGED_DEAD,    /* both ends have a carrier, and hear nothing */
    PLUGGED_PULLED   /* only end[0] is plugged in; no carrier */
};

struct plugged {
    struct cabling_end end[2]; /* host CABLING_NONE: an unknown device, or nothing */
    enum plugged_state state;
};

struct world {
    struct torus torus; /* that the cables make without faults */
    uint32_t hosts;
    uint32_t host_at[CABLING_HOSTS_MOST];    /* by rank */
    uint32_t interfaces[CABLING_HOSTS_MOST]; /* by host */
    int port[CABLING_HOSTS_MOST]
            [WORLD_INTERFACES]; /* that an interface had before the faults; -1: none */
    char host_name[CABLING_HOSTS_MOST][16], interface_name[WORLD_INTERFACES][16];
    uint32_t down; /* a host that is not heard; CABLING_NONE: all are */
    struct plugged *cable;
    uint32_t cables, room;
    uint64_t random;
    /* The input of cabling_find(), made by world_input(). */
    struct cabling_host *host;
    struct cabling_interface *interface;
    struct cabling_end *heard;
    struct cabling_input input;
    uint32_t seen_as[CABLING_HOSTS_MOST]; /* by host: its place in the input */
    uint32_t host_of[CABLING_HOSTS_MOST]; /* by place in the input */
};

enum world_fault {
    FAULT_MISSING,
    FAULT_PULLED,
    FAULT_CROSSED,
    FAULT_WRONG_HOST, /* an end is plugged into another host */
    FAULT_LOOP,       /* an end is plugged into the host of the other end */
    FAULT_ONE_WAY,
    FAULT_EXTRA, /* a cable too much */
    FAULT_TWICE, /* a second cable between two neighbours, instead of another one */
    FAULT_DEAD,
    FAULT_STRAY, /* an end is plugged into an unknown device */
    FAULT_HOST_DOWN,
    WORLD_FAULTS
};

/* Builds a network. `spare`: interfaces of each host that no cable is in. With `named`, hosts are named in order of
 * rank, otherwise at random. */
struct world *world_make(const char *dims, uint32_t spare, bool named, uint64_t seed);
void world_free(struct world *w);

/* Adds a cable. */
void world_plug(struct world *w, struct cabling_end a, struct cabling_end b);

uint32_t world_random(struct world *w, uint32_t below);

/* Makes a fault at random. Returns whether this was possible. */
bool world_break(struct world *w, enum world_fault fault);

/* The input; `wanted`: the dimensions; `places`: also all ranks and ports as they were before the faults. */
const struct cabling_input *world_input(struct world *w, bool wanted, bool places);

/* Carries out all moves. Then fails the test unless the cables make the network of the result, each link by the
 * interfaces that the result names, and no cable is left over. The links of a missing host cannot be checked. */
void world_repair(struct world *w, const struct cabling_result *r);

/* Prints the cables and the result, for a test that fails. */
void world_print(const struct world *w, const struct cabling_result *r);
