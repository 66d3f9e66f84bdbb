#include "daemon/exchange/calibration.h"

#include <math.h>

#include "daemon/base/log.h"
#include "daemon/exchange/internal.h"

/* No link, processor or clock is beyond these. */
#define STEP_MOST 60.0
#define MESSAGE_MOST 60.0
#define RATE_LEAST 1.0
#define RATE_MOST 1e14

static bool within(double value, double least, double most)
{
    return isfinite(value) && value >= least && value <= most;
}

int calibration_check_costs(const struct predict_costs *costs, struct error *e)
{
    if (!within(costs->step, 0, STEP_MOST) || !within(costs->message, 0, MESSAGE_MOST) ||
        !within(costs->bytes_per_second, RATE_LEAST, RATE_MOST))
        return error_set(e, ERROR_USAGE, "no costs: %g s a step, %g s a message, %g bytes a second",
                         costs->step, costs->message, costs->bytes_per_second);
    return 0;
}

int calibration_check(const struct calibration *c, struct error *e)
{
    const struct predict_costs *costs = &c->costs;

    /* Above the last version there would be no newer one. */
    if (c->version == 0 || c->version == UINT32_MAX || c->measured_at > CALIBRATION_TIME_MOST)
        return error_set(e, ERROR_PROTOCOL, "no calibration: version %u", c->version);
    if (c->measured_at == 0 &&
        (costs->step != 0 || costs->message != 0 || costs->bytes_per_second != 0))
        return error_set(e, ERROR_PROTOCOL, "no calibration: costs, but not measured");
    if (c->measured_at != 0 && calibration_check_costs(costs, e) != 0) {
        e->code = ERROR_PROTOCOL;
        return -1;
    }
    return 0;
}

static int compare(double a, double b)
{
    return (a > b) - (a < b);
}

bool calibration_newer(const struct calibration *a, const struct calibration *b)
{
    int order;

    if (a->version != b->version)
        return a->version > b->version;
    if (a->measured_at != b->measured_at)
        return a->measured_at > b->measured_at;
    order = compare(a->costs.step, b->costs.step);
    if (order == 0)
        order = compare(a->costs.message, b->costs.message);
    if (order == 0)
        order = compare(a->costs.bytes_per_second, b->costs.bytes_per_second);
    return order > 0;
}

const struct calibration *exchanges_calibration(const struct exchanges *all)
{
    return &all->calibration;
}

struct predict_costs exchanges_costs(const struct exchanges *all)
{
    return all->calibration.measured_at != 0
               ? all->calibration.costs
               : predict_default_costs(all->set.link_mbit, all->set.daemons_per_processor);
}

static void fill_head(const struct exchanges *all, Peer__Calibration *body, Peer__Head *head)
{
    const struct calibration *c = &all->calibration;

    body->version = c->version;
    body->measured_at = c->measured_at;
    body->step_seconds = c->costs.step;
    body->message_seconds = c->costs.message;
    body->bytes_per_second = c->costs.bytes_per_second;
    head->kind_case = PEER__HEAD__KIND_CALIBRATION;
    head->calibration = body;
}

/* From here on this one; on to the neighbours, but the one that has told us (-1: none). */
static void take(struct exchanges *all, const struct calibration *c, int from)
{
    const struct storage *storage = all->set.storage;
    Peer__Calibration body = PEER__CALIBRATION__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    all->calibration = *c;
    if (c->measured_at != 0)
        log_info("calibrated: %.3g us a step, %.3g us a message, %.4g Mbit/s", c->costs.step * 1e6,
                 c->costs.message * 1e6, c->costs.bytes_per_second * 8 / 1e6);
    else
        log_info("calibration taken back: default costs");
    if (storage->store_calibration != NULL)
        storage->store_calibration(storage->context, c);
    fill_head(all, &body, &head);
    router_flood(all->set.router, from, &head);
}

int exchanges_calibrate(struct exchanges *all, const struct predict_costs *costs,
                        uint64_t measured_at, struct error *e)
{
    struct calibration c = {.version = all->calibration.version + 1};

    if (costs != NULL) {
        if (calibration_check_costs(costs, e) != 0)
            return -1;
        c.costs = *costs;
        c.measured_at = measured_at > 0 ? measured_at : 1;
    }
    if (calibration_check(&c, e) != 0)
        return -1;
    take(all, &c, -1);
    return 0;
}

int calibration_heard(struct exchanges *all, unsigned port, const Peer__Calibration *in,
                      struct error *e)
{
    const struct calibration c = {
        .version = in->version,
        .measured_at = in->measured_at,
        .costs = {.step = in->step_seconds,
                  .message = in->message_seconds,
                  .bytes_per_second = in->bytes_per_second},
    };

    if (calibration_check(&c, e) != 0)
        return -1;
    /* Who has an older one is told ours when the link comes up, or was on its way to us then. */
    if (calibration_newer(&c, &all->calibration))
        take(all, &c, (int)port);
    return 0;
}

void calibration_topology(struct exchanges *all)
{
    struct router *router = all->set.router;
    uint32_t up = router_topology(router)->entry[router_rank(router)].up;
    Peer__Calibration body = PEER__CALIBRATION__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    fill_head(all, &body, &head);
    for (unsigned port = 0; port < TORUS_MAX_PORTS && all->calibration.version > 0; port++)
        if ((up & ~all->calibration_told & 1u << port) != 0)
            router_send(router, port, &head);
    all->calibration_told = up;
}

void calibration_load(struct exchanges *all)
{
    const struct storage *storage = all->set.storage;
    struct calibration c;
    struct error e;
    int found;

    if (storage->load_calibration == NULL)
        return;
    found = storage->load_calibration(storage->context, &c, &e);
    if (found > 0)
        found = calibration_check(&c, &e) == 0 ? 1 : -1;
    if (found > 0)
        all->calibration = c;
    else if (found < 0)
        log_warning("the stored calibration is ignored: %s", e.text);
}
