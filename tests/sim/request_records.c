/* Records of clients' requests. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/internal.h"

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
