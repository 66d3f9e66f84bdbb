#include "client/cli/schedule_files/msccl_program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/schedule_files/straight_leg.h"
#include "daemon/lib/schedule/file/export.h"

/* ---- Connections ----------------------------------------------------------------------------- */

/* The receiving end of a connection. */
struct end {
    uint32_t gpu, from, channel;
    uint32_t block; /* index of the thread block */
};

static int compare_ends(const void *a, const void *b)
{
    const struct end *x = a, *y = b;

    if (x->gpu != y->gpu)
        return x->gpu < y->gpu ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->channel > y->channel) - (x->channel < y->channel);
}

/* Rejects two thread blocks at one end of a connection: the order in which chunks arrive would depend on their
 * speed. */
static int refuse_shared(const struct msccl_block *b, const struct msccl_block *other, bool sends,
                         struct error *e)
{
    if (b->line < other->line) {
        const struct msccl_block *first = b;
        b = other;
        other = first;
    }
    return error_set(e, ERROR_REFUSED,
                     "line %" PRIu32 ": GPU %" PRIu32 ", thread block %" PRIu32 " %s GPU %" PRId32
                     " on channel %" PRIu32 ", as thread block %" PRIu32 " (line %" PRIu32
                     ") does: it needs another channel",
                     b->line, b->gpu, b->id, sends ? "sends to" : "receives from",
                     sends ? b->send : b->receive, b->channel, other->id, other->line);
}

/* Stores all receiving ends, sorted. */
static int find_ends(const struct msccl_program *p, struct end *end, uint32_t *count,
                     struct error *e)
{
    *count = 0;
    for (uint32_t i = 0; i < p->blocks; i++) {
        const struct msccl_block *b = &p->block[i];
        if (b->receives)
            end[(*count)++] = (struct end){b->gpu, (uint32_t)b->receive, b->channel, i};
    }
    qsort(end, *count, sizeof *end, compare_ends);
    for (uint32_t i = 1; i < *count; i++)
        if (compare_ends(&end[i - 1], &end[i]) == 0)
            return refuse_shared(&p->block[end[i - 1].block], &p->block[end[i].block], false, e);
    return 0;
}

/* Finds the receiver of a thread block. source[] has, for each end, the block that sends to it, or MSCCL_NONE. */
static int connect_block(const struct msccl_program *p, uint32_t index, const struct end *ends,
                         uint32_t count, uint32_t *source, uint32_t *target, struct error *e)
{
    const struct msccl_block *b = &p->block[index];
    const struct end key = {(uint32_t)b->send, b->gpu, b->channel, 0};
    const struct end *end = bsearch(&key, ends, count, sizeof *ends, compare_ends);

    if (end == NULL)
        return error_set(e, ERROR_REFUSED,
                         "line %" PRIu32 ": GPU %" PRIu32 ", thread block %" PRIu32
                         " sends to GPU %" PRId32 " on channel %" PRIu32
                         ", where no thread block receives from it",
                         b->line, b->gpu, b->id, b->send, b->channel);
    if (source[end - ends] != MSCCL_NONE)
        return refuse_shared(b, &p->block[source[end - ends]], true, e);
    source[end - ends] = index;
    *target = end->block;
    return 0;
}

static int check_dependency(const struct msccl_program *p, const struct msccl_step *s,
                            struct error *e)
{
    const struct msccl_gpu *gpu = &p->gpu[p->block[s->block].gpu];

    if (s->depends_block < 0)
        return 0;
    if ((uint32_t)s->depends_block >= gpu->count)
        return msccl_bad_step(p, s, e,
                              "it depends on thread block %" PRId32 ", which does not exist",
                              s->depends_block);
    if (s->depends_step < 0 ||
        (uint32_t)s->depends_step >= p->block[gpu->first + (uint32_t)s->depends_block].count)
        return msccl_bad_step(p, s, e,
                              "it depends on thread block %" PRId32 ", step %" PRId32
                              ", which does not exist",
                              s->depends_block, s->depends_step);
    return 0;
}

int msccl_connect(const struct msccl_program *p, uint32_t **targets, struct error *e)
{
    size_t room = (size_t)p->blocks + 1; /* not 0 bytes: NULL means out of memory */
    uint32_t *target = reallocarray(NULL, room, sizeof *target);
    uint32_t *source = reallocarray(NULL, room, sizeof *source);
    struct end *end = reallocarray(NULL, room, sizeof *end);
    uint32_t ends = 0;
    int rc = target == NULL || source == NULL || end == NULL ? msccl_no_memory(e) : 0;

    if (rc == 0)
        rc = find_ends(p, end, &ends, e);
    for (uint32_t i = 0; i < p->blocks && rc == 0; i++)
        target[i] = source[i] = MSCCL_NONE;
    for (uint32_t i = 0; i < p->blocks && rc == 0; i++)
        if (p->block[i].sends)
            rc = connect_block(p, i, end, ends, source, &target[i], e);
    for (uint32_t i = 0; i < p->steps && rc == 0; i++)
        rc = check_dependency(p, &p->step[i], e);
    free(end);
    free(source);
    *targets = rc == 0 ? target : NULL;
    if (rc != 0)
        free(target);
    return rc;
}

/* ---- Running the program --------------------------------------------------------------------- */

/* Every thread block runs until its next step must wait for a step of another thread block or for chunks. What it
 * waits for puts it back into the list of work. So each step is tried at most three times. */

/* --- chunks --- */

static msccl_content content_of_chunk(uint32_t chunk)
{
    return 1 + chunk;
}

static msccl_content content_of_hop(const struct msccl_run *r, uint32_t hop)
{
    return 1 + r->program->chunks + hop;
}

/* Returns the hop that has brought this content; MSCCL_NONE: empty, or an input chunk. */
static uint32_t hop_of(const struct msccl_run *r, msccl_content content)
{
    return content > r->program->chunks ? content - 1 - r->program->chunks : MSCCL_NONE;
}

/* Returns the chunk in this content; MSCCL_NONE: empty. */
static uint32_t chunk_of(const struct msccl_run *r, msccl_content content)
{
    uint32_t hop = hop_of(r, content);

    if (hop != MSCCL_NONE)
        return r->hop[hop].chunk;
    return content != 0 ? content - 1 : MSCCL_NONE;
}

/* Returns the first step of a schedule in which this content can be sent on. */
static uint32_t level_of(const struct msccl_run *r, msccl_content content)
{
    uint32_t hop = hop_of(r, content);

    return hop != MSCCL_NONE ? r->step[r->hop[hop].step].level + 1 : 0;
}

static msccl_content *place_of(const struct msccl_run *r, uint32_t gpu, unsigned buffer,
                               uint32_t at)
{
    msccl_content *contents = r->contents + r->first[gpu];

    for (unsigned i = 0; i < buffer; i++)
        contents += r->program->gpu[gpu].size[i];
    return contents + at;
}

/* Returns the content of a place in a buffer of a GPU. */
static msccl_content content_at(const struct msccl_run *r, uint32_t gpu, unsigned buffer,
                                uint32_t at)
{
    msccl_content content = *place_of(r, gpu, buffer, at);

    if (content == 0 && buffer == MSCCL_INPUT)
        content = content_of_chunk(gpu * r->program->gpu[gpu].size[MSCCL_INPUT] + at);
    return content;
}

static int put(const struct msccl_run *r, const struct msccl_step *s, msccl_content content,
               uint32_t at, struct error *e)
{
    msccl_content *place = place_of(r, r->program->block[s->block].gpu, s->to_buffer, at);
    char name[MSCCL_CHUNK_NAME_SIZE];

    if (s->to_buffer == MSCCL_OUTPUT && *place != 0)
        return msccl_bad_step(r->program, s, e,
                              "%s arrives in chunk %" PRIu32 " of the output, which is full",
                              msccl_chunk_name(r->program, chunk_of(r, content), name), at);
    *place = content;
    return 0;
}

/* --- the list of work --- */

static void add_work(struct msccl_run *r, uint32_t block)
{
    r->block[block].next = MSCCL_NONE;
    if (r->work == MSCCL_NONE)
        r->work = block;
    else
        r->block[r->last_work].next = block;
    r->last_work = block;
}

static uint32_t next_work(struct msccl_run *r)
{
    uint32_t block = r->work;

    if (block != MSCCL_NONE)
        r->work = r->block[block].next;
    return block;
}

static void wait_for_step(struct msccl_run *r, uint32_t block, uint32_t step)
{
    r->block[block].next = r->step[step].waiting;
    r->step[step].waiting = block;
}

static void wake_waiting(struct msccl_run *r, uint32_t step)
{
    uint32_t next;

    for (uint32_t block = r->step[step].waiting; block != MSCCL_NONE; block = next) {
        next = r->block[block].next;
        add_work(r, block);
    }
    r->step[step].waiting = MSCCL_NONE;
}

static void wake_receiver(struct msccl_run *r, uint32_t block)
{
    struct msccl_block_run *b = &r->block[block];

    if (b->wanted == 0 || b->queued < b->wanted)
        return;
    b->wanted = 0;
    add_work(r, block);
}

/* --- steps --- */

/* Returns the hops from one coordinate to another in a direction, in a graph at most 1; or 0 if the direction does not
 * lead there. */
static uint32_t hops_towards(const struct torus *t, unsigned dim, uint32_t from, uint32_t to,
                             int direction)
{
    bool ahead = direction > 0 ? to > from : to < from;
    uint32_t straight = to > from ? to - from : from - to;

    if (t->graph[dim] != NULL)
        return graph_neighbour(t->graph[dim], from, (unsigned)direction - 1) == to;
    if (ahead)
        return straight;
    return t->wrap[dim] ? t->size[dim] - straight : 0;
}

/* Finds the leg of a send through the port that torusd has chosen. */
static int find_leg_of_port(const struct torus *t, const struct msccl_block *b, struct leg *leg,
                            struct error *e)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], hops = 0;
    const int direction = torus_port_direction(t, b->channel);
    unsigned dim;

    if (straight_dimension(t, b->gpu, (uint32_t)b->send, &dim, e) != 0)
        return -1;
    torus_coordinates(t, b->gpu, from);
    torus_coordinates(t, (uint32_t)b->send, to);
    if (torus_port_dim(t, b->channel) == dim)
        hops = hops_towards(t, dim, from[dim], to[dim], direction);
    if (hops == 0)
        return error_set(e, ERROR_REFUSED, "port %" PRIu32 " does not lead to GPU %" PRId32,
                         b->channel, b->send);
    if (hops > UINT16_MAX)
        return error_set(e, ERROR_REFUSED, "%" PRIu32 " hops are more than a leg can have", hops);
    *leg =
        (struct leg){.hops = (uint16_t)hops, .dim = (uint8_t)dim, .direction = (int8_t)direction};
    return 0;
}

/* Finds the leg of a send: see msccl_read(). */
static int find_leg(const struct msccl_run *r, const struct msccl_step *s, struct leg *leg,
                    struct error *e)
{
    const struct msccl_program *p = r->program;
    const struct msccl_block *b = &p->block[s->block];
    struct error why;
    int rc = p->by_torusd && b->channel < torus_ports(p->torus)
                 ? find_leg_of_port(p->torus, b, leg, &why)
                 : straight_leg(p->torus, b->gpu, (uint32_t)b->send, b->channel, leg, &why);

    return rc == 0 ? 0 : msccl_bad_step(p, s, e, "%s", why.text);
}

/* Sets the step of a send: as early as all its chunks are there. */
static int find_level(struct msccl_run *r, const struct msccl_step *s, unsigned buffer,
                      uint32_t from, struct error *e)
{
    struct msccl_step_run *run = &r->step[s - r->program->step];
    uint32_t gpu = r->program->block[s->block].gpu;

    for (uint32_t i = 0; i < s->count; i++) {
        msccl_content content = content_at(r, gpu, buffer, from + i);
        if (content == 0)
            return msccl_bad_step(r->program, s, e,
                                  "it sends chunk %" PRIu32 " of a buffer, which is empty",
                                  from + i);
        uint32_t level = level_of(r, content);
        run->level = level > run->level ? level : run->level;
    }
    run->leg.step = s->number != MSCCL_NONE ? s->number : run->level;
    if (run->leg.step > IMPORTED_STEP_MOST)
        return msccl_bad_step(r->program, s, e,
                              "it sends after %" PRIu32
                              " others, one after another, but a schedule has at most %u steps",
                              run->level, IMPORTED_STEP_MOST + 1);
    return 0;
}

static void queue_hop(struct msccl_run *r, uint32_t block, uint32_t hop)
{
    struct msccl_block_run *b = &r->block[block];

    r->hop[hop].next = MSCCL_NONE;
    if (b->queued++ == 0)
        b->head = hop;
    else
        r->hop[b->tail].next = hop;
    b->tail = hop;
}

static int send_chunks(struct msccl_run *r, const struct msccl_step *s, unsigned buffer,
                       uint32_t from, struct error *e)
{
    uint32_t gpu = r->program->block[s->block].gpu, target = r->targets[s->block];
    uint32_t step = (uint32_t)(s - r->program->step);

    if (find_leg(r, s, &r->step[step].leg, e) != 0 || find_level(r, s, buffer, from, e) != 0)
        return -1;
    for (uint32_t i = 0; i < s->count; i++) {
        msccl_content content = content_at(r, gpu, buffer, from + i);
        r->hop[r->hops] =
            (struct msccl_hop){.before = content, .chunk = chunk_of(r, content), .step = step};
        queue_hop(r, target, r->hops++);
    }
    wake_receiver(r, target);
    return 0;
}

static int receive_chunks(struct msccl_run *r, const struct msccl_step *s, struct error *e)
{
    struct msccl_block_run *b = &r->block[s->block];
    struct msccl_step_run *run = &r->step[s - r->program->step];

    for (uint32_t i = 0; i < s->count; i++) {
        msccl_content content = content_of_hop(r, b->head);
        b->head = r->hop[b->head].next;
        b->queued--;
        if (put(r, s, content, s->to + i, e) != 0)
            return -1;
        uint32_t level = level_of(r, content);
        run->level = level > run->level ? level : run->level;
    }
    return 0;
}

static int copy_chunks(const struct msccl_run *r, const struct msccl_step *s, struct error *e)
{
    uint32_t gpu = r->program->block[s->block].gpu;

    for (uint32_t i = 0; i < s->count; i++) {
        msccl_content content = content_at(r, gpu, s->from_buffer, s->from + i);
        if (content != 0 && put(r, s, content, s->to + i, e) != 0)
            return -1;
    }
    return 0;
}

/* Returns the step on which this step depends, or MSCCL_NONE. */
static uint32_t find_dependency(const struct msccl_program *p, const struct msccl_step *s)
{
    if (s->depends_block < 0)
        return MSCCL_NONE;
    uint32_t block = p->gpu[p->block[s->block].gpu].first + (uint32_t)s->depends_block;
    return p->block[block].first + (uint32_t)s->depends_step;
}

static bool is_done(const struct msccl_run *r, uint32_t step)
{
    uint32_t block = r->program->step[step].block;

    return step < r->program->block[block].first + r->block[block].done;
}

/* Returns whether the step must wait. If so, its thread block is put back into the work when the wait ends. */
static bool has_to_wait(struct msccl_run *r, const struct msccl_step *s)
{
    struct msccl_block_run *b = &r->block[s->block];
    uint32_t dependency = find_dependency(r->program, s);

    r->tries++;
    if (dependency != MSCCL_NONE && !is_done(r, dependency)) {
        wait_for_step(r, s->block, dependency);
        return true;
    }
    if (msccl_receives(s) && b->queued < s->count) {
        b->wanted = s->count;
        return true;
    }
    return false;
}

static int run_step(struct msccl_run *r, const struct msccl_step *s, struct error *e)
{
    struct msccl_step_run *run = &r->step[s - r->program->step];
    struct msccl_block_run *b = &r->block[s->block];
    uint32_t dependency = find_dependency(r->program, s);

    run->level = b->level;
    if (dependency != MSCCL_NONE && r->step[dependency].level > run->level)
        run->level = r->step[dependency].level;
    if (msccl_receives(s) && receive_chunks(r, s, e) != 0)
        return -1;
    if (s->kind == MSCCL_COPY && copy_chunks(r, s, e) != 0)
        return -1;
    if (s->kind == MSCCL_SEND && send_chunks(r, s, s->from_buffer, s->from, e) != 0)
        return -1;
    if (s->kind == MSCCL_RECEIVE_COPY_SEND && send_chunks(r, s, s->to_buffer, s->to, e) != 0)
        return -1;
    b->level = run->level;
    b->done++;
    return 0;
}

static int run_block(struct msccl_run *r, uint32_t index, struct error *e)
{
    const struct msccl_block *b = &r->program->block[index];

    while (r->block[index].done < b->count) {
        uint32_t step = b->first + r->block[index].done;
        if (has_to_wait(r, &r->program->step[step]))
            return 0;
        if (run_step(r, &r->program->step[step], e) != 0)
            return -1;
        wake_waiting(r, step);
    }
    return 0;
}

/* --- the whole --- */

static int refuse_endless(const struct msccl_run *r, const struct msccl_step *s, struct error *e)
{
    const struct msccl_program *p = r->program;
    const struct msccl_block *b = &p->block[s->block];
    uint32_t dependency = find_dependency(p, s);

    if (dependency != MSCCL_NONE && !is_done(r, dependency))
        return msccl_bad_step(p, s, e,
                              "it waits for ever for thread block %" PRId32 ", step %" PRId32,
                              s->depends_block, s->depends_step);
    return msccl_bad_step(p, s, e,
                          "it waits for ever: of the %" PRIu32
                          " chunks that it receives from GPU %" PRId32 " on channel %" PRIu32
                          ", %" PRIu32 " come",
                          s->count, b->receive, b->channel, r->block[s->block].queued);
}

/* Checks that all steps are done and all chunks received. */
static int check_end(const struct msccl_run *r, struct error *e)
{
    const struct msccl_program *p = r->program;

    for (uint32_t i = 0; i < p->blocks; i++) {
        const struct msccl_block *b = &p->block[i];
        const struct msccl_block_run *run = &r->block[i];
        if (run->done < b->count)
            return refuse_endless(r, &p->step[b->first + run->done], e);
        if (run->queued > 0)
            return msccl_bad_step(p, &p->step[b->first + b->count - 1], e,
                                  "after it, chunks come from GPU %" PRId32
                                  " that are never received: %" PRIu32,
                                  b->receive, run->queued);
    }
    return 0;
}

static int begin(struct msccl_run *r, struct error *e)
{
    const struct msccl_program *p = r->program;
    uint32_t contents = 0;

    r->first = calloc(p->torus->nodes, sizeof *r->first);
    r->step = calloc((size_t)p->steps + 1, sizeof *r->step); /* not 0 bytes */
    r->block = calloc((size_t)p->blocks + 1, sizeof *r->block);
    r->hop = calloc((size_t)p->sent + 1, sizeof *r->hop);
    if (r->first == NULL || r->step == NULL || r->block == NULL || r->hop == NULL)
        return msccl_no_memory(e);
    for (uint32_t i = 0; i < p->torus->nodes; i++) {
        const struct msccl_gpu *gpu = &p->gpu[i];
        r->first[i] = contents;
        contents += gpu->size[MSCCL_INPUT] + gpu->size[MSCCL_OUTPUT] + gpu->scratch_used;
    }
    r->contents = calloc((size_t)contents + 1, sizeof *r->contents);
    if (r->contents == NULL)
        return msccl_no_memory(e);
    for (uint32_t i = 0; i < p->steps; i++)
        r->step[i].waiting = MSCCL_NONE;
    for (uint32_t i = 0; i < p->blocks; i++)
        add_work(r, i);
    return 0;
}

int msccl_run(struct msccl_run *r, const struct msccl_program *p, const uint32_t *targets,
              struct error *e)
{
    *r = (struct msccl_run){.program = p, .targets = targets, .work = MSCCL_NONE};
    if (begin(r, e) != 0)
        return -1;
    for (uint32_t block; (block = next_work(r)) != MSCCL_NONE;)
        if (run_block(r, block, e) != 0)
            return -1;
    return check_end(r, e);
}

void msccl_run_free(struct msccl_run *r)
{
    free(r->first);
    free(r->contents);
    free(r->step);
    free(r->block);
    free(r->hop);
    *r = (struct msccl_run){0};
}

/* ---- Routes ---------------------------------------------------------------------------------- */

/* The printer of routes. */
struct printer {
    FILE *out;
    const struct msccl_program *program;
    const struct msccl_run *run;
    struct leg *legs; /* of a route, at the end of the room for all hops */
    bool *used;       /* by hop: a route contains it */
};

/* Prints the route of a chunk whose last hop is `hop`. */
static void print_route(struct printer *p, uint32_t chunk, uint32_t hop)
{
    uint32_t segments = p->program->segments, nodes = p->program->torus->nodes,
             first = p->run->hops;
    uint32_t pair = chunk / segments;

    for (; hop != MSCCL_NONE; hop = hop_of(p->run, p->run->hop[hop].before)) {
        p->used[hop] = true;
        p->legs[--first] = p->run->step[p->run->hop[hop].step].leg;
    }
    schedule_export_route(p->out, pair / nodes, pair % nodes, chunk % segments, p->legs + first,
                          p->run->hops - first);
}

/* Checks the output buffer of a GPU, and prints the routes of its chunks. */
static int print_gpu(struct printer *p, uint32_t id, struct error *e)
{
    const struct msccl_program *program = p->program;
    uint32_t nodes = program->torus->nodes, segments = program->segments;
    char name[MSCCL_CHUNK_NAME_SIZE], other[MSCCL_CHUNK_NAME_SIZE];

    for (uint32_t at = 0; at < nodes * segments; at++) {
        msccl_content content = content_at(p->run, id, MSCCL_OUTPUT, at);
        uint32_t source = at / segments, chunk = chunk_of(p->run, content);
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
        print_route(p, wanted, hop_of(p->run, content));
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
                        .legs = calloc((size_t)run->hops + 1, sizeof *p.legs), /* not 0 bytes */
                        .used = calloc((size_t)run->hops + 1, sizeof *p.used)};
    int rc = p.legs == NULL || p.used == NULL ? msccl_no_memory(e) : 0;

    schedule_export_header(out, program->torus, program->name, OPERATION_EXCHANGE, true,
                           program->segments);
    for (uint32_t id = 0; id < program->torus->nodes && rc == 0; id++)
        rc = print_gpu(&p, id, e);
    if (rc == 0)
        rc = check_hops(&p, e);
    free(p.legs);
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
