/* A group of programs that all draw the same operations and check the results. This program is a member. */
#pragma once

#include <torus/group.h>

#include <setjmp.h>

/* The size in bytes of each area that operations read or write. */
#define CHECKED_ROOM ((size_t)2 << 20)

struct checked_group {
    struct torus_group *group;
    uint32_t rank, size;
    struct torus_error error; /* the error of the last call that failed */
};

extern struct checked_group self;

/* If set, checked_give_up() jumps to checked_gone_down when the group fails because a link or a node is down. */
extern bool checked_survives;
extern jmp_buf checked_gone_down;

/* Prints self.error as "code: text", and ends the program with status 1. */
void checked_give_up(void);

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != 0)                                                                           \
            checked_give_up();                                                                     \
    } while (0)

/* Prints which data are wrong, and at which byte, and ends the program with status 1. */
void checked_wrong(const char *what, size_t where);

/* Uses this group, or this part of a group, from now on. */
void checked_choose(struct torus_group *group);

/* A random number below `below`, the same on all members with the same seed. */
void checked_seed(uint64_t seed);
uint64_t checked_chance(uint64_t below);

/* The block that one member sends to another in a round: writes it, or checks it and ends the program if it is
 * wrong. */
void checked_write_block(uint8_t *to, uint32_t source, uint32_t destination, size_t bytes,
                         unsigned round);
void checked_block(const char *what, const uint8_t *at, uint32_t source, uint32_t destination,
                   size_t bytes, unsigned round);

/* Calls a random operation with random blocks and areas, and checks its results. Each area has CHECKED_ROOM
 * bytes. */
void checked_operation(uint8_t *const plain[2], uint8_t *const shared[2], unsigned round);
