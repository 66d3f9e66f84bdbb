/* Clients that request exchanges. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/file/export.h"
#include "daemon/torusd/planning/schedule_store.h"
#include "proto/sha256.h"
#include "tests/sim/internal.h"

static void on_ended(void *context, const struct exchange_result *result, const struct error *e)
{
    struct sim_request *r = context;
    size_t nodes = r->sim->torus.nodes;

    if (r->ended || (result == NULL) == (e == NULL))
        sim_violated(r->sim, "told once", "the client of %s is told something strange", r->id);
    sim_keep_id(r);
    r->ended = true;
    r->exchange = NULL;
    if (e != NULL) {
        r->error = *e;
        return;
    }
    struct exchange_node_report *node = sim_alloc(nodes * sizeof *node);
    for (uint32_t i = 0; i < result->nodes; i++)
        node[result->node[i].rank] = result->node[i];
    r->result = *result;
    r->result.node = node;
    if (result->gone != NULL) {
        bool *gone = sim_alloc(nodes * sizeof *gone);
        memcpy(gone, result->gone, nodes * sizeof *gone);
        r->result.gone = gone;
    }
    if (r->missing_in[0] != '\0' && strcmp(r->missing_in, r->id) == 0 &&
        r->missing != sim_missing_by_result(r))
        sim_violated(r->sim, "missing nodes",
                     "the client of %s is told of others than outputs show", r->id);
    (void)snprintf(r->algorithm, sizeof r->algorithm, "%s", result->algorithm);
    r->result.algorithm = r->algorithm;
    struct exchange_arrival *arrival = sim_alloc((result->arrivals + 1) * sizeof *arrival);
    for (uint32_t i = 0; i < result->arrivals; i++)
        arrival[i] = result->arrival[i];
    r->result.arrival = arrival;
    if (result->each == NULL)
        return;
    uint64_t *each = sim_alloc(result->repeat * sizeof *each);
    memcpy(each, result->each, result->repeat * sizeof *each);
    r->result.each = each;
}

struct sim_request *sim_exchange(struct sim *sim, uint32_t root, const struct spec *spec)
{
    struct sim_request *r = sim_alloc(sizeof *r);
    const struct exchange_client client = {r, on_ended, 1000 + root % 3}; /* several users */

    r->sim = sim;
    r->root = root;
    r->operation = spec->operation;
    r->sender = spec->sender;
    r->shrink = spec->shrink;
    (void)snprintf(r->from, sizeof r->from, "%s", spec->from != NULL ? spec->from : "");
    r->next = sim->requests;
    sim->requests = r;
    sim_enter(&sim->node[root]);
    r->exchange = exchange_start(sim_exchanges(sim, root), spec, &client, &r->error);
    sim_leave();
    if (r->exchange == NULL)
        r->ended = true;
    else
        (void)snprintf(r->id, sizeof r->id, "%s", exchange_id(r->exchange));
    sim_settle(&sim->node[root]);
    return r;
}

#define FILE_MOST (1u << 20)

/* Gives the schedule to the node, which keeps it as long as the result uses it. */
static struct schedule *give(struct sim *sim, uint32_t root, const char *text, size_t length,
                             char *digest)
{
    struct schedules *all = exchanges_schedules(sim_exchanges(sim, root));
    uint32_t have = 0;
    struct error e;

    sha256_text(text, length, digest);
    struct schedule *s = schedules_join(all, digest, 0, &e);
    while (s != NULL && have < length) {
        size_t part = length - have < FRAME_SCHEDULE_PART ? length - have : FRAME_SCHEDULE_PART;
        if (schedule_give(all, s, (uint32_t)length, have, (const uint8_t *)text + have, part, &have,
                          &e) != 0) {
            schedules_leave(all, s);
            return NULL;
        }
    }
    return s;
}

struct sim_request *sim_exchange_imported(struct sim *sim, uint32_t root, const struct spec *wanted)
{
    const struct algorithm *a = algorithm_find(wanted->algorithm);
    char digest[SHA256_TEXT_SIZE],
        *text = malloc(FILE_MOST); /* this memory is counted, unlike a memory stream's */
    struct spec spec = *wanted;
    struct sim_request *r;
    struct schedule *s;
    FILE *out = text != NULL ? fmemopen(text, FILE_MOST, "w") : NULL;

    if (out == NULL || schedule_export(out, sim_torus(sim), a, root % 2 == 0, NULL) != 0)
        abort();
    size_t length = (size_t)ftell(out);
    if (fclose(out) != 0 || length + 1 >= FILE_MOST)
        abort();
    sim_enter(&sim->node[root]);
    s = give(sim, root, text, length, digest);
    sim_leave();
    spec.algorithm = "";
    spec.schedule = digest;
    r = sim_exchange(sim, root, &spec);
    sim_enter(&sim->node[root]);
    if (s != NULL && sim_alive(sim, root)) /* the request may have crashed it */
        schedules_leave(exchanges_schedules(sim_exchanges(sim, root)), s);
    sim_leave();
    free(text);
    return r;
}

void sim_abandon(struct sim_request *r)
{
    struct job *x = r->exchange;

    if (x == NULL)
        return;
    sim_keep_id(r);
    r->exchange = NULL;
    sim_enter(&r->sim->node[r->root]);
    exchange_abandon(x);
    sim_leave();
    sim_settle(&r->sim->node[r->root]);
}

void sim_cancel(struct sim_request *r)
{
    if (r->exchange == NULL)
        return;
    sim_enter(&r->sim->node[r->root]);
    exchange_cancel(r->exchange);
    sim_leave();
    sim_settle(&r->sim->node[r->root]);
}

static bool request_ended(struct sim *sim, void *context)
{
    return ((struct sim_request *)context)->ended;
}

bool sim_run_until_ended(struct sim_request *r, uint64_t most)
{
    return sim_run(r->sim, most, request_ended, r);
}

static int compare_times(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

double sim_median_seconds(const struct sim_request *r)
{
    size_t count = r->result.repeat;
    uint64_t *each = calloc(count + 1, sizeof *each);

    if (each == NULL)
        abort();
    memcpy(each, r->result.each, count * sizeof *each);
    qsort(each, count, sizeof *each, compare_times);
    double median = (double)each[count / 2] / 1e9;
    free(each);
    return median;
}

/* Records of clients' requests. */

void sim_keep_id(struct sim_request *r)
{
    if (r->exchange != NULL)
        (void)snprintf(r->id, sizeof r->id, "%s", exchange_id(r->exchange));
}

struct sim_request *sim_request_by_id(struct sim *sim, const char *id)
{
    for (struct sim_request *r = sim->requests; r != NULL; r = r->next) {
        sim_keep_id(r);
        if (strcmp(r->id, id) == 0)
            return r;
    }
    return NULL;
}

uint64_t sim_missing_by_result(const struct sim_request *r)
{
    uint64_t missing = 0;

    for (uint32_t rank = 0; r->result.gone != NULL && rank < r->sim->torus.nodes; rank++)
        if (r->result.gone[rank])
            missing |= UINT64_C(1) << rank;
    return missing;
}

uint64_t sim_missing(const struct sim_request *r)
{
    if (r->ended && r->error.code == ERROR_NONE)
        return sim_missing_by_result(r);
    return strcmp(r->missing_in, r->id) == 0 ? r->missing : 0;
}

void sim_requests_lose_root(struct sim *sim, uint32_t root)
{
    for (struct sim_request *r = sim->requests; r != NULL; r = r->next)
        if (r->root == root) {
            sim_keep_id(r);
            r->exchange = NULL;
        }
}

void sim_requests_free(struct sim *sim)
{
    while (sim->requests != NULL) {
        struct sim_request *r = sim->requests;
        sim->requests = r->next;
        free((void *)(uintptr_t)r->result.node);
        free((void *)(uintptr_t)r->result.gone);
        free((void *)(uintptr_t)r->result.arrival);
        free((void *)(uintptr_t)r->result.each);
        free(r);
    }
}
