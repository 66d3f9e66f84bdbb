#include "client/libtorus/groups/group.h"

#include "client/libtorus/common.h"
#include "proto/group_call.h"

/* The collective operations: what each of them sends and receives. */

#define X(number, name, NAME, ...) _Static_assert((int)TORUS_##NAME == (number), #name);
REDUCTION_TYPE_LIST(X)
REDUCTION_OPERATOR_LIST(X)
#undef X

size_t torus_type_size(enum torus_type type)
{
    return reduction_size((uint32_t)type);
}

/* ---- Areas ----------------------------------------------------------------------------------- */

static struct group_area piece(const void *at, size_t bytes)
{
    return (struct group_area){(void *)(uintptr_t)at, bytes, NULL, NULL};
}

static int product(size_t a, size_t b, size_t *out, struct torus_error *e)
{
    if (__builtin_mul_overflow(a, b, out))
        return fail(e, TORUS_ERROR_USAGE,
                    "%zu times %zu bytes are too many: at most %zu are possible", a, b, SIZE_MAX);
    return 0;
}

static int sum(const size_t *each, uint32_t count, size_t *out, struct torus_error *e)
{
    *out = 0;
    for (uint32_t i = 0; i < count; i++)
        if (__builtin_add_overflow(*out, each[i], out))
            return fail(e, TORUS_ERROR_USAGE,
                        "the blocks are too large together: at most %zu bytes are possible",
                        SIZE_MAX);
    return 0;
}

static int blocks(const void *at, const size_t *size, const size_t *offset, uint32_t count,
                  struct group_area *area, struct torus_error *e)
{
    *area = (struct group_area){(void *)(uintptr_t)at, 0, size, offset};
    if (size == NULL || offset == NULL)
        return fail(e, TORUS_ERROR_USAGE, "an array of sizes or offsets is NULL");
    return sum(size, count, &area->bytes, e);
}

/* Sets the areas of an operation that reads one area and writes the other, each in one piece. */
static int two_areas(struct call_setup *o, const void *send, size_t send_bytes, void *receive,
                     size_t receive_bytes, struct torus_error *e)
{
    const uint8_t *a = send, *b = receive;

    o->receive = piece(receive, receive_bytes);
    o->output = receive_bytes;
    o->request.in_place = send == TORUS_IN_PLACE;
    if (send == TORUS_IN_PLACE)
        return 0;
    o->send = piece(send, send_bytes);
    if (a != NULL && b != NULL && send_bytes > 0 && receive_bytes > 0 && a < b + receive_bytes &&
        b < a + send_bytes) /* NULL has an error of its own */
        return fail(e, TORUS_ERROR_USAGE,
                    "the send and receive areas overlap; pass TORUS_IN_PLACE as the send area");
    return 0;
}

/* For calls in place: makes the daemon send from a copy. It cannot exchange blocks in place, because blocks would
 * arrive in the place of blocks that have not been sent yet. */
static void from_copy(struct call_setup *o)
{
    if (o->request.in_place == 0)
        return;
    o->request.in_place = 0;
    o->send = o->receive;
    o->copies = true;
}

/* ---- Moving ---------------------------------------------------------------------------------- */

int torus_start_alltoall(struct torus_group *group, const void *send, void *receive,
                         size_t block_bytes, struct torus_call **call, struct torus_error *error)
{
    struct call_setup o = {.request = {.operation = GROUP_ALLTOALL, .size = block_bytes}};
    size_t bytes;

    *call = NULL;
    if (product(block_bytes, group->size, &bytes, error) != 0 ||
        two_areas(&o, send, bytes, receive, bytes, error) != 0)
        return -1;
    from_copy(&o);
    return group_start(group, &o, call, error);
}

int torus_start_alltoallv(struct torus_group *group, const void *send, const size_t *send_bytes,
                          const size_t *send_offset, void *receive, const size_t *receive_bytes,
                          const size_t *receive_offset, struct torus_call **call,
                          struct torus_error *error)
{
    struct call_setup o = {.request.operation = GROUP_ALLTOALLV};
    bool in_place = send == TORUS_IN_PLACE;

    *call = NULL;
    if (blocks(receive, receive_bytes, receive_offset, group->size, &o.receive, error) != 0 ||
        (!in_place && blocks(send, send_bytes, send_offset, group->size, &o.send, error) != 0))
        return -1;
    o.request.in_place = in_place;
    from_copy(&o);
    return group_start(group, &o, call, error);
}

int torus_start_allgather(struct torus_group *group, const void *send, void *receive,
                          size_t block_bytes, struct torus_call **call, struct torus_error *error)
{
    struct call_setup o = {.request = {.operation = GROUP_ALLGATHER, .size = block_bytes}};
    size_t bytes;

    *call = NULL;
    if (product(block_bytes, group->size, &bytes, error) != 0 ||
        two_areas(&o, send, block_bytes, receive, bytes, error) != 0)
        return -1;
    o.input_offset = block_bytes * group->rank;
    o.input = o.request.in_place != 0 ? block_bytes : 0;
    return group_start(group, &o, call, error);
}

int torus_start_allgatherv(struct torus_group *group, const void *send, void *receive,
                           const size_t *bytes, const size_t *offset, struct torus_call **call,
                           struct torus_error *error)
{
    struct call_setup o = {.request.operation = GROUP_ALLGATHERV};
    bool in_place = send == TORUS_IN_PLACE;

    *call = NULL;
    if (blocks(receive, bytes, offset, group->size, &o.receive, error) != 0)
        return -1;
    if (!in_place)
        o.send = piece(send, bytes[group->rank]);
    o.request.in_place = in_place;
    o.input = in_place;
    o.input_block = group->rank;
    return group_start(group, &o, call, error);
}

static int check_root(const struct torus_group *group, uint32_t root, struct torus_error *e)
{
    if (root < group->size)
        return 0;
    return fail(e, TORUS_ERROR_USAGE, "there is no member %u: the number of members is %u",
                (unsigned)root, (unsigned)group->size);
}

/* Checks that a call in place is the root's; `what`: "a reduce". */
static int check_place(const struct torus_group *group, const void *send, uint32_t root,
                       const char *what, struct torus_error *e)
{
    if (send != TORUS_IN_PLACE || root == group->rank)
        return 0;
    return fail(e, TORUS_ERROR_USAGE,
                "only the root of %s, here member %u, can use TORUS_IN_PLACE: this is member %u",
                what, (unsigned)root, (unsigned)group->rank);
}

int torus_start_gather(struct torus_group *group, const void *send, void *receive,
                       size_t block_bytes, uint32_t root, struct torus_call **call,
                       struct torus_error *error)
{
    struct call_setup o = {
        .request = {.operation = GROUP_GATHER, .size = block_bytes, .root = root}};
    const bool is_root = root == group->rank;
    size_t bytes;

    *call = NULL;
    if (check_root(group, root, error) != 0 ||
        check_place(group, send, root, "a gather", error) != 0 ||
        product(block_bytes, group->size, &bytes, error) != 0 ||
        two_areas(&o, send, block_bytes, is_root ? receive : NULL, is_root ? bytes : 0, error) != 0)
        return -1;
    o.input_offset = block_bytes * group->rank;
    o.input = o.request.in_place != 0 ? block_bytes : 0;
    return group_start(group, &o, call, error);
}

/* The root has a block for or from each member, and the others only one: an uneven exchange. */
int torus_start_gatherv(struct torus_group *group, const void *send, size_t send_bytes,
                        void *receive, const size_t *bytes, const size_t *offset, uint32_t root,
                        struct torus_call **call, struct torus_error *error)
{
    struct call_setup o = {.request.operation = GROUP_ALLTOALLV, .one = root};

    *call = NULL;
    if (check_root(group, root, error) != 0 ||
        check_place(group, send, root, "a gather", error) != 0 ||
        (root == group->rank &&
         blocks(receive, bytes, offset, group->size, &o.receive, error) != 0))
        return -1;
    if (send == TORUS_IN_PLACE) {
        send = (const uint8_t *)receive + offset[root];
        send_bytes = bytes[root];
    }
    o.send = piece(send, send_bytes);
    return group_start(group, &o, call, error);
}

int torus_start_scatter(struct torus_group *group, const void *send, void *receive,
                        size_t block_bytes, uint32_t root, struct torus_call **call,
                        struct torus_error *error)
{
    struct call_setup o = {
        .request = {.operation = GROUP_SCATTER, .size = block_bytes, .root = root}};
    const bool is_root = root == group->rank, in_place = send == TORUS_IN_PLACE;
    size_t bytes;

    *call = NULL;
    if (check_root(group, root, error) != 0 ||
        check_place(group, send, root, "a scatter", error) != 0 ||
        product(block_bytes, group->size, &bytes, error) != 0 ||
        two_areas(&o, is_root ? send : NULL, is_root ? bytes : 0, receive,
                  in_place ? bytes : block_bytes, error) != 0)
        return -1;
    o.input = in_place ? bytes : 0;
    o.output = in_place ? 0 : block_bytes;
    return group_start(group, &o, call, error);
}

int torus_start_scatterv(struct torus_group *group, const void *send, const size_t *bytes,
                         const size_t *offset, void *receive, size_t receive_bytes, uint32_t root,
                         struct torus_call **call, struct torus_error *error)
{
    struct call_setup o = {.request.operation = GROUP_ALLTOALLV, .one = root};
    const bool is_root = root == group->rank, in_place = send == TORUS_IN_PLACE;

    *call = NULL;
    if (check_root(group, root, error) != 0 ||
        check_place(group, send, root, "a scatter", error) != 0 ||
        (is_root &&
         blocks(in_place ? receive : send, bytes, offset, group->size, &o.send, error) != 0))
        return -1;
    if (in_place) { /* the root's block arrives where it is */
        receive = (uint8_t *)receive + offset[root];
        receive_bytes = bytes[root];
    }
    o.receive = piece(receive, receive_bytes);
    o.output = receive_bytes;
    return group_start(group, &o, call, error);
}

int torus_start_broadcast(struct torus_group *group, void *buffer, size_t bytes, uint32_t root,
                          struct torus_call **call, struct torus_error *error)
{
    struct call_setup o = {.request = {.operation = GROUP_BROADCAST, .size = bytes, .root = root}};
    bool is_root = root == group->rank;

    *call = NULL;
    if (check_root(group, root, error) != 0)
        return -1;
    o.receive = piece(buffer, bytes);
    o.input = is_root ? bytes : 0;
    o.output = is_root ? 0 : bytes;
    return group_start(group, &o, call, error);
}

int torus_start_barrier(struct torus_group *group, struct torus_call **call,
                        struct torus_error *error)
{
    struct call_setup o = {.request.operation = GROUP_BARRIER};

    return group_start(group, &o, call, error);
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Returns the number that a member of the group or part has in the whole group. */
static uint32_t number_in_whole(const struct torus_group *group, uint32_t member)
{
    return group->is_part ? torus_group_node(group, member) : member;
}

/* Starts sending or receiving `area`. The daemon knows members of the whole group only; parts have tags of their own. */
static int start_message(struct torus_group *group, struct call_setup *o, uint64_t tag,
                         struct torus_call **call, struct torus_error *e)
{
    *call = NULL;
    if (tag >= GROUP_TAGS)
        return fail(e, TORUS_ERROR_USAGE, "%llu is not a tag: tags are below 2 to the power of 56",
                    (unsigned long long)tag);
    o->request.counts_offset = (group->is_part ? group->dimensions * GROUP_TAGS : 0) | tag;
    return group_start(group, o, call, e);
}

/* The same to or from this member. */
static int start_with(struct torus_group *group, struct call_setup *o, uint32_t member,
                      uint64_t tag, struct torus_call **call, struct torus_error *e)
{
    *call = NULL;
    if (check_root(group, member, e) != 0)
        return -1;
    if (member == group->rank)
        return fail(e, TORUS_ERROR_USAGE, "a member cannot send itself a message");
    o->request.root = number_in_whole(group, member);
    return start_message(group, o, tag, call, e);
}

int torus_start_send(struct torus_group *group, const void *data, size_t bytes, uint32_t to,
                     uint64_t tag, struct torus_call **call, struct torus_error *error)
{
    struct call_setup o = {.request.operation = GROUP_SEND, .send = piece(data, bytes)};

    return start_with(group, &o, to, tag, call, error);
}

int torus_start_receive(struct torus_group *group, void *data, size_t bytes, uint32_t from,
                        uint64_t tag, struct torus_call **call, struct torus_error *error)
{
    struct call_setup o = {
        .request.operation = GROUP_RECEIVE, .receive = piece(data, bytes), .output = bytes};

    return start_with(group, &o, from, tag, call, error);
}

int torus_start_receive_any(struct torus_group *group, void *data, size_t bytes, uint64_t tag,
                            uint32_t *from, struct torus_call **call, struct torus_error *error)
{
    struct call_setup o = {.request.operation = GROUP_RECEIVE_ANY,
                           .receive = piece(data, bytes),
                           .output = bytes,
                           .sender = from};

    *call = NULL;
    if (group->size == 1)
        return fail(error, TORUS_ERROR_USAGE, "there is no other member to receive from");
    if (from == NULL)
        return fail(error, TORUS_ERROR_USAGE, "`from` is NULL");
    return start_message(group, &o, tag, call, error);
}

/* ---- Reducing -------------------------------------------------------------------------------- */

static int check_reduction(enum torus_type type, enum torus_operator operation,
                           struct call_setup *o, struct torus_error *e)
{
    if (torus_type_size(type) == 0)
        return fail(e, TORUS_ERROR_USAGE, "%d is not a type (enum torus_type)", (int)type);
    if (reduction_operator_name((uint32_t)operation) == NULL)
        return fail(e, TORUS_ERROR_USAGE, "%d is not an operator (enum torus_operator)",
                    (int)operation);
    if (!reduction_allowed((uint32_t)type, (uint32_t)operation))
        return fail(e, TORUS_ERROR_USAGE, "operator %s is not defined for elements of type %s",
                    reduction_operator_name((uint32_t)operation),
                    reduction_type_name((uint32_t)type));
    o->request.type = (uint32_t)type;
    o->request.operator=(uint32_t) operation;
    return 0;
}

int torus_start_allreduce(struct torus_group *group, const void *send, void *receive, size_t count,
                          enum torus_type type, enum torus_operator operation,
                          struct torus_call **call, struct torus_error *error)
{
    struct call_setup o = {.request = {.operation = GROUP_ALLREDUCE, .size = count}};
    size_t bytes;

    *call = NULL;
    if (check_reduction(type, operation, &o, error) != 0 ||
        product(count, torus_type_size(type), &bytes, error) != 0 ||
        two_areas(&o, send, bytes, receive, bytes, error) != 0)
        return -1;
    o.input = o.request.in_place != 0 ? bytes : 0;
    return group_start(group, &o, call, error);
}

int torus_start_reduce(struct torus_group *group, const void *send, void *receive, size_t count,
                       enum torus_type type, enum torus_operator operation, uint32_t root,
                       struct torus_call **call, struct torus_error *error)
{
    struct call_setup o = {.request = {.operation = GROUP_REDUCE, .size = count, .root = root}};
    bool is_root = root == group->rank;
    size_t bytes;

    *call = NULL;
    if (check_root(group, root, error) != 0 || check_reduction(type, operation, &o, error) != 0 ||
        product(count, torus_type_size(type), &bytes, error) != 0 ||
        check_place(group, send, root, "a reduce", error) != 0 ||
        two_areas(&o, send, bytes, is_root ? receive : NULL, is_root ? bytes : 0, error) != 0)
        return -1;
    o.input = o.request.in_place != 0 ? bytes : 0;
    return group_start(group, &o, call, error);
}

int torus_start_reduce_scatter(struct torus_group *group, const void *send, void *receive,
                               const size_t *counts, enum torus_type type,
                               enum torus_operator operation, struct torus_call **call,
                               struct torus_error *error)
{
    struct call_setup o = {.request.operation = GROUP_REDUCE_SCATTER};
    size_t all, mine;

    *call = NULL;
    if (counts == NULL)
        return fail(error, TORUS_ERROR_USAGE, "the array of counts is NULL");
    if (check_reduction(type, operation, &o, error) != 0 ||
        sum(counts, group->size, &all, error) != 0 ||
        product(all, torus_type_size(type), &all, error) != 0)
        return -1;
    mine = counts[group->rank] * torus_type_size(type);
    if (two_areas(&o, send, all, receive, send == TORUS_IN_PLACE ? all : mine, error) != 0)
        return -1;
    from_copy(&o);
    o.receive.bytes = o.output = mine;
    o.counts = counts;
    return group_start(group, &o, call, error);
}

/* ---- Blocking calls -------------------------------------------------------------------------- */

/* Waits for the end of the call that the expression starts, and stores in `call`. */
#define ENDED(started, error)                                                                      \
    __extension__({                                                                                \
        struct torus_call *call;                                                                   \
        (started) == 0 ? torus_call_wait(call, (error)) : -1;                                      \
    })

int torus_alltoall(struct torus_group *group, const void *send, void *receive, size_t block_bytes,
                   struct torus_error *error)
{
    return ENDED(torus_start_alltoall(group, send, receive, block_bytes, &call, error), error);
}

int torus_alltoallv(struct torus_group *group, const void *send, const size_t *send_bytes,
                    const size_t *send_offset, void *receive, const size_t *receive_bytes,
                    const size_t *receive_offset, struct torus_error *error)
{
    return ENDED(torus_start_alltoallv(group, send, send_bytes, send_offset, receive, receive_bytes,
                                       receive_offset, &call, error),
                 error);
}

int torus_allgather(struct torus_group *group, const void *send, void *receive, size_t block_bytes,
                    struct torus_error *error)
{
    return ENDED(torus_start_allgather(group, send, receive, block_bytes, &call, error), error);
}

int torus_allgatherv(struct torus_group *group, const void *send, void *receive,
                     const size_t *bytes, const size_t *offset, struct torus_error *error)
{
    return ENDED(torus_start_allgatherv(group, send, receive, bytes, offset, &call, error), error);
}

int torus_gather(struct torus_group *group, const void *send, void *receive, size_t block_bytes,
                 uint32_t root, struct torus_error *error)
{
    return ENDED(torus_start_gather(group, send, receive, block_bytes, root, &call, error), error);
}

int torus_gatherv(struct torus_group *group, const void *send, size_t send_bytes, void *receive,
                  const size_t *bytes, const size_t *offset, uint32_t root,
                  struct torus_error *error)
{
    return ENDED(
        torus_start_gatherv(group, send, send_bytes, receive, bytes, offset, root, &call, error),
        error);
}

int torus_scatter(struct torus_group *group, const void *send, void *receive, size_t block_bytes,
                  uint32_t root, struct torus_error *error)
{
    return ENDED(torus_start_scatter(group, send, receive, block_bytes, root, &call, error), error);
}

int torus_scatterv(struct torus_group *group, const void *send, const size_t *bytes,
                   const size_t *offset, void *receive, size_t receive_bytes, uint32_t root,
                   struct torus_error *error)
{
    return ENDED(torus_start_scatterv(group, send, bytes, offset, receive, receive_bytes, root,
                                      &call, error),
                 error);
}

int torus_broadcast(struct torus_group *group, void *buffer, size_t bytes, uint32_t root,
                    struct torus_error *error)
{
    return ENDED(torus_start_broadcast(group, buffer, bytes, root, &call, error), error);
}

int torus_barrier(struct torus_group *group, struct torus_error *error)
{
    return ENDED(torus_start_barrier(group, &call, error), error);
}

int torus_send(struct torus_group *group, const void *data, size_t bytes, uint32_t to, uint64_t tag,
               struct torus_error *error)
{
    return ENDED(torus_start_send(group, data, bytes, to, tag, &call, error), error);
}

int torus_receive(struct torus_group *group, void *data, size_t bytes, uint32_t from, uint64_t tag,
                  struct torus_error *error)
{
    return ENDED(torus_start_receive(group, data, bytes, from, tag, &call, error), error);
}

int torus_receive_any(struct torus_group *group, void *data, size_t bytes, uint64_t tag,
                      uint32_t *from, struct torus_error *error)
{
    return ENDED(torus_start_receive_any(group, data, bytes, tag, from, &call, error), error);
}

int torus_allreduce(struct torus_group *group, const void *send, void *receive, size_t count,
                    enum torus_type type, enum torus_operator operation, struct torus_error *error)
{
    return ENDED(torus_start_allreduce(group, send, receive, count, type, operation, &call, error),
                 error);
}

int torus_reduce(struct torus_group *group, const void *send, void *receive, size_t count,
                 enum torus_type type, enum torus_operator operation, uint32_t root,
                 struct torus_error *error)
{
    return ENDED(
        torus_start_reduce(group, send, receive, count, type, operation, root, &call, error),
        error);
}

int torus_reduce_scatter(struct torus_group *group, const void *send, void *receive,
                         const size_t *counts, enum torus_type type, enum torus_operator operation,
                         struct torus_error *error)
{
    return ENDED(
        torus_start_reduce_scatter(group, send, receive, counts, type, operation, &call, error),
        error);
}
