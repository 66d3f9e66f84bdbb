#include <inttypes.h>
#include <stdlib.h>

#include "client/cli/schedule_files/msccl_program.h"

/* The printer of routes. */
struct printer {
    FILE *out;
    const struct msccl_program *program;
    const struct msccl_run *run;
    uint32_t *chain; /* the hops of a route, last first; room for all hops */
    bool *used;      /* by hop: a route contains it */
};

/* Prints the route of a chunk whose last hop is `hop`. */
static void print_route(struct printer *p, uint32_t chunk, uint32_t hop)
{
    uint32_t segments = p->program->segments, nodes = p->program->torus->nodes, count = 0;
    uint32_t pair = chunk / segments;

    for (; hop != MSCCL_NONE; hop = msccl_hop_of(p->run, p->run->hop[hop].before)) {
        p->used[hop] = true;
        p->chain[count++] = hop;
    }
    (void)fprintf(p->out,
                  "{\"src\":%" PRIu32 ",\"dst\":%" PRIu32 ",\"segment\":%" PRIu32 ",\"legs\":[",
                  pair / nodes, pair % nodes, chunk % segments);
    while (count-- > 0) {
        const struct leg *leg = &p->run->step[p->run->hop[p->chain[count]].step].leg;
        (void)fprintf(p->out, "[%" PRIu32 ",%u,%d,%u]%s", leg->step, (unsigned)leg->dim,
                      (int)leg->direction, (unsigned)leg->hops, count > 0 ? "," : "");
    }
    (void)fputs("]}\n", p->out);
}

/* Checks the output buffer of a GPU, and prints the routes of its chunks. */
static int print_gpu(struct printer *p, uint32_t id, struct error *e)
{
    const struct msccl_program *program = p->program;
    uint32_t nodes = program->torus->nodes, segments = program->segments;
    char name[MSCCL_CHUNK_NAME_SIZE], other[MSCCL_CHUNK_NAME_SIZE];

    for (uint32_t at = 0; at < nodes * segments; at++) {
        msccl_content content = msccl_content_at(p->run, id, MSCCL_OUTPUT, at);
        uint32_t source = at / segments, chunk = msccl_chunk_of(p->run, content);
        uint32_t wanted = (source * nodes + id) * segments + at % segments;
        if (source == id)
            continue;
        if (chunk == MSCCL_NONE)
            return error_set(e, ERROR_REFUSED, "%s does not reach GPU %" PRIu32,
                             msccl_chunk_name(program, wanted, name), id);
        if (chunk != wanted)
            return error_set(e, ERROR_REFUSED,
                             "%s arrives in chunk %" PRIu32 " of the output of GPU %" PRIu32
                             ", where %s belongs",
                             msccl_chunk_name(program, chunk, name), at, id,
                             msccl_chunk_name(program, wanted, other));
        print_route(p, wanted, msccl_hop_of(p->run, content));
    }
    return 0;
}

/* Checks that every hop is in a route. */
static int check_hops(const struct printer *p, struct error *e)
{
    char name[MSCCL_CHUNK_NAME_SIZE];

    for (uint32_t i = 0; i < p->run->hops; i++) {
        const struct msccl_hop *hop = &p->run->hop[i];
        const struct msccl_step *s = &p->program->step[hop->step];
        if (!p->used[i])
            return error_set(e, ERROR_REFUSED,
                             "line %" PRIu32 ": %s is sent twice: GPU %" PRIu32
                             " sends it in step %" PRIu32 ", which is not on its way to its output",
                             s->line, msccl_chunk_name(p->program, hop->chunk, name),
                             p->program->block[s->block].gpu, p->run->step[hop->step].leg.step);
    }
    return 0;
}

static int print_routes(FILE *out, const struct msccl_program *program, const struct msccl_run *run,
                        struct error *e)
{
    struct printer p = {.out = out,
                        .program = program,
                        .run = run,
                        .chain = calloc((size_t)run->hops + 1, sizeof *p.chain), /* not 0 bytes */
                        .used = calloc((size_t)run->hops + 1, sizeof *p.used)};
    int rc = p.chain == NULL || p.used == NULL ? msccl_no_memory(e) : 0;
    char dims[TORUS_TEXT_SIZE];

    (void)fprintf(out,
                  "{\"schedule\":%d,\"dims\":\"%s\",\"name\":\"%s\",\"mode\":\"streaming\","
                  "\"segments\":%" PRIu32 "}\n",
                  IMPORTED_VERSION, torus_format(program->torus, dims), program->name,
                  program->segments);
    for (uint32_t id = 0; id < program->torus->nodes && rc == 0; id++)
        rc = print_gpu(&p, id, e);
    if (rc == 0)
        rc = check_hops(&p, e);
    free(p.chain);
    free(p.used);
    return rc;
}

static int read_routes(FILE *out, const char *xml, size_t length, const struct torus *t,
                       struct error *e)
{
    struct msccl_program program;
    struct msccl_run run = {0};
    uint32_t *targets = NULL;
    int rc = msccl_parse(&program, xml, length, t, e);

    if (rc == 0)
        rc = msccl_connect(&program, &targets, e);
    if (rc == 0)
        rc = msccl_run(&run, &program, targets, e);
    if (rc == 0)
        rc = print_routes(out, &program, &run, e);
    msccl_run_free(&run);
    free(targets);
    msccl_program_free(&program);
    return rc;
}

int msccl_read(const char *xml, size_t length, const struct torus *t, char **routes,
               size_t *routes_length, struct error *e)
{
    *routes = NULL;
    FILE *out = open_memstream(routes, routes_length);
    if (out == NULL)
        return msccl_no_memory(e);
    int rc = read_routes(out, xml, length, t, e);
    bool written = ferror(out) == 0;
    if ((fclose(out) != 0 || !written) && rc == 0)
        rc = msccl_no_memory(e);
    if (rc != 0) {
        free(*routes);
        *routes = NULL;
    }
    return rc;
}
