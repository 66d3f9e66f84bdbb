/* What a program (libtorus) and the daemon on its machine share while the program has a group open:
 * messages on a socket, a page with its calls, and memory. Everything stays on one machine.
 *
 * Socket: SOCK_SEQPACKET at the path of the control socket with PROGRAM_SOCKET_SUFFIX behind it.
 * One connection a group. Every message is one struct program_message.
 *
 *     program                                    daemon
 *     OPEN name, timeout, flags           ->
 *                                         <-     OPENED rank, dims, and three descriptors: the file
 *                                                of the page, the doorbell, the end for notices
 *     MEMORY size                         ->
 *                                         <-     FILE number, and the descriptor of a file
 *     MEMORY_READY number                 ->     (the program has allocated all of the file)
 *                                         <-     MEMORY_TAKEN number
 *     MEMORY_FREE number                  ->
 *     NOTICE                              ->     (from now on; and one at once)
 *     LEAVE                               ->     (and closes)
 *
 * Before OPEN, MEMBERS messages name the members of a group of some nodes, as many as needed; an older
 * daemon refuses this kind. SHRINK is OPEN for a group that leaves out nodes that are down. MISSING
 * messages before OPENED name these nodes, and those that are no members, as many as needed. The daemon
 * answers OPEN and SHRINK with ERROR and closes if the group cannot be opened; likewise any message that
 * breaks these rules. MEMORY and MEMORY_READY may be answered with MEMORY_REFUSED. With the flag TELL,
 * any number of WAITING messages may come before all of these; each has the number of nodes that have
 * not opened the group, and their ranks, as far as the daemon knows. A program asks for one memory at a time, and reads the answer before it
 * sends the next message of that kind. A connection that ends without LEAVE means that the program
 * has died: its group fails.
 *
 * The daemon makes all descriptors, and takes none from programs: it maps memfds of tmpfs with a
 * fixed size (F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL), and closing them waits for nobody.
 *
 * Page: call number k uses slot k % PROGRAM_CALLS, which no other call that has not ended uses.
 * The first number is 0; a program leaves out the numbers whose slots are in use (in version 1 it
 * waits instead). It fills in the slot's request with that number, sets `submitted` to k + 1, and rings: it sets `rung`,
 * and if `rung` was 0, it adds 1 to the doorbell (an eventfd). The daemon sets `rung` to 0 before
 * it looks. When the call has ended, the daemon fills in the outcome, sets the slot's `ended` to k
 * + 1, and adds 1 to the page's `ended`. If `waiting` is set, the daemon clears it and wakes up a
 * futex wait for the page's `ended`. If the program has asked for notices, the daemon sets
 * `noticed`, and if `noticed` was 0, sends one byte to the end for notices. If the request asks for
 * it, the daemon finds out after some time which nodes the call waits for: until the call ends, the
 * text of the slot's outcome names them if `late` is k + 1. Once the group has failed, `failed` is
 * 1, with the reason, with which all calls end.
 *
 * Either side may write the page at any time: the daemon copies a request once, before it checks
 * the request, and keeps all counts itself. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/group_call.h"

#define PROGRAM_SOCKET_SUFFIX ".programs"
#define PROGRAM_MAGIC 0x50726f67u
/* The version of the messages and the page, and the oldest version of programs that daemons serve. Version 2 has added
 * `data` and `number` to requests, and types of reductions. */
#define PROGRAM_VERSION 2u
#define PROGRAM_OLDEST 1u
#define PROGRAM_CALLS 64u
#define PROGRAM_TEXT_SIZE 320u
#define PROGRAM_MEMORIES 1024u /* the most that a program may have; numbered from 1 */

enum program_kind {
    PROGRAM_OPEN = 1,
    PROGRAM_OPENED,
    PROGRAM_ERROR,
    PROGRAM_MEMORY,
    PROGRAM_FILE,
    PROGRAM_MEMORY_READY,
    PROGRAM_MEMORY_TAKEN,
    PROGRAM_MEMORY_REFUSED,
    PROGRAM_MEMORY_FREE,
    PROGRAM_NOTICE,
    PROGRAM_LEAVE,
    PROGRAM_SHRINK, /* an older daemon refuses this kind */
    PROGRAM_MISSING,
    PROGRAM_WAITING,
    PROGRAM_MEMBERS, /* an older daemon refuses this kind */
};

/* Flags of OPEN and SHRINK; a daemon ignores flags that it does not know. */
#define PROGRAM_UNCHECKED 1u /* blocks travel without digests */
#define PROGRAM_TELL 2u      /* the daemon sends WAITING */
#define PROGRAM_TRACE 8u     /* OPEN, SHRINK: nodes record what they do; an older daemon does not */
#define PROGRAM_WAIT 4u      /* OPEN: waits for nodes that are down; an older daemon does not */

/* The descriptors of OPENED, in this order. */
enum program_descriptor {
    PROGRAM_FD_PAGE,
    PROGRAM_FD_DOORBELL,
    PROGRAM_FD_NOTICES,
    PROGRAM_FDS,
};

/* ERROR has this form in all versions. Fields that a kind does not use are 0. */
struct program_message {
    uint32_t magic, version;
    uint32_t kind;
    uint32_t code; /* ERROR, MEMORY_REFUSED: enum error_code */
    /* The number of a memory. In OPENED: the rank. In WAITING: a number of nodes; 0: nodes that this node does not know.
     * In OPEN: for how many milliseconds opening waits for memory of daemons; 0: until its timeout. Older daemons wait until
     * the timeout. */
    uint32_t number;
    uint32_t flags;
    uint64_t size; /* MEMORY: bytes; OPEN, SHRINK: the timeout in nanoseconds, 0: none */
    /* OPEN, SHRINK: the name; OPENED: dims; MISSING: ranks, ascending, each with a space behind it;
     * MEMBERS: ranks, each with a space behind it; WAITING: ranks, "3, 7 ..."; errors.
     * Ends with a 0. */
    char text[PROGRAM_TEXT_SIZE];
};

/* Numbers of `operation`, `type` and `operator` are those of proto/group_call.h; `part` has bit d
 * for dimension d. */
struct program_request {
    uint32_t operation, part, root, type, operator;
    uint32_t in_place;
    uint32_t send_memory, receive_memory, counts_memory; /* 0: none */
    uint32_t late_ms; /* time after which the daemon finds out which nodes the call waits for; 0:
                       * never */
    uint64_t size;
    uint64_t timeout_ns;
    uint64_t send_offset, send_size;
    uint64_t receive_offset, receive_size;
    /* Where the arrays of uint64_t are, one behind the other, with an entry for each member:
     * send_size, send_offset, receive_size, receive_offset (alltoallv), receive_size, receive_offset
     * (allgatherv), receive_size (reduce_scatter). */
    uint64_t counts_offset;
    /* GROUP_SEND, GROUP_RECEIVE, GROUP_RECEIVE_ANY: `root` is the other member (_ANY: none), counts_offset the tag, and one of
     * the areas has the bytes. */
    struct data_kind data; /* what the program has told of its data; not in version 1 */
    uint32_t number;       /* of the call; not in version 1 */
};

struct program_outcome {
    uint32_t code; /* enum error_code; 0: the call has succeeded */
    char text[PROGRAM_TEXT_SIZE];
};

struct program_slot {
    _Alignas(64) struct program_request request; /* written by the program */
    _Alignas(64) struct program_outcome outcome; /* written by the daemon, like the next two */
    _Atomic uint32_t ended;
    /* The call's number + 1 while the text of `outcome` names the nodes that it waits for;
     * otherwise 0. */
    _Atomic uint32_t late;
    /* GROUP_RECEIVE_ANY: the member that has sent the message, once the call has succeeded. */
    uint32_t from;
};

struct program_page {
    _Alignas(64) _Atomic uint32_t submitted;
    _Atomic uint32_t rung;
    _Atomic uint32_t waiting;
    _Alignas(64) _Atomic uint32_t ended;
    _Atomic uint32_t noticed;
    _Atomic uint32_t failed;
    struct program_outcome failure;
    /* Counts changes of links: up, down, or another rate. Older daemons leave it 0. */
    _Atomic uint32_t changes;
    struct program_slot slot[PROGRAM_CALLS];
};

_Static_assert(sizeof(struct program_message) == 352, "the same for every compiler");
_Static_assert(sizeof(struct program_request) == 112, "the same for every compiler");
_Static_assert(sizeof(struct program_slot) == 512, "the same for every compiler");
_Static_assert(offsetof(struct program_page, slot) == 448, "the same for every compiler");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "atomics are shared between processes");
