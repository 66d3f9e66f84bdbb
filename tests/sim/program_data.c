#include "tests/sim/program_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/arithmetic.h"

#define ROOM 64u /* around areas; must not be written */
#define GUARD 0xa5
#define USED 0xee

struct buffer {
    struct program_memory memory;
    uint8_t byte[];
};

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ b * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 31;
}

static uint64_t call_seed(const struct sim_programs *p, uint32_t index)
{
    return mix(p->set.seed, index + 1);
}

/* Eight bytes at a time. */
static uint64_t block_seed(uint64_t seed, uint32_t from, uint32_t to)
{
    return mix(mix(seed, from + 1), to + 1);
}

static void write_block(uint8_t *at, uint64_t size, uint64_t block)
{
    for (uint64_t k = 0; k < size; k += 8) {
        uint64_t word = mix(block, k);
        memcpy(at + k, &word, size - k < 8 ? size - k : 8);
    }
}

static uint64_t uneven(uint64_t seed, uint64_t size, uint32_t from, uint32_t to)
{
    uint64_t word = mix(mix(seed, from + 100), to + 200);
    return word % 4 == 0 ? 0 : word % (size + 1);
}

/* An element of a member, so small that all operators are exact. */
static void put_element(uint8_t *to, const struct sim_call *call, uint64_t seed, uint32_t member,
                        uint64_t at)
{
    uint64_t word = mix(mix(seed, member + 7), at);
    uint32_t small = call->operator== REDUCTION_PRODUCT ? 1 + word % 2
                     : call->type == REDUCTION_BFLOAT16 ? word % 2 /* sums have 8 bits */
                                                        : word % 16;
    uint64_t integer = small;
    float f[2] = {(float)small, 0};
    double d[2] = {small, 0};

    if (call->type == REDUCTION_FLOAT16) {
        int exponent;
        const double fraction = frexp(small, &exponent);
        if (small != 0) /* the first bit is not stored */
            integer = ((uint64_t)(exponent + 14) << 10) + (uint64_t)(2048 * fraction) - 1024;
    }
    if (call->type == REDUCTION_BFLOAT16)
        integer = small == 0 ? 0 : small == 1 ? 0x3f80 : 0x4000;
    if (call->type == REDUCTION_FLOAT32 || call->type == REDUCTION_COMPLEX64)
        memcpy(to, f, reduction_size(call->type));
    else if (call->type == REDUCTION_FLOAT64 || call->type == REDUCTION_COMPLEX128)
        memcpy(to, d, reduction_size(call->type));
    else /* little-endian machines only */
        memcpy(to, &integer, reduction_size(call->type));
}

/* --- members of a part --- */

/* All nodes whose other coordinates are those of this node, in ascending order; independent of the daemon. */
struct sim_team sim_team_of(const struct program *p, uint32_t part)
{
    const struct torus *t = p->all->torus;
    uint32_t rank = p->rank;
    uint32_t mine[TORUS_MAX_DIMS], theirs[TORUS_MAX_DIMS];
    struct sim_team team = {0};

    torus_coordinates(t, rank, mine);
    for (uint32_t node = 0; node < t->nodes; node++) {
        bool in = true;
        torus_coordinates(t, node, theirs);
        for (unsigned d = 0; d < t->dims; d++)
            in = in && ((part & 1u << d) != 0 || mine[d] == theirs[d]);
        if (!in || (p->gone != NULL && p->gone[node]))
            continue;
        if (node == rank)
            team.rank = team.size;
        team.node[team.size++] = node;
    }
    return team;
}

uint32_t sim_all_dimensions(const struct torus *t)
{
    return (1u << t->dims) - 1;
}

/* --- memory --- */

static void free_buffer(struct program_memory *memory)
{
    free((char *)memory - offsetof(struct buffer, memory));
}

static struct buffer *new_buffer(uint64_t bytes)
{
    struct buffer *b = sim_alloc(sizeof *b + bytes + 2 * ROOM);

    b->memory = (struct program_memory){b->byte, bytes + 2 * ROOM, 1, free_buffer};
    memset(b->byte, GUARD, bytes + 2 * ROOM);
    return b;
}

static struct program_area area_of(struct buffer *b)
{
    return (struct program_area){&b->memory, ROOM, b->memory.size - 2 * ROOM};
}

static void check_guards(const struct program *p, const struct sim_made *m, const struct buffer *b)
{
    for (unsigned i = 0; i < ROOM; i++)
        if (b->byte[i] != GUARD || b->byte[b->memory.size - 1 - i] != GUARD)
            sim_violated(p->all->sim, "guards", "call %u at node %u wrote outside of its area",
                         m->index, p->rank);
}

/* --- making a call --- */

static uint64_t lay_out(uint64_t *size, uint64_t *at, uint32_t count)
{
    uint64_t next = 0;

    for (uint32_t i = 0; i < count; i++) {
        at[i] = next;
        next += size[i] + (i % 3 == 1 ? 5 : 0); /* with holes, and not aligned */
    }
    return next;
}

bool sim_is_rooted(enum group_operation operation)
{
    return operation == GROUP_REDUCE || operation == GROUP_GATHER || operation == GROUP_SCATTER ||
           operation == GROUP_BROADCAST;
}

/* Whether this member makes the call in place; if it has a root, only that one can. */
static bool is_in_place(const struct sim_call *call, const struct sim_team *team)
{
    return call->in_place && (!sim_is_rooted(call->operation) || team->rank == call->root);
}

static void lay_out_uneven_blocks(struct sim_shape *s, const struct sim_call *call, uint64_t seed,
                                  const struct sim_team *team)
{
    for (uint32_t i = 0; i < team->size; i++) {
        s->send[i] = uneven(seed, call->size, team->rank, i);
        s->receive[i] = uneven(seed, call->size, i, team->rank);
    }
    s->send_bytes = lay_out(s->send, s->send_at, team->size);
    s->receive_bytes = lay_out(s->receive, s->receive_at, team->size);
}

static void lay_out_message(struct sim_shape *s, const struct sim_call *call,
                            const struct sim_team *team)
{
    s->send_bytes = s->receive_bytes = call->size;
    if (call->operation != SIM_GATHERED)
        return;
    s->send_bytes = team->rank == call->root ? 0 : call->size;
    s->receive_bytes = team->rank == call->root ? call->size * (team->size - 1) : 0;
}

static void lay_out_blocks(struct sim_shape *s, const struct sim_call *call, uint64_t seed,
                           const struct sim_team *team)
{
    uint64_t element = reduction_size(call->type), sum = 0;

    for (uint32_t i = 0; i < team->size; i++) /* the others are not used */
        s->send[i] = s->send_at[i] = s->receive[i] = s->receive_at[i] = 0;
    s->send_bytes = s->receive_bytes = 0;
    if (sim_is_message(call->operation))
        lay_out_message(s, call, team);
    switch ((uint32_t)call->operation) {
    case GROUP_ALLTOALL:
        s->send_bytes = s->receive_bytes = call->size * team->size;
        break;
    case GROUP_ALLTOALLV:
        lay_out_uneven_blocks(s, call, seed, team);
        break;
    case GROUP_ALLGATHER:
        s->send_bytes = call->size;
        s->receive_bytes = call->size * team->size;
        break;
    case GROUP_GATHER:
        s->send_bytes = call->size;
        s->receive_bytes = team->rank == call->root ? call->size * team->size : 0;
        break;
    case GROUP_SCATTER:
        s->send_bytes = team->rank == call->root ? call->size * team->size : 0;
        s->receive_bytes = is_in_place(call, team) ? s->send_bytes : call->size;
        break;
    case GROUP_ALLGATHERV:
        for (uint32_t i = 0; i < team->size; i++)
            s->receive[i] = uneven(seed, call->size, i, 0);
        s->send_bytes = s->receive[team->rank];
        s->receive_bytes = lay_out(s->receive, s->receive_at, team->size);
        break;
    case GROUP_BROADCAST:
        s->receive_bytes = call->size;
        break;
    case GROUP_ALLREDUCE:
        s->send_bytes = s->receive_bytes = call->size * element;
        break;
    case GROUP_REDUCE:
        s->send_bytes = call->size * element;
        s->receive_bytes = team->rank == call->root ? s->send_bytes : 0;
        break;
    case GROUP_REDUCE_SCATTER:
        for (uint32_t i = 0; i < team->size; i++) {
            s->receive[i] = uneven(seed, call->size, i, 0);
            sum += s->receive[i];
        }
        s->send_bytes = sum * element;
        s->receive_bytes = s->receive[team->rank] * element;
        break;
    default:
        break;
    }
}

/* Where this member's data are: in the receive area if in place, otherwise in the send area. */
static void fill(const struct sim_made *m, uint64_t seed, const struct sim_team *team,
                 const struct sim_shape *s)
{
    const struct sim_call *call = &m->call;
    uint8_t *send = m->send->byte + ROOM, *receive = m->receive->byte + ROOM;
    uint8_t *to = is_in_place(call, team) ? receive : send;
    uint64_t element = reduction_size(call->type);

    switch ((uint32_t)call->operation) {
    case SIM_MESSAGES:
        write_block(send, call->size,
                    block_seed(seed, team->rank,
                               (team->rank + sim_message_distance(call, team->size)) % team->size));
        break;
    case SIM_GATHERED:
        write_block(send, s->send_bytes, block_seed(seed, team->rank, call->root));
        break;
    case GROUP_ALLTOALL:
        for (uint32_t i = 0; i < team->size; i++)
            write_block(send + i * call->size, call->size, block_seed(seed, team->rank, i));
        break;
    case GROUP_ALLTOALLV:
        for (uint32_t i = 0; i < team->size; i++)
            write_block(send + s->send_at[i], s->send[i], block_seed(seed, team->rank, i));
        break;
    case GROUP_ALLGATHER:
    case GROUP_ALLGATHERV:
    case GROUP_GATHER:
        if (is_in_place(call, team))
            to += call->operation == GROUP_ALLGATHERV ? s->receive_at[team->rank]
                                                      : team->rank * call->size;
        write_block(to, s->send_bytes, block_seed(seed, team->rank, 0));
        break;
    case GROUP_SCATTER:
        for (uint32_t i = 0; i < team->size && team->rank == call->root; i++)
            write_block(to + i * call->size, call->size, block_seed(seed, call->root, i));
        break;
    case GROUP_BROADCAST:
        if (team->rank == call->root)
            write_block(receive, call->size, block_seed(seed, call->root, 0));
        break;
    case GROUP_ALLREDUCE:
    case GROUP_REDUCE:
    case GROUP_REDUCE_SCATTER:
        for (uint64_t k = 0; element > 0 && k < s->send_bytes / element; k++)
            put_element(to + k * element, call, seed, team->rank, k);
        break;
    default:
        break;
    }
}

void sim_made_prepare(const struct program *p, struct sim_made *m, struct sim_shape *s,
                      struct group_call *call)
{
    const uint32_t part = m->call.part != 0 ? m->call.part : sim_all_dimensions(p->all->torus);
    const struct sim_team team = sim_team_of(p, part);
    const uint64_t seed = call_seed(p->all, m->index);

    if (m->call.operation != SIM_MESSAGES)
        m->call.root %= team.size;
    lay_out_blocks(s, &m->call, seed, &team);
    m->send = new_buffer(s->send_bytes);
    m->receive = new_buffer(s->receive_bytes);
    fill(m, seed, &team, s);
    *call = (struct group_call){.operation = m->call.operation,
                                .part = part,
                                .root = m->call.root,
                                .type = m->call.type,
                                .operator= m->call.operator,
                                .size = m->call.size,
                                .send_size = s->send,
                                .send_offset = s->send_at,
                                .receive_size = s->receive,
                                .receive_offset = s->receive_at,
                                .send = area_of(m->send),
                                .receive = area_of(m->receive),
                                .in_place = is_in_place(&m->call, &team),
                                .timeout_ns = m->call.timeout,
                                .late_ns = m->call.late,
                                .data = (p->all->set.untold >> p->rank % 64 & 1) == 0
                                            ? m->call.data
                                            : (struct data_kind){0}};
}

void sim_made_free(struct sim_made *m)
{
    program_memory_unref(&m->send->memory);
    program_memory_unref(&m->receive->memory);
    free(m->sender);
    free(m);
}

void sim_made_use_memory(const struct sim_made *m)
{
    memset(m->send->byte + ROOM, USED, m->send->memory.size - 2 * ROOM);
}

/* --- expected data --- */

static void wrong(const struct program *p, const struct sim_made *m, uint32_t from, uint64_t at)
{
    if (!sim_has_lied(p->all->sim))
        sim_violated(p->all->sim, "contents",
                     "call %u (operation %u, type %u, operator %u, %llu elements or bytes) at node "
                     "%u: byte %llu of member %u",
                     m->index, (unsigned)m->call.operation, (unsigned)m->call.type,
                     (unsigned)m->call.operator,(unsigned long long) m->call.size, p->rank,
                     (unsigned long long)at, from);
}

static void check_block(const struct program *p, const struct sim_made *m, const uint8_t *block,
                        uint64_t size, uint64_t seed, uint32_t from, uint32_t to)
{
    uint64_t wanted = block_seed(seed, from, to);

    for (uint64_t k = 0; k < size; k += 8) {
        uint64_t word = mix(wanted, k);
        bool same = size - k < 8 ? memcmp(block + k, &word, size - k) == 0
                                 : memcmp(block + k, &word, 8) == 0; /* without a call */
        if (!same)
            wrong(p, m, from, k);
    }
}

/* The result of a reduction, kept because each member of a team checks the same one. */
struct sim_sum {
    enum reduction_type type;
    enum reduction_operator operator;
    uint64_t seed, first, count;
    uint32_t members;
    uint8_t byte[];
};

static bool is_same_sum(const struct sim_sum *a, const struct sim_sum *b)
{
    return a->type == b->type && a->operator== b->operator&& a->seed == b->seed && a->first ==
                                 b->first && a->count == b->count && a->members == b->members;
}

/* Combines in the order of the members; all values are exact, so any order gives the same result. */
static const uint8_t *sum_of(struct sim_programs *all, const struct sim_call *call,
                             const struct sim_sum *like)
{
    uint64_t bytes = like->count * reduction_size(call->type);
    struct sim_sum *sum = all->sum;

    if (sum != NULL && is_same_sum(sum, like))
        return sum->byte;
    free(sum);
    all->sum = sum = sim_alloc(sizeof *sum + bytes);
    *sum = *like;
    uint8_t *one = sim_alloc(bytes);
    for (uint32_t i = 0; i < like->members; i++) {
        uint8_t *to = i == 0 ? sum->byte : one;
        for (uint64_t k = 0; k < like->count; k++)
            put_element(to + k * reduction_size(call->type), call, like->seed, i, like->first + k);
        if (i > 0)
            reduction_combine(call->type, call->operator, sum->byte, one, like->count);
    }
    reduction_finish(call->type, call->operator, sum->byte, like->count, like->members);
    free(one);
    return sum->byte;
}

static void check_vector(const struct program *p, const struct sim_made *m, const uint8_t *got,
                         uint64_t first, uint64_t count, uint64_t seed, const struct sim_team *team)
{
    const struct sim_call *call = &m->call;
    const struct sim_sum like = {.type = call->type,
                                 .operator= call->operator,
                                 .seed = seed,
                                 .first = first,
                                 .count = count,
                                 .members = team->size};
    const uint8_t *sum = sum_of(p->all, call, &like);
    uint32_t size = reduction_size(call->type);

    if (memcmp(sum, got, count * size) == 0)
        return;
    for (uint64_t k = 0; k < count; k++)
        if (memcmp(sum + k * size, got + k * size, size) != 0) {
            wrong(p, m, 0, k * size);
            break;
        }
}

static void check_scattered(const struct program *p, const struct sim_made *m, uint64_t seed,
                            const struct sim_team *team)
{
    const struct sim_call *call = &m->call;
    const uint8_t *got = m->receive->byte + ROOM;

    if (!is_in_place(call, team))
        check_block(p, m, got, call->size, seed, call->root, team->rank);
    for (uint32_t i = 0; i < team->size && is_in_place(call, team); i++)
        check_block(p, m, got + i * call->size, call->size, seed, call->root, i);
}

/* The root of SIM_GATHERED knows who has sent each message, and each other member has sent one. */
static void check_messages(const struct program *p, const struct sim_made *m, uint64_t seed,
                           const struct sim_team *team)
{
    const struct sim_call *call = &m->call;
    uint32_t count[team->size];

    if (call->operation == SIM_MESSAGES)
        check_block(p, m, m->receive->byte + ROOM, call->size, seed,
                    (team->rank + team->size - sim_message_distance(call, team->size)) % team->size,
                    team->rank);
    memset(count, 0, sizeof count);
    for (uint32_t i = 0; m->sender != NULL && i < team->size - 1; i++) {
        const uint32_t from = m->sender[i];
        if (from >= team->size || from == team->rank || count[from]++ > 0)
            sim_violated(p->all->sim, "messages", "node %u: message %u is from member %u", p->rank,
                         i, from);
        else
            check_block(p, m, m->receive->byte + ROOM + i * call->size, call->size, seed, from,
                        team->rank);
    }
}

void sim_made_check(const struct program *p, const struct sim_made *m)
{
    const struct sim_programs *all = p->all;
    const struct sim_call *call = &m->call;
    uint32_t part = call->part != 0 ? call->part : sim_all_dimensions(all->torus);
    const struct sim_team team = sim_team_of(p, part);
    uint64_t seed = call_seed(all, m->index), first = 0;
    const uint8_t *got = m->receive->byte + ROOM;
    struct sim_shape s;

    lay_out_blocks(&s, call, seed, &team);
    switch ((uint32_t)call->operation) {
    case SIM_MESSAGES:
    case SIM_GATHERED:
        check_messages(p, m, seed, &team);
        break;
    case GROUP_ALLTOALL:
        for (uint32_t i = 0; i < team.size; i++)
            check_block(p, m, got + i * call->size, call->size, seed, i, team.rank);
        break;
    case GROUP_ALLTOALLV:
        for (uint32_t i = 0; i < team.size; i++)
            check_block(p, m, got + s.receive_at[i], s.receive[i], seed, i, team.rank);
        break;
    case GROUP_ALLGATHER:
    case GROUP_GATHER:
        for (uint32_t i = 0;
             i < team.size && (call->operation == GROUP_ALLGATHER || team.rank == call->root); i++)
            check_block(p, m, got + i * call->size, call->size, seed, i, 0);
        break;
    case GROUP_ALLGATHERV:
        for (uint32_t i = 0; i < team.size; i++)
            check_block(p, m, got + s.receive_at[i], s.receive[i], seed, i, 0);
        break;
    case GROUP_SCATTER:
        check_scattered(p, m, seed, &team);
        break;
    case GROUP_BROADCAST:
        check_block(p, m, got, call->size, seed, call->root, 0);
        break;
    case GROUP_ALLREDUCE:
        check_vector(p, m, got, 0, call->size, seed, &team);
        break;
    case GROUP_REDUCE:
        if (team.rank == call->root)
            check_vector(p, m, got, 0, call->size, seed, &team);
        break;
    case GROUP_REDUCE_SCATTER:
        for (uint32_t i = 0; i < team.rank; i++)
            first += s.receive[i];
        check_vector(p, m, got, first, s.receive[team.rank], seed, &team);
        break;
    default:
        break;
    }
    check_guards(p, m, m->send);
    check_guards(p, m, m->receive);
}

/* A barrier is complete when all have called it. */
void sim_made_check_all_have_called(const struct program *p, const struct sim_made *m)
{
    const struct sim_programs *all = p->all;
    uint32_t part = m->call.part != 0 ? m->call.part : sim_all_dimensions(all->torus);
    const struct sim_team team = sim_team_of(p, part);

    for (uint32_t i = 0; i < team.size && !all->set.shrinks; i++) /* else they may call it again */
        if (!all->program[team.node[i]].has_called[m->index] && !sim_has_lied(all->sim))
            sim_violated(all->sim, "barrier", "call %u is complete at node %u, not made at node %u",
                         m->index, p->rank, team.node[i]);
}
