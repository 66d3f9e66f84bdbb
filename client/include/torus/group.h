/* Groups: programs on the nodes of a torus that run collective operations on their own memory.
 *
 * One program on every node opens the group under the same name. From then on each of them calls the
 * same operations in the same order, as with MPI; the daemons move the data along the torus' links.
 *
 *     struct torus_error error;
 *     struct torus_group *group;
 *     double mine = 1, sum;
 *
 *     if (torus_group_open(NULL, &group, &error) != 0)
 *         errx(1, "%s", error.text);
 *     if (torus_allreduce(group, &mine, &sum, 1, TORUS_FLOAT64, TORUS_SUM, &error) != 0)
 *         errx(1, "%s", error.text);
 *     printf("nodes: %u\n", (unsigned)sum);
 *     torus_group_close(group);
 *
 * Members are numbered as the nodes of the torus are: row-major, the last dimension fastest. Member r
 * of the whole group is node r, unless nodes have been left out (torus_group_shrink()).
 *
 * Calls and their order
 * - All members make the same calls on a group, in the same order, with the same sizes, root, type and
 *   operator. If the calls of two members differ, the group fails on every node, and the error says
 *   which members disagree and how.
 * - A call may return on one member before other members have made it, except torus_barrier(), which
 *   returns when all members have made it. A short torus_reduce() waits only for the members whose
 *   data passes this member on the way to the root, so that most members return at once. A member that
 *   is late delays the group, and fails the group only if a timeout is set.
 * - The calls of different groups, and of a group and its parts, may be made in any order.
 *
 * Memory
 * - Any pointer can be passed. Data in memory from torus_memory_new() is sent and received without
 *   being copied between processes. Other data is copied once by the calling thread.
 * - Send and receive areas must not overlap, except where TORUS_IN_PLACE is passed as the send area.
 * - Buffers are borrowed from the call until it has ended. Until then the receive area must not be
 *   read, nor the send area written. After an error the contents of the receive area are undefined.
 *
 * Failure
 * - A program that dies, a daemon that goes down, or members that disagree fail the group: every call
 *   under way and every later call ends with the same error on every node. Close the group and open a
 *   new one. If nodes are down, torus_group_shrink() can continue without them.
 * - A link that is down does not fail the group as long as its members can reach each other over other
 *   links, and the members of each part (torus_group_part()) over other links of that part: calls avoid
 *   the link. When a link goes down, data of calls under way that was sent over it is sent again, and
 *   these calls take longer. A link is used again when it has been up for ten seconds.
 * - Data that has been damaged on its way is sent again, too, up to three times a minute. After that,
 *   damaged data fails the group.
 *
 * Threads: different groups may be used from different threads at the same time. One group, with its
 * parts, is used by one thread at a time. A forked child cannot use the groups of its parent. If it closes
 * its copies, the groups of the parent are not disturbed.
 *
 * Errors, ownership and compatibility are as in torus/torus.h. */
#ifndef TORUS_GROUP_H
#define TORUS_GROUP_H

#include <torus/torus.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Opening --------------------------------------------------------------------------------- */

struct torus_group;

struct torus_group_options {
    size_t struct_size;  /* set by torus_group_options_init() */
    const char *socket;  /* of the daemon; NULL: torus_default_socket(). "%h" in it stands for the
                          * host's name */
    const char *name;    /* the same on all nodes; NULL: "default" */
    uint32_t timeout_ms; /* for opening, and then for every call; 0: none */
    bool unchecked;      /* send blocks without digests; the same on all nodes */
    bool shrink;         /* leave out nodes that are down; the same on all nodes */
    bool wait;        /* wait for nodes that are down; the same on all nodes, not with `shrink` */
    char reserved[1]; /* 0 */
};

static inline void torus_group_options_init(struct torus_group_options *options)
{
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
}

/* Opens a group of all nodes, and waits until a program has opened it on each of them. Options may be NULL. If
 * opening takes longer than a second and standard error is a terminal, the function writes there which nodes it waits
 * for, as far as this node knows (node 0 knows all of them). The environment variable TORUS_PROGRESS makes it do so
 * always (1) or never (0).
 *
 * If a node is down, opening fails (_LINK), unless options say otherwise:
 * - With `shrink`, the group leaves out nodes that are down when it is opened, or go down before it is open, as
 *   torus_group_shrink() does. Members are numbered from 0 without gaps, so that a loop over torus_group_size()
 *   members is right; torus_group_node() says which node each member is. If no node is down, all nodes are members.
 *   The members do not change later. Everything that is said about torus_group_shrink() holds: there are no parts if
 *   nodes are missing, and more than half of all nodes must be left, unless it is certain that the others are down.
 * - With `wait`, the function waits within the timeout until the nodes are back and a program there opens the group.
 *   The daemon of this node may be down or be restarted meanwhile, too. When the group is open, a daemon that goes down
 *   still fails it: the daemon loses the data of calls under way, so these calls cannot be repeated. Close the group,
 *   open it again with `wait`, and let the members agree from which step to continue.
 *
 * Returns 0 with *group, which the caller closes, or -1 with *error: _NO_DAEMON, _USAGE (a name that is empty, longer
 * than 63 bytes, not UTF-8, or has control characters), _REFUSED (a program has this group open on this node), _LINK
 * (a node is down, or cannot be reached), _TIMEOUT (the text names nodes that have not opened it), _MEMORY, _BUSY,
 * _IN_DOUBT (this node was cut off, or another node failed, when all nodes had opened the group: some members may have
 * it open; their calls tell them that it has failed). */
TORUS_EXPORT int torus_group_open(const struct torus_group_options *options,
                                  struct torus_group **group, struct torus_error *error);

/* Opens a group of the nodes that are left, after `group` has failed because other nodes are down. Every program that
 * is left makes this call, and the call waits until all of them have made it. Nodes that are down by then, and nodes
 * that go down before it returns, are left out. The new group numbers its members from 0, in the order of their
 * nodes, equally on all members: see torus_group_rank(), torus_group_size() and torus_group_node().
 *
 * A call that has failed on one member may have succeeded on another member. In the new group the members have to
 * agree from which step to continue, for example by a TORUS_MIN of the last step that each of them has finished.
 *
 * The new group has the name, the digests and the timeout of `group` (torus_group_set_timeout() may have changed it).
 * The new group can fail and be shrunk as well. If it fails just when it has opened, one member may know it as a failed
 * group while another member still waits for it: the first member then shrinks the new group, and they meet. No call
 * on `group` is possible any more. Memory that was allocated in `group` can still be read, and the caller still closes
 * `group`, before or after the new group.
 *
 * - If `group` has not failed here, this member leaves it by this call: on other members `group` fails in their next
 *   call, or has failed already. If no node is down, the new group has all nodes.
 * - The call waits for a node as long as the node is up. This includes a node that was down and is up again: the same
 *   program there, or another program that has opened a group of this name, can shrink the group. Set a timeout. If a
 *   new program runs there, open a new group of all nodes.
 * - The new group avoids links that are down, as any group does, and the links of nodes that it has left out, up or
 *   down. It fails if its members cannot reach each other over the remaining links (_LINK).
 * - torus_group_dims() still returns the whole torus. If nodes are missing, torus_group_part() is refused on all
 *   members (_REFUSED), except with all dimensions, which gives the group itself.
 * - A node that is up again is a member of the next group that torus_group_open() opens, not of this group.
 *
 * Returns 0 with *shrunk, which the caller closes, or -1 with *error: _USAGE (`group` is a part), _LINK (nodes that may
 * be up cannot be reached: more than half of all nodes must be left, unless it is certain that the others are down),
 * _TIMEOUT (the text names nodes that have not made the call), and the errors of torus_group_open(). */
TORUS_EXPORT int torus_group_shrink(struct torus_group *group, struct torus_group **shrunk,
                                    struct torus_error *error);

/* Closes a group, or a part. Calls under way are given up, which fails the group. If there are none, closing
 * disturbs no other member: the daemon continues to relay for them. Closing a group closes its parts. NULL does
 * nothing. */
TORUS_EXPORT void torus_group_close(struct torus_group *group);

/* Opens the part of the group whose members differ from this member in the given dimensions only (bit d:
 * dimension d). On a 4x8 torus, dimensions 1 << 1 give the row of 8 nodes that this node is in, 1 << 0 its
 * column of 4 nodes. All members of the group make this call, with the same dimensions, once for each set of
 * dimensions. All dimensions together give the whole group again, with the same order of calls as the group.
 * Any other part has its own order of calls.
 *
 * Returns 0 with *part, or -1 with *error: _USAGE (no such dimension, or `group` is a part), _REFUSED (the part
 * is open already, or nodes are missing in this group), _LINK (links are down, and the members of such a part
 * cannot reach each other within the part), or why the group has failed. _REFUSED and _LINK are the same on
 * all members, and do not fail the group. */
TORUS_EXPORT int torus_group_part(struct torus_group *group, uint32_t dimensions,
                                  struct torus_group **part, struct torus_error *error);

/* The number of this member, and the number of members. */
TORUS_EXPORT uint32_t torus_group_rank(const struct torus_group *group);
TORUS_EXPORT uint32_t torus_group_size(const struct torus_group *group);

/* The rank in the torus of a member of the group or part; TORUS_RANK_NONE if there is no such member. */
TORUS_EXPORT uint32_t torus_group_node(const struct torus_group *group, uint32_t member);

/* The torus, or that part of it, as in torus_status.dims: "4x8", "8m". Owned by the group. */
TORUS_EXPORT const char *torus_group_dims(const struct torus_group *group);

/* Sets the timeout of calls made from now on; 0: none. A call that has not ended by then fails the group with
 * TORUS_ERROR_TIMEOUT, and the text names members that have not made the call. The daemon needs some time to find
 * them; a call that ends meanwhile succeeds. */
TORUS_EXPORT void torus_group_set_timeout(struct torus_group *group, uint32_t milliseconds);

/* Sets after how many milliseconds a call is late, for calls made from now on; 0 (the default): never. When a call
 * is late, the daemon finds out which members have not made it, for torus_call_late(). */
TORUS_EXPORT void torus_group_set_late(struct torus_group *group, uint32_t milliseconds);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Allocates memory that the daemon shares: zeroed, aligned to pages, for use by this group and its
 * parts. torus_memory_free() frees it, or closing the group does. Returns NULL with *error: _MEMORY,
 * _USAGE (size 0). */
TORUS_EXPORT void *torus_memory_new(struct torus_group *group, size_t bytes,
                                    struct torus_error *error);
/* Frees what torus_memory_new() has returned; NULL does nothing. No call under way may use it. */
TORUS_EXPORT void torus_memory_free(struct torus_group *group, void *memory);

/* ---- Collective operations ------------------------------------------------------------------- */

/* Passed as the send area: the operation takes its input from the receive area, as MPI_IN_PLACE. */
#define TORUS_IN_PLACE ((const void *)(uintptr_t)-1)

enum torus_type {
    TORUS_INT8 = 1,
    TORUS_INT16,
    TORUS_INT32,
    TORUS_INT64,
    TORUS_UINT8,
    TORUS_UINT16,
    TORUS_UINT32,
    TORUS_UINT64,
    TORUS_FLOAT32, /* float */
    TORUS_FLOAT64, /* double */
};

enum torus_operator {
    TORUS_SUM = 1, /* of integers: modulo 2 to the power of their width */
    TORUS_PRODUCT, /* the same */
    TORUS_MIN,     /* of a number and a NaN: NaN */
    TORUS_MAX,
    TORUS_AND, /* bitwise; integers only, as the two below */
    TORUS_OR,
    TORUS_XOR,
};

/* Bytes of an element; 0 for a value that is not a type. */
TORUS_EXPORT size_t torus_type_size(enum torus_type type);

/* All below return 0, or -1 with *error: _USAGE (a size, type or root that cannot be), or why the
 * group has failed. Sizes are in bytes unless said otherwise; areas may be NULL where they have no
 * bytes. `size` stands for torus_group_size(). */

/* MPI_Alltoall: member i's block j, of block_bytes at send + j * block_bytes, becomes block i of
 * member j. In place: the receive area holds what is to be sent. */
TORUS_EXPORT int torus_alltoall(struct torus_group *group, const void *send, void *receive,
                                size_t block_bytes, struct torus_error *error);

/* MPI_Alltoallv: block j has send_bytes[j] bytes at send + send_offset[j]; that of member i arrives
 * with receive_bytes[i] bytes, which must be what i sends, at receive + receive_offset[i]. Arrays of
 * `size` entries, borrowed as the areas are. In place: send_bytes and send_offset are ignored, and
 * the receive area holds what is to be sent, so that i sends to j as much as j to i. */
TORUS_EXPORT int torus_alltoallv(struct torus_group *group, const void *send,
                                 const size_t *send_bytes, const size_t *send_offset, void *receive,
                                 const size_t *receive_bytes, const size_t *receive_offset,
                                 struct torus_error *error);

/* MPI_Allgather: every member's block_bytes at `send` become block i of all. In place: the member's
 * own block is in its place in the receive area. */
TORUS_EXPORT int torus_allgather(struct torus_group *group, const void *send, void *receive,
                                 size_t block_bytes, struct torus_error *error);

/* MPI_Allgatherv: member i's block has bytes[i] bytes, the same array on all members, and arrives at
 * receive + offset[i]. */
TORUS_EXPORT int torus_allgatherv(struct torus_group *group, const void *send, void *receive,
                                  const size_t *bytes, const size_t *offset,
                                  struct torus_error *error);

/* MPI_Bcast: `bytes` at `buffer` of member `root` are copied to `buffer` of all others. */
TORUS_EXPORT int torus_broadcast(struct torus_group *group, void *buffer, size_t bytes,
                                 uint32_t root, struct torus_error *error);

/* MPI_Barrier: returns when all members have called it. */
TORUS_EXPORT int torus_barrier(struct torus_group *group, struct torus_error *error);

/* MPI_Allreduce: element e of the result combines element e of all members. The order of combination
 * depends only on the torus, its links that are down, the count and e: all members get the same bits,
 * and so does every repetition. There are `count` elements of `type` at `send` and at `receive`. */
TORUS_EXPORT int torus_allreduce(struct torus_group *group, const void *send, void *receive,
                                 size_t count, enum torus_type type, enum torus_operator operation,
                                 struct torus_error *error);

/* MPI_Reduce: as torus_allreduce(), but only member `root` receives the result, and the order also
 * depends on the root. On other members `receive` is not used and may be NULL, and TORUS_IN_PLACE is an
 * error (_USAGE). If the root has n links, each link carries 1/n of a long vector, combined on the way. */
TORUS_EXPORT int torus_reduce(struct torus_group *group, const void *send, void *receive,
                              size_t count, enum torus_type type, enum torus_operator operation,
                              uint32_t root, struct torus_error *error);

/* MPI_Reduce_scatter: the members' vectors, of the sum of counts[] elements at `send`, are combined
 * element by element; member i receives counts[i] elements of the result, those that begin behind
 * the elements of members before it. The same counts on all members. In place: the vector is in the
 * receive area, and the result at its beginning. */
TORUS_EXPORT int torus_reduce_scatter(struct torus_group *group, const void *send, void *receive,
                                      const size_t *counts, enum torus_type type,
                                      enum torus_operator operation, struct torus_error *error);

/* ---- Without waiting ------------------------------------------------------------------------- */

/* Each operation can also be started: torus_start_X() returns at once, with a call that
 * torus_call_wait() or torus_call_test() ends. Several calls may be under way, and may be waited for in
 * any order. The calls are carried out in the order in which they were started.
 *
 * For event loops: watch torus_group_fd() for POLLIN; when it is readable, call torus_call_test() for
 * the calls under way. */

struct torus_call;

TORUS_EXPORT int torus_start_alltoall(struct torus_group *group, const void *send, void *receive,
                                      size_t block_bytes, struct torus_call **call,
                                      struct torus_error *error);
TORUS_EXPORT int torus_start_alltoallv(struct torus_group *group, const void *send,
                                       const size_t *send_bytes, const size_t *send_offset,
                                       void *receive, const size_t *receive_bytes,
                                       const size_t *receive_offset, struct torus_call **call,
                                       struct torus_error *error);
TORUS_EXPORT int torus_start_allgather(struct torus_group *group, const void *send, void *receive,
                                       size_t block_bytes, struct torus_call **call,
                                       struct torus_error *error);
TORUS_EXPORT int torus_start_allgatherv(struct torus_group *group, const void *send, void *receive,
                                        const size_t *bytes, const size_t *offset,
                                        struct torus_call **call, struct torus_error *error);
TORUS_EXPORT int torus_start_broadcast(struct torus_group *group, void *buffer, size_t bytes,
                                       uint32_t root, struct torus_call **call,
                                       struct torus_error *error);
TORUS_EXPORT int torus_start_barrier(struct torus_group *group, struct torus_call **call,
                                     struct torus_error *error);
TORUS_EXPORT int torus_start_allreduce(struct torus_group *group, const void *send, void *receive,
                                       size_t count, enum torus_type type,
                                       enum torus_operator operation, struct torus_call **call,
                                       struct torus_error *error);
TORUS_EXPORT int torus_start_reduce(struct torus_group *group, const void *send, void *receive,
                                    size_t count, enum torus_type type,
                                    enum torus_operator operation, uint32_t root,
                                    struct torus_call **call, struct torus_error *error);
TORUS_EXPORT int torus_start_reduce_scatter(struct torus_group *group, const void *send,
                                            void *receive, const size_t *counts,
                                            enum torus_type type, enum torus_operator operation,
                                            struct torus_call **call, struct torus_error *error);

/* Waits until the call has ended, and frees it. Returns 0 if it has succeeded, or -1 with *error. */
TORUS_EXPORT int torus_call_wait(struct torus_call *call, struct torus_error *error);

/* Does not wait. Returns 1 if the call has succeeded and 0 if it is still under way; -1 with *error
 * if it has failed. After 1 and -1 the call has been freed. */
TORUS_EXPORT int torus_call_test(struct torus_call *call, struct torus_error *error);

/* Waits until the call has ended, for so many nanoseconds at most. Returns whether the call has ended:
 * then torus_call_test() or torus_call_wait(), which return its result, do not wait. Unlike all other
 * functions, this one may be called while another thread uses the group, except while that thread ends
 * this call or closes the group or part. Only torus_call_test() notices that a daemon has gone away. */
TORUS_EXPORT bool torus_call_pause(const struct torus_call *call, uint64_t nanoseconds);

/* Returns whether this member has been told which members a call under way waits for, and copies the text into
 * `whom`, of `size` bytes: "node 3 has not called it", or "all have called it" (nodes are ranks in the torus). If
 * several members wait in a call, only one of them is told: the first one whose daemon asks. See
 * torus_group_set_late(). */
TORUS_EXPORT bool torus_call_late(const struct torus_call *call, char *whom, size_t size);

/* A descriptor that is readable when a call may have ended since the last torus_call_test() or
 * torus_call_wait() of any call of the group or its parts. Owned by the group; the same for its parts. */
TORUS_EXPORT int torus_group_fd(const struct torus_group *group);

#ifdef __cplusplus
}
#endif

#endif
