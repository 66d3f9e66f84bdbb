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
 *   operator. Where they differ, the group fails on every node, and the error says which two members
 *   disagree and how.
 * - A call may return on one member before others have made it, except torus_barrier(), which returns
 *   when all have. A short torus_reduce() waits for nobody above the member on the way to the root, so
 *   that most members return at once. A member that is late delays the group and does not fail it, unless
 *   a timeout is set.
 * - Different groups, and a group and its parts, are independent of each other in the order of calls.
 *
 * Memory
 * - Any pointer can be passed. Bytes in memory from torus_memory_new() are sent and received without
 *   being copied between processes; others are copied once by the calling thread.
 * - Send and receive areas must not overlap, except where TORUS_IN_PLACE is passed as the send area.
 * - Buffers are borrowed from the call until it has ended. Until then the receive area must not be
 *   read, nor the send area written. After an error the contents of the receive area are undefined.
 *
 * Failure
 * - A program that dies, a daemon that goes down, and members that disagree fail the group: every call
 *   under way and every later one ends with the same error on every node. Close the group and open a new
 *   one; or, if nodes are down, go on without them: torus_group_shrink().
 * - Links that are down do not, as long as all nodes can be reached by others, and those of each part
 *   (torus_group_part()) by links of that part: the group goes around them. When one goes down, what the
 *   calls under way had sent over it is sent again, and they take as much longer. Links that have been up
 *   again for ten seconds are used again.
 * - So is data that has been damaged on its way, up to three times a minute; then it fails the group.
 *
 * Threads: different groups may be used from different threads at the same time. One group, with its
 * parts, is used by one thread at a time. A child that has been forked cannot use its parent's groups; closing
 * its copies, it does not disturb them.
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
    bool unchecked;      /* blocks travel without digests; the same on all nodes */
    bool shrink;         /* nodes that are down are left out; the same on all nodes */
    bool wait; /* nodes that are down are waited for; the same on all nodes, not with `shrink` */
    char reserved[1]; /* 0 */
};

static inline void torus_group_options_init(struct torus_group_options *options)
{
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
}

/* Opens a group of all nodes, and waits until a program has opened it on each of them. Options may be
 * NULL. While that takes longer than a second, it says on standard error which nodes it waits for, as far as they
 * are known here (node 0 knows all), if that is a terminal, or the environment variable TORUS_PROGRESS is 1 (0:
 * never).
 *
 * Nodes that are down fail this (_LINK), unless options say otherwise:
 * - With `shrink` the group is what torus_group_shrink() makes of one: nodes that are down when it is opened, or go
 *   down before, are left out. Members are numbered from 0 without gaps, so that a loop over torus_group_size()
 *   members is right; torus_group_node() says which node each of them is. If no node is down it is a group of all.
 *   Which nodes are members does not change later. All that is said of torus_group_shrink() holds: no parts if nodes
 *   are missing, and those that are left must be more than half of all, unless it is certain that the others are down.
 * - With `wait` it is opened when they are back and a program there opens it, within the timeout. The
 *   daemon of this node may be down, too, or be restarted meanwhile. Once it is open, a daemon that goes
 *   down still fails it: with the daemon everything goes that calls under way have sent and kept there, so they cannot
 *   be repeated. Close the group, open it again with `wait`, and let the members agree where to go on.
 *
 * Returns 0 with *group, which the caller closes, or -1 with *error: _NO_DAEMON, _USAGE (a name that
 * is empty, longer than 63 bytes, not UTF-8, or has control characters), _REFUSED (a program has this
 * group open on this node), _LINK (a node is down, or cannot be reached), _TIMEOUT (the text names nodes
 * that have not opened it), _MEMORY, _BUSY, _IN_DOUBT (this node was cut off, or another one failed, when all
 * had opened it: some may have it open, and hear of it by their calls). */
TORUS_EXPORT int torus_group_open(const struct torus_group_options *options,
                                  struct torus_group **group, struct torus_error *error);

/* Opens a group of the nodes that are left, when `group` has failed because others are down. Every
 * program that is left makes this call, and it waits until all of them have. Nodes that are down by
 * then, and those that go down before it returns, are left out. Members are numbered anew, from 0, in the
 * order of their nodes, the same on all of them: see torus_group_rank(), _size() and _node().
 *
 * A call that has failed on one member may have succeeded on another: in the new group they have to agree
 * where to go on, as by a TORUS_MIN of the last step that each has finished.
 *
 * The new group has the name, the digests and the timeout of `group` (which torus_group_set_timeout()
 * may have changed), and can fail and be shrunk as well. If that happens just when it has opened, a member
 * may know it as a failed group and another one still wait for it: the first then shrinks the group that
 * it has got, and they meet. No call on `group` is possible any more; what was allocated in it can be
 * read, and it is still closed by its owner, before or after the new one.
 *
 * - A group that has not failed here is left by this call: for the others it fails in their next call,
 *   or has failed already. If no node is down, the new group has all of them.
 * - A node is waited for as long as it is up: also one that was down and is up again, where the same
 *   program, or one that has opened a group of this name, can shrink it. Set a timeout; with a new
 *   program there, open a new group of all nodes.
 * - It goes around links that are down as any group does, also around those of the nodes that it has left
 *   out, up or down. When its members cannot reach each other without these, it fails (_LINK).
 * - torus_group_dims() is still the whole torus. Parts of a group that has left out nodes are refused on
 *   all members (_REFUSED), except the one of all dimensions, which is the group itself.
 * - Nodes that are up again are members of the next group that torus_group_open() opens, not of this one.
 *
 * Returns 0 with *shrunk, which the caller closes, or -1 with *error: _USAGE (a part), _LINK (nodes cannot
 * be reached that may be up: those that are left must be more than half of all, unless it is certain that
 * the others are down), _TIMEOUT (the text names nodes that have not called it), and as
 * torus_group_open(). */
TORUS_EXPORT int torus_group_shrink(struct torus_group *group, struct torus_group **shrunk,
                                    struct torus_error *error);

/* Closes a group, or a part. Calls under way are given up, which fails the group; if there are none,
 * this disturbs nobody: the daemon goes on forwarding for others. Closing a group closes its parts.
 * NULL does nothing. */
TORUS_EXPORT void torus_group_close(struct torus_group *group);

/* The part of the group that this member shares all other coordinates with: members that differ from
 * it in the given dimensions only (bit d: dimension d). On a 4x8 torus, dimensions 1 << 1 gives the
 * row of 8 that this node is in, 1 << 0 its column of 4. All members of the group make this call,
 * with the same dimensions, once for each set of dimensions. All dimensions give the whole group
 * again, in the same order of calls as the group itself. Returns 0 with *part, a group of its own
 * order of calls, or -1 with *error: _USAGE (no such dimension, not of a part), _REFUSED (it is open
 * already, or nodes are missing in this group: the same on all members, and the group goes on), _LINK
 * (the group goes around links that are down, and the members of such a part cannot reach each other
 * within it; the same), or why the group has failed. */
TORUS_EXPORT int torus_group_part(struct torus_group *group, uint32_t dimensions,
                                  struct torus_group **part, struct torus_error *error);

/* This member's number, and how many there are. */
TORUS_EXPORT uint32_t torus_group_rank(const struct torus_group *group);
TORUS_EXPORT uint32_t torus_group_size(const struct torus_group *group);

/* The rank in the torus of a member of the group or part; TORUS_RANK_NONE if there is no such member. */
TORUS_EXPORT uint32_t torus_group_node(const struct torus_group *group, uint32_t member);

/* The torus, or that part of it, as in torus_status.dims: "4x8", "8m". Owned by the group. */
TORUS_EXPORT const char *torus_group_dims(const struct torus_group *group);

/* For calls made from now on; 0: none. A call that has not ended by then fails the group with
 * TORUS_ERROR_TIMEOUT, and the text names members that have not made it; unless it ends while these are being
 * found out. */
TORUS_EXPORT void torus_group_set_timeout(struct torus_group *group, uint32_t milliseconds);

/* For calls made from now on; 0, as at first: never. When a call has not ended after so many milliseconds, the
 * daemon finds out which members have not made it, for torus_call_late(). */
TORUS_EXPORT void torus_group_set_late(struct torus_group *group, uint32_t milliseconds);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Allocates memory that the daemon shares: zeroed, aligned to pages, for use by this group and its
 * parts. It is freed by torus_memory_free(), or with the group. Returns NULL with *error: _MEMORY,
 * _USAGE (size 0). */
TORUS_EXPORT void *torus_memory_new(struct torus_group *group, size_t bytes,
                                    struct torus_error *error);
/* `memory` is what torus_memory_new() has returned, or NULL, and no call under way uses it. */
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

/* MPI_Allreduce: element e of the result is the combination of element e of all members, in an order
 * that depends on the torus, its links that are down, the count and e only: all members have the same
 * bits, and so has every repetition. `count` elements of `type` at `send` and `receive`. */
TORUS_EXPORT int torus_allreduce(struct torus_group *group, const void *send, void *receive,
                                 size_t count, enum torus_type type, enum torus_operator operation,
                                 struct torus_error *error);

/* MPI_Reduce: as torus_allreduce(), but only member `root` receives the result, and the order also
 * depends on the root. On other members `receive` is not used and may be NULL, and TORUS_IN_PLACE is an
 * error (_USAGE). Where the root has n links, each brings it 1/n of a long vector, combined on the way. */
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
 * torus_call_wait() or torus_call_test() ends. Several may be under way; they may be waited for in any
 * order. They are carried out in the order in which they were started.
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

/* Waits until the call has ended, for that long at most. Returns whether it has: then torus_call_test()
 * or torus_call_wait(), which find out with what, do not wait. Unlike all other functions, it may be
 * called while another thread uses the group, except to end this call or to close the group or part.
 * A daemon that has gone away is not noticed here, but by torus_call_test(). */
TORUS_EXPORT bool torus_call_pause(const struct torus_call *call, uint64_t nanoseconds);

/* Whether this member has been told whom a call that is under way waits for: "node 3 has not called it", "all have
 * called it"; nodes are ranks in the torus. Copies that into `whom`, of `size` bytes. Of several members that
 * wait in a call, one is told: the first that its daemon asks for. See torus_group_set_late(). */
TORUS_EXPORT bool torus_call_late(const struct torus_call *call, char *whom, size_t size);

/* Readable when a call may have ended since the last torus_call_test() or torus_call_wait() of any
 * call of the group or its parts. Owned by the group; the same for its parts. */
TORUS_EXPORT int torus_group_fd(const struct torus_group *group);

#ifdef __cplusplus
}
#endif

#endif
