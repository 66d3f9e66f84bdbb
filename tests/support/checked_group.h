/* A group that this program is a member of: all members draw the same operations, and check what these deliver. */
#ifndef TORUSD_TESTS_SUPPORT_CHECKED_GROUP_H
#define TORUSD_TESTS_SUPPORT_CHECKED_GROUP_H

#include <torus/group.h>

#include <setjmp.h>

/* Bytes of each of the places that operations read and write. */
#define CHECKED_ROOM ((size_t)2 << 20)

struct checked_group {
    struct torus_group *group;
    uint32_t rank, size;
    struct torus_error error; /* of the last call that has failed */
};

extern struct checked_group self;

/* If so, checked_give_up() jumps there when the group has failed so that shrinking helps. */
extern bool checked_survives;
extern jmp_buf checked_gone_down;

/* Prints "code: text" of self.error, and ends the program with status 1. */
void checked_give_up(void);

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != 0)                                                                           \
            checked_give_up();                                                                     \
    } while (0)

/* Prints what is wrong, and at which byte, and ends the program with status 1. */
void checked_wrong(const char *what, size_t where);

/* Takes this group, or this part of one, for all that follows. */
void checked_choose(struct torus_group *group);

/* A number below this one, the same on all members that have the same seed. */
void checked_seed(uint64_t seed);
uint64_t checked_chance(uint64_t below);

/* A block that one member sends to another in a round: writes it, or ends the program if it is not that one. */
void checked_write_block(uint8_t *to, uint32_t source, uint32_t destination, size_t bytes,
                         unsigned round);
void checked_block(const char *what, const uint8_t *at, uint32_t source, uint32_t destination,
                   size_t bytes, unsigned round);

/* Calls an operation that is drawn, with blocks and places that are drawn, and checks what it delivers. Each place
 * has CHECKED_ROOM bytes: to read from, and to write to. */
void checked_operation(uint8_t *const plain[2], uint8_t *const shared[2], unsigned round);

#endif
