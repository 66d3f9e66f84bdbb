#include "client/cli/schedule_files/msccl_program.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/schedule_files/straight_leg.h"
#include "client/cli/schedule_files/xml.h"
#include "proto/error.h"

/* Limits of what a few bytes of XML can request. Valid schedules have fewer sent chunks: each is a leg, which takes
 * at least ten bytes in torusd's format. */
#define CHUNKS_MOST (1u << 24) /* in all buffers, and copied */
#define SENT_MOST STRAIGHT_LEGS_MOST
#define CHANNELS_MOST 1024

static const char *const kinds[] = {"s", "r", "rcs", "cpy", "nop"};
static const char buffer_names[] = "ios";

struct parser {
    struct msccl_program *program;
    struct msccl_gpu *gpu; /* the current GPU */
    uint64_t chunks;       /* chunks of all buffers so far */
};

int msccl_no_memory(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for the schedule");
}

/* Reads the name, with '-' for characters that names in torusd's format cannot have, cut to their length. */
static void read_name(struct msccl_program *p, const struct xml_element *x)
{
    const char *name = xml_find(x, "name");
    size_t length = 0;

    for (; name != NULL && *name != '\0' && length + 1 < sizeof p->name; name++) {
        char c = *name;
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        p->name[length++] = '-';
        if (word || c == '-' || c == '_' || c == '.')
            p->name[length - 1] = c;
    }
    p->name[length] = '\0';
    if (length == 0)
        memcpy(p->name, "msccl", sizeof "msccl");
}

static int read_algo(void *context, const struct xml_element *x, struct error *e)
{
    struct msccl_program *p = ((struct parser *)context)->program;
    const char *collective = xml_find(x, "coll"), *torus = xml_find(x, "torus");
    char dims[TORUS_TEXT_SIZE];
    int64_t count, in_place = 0;

    if (collective == NULL || strcmp(collective, "alltoall") != 0)
        return xml_error(x->line, e,
                         "coll is \"%.20s\": only schedules for \"alltoall\" can be read",
                         collective != NULL ? collective : "");
    if (xml_number(x, "ngpus", 1, TORUS_MAX_NODES, &count, e) != 0)
        return -1;
    if (count != p->torus->nodes)
        return xml_error(x->line, e, "it is for %" PRId64 " GPUs, not for the %u nodes of %s",
                         count, p->torus->nodes, torus_format(p->torus, dims));
    if (torus != NULL && strcmp(torus, torus_format(p->torus, dims)) != 0)
        return xml_error(x->line, e, "it is for a torus of %.40s, not %s", torus, dims);
    if (xml_find(x, "inplace") != NULL && xml_number(x, "inplace", 0, 1, &in_place, e) != 0)
        return -1;
    if (in_place != 0)
        return xml_error(x->line, e,
                         "inplace=\"1\": only schedules that work out of place can be read");
    p->by_torusd = torus != NULL;
    read_name(p, x);
    return 0;
}

/* Checks that all GPUs have the same number of input and output chunks, and that the schedule has at most
 * IMPORTED_ROUTES_MOST routes. */
static int count_segments(struct msccl_program *p, const struct msccl_gpu *gpu, uint32_t line,
                          struct error *e)
{
    uint32_t nodes = p->torus->nodes, size = gpu->size[MSCCL_INPUT];
    uint64_t routes = (uint64_t)nodes * size;

    if (size != gpu->size[MSCCL_OUTPUT] || size % nodes != 0 || size == 0 ||
        (p->segments != 0 && size != p->segments * nodes))
        return xml_error(line, e,
                         "i_chunks and o_chunks must be the same multiple of ngpus for all GPUs");
    p->segments = size / nodes;
    if (p->segments > IMPORTED_SEGMENTS_MOST)
        return xml_error(line, e,
                         "i_chunks=\"%" PRIu32 "\" are %" PRIu32
                         " segments of each block, more than the %u that a schedule can have",
                         size, p->segments, IMPORTED_SEGMENTS_MOST);
    if (routes > IMPORTED_ROUTES_MOST)
        return xml_error(line, e,
                         "i_chunks=\"%" PRIu32 "\" of %" PRIu32 " GPUs are %" PRIu64
                         " routes, more than the %u that a schedule can have",
                         size, nodes, routes, IMPORTED_ROUTES_MOST);
    p->chunks = (uint32_t)routes;
    return 0;
}

static int read_gpu(void *context, const struct xml_element *x, struct error *e)
{
    static const char *const sizes[MSCCL_BUFFERS] = {"i_chunks", "o_chunks", "s_chunks"};
    struct parser *parser = context;
    struct msccl_program *p = parser->program;
    int64_t id, size;

    if (xml_number(x, "id", 0, p->torus->nodes - 1, &id, e) != 0)
        return -1;
    struct msccl_gpu *gpu = parser->gpu = &p->gpu[id];
    if (gpu->given)
        return xml_error(x->line, e, "GPU %" PRId64 " occurs twice", id);
    gpu->given = true;
    gpu->first = p->blocks;
    for (unsigned i = 0; i < MSCCL_BUFFERS; i++) {
        if (xml_number(x, sizes[i], 0, CHUNKS_MOST, &size, e) != 0)
            return -1;
        gpu->size[i] = (uint32_t)size;
        parser->chunks += gpu->size[i];
    }
    if (parser->chunks > CHUNKS_MOST)
        return xml_error(x->line, e,
                         "i_chunks, o_chunks and s_chunks of the GPUs so far are %" PRIu64
                         ", more than the %u that all GPUs together may have",
                         parser->chunks, CHUNKS_MOST);
    return count_segments(p, gpu, x->line, e);
}

/* Grows the array if needed, so that it has room for one more element of `size` bytes. Returns the array, or NULL if
 * memory is short. */
static void *make_room(void *array, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room)
        return array;
    uint32_t more = *room == 0 ? 64 : 2 * *room;
    void *larger = reallocarray(array, more, size);
    if (larger != NULL)
        *room = more;
    return larger;
}

static int read_block(void *context, const struct xml_element *x, struct error *e)
{
    struct parser *parser = context;
    struct msccl_program *p = parser->program;
    struct msccl_gpu *gpu = parser->gpu;
    int64_t id, send, receive, channel, most = (int64_t)p->torus->nodes - 1;

    if (xml_number(x, "id", 0, INT32_MAX, &id, e) != 0 ||
        xml_number(x, "send", -1, most, &send, e) != 0 ||
        xml_number(x, "recv", -1, most, &receive, e) != 0 ||
        xml_number(x, "chan", 0, CHANNELS_MOST, &channel, e) != 0)
        return -1;
    if (id != gpu->count)
        return xml_error(x->line, e, "thread block %" PRId64 " where %" PRIu32 " is expected", id,
                         gpu->count);
    if (send == gpu - p->gpu || receive == gpu - p->gpu)
        return xml_error(x->line, e, "GPU %td is its own peer in thread block %" PRId64,
                         gpu - p->gpu, id);
    struct msccl_block *block = make_room(p->block, p->blocks, &p->block_room, sizeof *block);
    if (block == NULL)
        return msccl_no_memory(e);
    p->block = block;
    block[p->blocks++] = (struct msccl_block){.line = x->line,
                                              .gpu = (uint32_t)(gpu - p->gpu),
                                              .id = gpu->count++,
                                              .send = (int32_t)send,
                                              .receive = (int32_t)receive,
                                              .channel = (uint32_t)channel,
                                              .first = p->steps};
    return 0;
}

/* Reads the place of `count` chunks from the attributes named `buffer` and `offset`. */
static int read_place(struct msccl_gpu *gpu, const struct xml_element *x, const char *buffer,
                      const char *offset, uint32_t count, uint8_t *which, uint32_t *place,
                      struct error *e)
{
    const char *text = xml_find(x, buffer);
    const char *name = text != NULL && strlen(text) == 1 ? strchr(buffer_names, *text) : NULL;
    int64_t at;

    if (name == NULL)
        return xml_error(x->line, e, "%s must be \"i\", \"o\" or \"s\"", buffer);
    *which = (uint8_t)(name - buffer_names);
    uint32_t size = gpu->size[*which];
    if (xml_number(x, offset, 0, CHUNKS_MOST, &at, e) != 0)
        return -1;
    if (count > size || at > size - count)
        return xml_error(x->line, e,
                         "%" PRIu32 " chunks from %" PRId64 " on are not in buffer %c of %" PRIu32,
                         count, at, *name, size);
    *place = (uint32_t)at;
    if (*which == MSCCL_SCRATCH && *place + count > gpu->scratch_used)
        gpu->scratch_used = *place + count;
    return 0;
}

static int read_kind(const struct msccl_block *b, const struct xml_element *x, uint8_t *kind,
                     struct error *e)
{
    const char *type = xml_find(x, "type");
    struct msccl_step s = {.kind = 0};

    while (s.kind <= MSCCL_NOP && (type == NULL || strcmp(type, kinds[s.kind]) != 0))
        s.kind++;
    if (s.kind > MSCCL_NOP)
        return xml_error(x->line, e, "type \"%.20s\": an alltoall has only s, r, rcs, cpy and nop",
                         type != NULL ? type : "");
    if ((msccl_sends(&s) && b->send < 0) || (msccl_receives(&s) && b->receive < 0))
        return xml_error(x->line, e, "type \"%s\" in a thread block without a peer for it",
                         kinds[s.kind]);
    *kind = s.kind;
    return 0;
}

/* Checks the limits of sent and copied chunks of all steps together. */
static int count_moved(struct msccl_program *p, const struct msccl_step *s, struct error *e)
{
    if (msccl_sends(s)) {
        if (s->count > SENT_MOST - p->sent)
            return xml_error(s->line, e,
                             "all steps up to this one send more than %u chunks: their legs do not "
                             "fit into a schedule of %u MiB",
                             SENT_MOST, IMPORTED_BYTES_MOST >> 20);
        p->sent += s->count;
    }
    if (s->kind == MSCCL_COPY) {
        if (s->count > CHUNKS_MOST - p->copied)
            return xml_error(
                s->line, e,
                "all steps up to this one copy more chunks than the %u that are possible",
                CHUNKS_MOST);
        p->copied += s->count;
    }
    return 0;
}

/* Reads the numbers of a step, except the places of its chunks. */
static int read_numbers(const struct msccl_program *p, const struct xml_element *x,
                        struct msccl_step *s, uint32_t expected, struct error *e)
{
    int64_t number, block, step, count = 0, torusd_step = MSCCL_NONE;

    if (xml_number(x, "s", 0, INT32_MAX, &number, e) != 0 ||
        xml_number(x, "depid", -1, INT32_MAX, &block, e) != 0 ||
        xml_number(x, "deps", -1, INT32_MAX, &step, e) != 0 ||
        (s->kind != MSCCL_NOP && xml_number(x, "cnt", 1, CHUNKS_MOST, &count, e) != 0))
        return -1;
    if (number != expected)
        return xml_error(x->line, e, "step %" PRId64 " where %" PRIu32 " is expected", number,
                         expected);
    if (p->by_torusd && msccl_sends(s) &&
        xml_number(x, "step", 0, IMPORTED_STEP_MOST, &torusd_step, e) != 0)
        return -1;
    s->depends_block = (int32_t)block;
    s->depends_step = (int32_t)step;
    s->count = (uint32_t)count;
    s->number = (uint32_t)torusd_step;
    return 0;
}

static int read_step(void *context, const struct xml_element *x, struct error *e)
{
    struct parser *parser = context;
    struct msccl_program *p = parser->program;
    struct msccl_block *b = &p->block[p->blocks - 1];
    struct msccl_step s = {.line = x->line, .block = p->blocks - 1};

    if (read_kind(b, x, &s.kind, e) != 0 || read_numbers(p, x, &s, b->count, e) != 0)
        return -1;
    if ((s.kind == MSCCL_SEND || s.kind == MSCCL_COPY) &&
        read_place(parser->gpu, x, "srcbuf", "srcoff", s.count, &s.from_buffer, &s.from, e) != 0)
        return -1;
    if ((msccl_receives(&s) || s.kind == MSCCL_COPY) &&
        read_place(parser->gpu, x, "dstbuf", "dstoff", s.count, &s.to_buffer, &s.to, e) != 0)
        return -1;
    if (count_moved(p, &s, e) != 0)
        return -1;
    struct msccl_step *step = make_room(p->step, p->steps, &p->step_room, sizeof *step);
    if (step == NULL)
        return msccl_no_memory(e);
    p->step = step;
    step[p->steps++] = s;
    b->count++;
    b->sends |= msccl_sends(&s);
    b->receives |= msccl_receives(&s);
    return 0;
}

enum { ALGO, GPU, BLOCK, STEP, OWN_BLOCK };
static const struct xml_rule grammar[] = {
    [ALGO] = {"algo", XML_OUTERMOST, read_algo}, [GPU] = {"gpu", ALGO, read_gpu},
    [BLOCK] = {"tb", GPU, read_block},           [STEP] = {"step", BLOCK, read_step},
    [OWN_BLOCK] = {"copy", GPU, NULL}, /* the block of a GPU for itself, which is not sent */
};

int msccl_parse(struct msccl_program *p, const char *xml, size_t length, const struct torus *t,
                struct error *e)
{
    struct parser parser = {.program = p};

    *p = (struct msccl_program){.torus = t, .gpu = calloc(t->nodes, sizeof *p->gpu)};
    if (p->gpu == NULL)
        return msccl_no_memory(e);
    if (xml_read(xml, length, grammar, sizeof grammar / sizeof *grammar, &parser, e) != 0)
        return -1;
    for (uint32_t i = 0; i < t->nodes; i++)
        if (!p->gpu[i].given)
            return error_set(e, ERROR_REFUSED, "GPU %" PRIu32 " is missing", i);
    return 0;
}

void msccl_program_free(struct msccl_program *p)
{
    free(p->gpu);
    free(p->block);
    free(p->step);
    *p = (struct msccl_program){0};
}

const char *msccl_chunk_name(const struct msccl_program *p, uint32_t chunk,
                             char name[MSCCL_CHUNK_NAME_SIZE])
{
    uint32_t segment = chunk % p->segments, pair = chunk / p->segments;

    (void)snprintf(name, MSCCL_CHUNK_NAME_SIZE,
                   "block %" PRIu32 " -> %" PRIu32 ", segment %" PRIu32, pair / p->torus->nodes,
                   pair % p->torus->nodes, segment);
    return name;
}

int msccl_bad_step(const struct msccl_program *p, const struct msccl_step *s, struct error *e,
                   const char *format, ...)
{
    const struct msccl_block *b = &p->block[s->block];
    char text[sizeof((struct error *)NULL)->text];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return error_set(e, ERROR_REFUSED,
                     "line %" PRIu32 ": GPU %" PRIu32 ", thread block %" PRIu32 ", step %td: %s",
                     s->line, b->gpu, b->id, s - p->step - b->first, text);
}
