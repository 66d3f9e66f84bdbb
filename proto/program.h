/* What a program (libtorus) and the daemon on its machine share while the program has a group open:
 * messages on a socket, a page with its calls, and its memory. All of it is local to one machine.
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
 * SHRINK is OPEN for a group that leaves out nodes that are down; before OPENED come as many MISSING as it
 * takes to name these. The daemon answers both with ERROR and closes if the group cannot be opened, and
 * any message that is against these rules. MEMORY and MEMORY_READY may be answered with MEMORY_REFUSED.
 * With the flag TELL, any number of WAITING may come before all of these, each with those that have not opened the
 * group: how many, and their ranks, as far as the daemon knows.
 * A program asks for one memory at a time, and reads the answer before it sends the next message of that
 * kind.
 * A connection that ends without LEAVE is a program that has died: its group fails.
 *
 * All descriptors are made by the daemon, which takes none from programs: what it maps is a memfd of
 * tmpfs with a fixed size (F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL), and closing it waits for nobody.
 *
 * Page: call number k (from 0) uses slot k % PROGRAM_CALLS once call k - PROGRAM_CALLS has ended. The
 * program fills in the slot's request, sets `submitted` to k + 1, and rings: it sets `rung`, and if
 * that was 0, it adds 1 to the doorbell (an eventfd). The daemon sets `rung` to 0 before it looks.
 * When the call has ended, the daemon fills in its outcome, then sets the slot's `ended` to k + 1 and
 * adds 1 to the page's. It wakes up a futex wait for the latter if `waiting` is set, which it clears.
 * If the program has asked for notices, it sets `noticed`, and if that was 0, sends one byte to the
 * end for notices.
 * If the request says so, the daemon finds out after some time whom the call waits for; the slot's outcome has that
 * as its text until the call ends, if `late` is k + 1.
 * Once the group has failed, `failed` is 1, with the reason; all its calls end with that.
 *
 * Either side may write the page at any time: the daemon copies a request once, before it checks it,
 * and keeps all counts itself. */
#ifndef TORUSD_PROTO_PROGRAM_H
#define TORUSD_PROTO_PROGRAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRAM_SOCKET_SUFFIX ".programs"
#define PROGRAM_MAGIC 0x50726f67u
#define PROGRAM_VERSION 1u /* of the messages and the page; both sides must have the same */
#define PROGRAM_CALLS 64u
#define PROGRAM_TEXT_SIZE 320u
#define PROGRAM_MEMORIES 1024u /* that a program may have; numbered from 1 */

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
    PROGRAM_SHRINK, /* an older daemon refuses it */
    PROGRAM_MISSING,
    PROGRAM_WAITING,
};

/* Flags of OPEN and SHRINK; a daemon ignores those that it does not know. */
#define PROGRAM_UNCHECKED 1u /* blocks travel without digests */
#define PROGRAM_TELL 2u      /* WAITING is to be sent */
#define PROGRAM_WAIT 4u /* OPEN: nodes that are down are waited for; an older daemon does not */

/* The descriptors of OPENED, in this order. */
enum program_descriptor {
    PROGRAM_FD_PAGE,
    PROGRAM_FD_DOORBELL,
    PROGRAM_FD_NOTICES,
    PROGRAM_FDS,
};

/* ERROR has this form in all versions. What a kind does not use is 0. */
struct program_message {
    uint32_t magic, version;
    uint32_t kind;
    uint32_t code; /* ERROR, MEMORY_REFUSED: enum error_code */
    uint32_t
        number; /* of a memory; OPENED: the rank; WAITING: nodes, 0: others than this node knows */
    uint32_t flags;
    uint64_t size; /* MEMORY: bytes; OPEN, SHRINK: the timeout in nanoseconds, 0: none */
    /* OPEN, SHRINK: the name; OPENED: dims; MISSING: ranks, rising, each with a space behind it;
     * WAITING: ranks, "3, 7 ..."; errors.
     * Ends with a 0. */
    char text[PROGRAM_TEXT_SIZE];
};

/* Numbers of `operation`, `type` and `operator` are those of proto/group_call.h; `part` has bit d
 * for dimension d. */
struct program_request {
    uint32_t operation, part, root, type, operator;
    uint32_t in_place;
    uint32_t send_memory, receive_memory, counts_memory; /* 0: none */
    uint32_t late_ms; /* after which the daemon finds out whom the call waits for; 0: never */
    uint64_t size;
    uint64_t timeout_ns;
    uint64_t send_offset, send_size;
    uint64_t receive_offset, receive_size;
    /* Where the arrays of uint64_t are, one behind the other, with an entry for each member:
     * send_size, send_offset, receive_size, receive_offset (alltoallv), receive_size, receive_offset
     * (allgatherv), receive_size (reduce_scatter). */
    uint64_t counts_offset;
};

struct program_outcome {
    uint32_t code; /* enum error_code; 0: it has succeeded */
    char text[PROGRAM_TEXT_SIZE];
};

struct program_slot {
    _Alignas(64) struct program_request request; /* the program's */
    _Alignas(64) struct program_outcome outcome; /* the daemon's, as the next */
    _Atomic uint32_t ended;
    /* The daemon's: the call's number + 1 while the text of `outcome` says whom it waits for; else 0. */
    _Atomic uint32_t late;
};

struct program_page {
    _Alignas(64) _Atomic uint32_t submitted;
    _Atomic uint32_t rung;
    _Atomic uint32_t waiting;
    _Alignas(64) _Atomic uint32_t ended;
    _Atomic uint32_t noticed;
    _Atomic uint32_t failed;
    struct program_outcome failure;
    struct program_slot slot[PROGRAM_CALLS];
};

_Static_assert(sizeof(struct program_message) == 352, "the same for every compiler");
_Static_assert(sizeof(struct program_request) == 96, "the same for every compiler");
_Static_assert(sizeof(struct program_slot) == 512, "the same for every compiler");
_Static_assert(offsetof(struct program_page, slot) == 448, "the same for every compiler");
_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "atomics are shared between processes");

#endif
