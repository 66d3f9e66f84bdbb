#include <inttypes.h>
#include <stdlib.h>

#include "client/cli/msccl_reader.h"

int msccl_no_memory(struct msccl_reader *r)
{
    return error_set(r->e, ERROR_MEMORY, "out of memory for the schedule");
}

int msccl_grow(void *array, size_t count, size_t *room, size_t size)
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

/* "block 3 -> 7, segment 1" */
const char *msccl_chunk_name(const struct msccl_reader *r, uint32_t chunk,
                             char name[MSCCL_CHUNK_NAME_SIZE])
{
    uint32_t segment = chunk % r->segments, pair = chunk / r->segments;

    (void)snprintf(name, MSCCL_CHUNK_NAME_SIZE,
                   "block %" PRIu32 " -> %" PRIu32 ", segment %" PRIu32, pair / r->torus->nodes,
                   pair % r->torus->nodes, segment);
    return name;
}

/* Prints the route of the chunk that has come by this hop; `chain` has room for all hops. */
static void print_route(struct msccl_reader *r, FILE *out, uint32_t chunk, uint32_t hop,
                        uint32_t *chain)
{
    uint32_t segment = chunk % r->segments, pair = chunk / r->segments, count = 0;

    for (; hop != MSCCL_NONE; hop = r->hop[hop].before) {
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
static int print_gpu(struct msccl_reader *r, FILE *out, uint32_t id, uint32_t *chain)
{
    uint32_t nodes = r->torus->nodes;
    char name[MSCCL_CHUNK_NAME_SIZE], other[MSCCL_CHUNK_NAME_SIZE];

    for (uint32_t at = 0; at < nodes * r->segments; at++) {
        const struct msccl_cell *cell = &r->gpu[id].buffer[MSCCL_OUTPUT][at];
        uint32_t source = at / r->segments;
        uint32_t wanted = (source * nodes + id) * r->segments + at % r->segments;
        if (source == id)
            continue;
        if (cell->chunk == MSCCL_NONE)
            return error_set(r->e, ERROR_REFUSED, "%s does not come to GPU %" PRIu32,
                             msccl_chunk_name(r, wanted, name), id);
        if (cell->chunk != wanted)
            return error_set(
                r->e, ERROR_REFUSED,
                "%s comes to chunk %" PRIu32 " of the output of GPU %" PRIu32 ", where %s belongs",
                msccl_chunk_name(r, cell->chunk, name), at, id, msccl_chunk_name(r, wanted, other));
        print_route(r, out, wanted, cell->hop, chain);
    }
    return 0;
}

static int print_routes(struct msccl_reader *r, FILE *out)
{
    uint32_t *chain = calloc(r->hops + 1, sizeof *chain); /* never 0 bytes */
    char dims[TORUS_TEXT_SIZE], name[MSCCL_CHUNK_NAME_SIZE];
    int rc = chain == NULL ? msccl_no_memory(r) : 0;

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
                           r->hop[i].line, msccl_chunk_name(r, r->hop[i].chunk, name),
                           r->hop[i].from, r->hop[i].leg.step);
    free(chain);
    return rc;
}

static void free_reader(struct msccl_reader *r)
{
    for (uint32_t i = 0; r->gpu != NULL && i < r->torus->nodes; i++)
        for (unsigned k = 0; k < MSCCL_BUFFERS; k++)
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
    struct msccl_reader r = {.torus = t, .e = e, .gpu = calloc(t->nodes, sizeof *r.gpu)};
    FILE *out = open_memstream(routes, routes_length);
    int rc = out == NULL || r.gpu == NULL ? msccl_no_memory(&r) : 0;

    if (rc == 0 &&
        (msccl_parse(&r, xml, length) != 0 || msccl_run(&r) != 0 || print_routes(&r, out) != 0))
        rc = -1;
    if (out != NULL && fclose(out) != 0 && rc == 0)
        rc = msccl_no_memory(&r);
    if (out != NULL && rc != 0) {
        free(*routes);
        *routes = NULL;
    }
    free_reader(&r);
    return rc;
}
