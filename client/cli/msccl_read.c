/* Reading is in two parts: the XML becomes thread blocks with their steps, and these are run, as
 * far as each can go, until all have ended. What is known of every chunk is where it has been. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/msccl.h"
#include "client/cli/xml.h"
#include "daemon/schedule/imported.h"

#define NONE UINT32_MAX
#define CHUNKS_MOST (1u << 24) /* of all buffers */
#define CHANNELS_MOST 1024

enum kind { SEND, RECEIVE, RECEIVE_COPY_SEND, COPY, NOP };
static const char *const kinds[] = {"s", "r", "rcs", "cpy", "nop"};

enum buffer { INPUT, OUTPUT, SCRATCH, BUFFERS };
static const char buffer_names[] = "ios";

struct place {
    uint8_t buffer;
    uint32_t at;
};

struct step {
    uint8_t kind;
    struct place from, to;
    uint32_t count;
    uint32_t number;                     /* torusd's own attribute; NONE: not there */
    int64_t depends_block, depends_step; /* -1: on nothing */
    uint32_t line;
    uint32_t level; /* the first step of a schedule that may follow, once it is done */
};

/* A chunk in a buffer, or on its way to another GPU. */
struct cell {
    uint32_t chunk; /* (source * nodes + destination) * segments + segment; NONE: nothing */
    uint32_t hop;   /* by which it came; NONE: it is where it began */
    uint32_t level; /* the first step in which it can leave */
};

struct block {
    uint32_t gpu, id;
    int64_t send, receive; /* peers; -1: none */
    int64_t channel;
    uint32_t first, count; /* steps */
    uint32_t done;
    uint32_t level;
    uint32_t target;    /* index of the thread block that receives what this one sends */
    struct cell *queue; /* what has been sent to this one */
    size_t queued, taken, room;
};

struct gpu {
    uint32_t first, count; /* thread blocks, by id */
    uint32_t size[BUFFERS];
    struct cell *buffer[BUFFERS];
};

struct hop {
    uint32_t before; /* NONE: the first */
    uint32_t from;
    struct leg leg;
    uint32_t chunk, line;
    bool used;
};

struct reader {
    const struct torus *torus;
    const struct xml_element *xml; /* being read */
    struct error *e;
    char name[IMPORTED_NAME_SIZE];
    uint32_t segments;
    bool own;        /* written by torusd: channels are ports, sends have steps */
    uint64_t chunks; /* of all buffers */

    struct gpu *gpu; /* by id */
    uint32_t gpu_now;
    struct block *block;
    size_t blocks, block_room;
    struct step *step;
    size_t steps, step_room;
    struct hop *hop;
    size_t hops, hop_room;
};

static int no_memory(struct reader *r)
{
    return error_set(r->e, ERROR_MEMORY, "out of memory for the schedule");
}

/* Room for one more of them. Returns 0, or -1 without memory. */
static int grow(void *array, size_t count, size_t *room, size_t size)
{
    void **at = array, *more;

    if (count < *room)
        return 0;
    *room = *room == 0 ? 64 : 2 * *room;
    more = reallocarray(*at, *room, size);
    if (more == NULL)
        return -1;
    *at = more;
    return 0;
}

/* --- XML --- */

/* As much of the name as ours can have. */
static void read_name(struct reader *r)
{
    const char *name = xml_find(r->xml, "name");
    size_t length = 0;

    for (; name != NULL && *name != '\0' && length + 1 < sizeof r->name; name++) {
        char c = *name;
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        r->name[length++] = '-';
        if (word || c == '-' || c == '_' || c == '.')
            r->name[length - 1] = c;
    }
    r->name[length] = '\0';
    if (length == 0)
        memcpy(r->name, "msccl", sizeof "msccl");
}

static int read_algo(struct reader *r)
{
    const char *collective = xml_find(r->xml, "coll"), *torus = xml_find(r->xml, "torus");
    char dims[TORUS_TEXT_SIZE];
    int64_t count, in_place = 0;

    if (collective == NULL || strcmp(collective, "alltoall") != 0)
        return xml_error(r->xml, r->e, "coll is not \"alltoall\"");
    if (xml_number(r->xml, "ngpus", 1, TORUS_MAX_NODES, &count, r->e) != 0)
        return -1;
    if (count != r->torus->nodes)
        return xml_error(r->xml, r->e, "it is for %" PRId64 " GPUs, not for the %u nodes of %s",
                         count, r->torus->nodes, torus_format(r->torus, dims));
    if (torus != NULL && strcmp(torus, torus_format(r->torus, dims)) != 0)
        return xml_error(r->xml, r->e, "it is for a torus of %.40s, not %s", torus, dims);
    if (xml_find(r->xml, "inplace") != NULL &&
        xml_number(r->xml, "inplace", 0, 1, &in_place, r->e) != 0)
        return -1;
    if (in_place != 0)
        return xml_error(r->xml, r->e, "schedules that work in place are not read");
    r->own = torus != NULL;
    read_name(r);
    return 0;
}

static int read_gpu(struct reader *r)
{
    static const char *const sizes[BUFFERS] = {"i_chunks", "o_chunks", "s_chunks"};
    uint32_t nodes = r->torus->nodes;
    int64_t id, size;

    if (xml_number(r->xml, "id", 0, nodes - 1, &id, r->e) != 0)
        return -1;
    struct gpu *gpu = &r->gpu[id];
    if (gpu->buffer[INPUT] != NULL)
        return xml_error(r->xml, r->e, "GPU %" PRId64 " comes twice", id);
    r->gpu_now = (uint32_t)id;
    gpu->first = (uint32_t)r->blocks;
    for (unsigned i = 0; i < BUFFERS; i++) {
        if (xml_number(r->xml, sizes[i], 0, CHUNKS_MOST, &size, r->e) != 0)
            return -1;
        gpu->size[i] = (uint32_t)size;
        r->chunks += gpu->size[i];
    }
    if (gpu->size[INPUT] != gpu->size[OUTPUT] || gpu->size[INPUT] % nodes != 0 ||
        gpu->size[INPUT] == 0 || (r->segments != 0 && gpu->size[INPUT] != r->segments * nodes))
        return xml_error(r->xml, r->e,
                         "i_chunks and o_chunks have to be the same multiple of ngpus everywhere");
    r->segments = gpu->size[INPUT] / nodes;
    if (r->segments > IMPORTED_SEGMENTS_MOST || r->chunks > CHUNKS_MOST)
        return xml_error(r->xml, r->e, "too many chunks");
    for (unsigned i = 0; i < BUFFERS; i++) {
        gpu->buffer[i] = calloc((size_t)gpu->size[i] + 1, sizeof *gpu->buffer[i]);
        if (gpu->buffer[i] == NULL)
            return no_memory(r);
        for (uint32_t at = 0; at < gpu->size[i]; at++)
            gpu->buffer[i][at] = (struct cell){
                .chunk = i == INPUT ? (uint32_t)id * gpu->size[i] + at : NONE, .hop = NONE};
    }
    return 0;
}

static int read_block(struct reader *r)
{
    int64_t id, most = (int64_t)r->torus->nodes - 1;
    struct gpu *gpu = &r->gpu[r->gpu_now];
    struct block b = {.gpu = r->gpu_now, .first = (uint32_t)r->steps, .target = NONE};

    if (xml_number(r->xml, "id", 0, INT32_MAX, &id, r->e) != 0 ||
        xml_number(r->xml, "send", -1, most, &b.send, r->e) != 0 ||
        xml_number(r->xml, "recv", -1, most, &b.receive, r->e) != 0 ||
        xml_number(r->xml, "chan", 0, CHANNELS_MOST, &b.channel, r->e) != 0)
        return -1;
    if (id != gpu->count)
        return xml_error(r->xml, r->e, "thread block %" PRId64 " where %" PRIu32 " is expected", id,
                         gpu->count);
    if (b.send == b.gpu || b.receive == b.gpu)
        return xml_error(r->xml, r->e, "a GPU that is its own peer");
    b.id = gpu->count++;
    if (grow(&r->block, r->blocks, &r->block_room, sizeof b) != 0)
        return no_memory(r);
    r->block[r->blocks++] = b;
    return 0;
}

/* `buffer` and `offset` name the attributes. Not all kinds use both places. */
static int read_place(struct reader *r, const char *buffer, const char *offset, bool needed,
                      uint32_t count, struct place *place)
{
    const char *text = xml_find(r->xml, buffer);
    const struct gpu *gpu = &r->gpu[r->gpu_now];
    int64_t at;

    if (!needed)
        return 0;
    const char *name = text != NULL && strlen(text) == 1 ? strchr(buffer_names, *text) : NULL;
    if (name == NULL)
        return xml_error(r->xml, r->e, "%s has to be \"i\", \"o\" or \"s\"", buffer);
    place->buffer = (uint8_t)(name - buffer_names);
    uint32_t size = gpu->size[place->buffer];
    if (xml_number(r->xml, offset, 0, CHUNKS_MOST, &at, r->e) != 0)
        return -1;
    if (count > size || at > size - count)
        return xml_error(r->xml, r->e,
                         "%" PRIu32 " chunks from %" PRId64 " on are not in buffer %c of %" PRIu32,
                         count, at, *name, size);
    place->at = (uint32_t)at;
    return 0;
}

static int read_step(struct reader *r)
{
    struct block *b = &r->block[r->blocks - 1];
    const char *type = xml_find(r->xml, "type");
    struct step s = {.number = NONE, .line = r->xml->line};
    int64_t number, count = 0, own = NONE;

    while (s.kind <= NOP && (type == NULL || strcmp(type, kinds[s.kind]) != 0))
        s.kind++;
    if (s.kind > NOP)
        return xml_error(r->xml, r->e,
                         "type \"%.20s\": an alltoall has only s, r, rcs, cpy and nop",
                         type != NULL ? type : "");
    if (xml_number(r->xml, "s", 0, INT32_MAX, &number, r->e) != 0 ||
        xml_number(r->xml, "depid", -1, INT32_MAX, &s.depends_block, r->e) != 0 ||
        xml_number(r->xml, "deps", -1, INT32_MAX, &s.depends_step, r->e) != 0 ||
        (s.kind != NOP && xml_number(r->xml, "cnt", 1, CHUNKS_MOST, &count, r->e) != 0))
        return -1;
    s.count = (uint32_t)count;
    bool sends = s.kind == SEND || s.kind == RECEIVE_COPY_SEND;
    bool receives = s.kind == RECEIVE || s.kind == RECEIVE_COPY_SEND;
    if (number != b->count)
        return xml_error(r->xml, r->e, "step %" PRId64 " where %" PRIu32 " is expected", number,
                         b->count);
    if ((sends && b->send < 0) || (receives && b->receive < 0))
        return xml_error(r->xml, r->e, "type \"%s\" in a thread block without a peer for it",
                         kinds[s.kind]);
    if (r->own && sends && xml_number(r->xml, "step", 0, IMPORTED_STEP_MOST, &own, r->e) != 0)
        return -1;
    s.number = (uint32_t)own;
    if (read_place(r, "srcbuf", "srcoff", s.kind == SEND || s.kind == COPY, s.count, &s.from) !=
            0 ||
        read_place(r, "dstbuf", "dstoff", receives || s.kind == COPY, s.count, &s.to) != 0)
        return -1;
    if (grow(&r->step, r->steps, &r->step_room, sizeof s) != 0)
        return no_memory(r);
    r->step[r->steps++] = s;
    b->count++;
    return 0;
}

/* What may be in what. */
static const struct {
    const char *name;
    int (*read)(struct reader *r);
} levels[] = {{"algo", read_algo}, {"gpu", read_gpu}, {"tb", read_block}, {"step", read_step}};
#define LEVELS (sizeof levels / sizeof *levels)

static int read_element(void *context, const struct xml_element *x, struct error *e)
{
    struct reader *r = context;

    if (x->depth == 2 && strcmp(x->name, "copy") == 0)
        return 0; /* a GPU's block for itself */
    if (x->depth >= LEVELS || strcmp(x->name, levels[x->depth].name) != 0)
        return xml_error(x, e, "<%s> is expected, not <%.20s>",
                         levels[x->depth < LEVELS ? x->depth : LEVELS - 1].name, x->name);
    r->xml = x;
    return levels[x->depth].read(r);
}

static int read_gpus(struct reader *r, const char *xml, size_t length)
{
    if (xml_read(xml, length, read_element, r, r->e) != 0)
        return -1;
    for (uint32_t i = 0; i < r->torus->nodes; i++)
        if (r->gpu[i].buffer[INPUT] == NULL)
            return error_set(r->e, ERROR_REFUSED, "GPU %" PRIu32 " is missing", i);
    return 0;
}

/* --- running --- */

static int bad_step(const struct reader *r, const struct block *b, const struct step *s,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
static int bad_step(const struct reader *r, const struct block *b, const struct step *s,
                    const char *format, ...)
{
    char text[sizeof((struct error *)NULL)->text];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return error_set(r->e, ERROR_REFUSED,
                     "line %" PRIu32 ": GPU %" PRIu32 ", thread block %" PRIu32 ", step %" PRIu32
                     ": %s",
                     s->line, b->gpu, b->id, (uint32_t)(s - r->step) - b->first, text);
}

/* "block 3 -> 7, segment 1" */
static const char *chunk_name(const struct reader *r, uint32_t chunk, char name[64])
{
    uint32_t segment = chunk % r->segments, pair = chunk / r->segments;

    (void)snprintf(name, 64, "block %" PRIu32 " -> %" PRIu32 ", segment %" PRIu32,
                   pair / r->torus->nodes, pair % r->torus->nodes, segment);
    return name;
}

/* Finds the other end of each connection. */
static int connect_blocks(struct reader *r)
{
    for (size_t i = 0; i < r->blocks; i++) {
        struct block *b = &r->block[i];
        if (b->send < 0)
            continue;
        const struct gpu *peer = &r->gpu[b->send];
        for (uint32_t k = peer->first; k < peer->first + peer->count && b->target == NONE; k++)
            if (r->block[k].receive == b->gpu && r->block[k].channel == b->channel)
                b->target = k;
        if (b->target == NONE && b->count > 0)
            return error_set(r->e, ERROR_REFUSED,
                             "GPU %" PRIu32 ", thread block %" PRIu32 " sends to GPU %" PRId64
                             " on channel %" PRId64 ", where no thread block receives from it",
                             b->gpu, b->id, b->send, b->channel);
    }
    return 0;
}

/* The leg from one node to another, as msccl.h says. */
static int find_leg(const struct reader *r, const struct block *b, const struct step *s,
                    struct leg *leg)
{
    const struct torus *t = r->torus;
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], hops = 0;
    unsigned channel = (unsigned)b->channel, dim = t->dims;
    char dims[TORUS_TEXT_SIZE];
    int direction = channel % 2 == 0 ? 1 : -1;

    torus_coordinates(t, b->gpu, from);
    torus_coordinates(t, (uint32_t)b->send, to);
    for (unsigned i = 0; i < t->dims; i++) {
        if (from[i] == to[i])
            continue;
        if (dim != t->dims)
            return bad_step(r, b, s, "GPU %" PRId64 " is not in a straight line from it on %s",
                            b->send, torus_format(t, dims));
        dim = i;
    }
    if (!r->own || channel >= torus_ports(t)) {
        hops = torus_shortest(t, dim, from[dim], to[dim], &direction);
    } else {
        direction = torus_port_direction(channel);
        while (++hops < t->size[dim] &&
               torus_walk(t, b->gpu, torus_port_dim(channel), direction, hops) != (uint32_t)b->send)
            continue;
        if (torus_port_dim(channel) != dim || hops == t->size[dim])
            return bad_step(r, b, s, "port %u does not lead to GPU %" PRId64, channel, b->send);
    }
    if (hops > UINT16_MAX)
        return bad_step(r, b, s, "%" PRIu32 " hops are more than a leg can have", hops);
    *leg =
        (struct leg){.hops = (uint16_t)hops, .dim = (uint8_t)dim, .direction = (int8_t)direction};
    return 0;
}

static struct cell *cells(const struct reader *r, const struct block *b, const struct place *place)
{
    return &r->gpu[b->gpu].buffer[place->buffer][place->at];
}

static int send_chunks(struct reader *r, struct block *b, struct step *s, const struct cell *from)
{
    struct block *target = &r->block[b->target];
    struct leg leg = {0};
    uint32_t level = s->level;

    if (find_leg(r, b, s, &leg) != 0)
        return -1;
    for (uint32_t i = 0; i < s->count; i++)
        level = from[i].level > level ? from[i].level : level;
    leg.step = s->number != NONE ? s->number : level;
    s->level = level;
    for (uint32_t i = 0; i < s->count; i++) {
        if (from[i].chunk == NONE)
            return bad_step(r, b, s, "it sends chunk %" PRIu32 " of a buffer, which is empty",
                            s->from.at + i);
        if (grow(&r->hop, r->hops, &r->hop_room, sizeof *r->hop) != 0 ||
            grow(&target->queue, target->queued, &target->room, sizeof *target->queue) != 0)
            return no_memory(r);
        r->hop[r->hops] = (struct hop){.before = from[i].hop,
                                       .from = b->gpu,
                                       .leg = leg,
                                       .chunk = from[i].chunk,
                                       .line = s->line};
        target->queue[target->queued++] =
            (struct cell){from[i].chunk, (uint32_t)r->hops++, level + 1};
    }
    return 0;
}

static int put(const struct reader *r, const struct block *b, const struct step *s,
               const struct cell *from, struct cell *to, uint32_t at)
{
    char name[64];

    if (s->to.buffer == OUTPUT && to->chunk != NONE)
        return bad_step(r, b, s, "%s comes to chunk %" PRIu32 " of the output, which is full",
                        chunk_name(r, from->chunk, name), at);
    *to = *from;
    return 0;
}

/* Returns 1: it is done; 0: it has to wait; -1 having failed. */
static int run_step(struct reader *r, struct block *b, struct step *s)
{
    bool receives = s->kind == RECEIVE || s->kind == RECEIVE_COPY_SEND;
    uint32_t level = b->level;

    if (s->depends_block >= 0) {
        const struct gpu *gpu = &r->gpu[b->gpu];
        if (s->depends_block >= gpu->count)
            return bad_step(r, b, s, "it depends on thread block %" PRId64 ", which does not exist",
                            s->depends_block);
        const struct block *other = &r->block[gpu->first + (uint32_t)s->depends_block];
        if (s->depends_step < 0 || s->depends_step >= other->count)
            return bad_step(r, b, s, "it depends on step %" PRId64 ", which does not exist",
                            s->depends_step);
        if (other->done <= s->depends_step)
            return 0;
        uint32_t after = r->step[other->first + (uint32_t)s->depends_step].level;
        level = after > level ? after : level;
    }
    if (receives && b->queued - b->taken < s->count)
        return 0;
    s->level = level;
    for (uint32_t i = 0; receives && i < s->count; i++) {
        const struct cell *from = &b->queue[b->taken++];
        if (put(r, b, s, from, cells(r, b, &s->to) + i, s->to.at + i) != 0)
            return -1;
        s->level = from->level > s->level ? from->level : s->level;
    }
    for (uint32_t i = 0; s->kind == COPY && i < s->count; i++) {
        const struct cell from = cells(r, b, &s->from)[i];
        if (from.chunk != NONE && put(r, b, s, &from, cells(r, b, &s->to) + i, s->to.at + i) != 0)
            return -1;
    }
    if (s->kind == SEND && send_chunks(r, b, s, cells(r, b, &s->from)) != 0)
        return -1;
    if (s->kind == RECEIVE_COPY_SEND && send_chunks(r, b, s, cells(r, b, &s->to)) != 0)
        return -1;
    b->level = s->level;
    return 1;
}

static int run(struct reader *r)
{
    bool moved = true;

    while (moved) {
        moved = false;
        for (size_t i = 0; i < r->blocks; i++) {
            struct block *b = &r->block[i];
            int done = 1;
            while (b->done < b->count &&
                   (done = run_step(r, b, &r->step[b->first + b->done])) > 0) {
                b->done++;
                moved = true;
            }
            if (done < 0)
                return -1;
        }
    }
    for (size_t i = 0; i < r->blocks; i++) {
        const struct block *b = &r->block[i];
        if (b->done < b->count)
            return bad_step(r, b, &r->step[b->first + b->done], "it waits for ever");
        if (b->taken < b->queued && b->count > 0)
            return bad_step(r, b, &r->step[b->first + b->count - 1],
                            "after it, something comes from GPU %" PRId64 " that is never received",
                            b->receive);
    }
    return 0;
}

/* --- the routes --- */

/* Prints the route of the chunk that has come by this hop; `chain` has room for all hops. */
static void print_route(struct reader *r, FILE *out, uint32_t chunk, uint32_t hop, uint32_t *chain)
{
    uint32_t segment = chunk % r->segments, pair = chunk / r->segments, count = 0;

    for (; hop != NONE; hop = r->hop[hop].before) {
        r->hop[hop].used = true;
        chain[count++] = hop;
    }
    (void)fprintf(out,
                  "{\"src\":%" PRIu32 ",\"dst\":%" PRIu32 ",\"segment\":%" PRIu32 ",\"legs\":[",
                  pair / r->torus->nodes, pair % r->torus->nodes, segment);
    while (count-- > 0) {
        const struct leg *leg = &r->hop[chain[count]].leg;
        (void)fprintf(out, "[%" PRIu32 ",%u,%d,%u]%s", leg->step, (unsigned)leg->dim,
                      (int)leg->direction, (unsigned)leg->hops, count > 0 ? "," : "");
    }
    (void)fputs("]}\n", out);
}

/* Whether a GPU has at the end what it has to have, and where from. */
static int print_gpu(struct reader *r, FILE *out, uint32_t id, uint32_t *chain)
{
    uint32_t nodes = r->torus->nodes;
    char name[64], other[64];

    for (uint32_t at = 0; at < nodes * r->segments; at++) {
        const struct cell *cell = &r->gpu[id].buffer[OUTPUT][at];
        uint32_t source = at / r->segments;
        uint32_t wanted = (source * nodes + id) * r->segments + at % r->segments;
        if (source == id)
            continue;
        if (cell->chunk == NONE)
            return error_set(r->e, ERROR_REFUSED, "%s does not come to GPU %" PRIu32,
                             chunk_name(r, wanted, name), id);
        if (cell->chunk != wanted)
            return error_set(
                r->e, ERROR_REFUSED,
                "%s comes to chunk %" PRIu32 " of the output of GPU %" PRIu32 ", where %s belongs",
                chunk_name(r, cell->chunk, name), at, id, chunk_name(r, wanted, other));
        print_route(r, out, wanted, cell->hop, chain);
    }
    return 0;
}

static int print_routes(struct reader *r, FILE *out)
{
    uint32_t *chain = calloc(r->hops + 1, sizeof *chain); /* never 0 bytes */
    char dims[TORUS_TEXT_SIZE], name[64];
    int rc = chain == NULL ? no_memory(r) : 0;

    (void)fprintf(out,
                  "{\"schedule\":%d,\"dims\":\"%s\",\"name\":\"%s\",\"mode\":\"streaming\","
                  "\"segments\":%" PRIu32 "}\n",
                  IMPORTED_VERSION, torus_format(r->torus, dims), r->name, r->segments);
    for (uint32_t id = 0; id < r->torus->nodes && rc == 0; id++)
        rc = print_gpu(r, out, id, chain);
    for (size_t i = 0; i < r->hops && rc == 0; i++)
        if (!r->hop[i].used)
            rc = error_set(r->e, ERROR_REFUSED,
                           "line %" PRIu32 ": %s is sent twice: GPU %" PRIu32
                           " sends it in step %" PRIu32 ", which is not on its way to its output",
                           r->hop[i].line, chunk_name(r, r->hop[i].chunk, name), r->hop[i].from,
                           r->hop[i].leg.step);
    free(chain);
    return rc;
}

static void free_reader(struct reader *r)
{
    for (uint32_t i = 0; r->gpu != NULL && i < r->torus->nodes; i++)
        for (unsigned k = 0; k < BUFFERS; k++)
            free(r->gpu[i].buffer[k]);
    for (size_t i = 0; i < r->blocks; i++)
        free(r->block[i].queue);
    free(r->gpu);
    free(r->block);
    free(r->step);
    free(r->hop);
}

int msccl_read(const char *xml, size_t length, const struct torus *t, char **routes,
               size_t *routes_length, struct error *e)
{
    struct reader r = {.torus = t, .e = e, .gpu = calloc(t->nodes, sizeof *r.gpu)};
    FILE *out = open_memstream(routes, routes_length);
    int rc = out == NULL || r.gpu == NULL ? no_memory(&r) : 0;

    if (rc == 0 && (read_gpus(&r, xml, length) != 0 || connect_blocks(&r) != 0 || run(&r) != 0 ||
                    print_routes(&r, out) != 0))
        rc = -1;
    if (out != NULL && fclose(out) != 0 && rc == 0)
        rc = no_memory(&r);
    if (out != NULL && rc != 0) {
        free(*routes);
        *routes = NULL;
    }
    free_reader(&r);
    return rc;
}
