/* The life of a call: finds or copies its bytes in shared memory, submits the request, waits, copies the result. */
#include "client/libtorus/groups/group.h"

#include <stdlib.h>
#include <string.h>

#include "client/libtorus/common.h"
#include "client/libtorus/groups/link.h"
#include "proto/text.h"

/* ---- Staging memory --------------------------------------------------------------------------
 *
 * A list of chunks of shared memory, from which calls lease parts, first fit. So a loop of calls of one size reuses
 * the same bytes, which stay in caches and page tables. */

#define STAGING_ALIGN 64u
#define CHUNK_LEAST ((size_t)1 << 20)

#define IDLE_MOST                                                                                  \
    ((size_t)256 << 20) /* bytes of unused chunks to keep, besides the largest chunk */

struct staging_chunk {
    struct staging_chunk *next; /* the largest first */
    struct shared_memory memory;
    struct lease *first;
};

/* Finds a gap of `bytes` in a chunk. Returns whether there is one, with its offset *at and the lease before it (NULL:
 * none) in *after. */
static bool find_gap(const struct staging_chunk *c, size_t bytes, size_t *at, struct lease **after)
{
    *at = 0;
    *after = NULL;
    for (struct lease *l = c->first; l != NULL; l = l->next) {
        if (l->offset - *at >= bytes)
            return true;
        *at = l->offset + l->size;
        *after = l;
    }
    return c->memory.size - *at >= bytes;
}

static void insert_lease(struct staging_chunk *c, size_t bytes, size_t at, struct lease *after,
                         struct lease *lease)
{
    struct lease **place = after != NULL ? &after->next : &c->first;

    *lease = (struct lease){c, *place, at, bytes, c->memory.number, c->memory.data + at};
    *place = lease;
}

static void free_chunk(struct staging_chunk **at, struct program_link *link)
{
    struct staging_chunk *c = *at;

    *at = c->next;
    link_memory_free(link, &c->memory);
    free(c);
}

/* Frees chunks without leases, the smallest first, until at most IDLE_MOST bytes are unused. Keeps the largest
 * chunk. */
static void free_idle_chunks(struct staging *s, struct program_link *link)
{
    size_t idle = 0;

    if (s->first == NULL)
        return;
    for (struct staging_chunk **at = &s->first->next; *at != NULL;) {
        if ((*at)->first == NULL)
            idle += (*at)->memory.size;
        if ((*at)->first == NULL && idle > IDLE_MOST) {
            idle -= (*at)->memory.size;
            free_chunk(at, link);
        } else {
            at = &(*at)->next;
        }
    }
}

/* Rounds up to a quarter of a power of two, so that not every slightly larger size needs a new chunk. */
static size_t chunk_size(size_t bytes)
{
    size_t step = CHUNK_LEAST;

    if (bytes > SIZE_MAX / 4)
        return bytes;
    while (step < bytes / 4)
        step *= 2;
    return (bytes + step - 1) / step * step;
}

static int add_chunk(struct staging *s, struct program_link *link, size_t bytes,
                     struct torus_error *e)
{
    struct staging_chunk *c = calloc(1, sizeof *c), **at = &s->first;

    if (c == NULL)
        return fail_memory(e);
    /* Free smaller unused chunks: calls have become larger, and are unlikely to use these again soon. */
    while (*at != NULL)
        if ((*at)->first == NULL && (*at)->memory.size < bytes)
            free_chunk(at, link);
        else
            at = &(*at)->next;
    if (link_memory_new(link, chunk_size(bytes), &c->memory, e) != 0) {
        free(c);
        return -1;
    }
    for (at = &s->first; *at != NULL && (*at)->memory.size >= c->memory.size; at = &(*at)->next)
        ;
    c->next = *at;
    *at = c;
    return 0;
}

/* Leases `bytes` (not 0), aligned to STAGING_ALIGN, with undefined contents. Returns 0 with *lease, which the caller
 * passes to staging_return(), or -1 with *e. */
static int staging_lease(struct staging *s, struct program_link *link, size_t bytes,
                         struct lease *lease, struct torus_error *e)
{
    size_t size = (bytes + STAGING_ALIGN - 1) / STAGING_ALIGN * STAGING_ALIGN, at;
    struct lease *after;

    *lease = (struct lease){0};
    if (size < bytes)
        return fail_memory(e);
    for (int attempt = 0; attempt < 2; attempt++) {
        for (struct staging_chunk *c = s->first; c != NULL; c = c->next)
            if (find_gap(c, size, &at, &after)) {
                insert_lease(c, size, at, after, lease);
                return 0;
            }
        if (attempt == 0 && add_chunk(s, link, size, e) != 0)
            return -1;
    }
    return fail_memory(e);
}

/* Returns a lease. Does nothing if lease->chunk is NULL. */
static void staging_return(struct staging *s, struct program_link *link, struct lease *lease)
{
    struct lease **at;

    if (lease->chunk == NULL)
        return;
    for (at = &lease->chunk->first; *at != lease; at = &(*at)->next)
        ;
    *at = lease->next;
    if (lease->chunk->first == NULL && lease->chunk != s->first)
        free_idle_chunks(s, link);
    lease->chunk = NULL;
}

void staging_free(struct staging *s, struct program_link *link)
{
    while (s->first != NULL)
        free_chunk(&s->first, link);
}

/* ---- Memory of torus_memory_new() ------------------------------------------------------------ */

/* Returns the shared memory of the group that contains this address, or NULL. */
static const struct shared_memory *group_memory_of(const struct group_session *session,
                                                   const void *at)
{
    const uint8_t *byte = at;

    for (const struct group_memory *m = session->memories; m != NULL; m = m->next)
        if (byte >= m->shared.data && byte < m->shared.data + m->shared.size)
            return &m->shared;
    return NULL;
}

void *torus_memory_new(struct torus_group *group, size_t bytes, struct torus_error *error)
{
    struct group_session *session = group->session;
    struct group_memory *memory;

    if (bytes == 0) {
        (void)fail(error, TORUS_ERROR_USAGE, "memory of 0 bytes cannot be allocated");
        return NULL;
    }
    if (link_check_group(&session->link, error) != 0)
        return NULL;
    memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        (void)fail_memory(error);
        return NULL;
    }
    if (link_memory_new(&session->link, bytes, &memory->shared, error) != 0) {
        free(memory);
        return NULL;
    }
    memory->next = session->memories;
    session->memories = memory;
    return memory->shared.data;
}

static void unlink_memory(struct group_session *session, struct group_memory **at)
{
    struct group_memory *memory = *at;

    *at = memory->next;
    link_memory_free(&session->link, &memory->shared);
    free(memory);
}

void torus_memory_free(struct torus_group *group, void *memory)
{
    for (struct group_memory **at = &group->session->memories; *at != NULL; at = &(*at)->next)
        if ((*at)->shared.data == memory) {
            unlink_memory(group->session, at);
            return;
        }
}

void group_memory_free(struct group_session *session)
{
    while (session->memories != NULL)
        unlink_memory(session, &session->memories);
}

/* The place of an area in memory that is shared with the daemon. */
struct place {
    uint32_t number; /* of the shared memory; 0: no bytes, or staged and not leased yet */
    uint64_t offset, size;
    bool staged; /* the blocks are copied to staging memory, without gaps */
};

/* ---- Areas ----------------------------------------------------------------------------------- */

/* Sets *span to the number of bytes from the beginning of the area to the end of its last block. */
static int area_span(const struct group_area *a, uint32_t blocks, size_t *span,
                     struct torus_error *e)
{
    *span = 0;
    if (a->size == NULL) {
        *span = a->bytes;
        return 0;
    }
    for (uint32_t i = 0; i < blocks; i++) {
        size_t end;
        if (a->size[i] == 0)
            continue;
        if (__builtin_add_overflow(a->offset[i], a->size[i], &end))
            return fail(e, TORUS_ERROR_USAGE,
                        "block %u (%zu %s at offset %zu) is too large: at most %zu bytes are "
                        "possible there",
                        (unsigned)i, a->size[i], text_plural(a->size[i], "byte", "bytes"),
                        a->offset[i], SIZE_MAX - a->offset[i]);
        if (end > *span)
            *span = end;
    }
    return 0;
}

static int find_place(const struct torus_group *g, const struct group_area *a, const char *what,
                      bool copies, struct place *place, struct torus_error *e)
{
    const struct shared_memory *memory;
    size_t span;

    *place = (struct place){0};
    if (area_span(a, g->size, &span, e) != 0)
        return -1;
    if (a->bytes == 0)
        return 0;
    if (a->at == NULL)
        return fail(e, TORUS_ERROR_USAGE, "the %s area is NULL, but it must have %zu %s", what,
                    a->bytes, text_plural(a->bytes, "byte", "bytes"));
    memory = copies ? NULL : group_memory_of(g->session, a->at);
    if (memory == NULL) {
        *place = (struct place){.size = a->bytes, .staged = true};
        return 0;
    }
    *place =
        (struct place){memory->number, (uint64_t)((uint8_t *)a->at - memory->data), span, false};
    if (span > memory->size - place->offset)
        return fail(e, TORUS_ERROR_USAGE,
                    "the %s area ends %zu %s after the end of the memory in which it begins", what,
                    (size_t)(span - (memory->size - place->offset)),
                    text_plural(span - (memory->size - place->offset), "byte", "bytes"));
    return 0;
}

/* Copies all blocks to `to` without gaps. */
static void gather(uint8_t *to, const struct group_area *a, uint32_t blocks)
{
    if (a->size == NULL) {
        memcpy(to, a->at, a->bytes);
        return;
    }
    for (uint32_t i = 0; i < blocks; to += a->size[i++])
        if (a->size[i] > 0)
            memcpy(to, (const uint8_t *)a->at + a->offset[i], a->size[i]);
}

/* Copies blocks without gaps from `from` to their places. */
static void scatter(const struct group_area *a, const uint8_t *from, uint32_t blocks)
{
    if (a->size == NULL) {
        memcpy(a->at, from, a->bytes);
        return;
    }
    for (uint32_t i = 0; i < blocks; from += a->size[i++])
        if (a->size[i] > 0)
            memcpy((uint8_t *)a->at + a->offset[i], from, a->size[i]);
}

/* Copies the input that is in the receive area. */
static void copy_input(uint8_t *to, const struct call_setup *o, uint32_t blocks)
{
    const struct group_area *a = &o->receive;

    if (a->size == NULL) {
        if (o->input > 0)
            memcpy(to + o->input_offset, (const uint8_t *)a->at + o->input_offset, o->input);
        return;
    }
    for (uint32_t i = 0; o->input > 0 && i < blocks; to += a->size[i++])
        if (a->size[i] > 0 && o->input_block == i)
            memcpy(to, (const uint8_t *)a->at + a->offset[i], a->size[i]);
}

/* Returns the bytes of the arrays of a call for the daemon. */
static size_t counts_bytes(const struct call_setup *o, uint32_t members)
{
    const unsigned arrays = group_operation_arrays(o->request.operation);

    return (size_t)__builtin_popcount(arrays) * sizeof(uint64_t) * members;
}

/* Returns the size of a member's block. */
static size_t block_size(const struct call_setup *o, const struct group_area *a, uint32_t member)
{
    if (a->size == NULL)
        return member == o->one ? a->bytes : 0;
    return a->size[member];
}

/* Writes the arrays of a call for the daemon: sizes of blocks, and their offsets in shared memory. */
static void write_counts(uint64_t *to, const struct call_setup *o, const struct place *send,
                         const struct place *receive, uint32_t members)
{
    const unsigned arrays = group_operation_arrays(o->request.operation);

    for (unsigned k = 0; k < GROUP_ARRAYS; k++) {
        const bool sent = (1u << k & (GROUP_SEND_SIZE | GROUP_SEND_OFFSET)) != 0;
        const bool sizes = (1u << k & (GROUP_SEND_SIZE | GROUP_RECEIVE_SIZE)) != 0;
        const struct group_area *a = sent ? &o->send : &o->receive;
        const struct place *place = sent ? send : receive;
        uint64_t packed = 0;
        if ((arrays & 1u << k) == 0)
            continue;
        for (uint32_t i = 0; i < members; i++) {
            if (sizes)
                to[i] = o->counts != NULL ? o->counts[i] : block_size(o, a, i);
            else if (place->staged)
                to[i] = packed;
            else
                to[i] = a->size != NULL && a->size[i] > 0 ? a->offset[i] : 0;
            packed += sizes ? 0 : block_size(o, a, i);
        }
        to += members;
    }
}

/* ---- Starting -------------------------------------------------------------------------------- */

/* Returns the number in this group or part of the member that has this number in the whole group. */
static uint32_t number_here(const struct torus_group *g, uint32_t member)
{
    const struct group_session *s = g->session;
    uint32_t number = 0, factor = 1;

    if (!g->is_part)
        return member;
    for (unsigned d = s->dims; d-- > 0; member /= s->size[d])
        if ((g->dimensions >> d & 1) != 0) {
            number += member % s->size[d] * factor;
            factor *= s->size[d];
        }
    return number;
}

/* Returns whether the call has ended. If it has just ended, stores its error and frees its slot. */
static bool call_has_ended(struct torus_call *c)
{
    if (!c->ended && link_has_ended(&c->group->session->link, c->number, &c->error)) {
        c->ended = true;
        if (c->sender != NULL && c->error.code == 0)
            *c->sender = number_here(c->group, link_sender(&c->group->session->link, c->number));
        c->group->session->slot[c->number % PROGRAM_CALLS] = NULL;
    }
    return c->ended;
}

/* Makes the next number one whose slot is free. Returns false if there is none. */
static bool find_slot(struct group_session *s)
{
    for (unsigned i = 0; i < PROGRAM_CALLS; i++) {
        struct torus_call *c = s->slot[s->link.submitted % PROGRAM_CALLS];
        if (c == NULL || call_has_ended(c))
            return true;
        link_skip_slot(&s->link);
    }
    return false;
}

static struct torus_call *new_call(struct torus_group *g, struct torus_error *e)
{
    struct group_session *s = g->session;
    struct torus_call *c;

    if (!find_slot(s)) {
        (void)fail(e, TORUS_ERROR_BUSY,
                   "this group and its parts have %u calls under way, and more are not possible: "
                   "wait until some have ended",
                   PROGRAM_CALLS);
        return NULL;
    }
    for (c = s->calls; c != NULL && c->used; c = c->next)
        ;
    if (c == NULL) {
        c = calloc(1, sizeof *c);
        if (c == NULL) {
            (void)fail_memory(e);
            return NULL;
        }
        c->next = s->calls;
        s->calls = c;
    }
    *c = (struct torus_call){.next = c->next, .group = g, .used = true};
    return c;
}

void group_call_free(struct torus_call *call)
{
    struct group_session *s = call->group->session;

    staging_return(&s->staging, &s->link, &call->lease);
    if (s->slot[call->number % PROGRAM_CALLS] == call)
        s->slot[call->number % PROGRAM_CALLS] = NULL;
    call->used = false;
}

static size_t aligned(size_t bytes)
{
    return (bytes + STAGING_ALIGN - 1) / STAGING_ALIGN * STAGING_ALIGN;
}

/* Leases staging memory for the arrays and for areas that are not in shared memory, and copies the input there. */
static int stage(struct torus_call *c, const struct call_setup *o, struct place *send,
                 struct place *receive, struct torus_error *e)
{
    struct group_session *s = c->group->session;
    size_t in = send->staged ? aligned(send->size) : 0;
    size_t out = receive->staged ? aligned(receive->size) : 0;
    size_t counts = counts_bytes(o, c->group->size), total;

    if ((send->staged && in == 0) || (receive->staged && out == 0) ||
        __builtin_add_overflow(in, out, &total) || __builtin_add_overflow(total, counts, &total))
        return fail(e, TORUS_ERROR_MEMORY,
                    "areas of %zu and %zu bytes are too large: at most %zu bytes are possible",
                    send->size, receive->size, SIZE_MAX);
    if (total == 0)
        return 0;
    if (staging_lease(&s->staging, &s->link, total, &c->lease, e) != 0)
        return -1;
    if (send->staged) {
        send->number = c->lease.number;
        send->offset = c->lease.offset;
        gather(c->lease.data, &o->send, c->group->size);
    }
    if (receive->staged) {
        receive->number = c->lease.number;
        receive->offset = c->lease.offset + in;
        c->from = c->lease.data + in;
        c->out = o->receive;
        if (o->receive.size == NULL)
            c->out.bytes = o->output;
        copy_input(c->lease.data + in, o, c->group->size);
    }
    if (counts > 0)
        write_counts((uint64_t *)(void *)(c->lease.data + in + out), o, send, receive,
                     c->group->size);
    return 0;
}

static void fill_request(struct program_request *r, const struct torus_call *c,
                         const struct call_setup *o, const struct place *send,
                         const struct place *receive)
{
    *r = o->request;
    r->part = c->group->dimensions;
    r->late_ms = c->group->late_ms;
    r->timeout_ns = c->group->timeout_ms * UINT64_C(1000000);
    r->send_memory = send->number;
    r->send_offset = send->offset;
    r->send_size = send->size;
    r->receive_memory = receive->number;
    r->receive_offset = receive->offset;
    r->receive_size = receive->size;
    const size_t counts = counts_bytes(o, c->group->size);
    if (counts > 0) {
        r->counts_memory = c->lease.number;
        r->counts_offset = c->lease.offset + c->lease.size - aligned(counts);
    }
}

int group_start(struct torus_group *group, struct call_setup *operation, struct torus_call **call,
                struct torus_error *e)
{
    struct group_session *s = group->session;
    struct place send, receive;
    struct torus_call *c;

    operation->request.data = group->next_data;
    group->next_data = (struct data_kind){0};
    *call = NULL;
    if (link_check_group(&s->link, e) != 0 ||
        find_place(group, &operation->send, "send", operation->copies, &send, e) != 0 ||
        find_place(group, &operation->receive, "receive", false, &receive, e) != 0)
        return -1;
    c = new_call(group, e);
    if (c == NULL)
        return -1;
    if (stage(c, operation, &send, &receive, e) != 0) {
        c->used = false;
        return -1;
    }
    c->number = s->link.submitted;
    c->sender = operation->sender;
    fill_request(&link_next_slot(&s->link)->request, c, operation, &send, &receive);
    s->slot[c->number % PROGRAM_CALLS] = c;
    link_submit(&s->link);
    *call = c;
    return 0;
}

/* ---- Ending ---------------------------------------------------------------------------------- */

/* Frees a call that has ended, or that cannot end because of c->error. Returns its result. */
static int finish(struct torus_call *c, struct torus_error *e)
{
    struct group_session *s = c->group->session;
    bool failed = c->error.code != 0;

    if (failed && e != NULL)
        *e = c->error;
    if (!failed && c->out.at != NULL)
        scatter(&c->out, c->from, c->group->size);
    if (c->ended)
        link_acknowledge(&s->link, 1);
    group_call_free(c);
    return failed ? -1 : 0;
}

int torus_call_wait(struct torus_call *call, struct torus_error *error)
{
    if (!call_has_ended(call)) {
        link_wait(&call->group->session->link, call->number, &call->error);
        (void)call_has_ended(call);
    }
    return finish(call, error);
}

int torus_call_test(struct torus_call *call, struct torus_error *error)
{
    struct program_link *link = &call->group->session->link;

    if (!call_has_ended(call)) {
        link_acknowledge(link, 0);
        if (link_check(link, &call->error) == 0)
            return 0;
        (void)call_has_ended(call);
    }
    return finish(call, error) == 0 ? 1 : -1;
}

bool torus_call_late(const struct torus_call *call, char *whom, size_t size)
{
    return !call->ended && link_is_late(&call->group->session->link, call->number, whom, size);
}

bool torus_call_pause(const struct torus_call *call, uint64_t nanoseconds)
{
    return link_pause(&call->group->session->link, call->number, nanoseconds);
}
