#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/msccl_reader.h"
#include "client/cli/xml.h"

#define CHUNKS_MOST (1u << 24) /* of all buffers */
#define CHANNELS_MOST 1024

static const char *const kinds[] = {"s", "r", "rcs", "cpy", "nop"};
static const char buffer_names[] = "ios";

/* As much of the name as ours can have. */
static void read_name(struct msccl_reader *r, const struct xml_element *x)
{
    const char *name = xml_find(x, "name");
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

static int read_algo(void *context, const struct xml_element *x, struct error *e)
{
    struct msccl_reader *r = context;
    const char *collective = xml_find(x, "coll"), *torus = xml_find(x, "torus");
    char dims[TORUS_TEXT_SIZE];
    int64_t count, in_place = 0;

    if (collective == NULL || strcmp(collective, "alltoall") != 0)
        return xml_error(x->line, e, "coll is not \"alltoall\"");
    if (xml_number(x, "ngpus", 1, TORUS_MAX_NODES, &count, e) != 0)
        return -1;
    if (count != r->torus->nodes)
        return xml_error(x->line, e, "it is for %" PRId64 " GPUs, not for the %u nodes of %s",
                         count, r->torus->nodes, torus_format(r->torus, dims));
    if (torus != NULL && strcmp(torus, torus_format(r->torus, dims)) != 0)
        return xml_error(x->line, e, "it is for a torus of %.40s, not %s", torus, dims);
    if (xml_find(x, "inplace") != NULL && xml_number(x, "inplace", 0, 1, &in_place, e) != 0)
        return -1;
    if (in_place != 0)
        return xml_error(x->line, e, "schedules that work in place are not read");
    r->own = torus != NULL;
    read_name(r, x);
    return 0;
}

static int read_gpu(void *context, const struct xml_element *x, struct error *e)
{
    struct msccl_reader *r = context;
    static const char *const sizes[MSCCL_BUFFERS] = {"i_chunks", "o_chunks", "s_chunks"};
    uint32_t nodes = r->torus->nodes;
    int64_t id, size;

    if (xml_number(x, "id", 0, nodes - 1, &id, e) != 0)
        return -1;
    struct msccl_gpu *gpu = &r->gpu[id];
    if (gpu->buffer[MSCCL_INPUT] != NULL)
        return xml_error(x->line, e, "GPU %" PRId64 " comes twice", id);
    r->gpu_now = (uint32_t)id;
    gpu->first = (uint32_t)r->blocks;
    for (unsigned i = 0; i < MSCCL_BUFFERS; i++) {
        if (xml_number(x, sizes[i], 0, CHUNKS_MOST, &size, e) != 0)
            return -1;
        gpu->size[i] = (uint32_t)size;
        r->chunks += gpu->size[i];
    }
    if (gpu->size[MSCCL_INPUT] != gpu->size[MSCCL_OUTPUT] || gpu->size[MSCCL_INPUT] % nodes != 0 ||
        gpu->size[MSCCL_INPUT] == 0 ||
        (r->segments != 0 && gpu->size[MSCCL_INPUT] != r->segments * nodes))
        return xml_error(x->line, e,
                         "i_chunks and o_chunks have to be the same multiple of ngpus everywhere");
    r->segments = gpu->size[MSCCL_INPUT] / nodes;
    if (r->segments > IMPORTED_SEGMENTS_MOST || r->chunks > CHUNKS_MOST)
        return xml_error(x->line, e, "too many chunks");
    for (unsigned i = 0; i < MSCCL_BUFFERS; i++) {
        gpu->buffer[i] = calloc((size_t)gpu->size[i] + 1, sizeof *gpu->buffer[i]);
        if (gpu->buffer[i] == NULL)
            return msccl_no_memory(r);
        for (uint32_t at = 0; at < gpu->size[i]; at++)
            gpu->buffer[i][at] = (struct msccl_cell){
                .chunk = i == MSCCL_INPUT ? (uint32_t)id * gpu->size[i] + at : MSCCL_NONE,
                .hop = MSCCL_NONE};
    }
    return 0;
}

static int read_block(void *context, const struct xml_element *x, struct error *e)
{
    struct msccl_reader *r = context;
    int64_t id, most = (int64_t)r->torus->nodes - 1;
    struct msccl_gpu *gpu = &r->gpu[r->gpu_now];
    struct msccl_block b = {.gpu = r->gpu_now, .first = (uint32_t)r->steps, .target = MSCCL_NONE};

    if (xml_number(x, "id", 0, INT32_MAX, &id, e) != 0 ||
        xml_number(x, "send", -1, most, &b.send, e) != 0 ||
        xml_number(x, "recv", -1, most, &b.receive, e) != 0 ||
        xml_number(x, "chan", 0, CHANNELS_MOST, &b.channel, e) != 0)
        return -1;
    if (id != gpu->count)
        return xml_error(x->line, e, "thread block %" PRId64 " where %" PRIu32 " is expected", id,
                         gpu->count);
    if (b.send == b.gpu || b.receive == b.gpu)
        return xml_error(x->line, e, "a GPU that is its own peer");
    b.id = gpu->count++;
    if (msccl_grow(&r->block, r->blocks, &r->block_room, sizeof b) != 0)
        return msccl_no_memory(r);
    r->block[r->blocks++] = b;
    return 0;
}

/* `buffer` and `offset` name the attributes. Not all kinds use both places. */
static int read_place(const struct msccl_reader *r, const struct xml_element *x, const char *buffer,
                      const char *offset, bool needed, uint32_t count, struct msccl_place *place)
{
    const char *text = xml_find(x, buffer);
    const struct msccl_gpu *gpu = &r->gpu[r->gpu_now];
    int64_t at;

    if (!needed)
        return 0;
    const char *name = text != NULL && strlen(text) == 1 ? strchr(buffer_names, *text) : NULL;
    if (name == NULL)
        return xml_error(x->line, r->e, "%s has to be \"i\", \"o\" or \"s\"", buffer);
    place->buffer = (uint8_t)(name - buffer_names);
    uint32_t size = gpu->size[place->buffer];
    if (xml_number(x, offset, 0, CHUNKS_MOST, &at, r->e) != 0)
        return -1;
    if (count > size || at > size - count)
        return xml_error(x->line, r->e,
                         "%" PRIu32 " chunks from %" PRId64 " on are not in buffer %c of %" PRIu32,
                         count, at, *name, size);
    place->at = (uint32_t)at;
    return 0;
}

static int read_step(void *context, const struct xml_element *x, struct error *e)
{
    struct msccl_reader *r = context;
    struct msccl_block *b = &r->block[r->blocks - 1];
    const char *type = xml_find(x, "type");
    struct msccl_step s = {.number = MSCCL_NONE, .line = x->line};
    int64_t number, count = 0, own = MSCCL_NONE;

    while (s.kind <= MSCCL_NOP && (type == NULL || strcmp(type, kinds[s.kind]) != 0))
        s.kind++;
    if (s.kind > MSCCL_NOP)
        return xml_error(x->line, e, "type \"%.20s\": an alltoall has only s, r, rcs, cpy and nop",
                         type != NULL ? type : "");
    if (xml_number(x, "s", 0, INT32_MAX, &number, e) != 0 ||
        xml_number(x, "depid", -1, INT32_MAX, &s.depends_block, e) != 0 ||
        xml_number(x, "deps", -1, INT32_MAX, &s.depends_step, e) != 0 ||
        (s.kind != MSCCL_NOP && xml_number(x, "cnt", 1, CHUNKS_MOST, &count, e) != 0))
        return -1;
    s.count = (uint32_t)count;
    bool sends = s.kind == MSCCL_SEND || s.kind == MSCCL_RECEIVE_COPY_SEND;
    bool receives = s.kind == MSCCL_RECEIVE || s.kind == MSCCL_RECEIVE_COPY_SEND;
    if (number != b->count)
        return xml_error(x->line, e, "step %" PRId64 " where %" PRIu32 " is expected", number,
                         b->count);
    if ((sends && b->send < 0) || (receives && b->receive < 0))
        return xml_error(x->line, e, "type \"%s\" in a thread block without a peer for it",
                         kinds[s.kind]);
    if (r->own && sends && xml_number(x, "step", 0, IMPORTED_STEP_MOST, &own, e) != 0)
        return -1;
    s.number = (uint32_t)own;
    if (read_place(r, x, "srcbuf", "srcoff", s.kind == MSCCL_SEND || s.kind == MSCCL_COPY, s.count,
                   &s.from) != 0 ||
        read_place(r, x, "dstbuf", "dstoff", receives || s.kind == MSCCL_COPY, s.count, &s.to) != 0)
        return -1;
    if (msccl_grow(&r->step, r->steps, &r->step_room, sizeof s) != 0)
        return msccl_no_memory(r);
    r->step[r->steps++] = s;
    b->count++;
    return 0;
}

enum { ALGO, GPU, BLOCK, STEP, OWN_BLOCK };
static const struct xml_rule grammar[] = {
    [ALGO] = {"algo", XML_OUTERMOST, read_algo}, [GPU] = {"gpu", ALGO, read_gpu},
    [BLOCK] = {"tb", GPU, read_block},           [STEP] = {"step", BLOCK, read_step},
    [OWN_BLOCK] = {"copy", GPU, NULL}, /* a GPU's block for itself, which is not sent */
};

int msccl_parse(struct msccl_reader *r, const char *xml, size_t length)
{
    if (xml_read(xml, length, grammar, sizeof grammar / sizeof *grammar, r, r->e) != 0)
        return -1;
    for (uint32_t i = 0; i < r->torus->nodes; i++)
        if (r->gpu[i].buffer[MSCCL_INPUT] == NULL)
            return error_set(r->e, ERROR_REFUSED, "GPU %" PRIu32 " is missing", i);
    return 0;
}
