/* Groups: programs on the nodes of a torus that run collective operations on data in their memory.
 *
 * One program on every node opens the group under the same name. From then on all programs call the same operations
 * in the same order, as with MPI. The daemons move the data over the links of the torus.
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
 * Members are numbered like the nodes of the torus: row-major, the last dimension fastest. Member r of a group is
 * node r, unless the group is one of some nodes (torus_group_options.members) or a part (torus_group_part()), or leaves
 * out nodes (torus_group_shrink()).
 *
 * Calls and their order
 * - All members make the same calls on a group, in the same order, with the same sizes, root, type and operator. If
 *   the calls of two members differ, the group fails on every node, and the error says which members disagree and
 *   how.
 * - A call may return on one member before other members have made it. Only torus_barrier() returns when all members
 *   have made it. A short torus_reduce() waits only for the members whose data passes through this node on the way to
 *   the root, so most members return at once. A late member delays the group; it makes the group fail only if a
 *   timeout is set.
 * - The calls of different groups, and of a group and its parts, may be made in any order.
 *
 * Memory
 * - Any pointer can be passed. Data in memory from torus_memory_new() is sent and received without being copied
 *   between processes. Other data is copied once by the calling thread.
 * - The send and receive areas must not overlap. For an operation in place, pass TORUS_IN_PLACE as the send area.
 * - Until a call has ended, the library uses its buffers and arrays: do not write the send area or read the receive
 *   area before. After an error the contents of the receive area are undefined.
 *
 * Failure
 * - The group fails if one of its programs dies, a daemon goes down, or members disagree. Every call under way and
 *   every later call then ends with the same error on every node. Close the group and open a new one. If nodes are
 *   down, torus_group_shrink() can continue without them.
 * - A link that goes down does not fail the group as long as its members can reach each other over other links, and
 *   the members of each part over other links of that part. Calls avoid the link. Data of calls under way that was
 *   sent over the link is sent again, so these calls take longer. The link is used again once it has been up for ten
 *   seconds.
 * - Data that was damaged on its way is also sent again, up to three times a minute. After that, damaged data fails
 *   the group.
 *
 * Threads: different groups may be used from different threads at the same time. Use a group and its parts from one
 * thread at a time. A forked child cannot use the groups of its parent. Closing its copies does not disturb the
 * parent.
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
    const char *socket;  /* as for torus_client_open(); NULL: torus_default_socket() */
    const char *name;    /* the same on all nodes; NULL: "default" */
    uint32_t timeout_ms; /* for opening, and then for every call; 0: none */
    bool unchecked;      /* send blocks without digests; the same on all nodes */
    bool shrink;         /* leave out nodes that are down; the same on all nodes */
    bool wait;        /* wait for nodes that are down; the same on all nodes, not with `shrink` */
    char reserved[1]; /* 0 */
    /* The members, as ranks of nodes, in any order; the same nodes on all members, not with `shrink`. NULL: all nodes */
    const uint32_t *members;
    uint32_t member_count;
    /* How long opening waits for memory of daemons that other groups have reserved: in the group that the program of its
     * first member opens; 0: as long as timeout_ms. A daemon of an older release waits as long as timeout_ms. */
    uint32_t memory_timeout_ms;
};

/* Sets all options to their defaults. */
static inline void torus_group_options_init(struct torus_group_options *options)
{
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
}

/* Opens a group of all nodes, or of those in `members`, and waits until a program on each of these nodes has opened it.
 * `options` may be NULL.
 *
 * In a group of some nodes, members are numbered from 0 in the order of their nodes: see torus_group_rank(),
 * torus_group_size() and torus_group_node(). Other nodes need no program. Their daemons pass on what members send, so
 * members need not be neighbours. A program may have several such groups open, beside a group of all nodes, and their
 * members may overlap; the groups that a node is in have different names. The group continues while its members can reach
 * each other over links that are up, whichever other nodes go down. It has no parts, and cannot be shrunk. All nodes
 * need version 14.7 of the peer protocol.
 *
 * If opening takes longer than a second and standard error is a terminal, the function writes there which nodes it
 * waits for, as far as this node knows (node 0 knows all of them). The environment variable TORUS_PROGRESS forces (1)
 * or prevents (0) these lines.
 *
 * If a node is down, opening fails (_LINK), unless one of these options is set:
 * - `shrink` leaves out nodes that are down, or that go down before the group is open. Members are numbered from 0
 *   without gaps, so a loop over torus_group_size() members is right; torus_group_node() returns the node of each
 *   member. The members do not change later. The rules of torus_group_shrink() apply: there are no parts if nodes are
 *   missing, and more than half of all nodes must be left, unless it is certain that the others are down. If no node
 *   is down, all nodes are members.
 * - `wait` waits within the timeout until the nodes are up again and a program there opens the group. The daemon of
 *   this node may also be down or be restarted meanwhile. Once the group is open, a daemon that goes down makes it
 *   fail as usual: the daemon loses the data of calls under way, so these calls cannot be repeated. Close the group,
 *   open it again with `wait`, and let the members agree from which step to continue.
 *
 * Returns 0 with *group, which the caller closes, or -1 with *error:
 * - _NO_DAEMON
 * - _USAGE: the name is empty, longer than 63 bytes, not UTF-8, or has control characters; `members` does not have this
 *   node, has a node twice, or one that does not exist; or another member has given another list for this name
 * - _REFUSED: another program on this node has opened this group, or a node has an older release (`members`)
 * - _LINK: a node is down or cannot be reached
 * - _TIMEOUT: the text names nodes that have not opened the group
 * - _MEMORY: also if a daemon had no memory for the group within `memory_timeout_ms`; the text names the node, what the
 *   user has reserved there, and what to do
 * - _BUSY
 * - _IN_DOUBT: this node was cut off, or another node failed, when all nodes had opened the group. Some members may
 *   have it open; their calls tell them that it has failed. */
TORUS_EXPORT int torus_group_open(const struct torus_group_options *options,
                                  struct torus_group **group, struct torus_error *error);

/* Opens a new group of the remaining nodes after `group` has failed because nodes are down. The program on every
 * remaining node makes this call, which waits until all of them have made it. Nodes that are down by then, or go down
 * before the call returns, are left out. The new group numbers its members from 0, in the order of their nodes,
 * equally on all members: see torus_group_rank(), torus_group_size() and torus_group_node().
 *
 * A call that failed on one member may have succeeded on another. In the new group the members must agree from which
 * step to continue, for example by an allreduce with TORUS_MIN over the last step that each of them has finished.
 *
 * The new group has the name, digests and timeout of `group` (as torus_group_set_timeout() has set it), and can
 * itself fail and be shrunk. If the new group fails just after opening, one member may see a failed group while
 * another member still waits for it to open. When the first member shrinks the new group, the two meet again.
 *
 * No call on `group` is possible any more. The memory of `group` can still be read. The caller closes `group`, before
 * or after the new group.
 *
 * - If `group` has not failed here, this member leaves it by this call. The other members see it fail, at their next
 *   call at the latest. If no node is down, the new group has all nodes.
 * - The call waits for every node that is up, including a node that was down and is up again: the same program there,
 *   or another program that has opened a group of this name, can shrink the group. Set a timeout. If a new program
 *   runs there, open a new group of all nodes.
 * - The new group avoids links that are down, as every group does, and all links of nodes that it leaves out. It
 *   fails (_LINK) if its members cannot reach each other over the remaining links.
 * - torus_group_dims() still returns the whole torus. If nodes are missing, torus_group_part() fails with _REFUSED on
 *   all members, except with all dimensions, which gives the group itself.
 * - A node that comes up again becomes a member of the next group that torus_group_open() opens, not of this group.
 *
 * Returns 0 with *shrunk, which the caller closes, or -1 with *error: _USAGE (`group` is a part), _LINK (nodes that
 * may be up cannot be reached: more than half of all nodes must be left, unless it is certain that the others are
 * down), _TIMEOUT (the text names nodes that have not made the call), and the errors of torus_group_open(). */
TORUS_EXPORT int torus_group_shrink(struct torus_group *group, struct torus_group **shrunk,
                                    struct torus_error *error);

/* Closes a group or a part; NULL does nothing. Closing the whole group also closes its parts and frees its memory. If
 * calls are under way, they are abandoned, and the group fails. Otherwise closing does not disturb other members: the
 * daemon continues to relay their data. */
TORUS_EXPORT void torus_group_close(struct torus_group *group);

/* Opens the part of the group whose members differ from this member only in the given dimensions (bit d stands for
 * dimension d). On a 4x8 torus, dimensions 1 << 1 give the row of 8 nodes that this node is in, and 1 << 0 its column
 * of 4 nodes. All members of the group make this call with the same dimensions, once for each set of dimensions. A
 * part has its own order of calls, except the part with all dimensions: its calls are calls of the group.
 *
 * Returns 0 with *part, which the caller closes (closing the group does, too), or -1 with *error: _USAGE (no such
 * dimension, or `group` is a part), _REFUSED (the part is open already, or nodes are missing in this group), _LINK
 * (links are down, and the members of such a part cannot reach each other within the part), or the reason why the
 * group has failed. _REFUSED and _LINK are the same on all members, and do not fail the group. */
TORUS_EXPORT int torus_group_part(struct torus_group *group, uint32_t dimensions,
                                  struct torus_group **part, struct torus_error *error);

/* Return the number of this member, and the number of members. */
TORUS_EXPORT uint32_t torus_group_rank(const struct torus_group *group);
TORUS_EXPORT uint32_t torus_group_size(const struct torus_group *group);

/* Returns the node (its rank in the torus) of a member of the group or part, or TORUS_RANK_NONE if there is no such
 * member. */
TORUS_EXPORT uint32_t torus_group_node(const struct torus_group *group, uint32_t member);

/* Returns the dimensions of the torus, or of the part, as in torus_status.dims: "4x8", "8m". The text belongs to the
 * group. */
TORUS_EXPORT const char *torus_group_dims(const struct torus_group *group);

/* Sets *changes to the number of times that links of the torus have changed since this member has opened the group: they
 * went down, came up or carry another rate, as far as this node knows. Members count differently. With a daemon of an
 * older release the number stays 0. Costs no system call. Returns 0, or -1 with *error if the group has failed. */
TORUS_EXPORT int torus_group_changes(const struct torus_group *group, uint32_t *changes,
                                     struct torus_error *error);

/* Sets the timeout of calls made from now on; 0: none. A call that has not ended in time fails the group with
 * TORUS_ERROR_TIMEOUT; the text names members that have not made the call. Finding these members takes the daemon
 * some time, and a call that ends meanwhile succeeds. */
TORUS_EXPORT void torus_group_set_timeout(struct torus_group *group, uint32_t milliseconds);

/* Sets after how many milliseconds a call is late, for calls made from now on; 0 (the default): never. When a call is
 * late, the daemon finds out which members have not made it: see torus_call_late(). */
TORUS_EXPORT void torus_group_set_late(struct torus_group *group, uint32_t milliseconds);

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Allocates memory that this process shares with the daemon, for calls of this group and its parts. It is zeroed and
 * aligned to pages. The caller frees it with torus_memory_free(), or by closing the group. On failure returns NULL
 * with *error: _MEMORY, _USAGE (0 bytes), or the reason why the group has failed. */
TORUS_EXPORT void *torus_memory_new(struct torus_group *group, size_t bytes,
                                    struct torus_error *error);

/* Frees memory from torus_memory_new(); NULL does nothing. No call under way may use the memory. */
TORUS_EXPORT void torus_memory_free(struct torus_group *group, void *memory);

/* ---- Collective operations ------------------------------------------------------------------- */

/* As the send area: the operation takes its input from the receive area, as with MPI_IN_PLACE. */
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
    TORUS_FLOAT32,    /* float */
    TORUS_FLOAT64,    /* double */
    TORUS_FLOAT16,    /* half precision (IEEE binary16): combined in float, then rounded */
    TORUS_COMPLEX64,  /* two floats; sum, product and average only */
    TORUS_COMPLEX128, /* two doubles; sum, product and average only */
    TORUS_BOOL, /* bytes, true unless 0: sum and maximum are "or", product and minimum are "and" */
    TORUS_BFLOAT16, /* the upper half of a float: combined in float, then rounded. All nodes need this release */
};

enum torus_operator {
    TORUS_SUM = 1, /* of integers: modulo 2 to the power of their width */
    TORUS_PRODUCT, /* of integers: as TORUS_SUM */
    TORUS_MIN,     /* NaN if an element is NaN */
    TORUS_MAX,     /* NaN if an element is NaN */
    TORUS_AND,     /* these three are bitwise, for integers and bool only */
    TORUS_OR,
    TORUS_XOR,
    /* TORUS_SUM divided by the number of members, once for all of them; not for integers and bool. All nodes need this
     * release */
    TORUS_AVG,
};

/* Returns the bytes of an element, or 0 for a value that is not a type. */
TORUS_EXPORT size_t torus_type_size(enum torus_type type);

/* The operations return 0, or -1 with *error: _USAGE (an invalid size, type or root), or the reason why the group has
 * failed. Sizes are in bytes unless said otherwise. An area without bytes may be NULL. Below, `size` stands for
 * torus_group_size(). */

/* MPI_Alltoall: block j of member i, at send + j * block_bytes, becomes block i of member j, at receive + i *
 * block_bytes. In place: the receive area holds the blocks to send. */
TORUS_EXPORT int torus_alltoall(struct torus_group *group, const void *send, void *receive,
                                size_t block_bytes, struct torus_error *error);

/* MPI_Alltoallv: sends member j the send_bytes[j] bytes at send + send_offset[j]. The block of member i arrives at
 * receive + receive_offset[i]; receive_bytes[i] must be the number of bytes that i sends to this member. The arrays
 * have `size` entries, and must stay unchanged until the call has ended. In place: send_bytes and send_offset are
 * ignored, and the receive area holds the blocks to send, so members i and j send each other the same number of
 * bytes. */
TORUS_EXPORT int torus_alltoallv(struct torus_group *group, const void *send,
                                 const size_t *send_bytes, const size_t *send_offset, void *receive,
                                 const size_t *receive_bytes, const size_t *receive_offset,
                                 struct torus_error *error);

/* MPI_Allgather: the block of member i, block_bytes at `send`, becomes block i in the receive area of all members. In
 * place: the member's block is already at its place in the receive area. */
TORUS_EXPORT int torus_allgather(struct torus_group *group, const void *send, void *receive,
                                 size_t block_bytes, struct torus_error *error);

/* MPI_Allgatherv: the block of member i has bytes[i] bytes, and arrives at receive + offset[i] on all members.
 * `bytes` is the same on all members. */
TORUS_EXPORT int torus_allgatherv(struct torus_group *group, const void *send, void *receive,
                                  const size_t *bytes, const size_t *offset,
                                  struct torus_error *error);

/* MPI_Bcast: copies `bytes` bytes at `buffer` from member `root` to `buffer` of all other members. */
TORUS_EXPORT int torus_broadcast(struct torus_group *group, void *buffer, size_t bytes,
                                 uint32_t root, struct torus_error *error);

/* MPI_Gather: sends the `block_bytes` bytes at `send` to member `root`, which receives the block of member i at `receive`
 * + i * block_bytes. On other members `receive` is not used and may be NULL, and TORUS_IN_PLACE is an error (_USAGE).
 * All nodes need version 14.5 of the peer protocol; otherwise the call fails with _REFUSED. */
TORUS_EXPORT int torus_gather(struct torus_group *group, const void *send, void *receive,
                              size_t block_bytes, uint32_t root, struct torus_error *error);

/* MPI_Gatherv: as torus_gather(), but members have blocks of different sizes. Member `root` has bytes[i], the number of
 * bytes that member i sends, and receives them at receive + offset[i]; the arrays have `size` entries, and must stay
 * unchanged until the call has ended. Other members use neither the arrays nor `receive`. In place, at the root: its own
 * block is already at its place in the receive area. This is a torus_alltoallv() in which all other blocks are empty: the
 * same members can make one as the other, and errors name that operation. */
TORUS_EXPORT int torus_gatherv(struct torus_group *group, const void *send, size_t send_bytes,
                               void *receive, const size_t *bytes, const size_t *offset,
                               uint32_t root, struct torus_error *error);

/* MPI_Scatter: sends each member i the `block_bytes` bytes at send + i * block_bytes of member `root`, which arrive at
 * `receive`. On other members `send` is not used and may be NULL, and TORUS_IN_PLACE is an error (_USAGE). In place, at the
 * root: the receive area holds the blocks of all members, and stays unchanged. All nodes need version 14.6 of the peer
 * protocol; otherwise the call fails with _REFUSED. */
TORUS_EXPORT int torus_scatter(struct torus_group *group, const void *send, void *receive,
                               size_t block_bytes, uint32_t root, struct torus_error *error);

/* MPI_Scatterv: as torus_scatter(), but the block of member i has bytes[i] bytes, and is at send + offset[i] of member
 * `root`. Member i receives receive_bytes bytes, which must be the same number. Only the root uses the arrays, which have
 * `size` entries. In place, at the root: the receive area holds the blocks of all members, and stays unchanged. What
 * torus_gatherv() says about torus_alltoallv() holds here as well. */
TORUS_EXPORT int torus_scatterv(struct torus_group *group, const void *send, const size_t *bytes,
                                const size_t *offset, void *receive, size_t receive_bytes,
                                uint32_t root, struct torus_error *error);

/* MPI_Barrier: returns when all members have made the call. */
TORUS_EXPORT int torus_barrier(struct torus_group *group, struct torus_error *error);

/* MPI_Allreduce: element e of the result combines element e of all members. `send` and `receive` have `count`
 * elements of `type`. The order of combination depends only on the torus, its links that are down, the count and e.
 * So all members get the same bits, and so does every repetition. */
TORUS_EXPORT int torus_allreduce(struct torus_group *group, const void *send, void *receive,
                                 size_t count, enum torus_type type, enum torus_operator operation,
                                 struct torus_error *error);

/* MPI_Reduce: as torus_allreduce(), but only member `root` receives the result, and the order of combination also
 * depends on the root. On other members `receive` is not used and may be NULL, and TORUS_IN_PLACE is an error
 * (_USAGE). If the root has n links, each link carries 1/n of a long vector, combined on the way. */
TORUS_EXPORT int torus_reduce(struct torus_group *group, const void *send, void *receive,
                              size_t count, enum torus_type type, enum torus_operator operation,
                              uint32_t root, struct torus_error *error);

/* MPI_Reduce_scatter: combines the vectors at `send`, which have as many elements as the sum of counts[], element by
 * element. Member i receives counts[i] elements of the result at `receive`, in the order of the members. `counts` has
 * `size` entries, and is the same on all members. In place: the vector is in the receive area, and the member's part
 * of the result replaces its beginning. */
TORUS_EXPORT int torus_reduce_scatter(struct torus_group *group, const void *send, void *receive,
                                      const size_t *counts, enum torus_type type,
                                      enum torus_operator operation, struct torus_error *error);

/* ---- Messages -------------------------------------------------------------------------------- */

/* One member sends, and another one receives. Messages are no part of the order of the calls of a group: other members
 * need not call anything, and a message may be sent and received while other calls are under way.
 *
 * - A message goes to the first receive of that member from this one with the same tag that no earlier message has gone
 *   to. So messages between two members with the same tag arrive in their order; those with different tags go their own
 *   ways. A group and its parts have tags of their own.
 * - The receiver names the sender, or takes a message from any member. It names the tag, which is below 2 to the power of
 *   56, and the size. If the sizes differ, the group fails on every node, and the error names both members.
 * - A receive from any member gets the message of the member of which it hears first. The other members keep theirs for
 *   later receives. It costs each of them two short frames, so name the sender if you know it.
 * - Sending ends when the receiver has all bytes, so it waits for the receiver (as MPI_Ssend does). Two members that both
 *   send first, and then receive, wait for ever: let one of them receive first, or start both.
 * - No byte of a message leaves before the receive has been called, and daemons keep no copies of messages. What is on its
 *   way is bounded: 1 MiB / 64 / size of every message that a member waits for, and then 1 MiB / size for all messages to a
 *   member together. A receiver that is late costs the nodes between no memory.
 * - Links that go down are avoided as in other calls; what was on its way is sent again.
 * - If a program dies or a node goes down, the group fails, and the error names it. A member that has left the group is
 *   named, too; a receive from any member fails the group when all others have left. A timeout
 *   (torus_group_set_timeout()) fails the group when a message has not arrived in time.
 *
 * All nodes need version 14.7 of the peer protocol; otherwise the calls fail with _REFUSED. A member cannot send itself a
 * message (_USAGE). */

/* MPI_Ssend and MPI_Recv: sends `bytes` bytes at `data` to member `to`, and receives as many from member `from`. */
TORUS_EXPORT int torus_send(struct torus_group *group, const void *data, size_t bytes, uint32_t to,
                            uint64_t tag, struct torus_error *error);
TORUS_EXPORT int torus_receive(struct torus_group *group, void *data, size_t bytes, uint32_t from,
                               uint64_t tag, struct torus_error *error);

/* MPI_Recv with MPI_ANY_SOURCE: receives `bytes` bytes from any other member, and sets *from to its number. */
TORUS_EXPORT int torus_receive_any(struct torus_group *group, void *data, size_t bytes,
                                   uint64_t tag, uint32_t *from, struct torus_error *error);

/* Describes the data of the next call on the group or part, so that members with different data do not take it for
 * equal because it has equally many bytes. `type` names the type of the elements, in any words that all members use
 * ("float64"); NULL: not known. `shape` has the lengths of the array's `dimensions`; NULL: not known. A call that is not
 * described goes with any other. If the descriptions of two members differ, the group fails on every node, and the error
 * names the members. A member whose call has ended by then, such as the root of a broadcast, learns of it from its next
 * call. While a daemon in the torus has an older release, descriptions are not compared. */
TORUS_EXPORT void torus_group_describe(struct torus_group *group, const char *type,
                                       const size_t *shape, uint32_t dimensions);

/* ---- Without waiting ------------------------------------------------------------------------- */

/* torus_start_X() starts operation X and returns at once. Its parameters and errors are those of torus_X(), and on
 * success it sets *call. The call must be ended with torus_call_wait() or torus_call_test(), which free it. Several
 * calls may be under way, and may be waited for in any order. They are carried out in the order in which they were
 * started. TORUS_ERROR_BUSY: too many calls are under way in the group and its parts.
 *
 * Event loops watch torus_group_fd() for POLLIN. When it is readable, call torus_call_test() for the calls under
 * way. */

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
TORUS_EXPORT int torus_start_gather(struct torus_group *group, const void *send, void *receive,
                                    size_t block_bytes, uint32_t root, struct torus_call **call,
                                    struct torus_error *error);
TORUS_EXPORT int torus_start_gatherv(struct torus_group *group, const void *send, size_t send_bytes,
                                     void *receive, const size_t *bytes, const size_t *offset,
                                     uint32_t root, struct torus_call **call,
                                     struct torus_error *error);
TORUS_EXPORT int torus_start_scatter(struct torus_group *group, const void *send, void *receive,
                                     size_t block_bytes, uint32_t root, struct torus_call **call,
                                     struct torus_error *error);
TORUS_EXPORT int torus_start_scatterv(struct torus_group *group, const void *send,
                                      const size_t *bytes, const size_t *offset, void *receive,
                                      size_t receive_bytes, uint32_t root, struct torus_call **call,
                                      struct torus_error *error);
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

/* Messages may end in any order. */
TORUS_EXPORT int torus_start_send(struct torus_group *group, const void *data, size_t bytes,
                                  uint32_t to, uint64_t tag, struct torus_call **call,
                                  struct torus_error *error);
TORUS_EXPORT int torus_start_receive(struct torus_group *group, void *data, size_t bytes,
                                     uint32_t from, uint64_t tag, struct torus_call **call,
                                     struct torus_error *error);
/* *from is set when torus_call_wait() or torus_call_test() has ended the call with success. */
TORUS_EXPORT int torus_start_receive_any(struct torus_group *group, void *data, size_t bytes,
                                         uint64_t tag, uint32_t *from, struct torus_call **call,
                                         struct torus_error *error);

/* Waits until the call has ended, and frees it. Returns 0 if the call has succeeded, or -1 with *error. */
TORUS_EXPORT int torus_call_wait(struct torus_call *call, struct torus_error *error);

/* Returns without waiting: 0 if the call is still under way, 1 if it has succeeded, or -1 with *error if it has
 * failed. After 1 and -1 the call has been freed. */
TORUS_EXPORT int torus_call_test(struct torus_call *call, struct torus_error *error);

/* Waits until the call has ended, for at most `nanoseconds`. Returns whether the call has ended; then
 * torus_call_test() or torus_call_wait() returns its result without waiting. Unlike all other functions, this
 * function may be called while another thread uses the group, except while that thread ends this call or closes the
 * group or part. It does not notice that the daemon has ended; torus_call_test() does. */
TORUS_EXPORT bool torus_call_pause(const struct torus_call *call, uint64_t nanoseconds);

/* Returns whether this member knows which members a late call under way waits for. If so, copies a text into `whom`,
 * of `size` bytes: "node 3 has not called it", or "all have called it" (nodes are ranks in the torus). If several
 * members wait in a call, only one of them gets the text: the one whose daemon asks first. See
 * torus_group_set_late(). */
TORUS_EXPORT bool torus_call_late(const struct torus_call *call, char *whom, size_t size);

/* Returns a descriptor that is readable when a call of the group or its parts may have ended since the last
 * torus_call_test() or torus_call_wait() of any of their calls. It belongs to the group, and is the same for its
 * parts. */
TORUS_EXPORT int torus_group_fd(const struct torus_group *group);

#ifdef __cplusplus
}
#endif

#endif
