#include "daemon/exchange/calibration.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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
        return error_set(e, ERROR_USAGE,
                         "costs out of range: %g s per step, %g s per message, %g bytes per second",
                         costs->step, costs->message, costs->bytes_per_second);
    return 0;
}

int calibration_check(const struct calibration *c, struct error *e)
{
    const struct predict_costs *costs = &c->costs;

    if (c->version == 0 || c->id == 0)
        return error_set(e, ERROR_PROTOCOL, "calibration without a version or an id");
    if (c->measured_at > CALIBRATION_TIME_MOST)
        return error_set(e, ERROR_PROTOCOL,
                         "calibration measured at %" PRIu64 " s, which cannot be", c->measured_at);
    if (c->measured_at == 0 &&
        (costs->step != 0 || costs->message != 0 || costs->bytes_per_second != 0))
        return error_set(e, ERROR_PROTOCOL, "calibration with costs that were not measured");
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

static bool names(const struct calibration *c, uint64_t id)
{
    for (unsigned i = 0; i < CALIBRATION_REPLACED && c->replaced[i] != 0; i++)
        if (c->replaced[i] == id)
            return true;
    return false;
}

/* What is named twice is dropped, and what there is no room for. */
static void name_too(struct calibration *c, uint64_t id)
{
    if (id == 0 || names(c, id))
        return;
    for (unsigned i = 0; i < CALIBRATION_REPLACED; i++)
        if (c->replaced[i] == 0) {
            c->replaced[i] = id;
            return;
        }
}

static void name_first(struct calibration *c, uint64_t id)
{
    unsigned i = 0;

    while (i < CALIBRATION_REPLACED - 1 && c->replaced[i] != 0 && c->replaced[i] != id)
        i++;
    memmove(c->replaced + 1, c->replaced, i * sizeof c->replaced[0]);
    c->replaced[0] = id;
}

/* Where neither replaces the other. */
static int order(const struct calibration *a, const struct calibration *b)
{
    int result;

    if (a->version != b->version)
        return a->version > b->version ? 1 : -1;
    if (a->measured_at != b->measured_at)
        return a->measured_at > b->measured_at ? 1 : -1;
    result = compare(a->costs.step, b->costs.step);
    if (result == 0)
        result = compare(a->costs.message, b->costs.message);
    if (result == 0)
        result = compare(a->costs.bytes_per_second, b->costs.bytes_per_second);
    if (result == 0)
        result = (a->id > b->id) - (a->id < b->id);
    return result;
}

bool calibration_newer(const struct calibration *a, const struct calibration *b)
{
    bool a_replaces = names(a, b->id), b_replaces = names(b, a->id);

    return a_replaces != b_replaces ? a_replaces : order(a, b) > 0;
}

struct calibration calibration_after(const struct calibration *known, uint64_t id)
{
    struct calibration c = {.id = id};

    c.version = known->version < UINT32_MAX ? known->version + 1 : UINT32_MAX;
    name_too(&c, known->id);
    for (unsigned i = 0; i < CALIBRATION_REPLACED; i++)
        name_too(&c, known->replaced[i]);
    return c;
}

/* The ids that have made a difference here come first: ids that somebody has invented cannot drive
 * them out. (Or calibrations that go round could replace each other for ever.) */
enum calibration_news calibration_merge(struct calibration *mine, const struct calibration *theirs)
{
    const struct calibration before = *mine;
    bool take = calibration_newer(theirs, mine), keep = calibration_newer(mine, theirs);

    if (take) {
        *mine = *theirs;
        memcpy(mine->replaced, before.replaced, sizeof mine->replaced);
    }
    for (unsigned i = 0; i < CALIBRATION_REPLACED; i++)
        name_too(mine, theirs->replaced[i]);
    if (take && names(theirs, before.id))
        name_first(mine, before.id);
    else if (keep && names(&before, theirs->id))
        name_first(mine, theirs->id);
    return take ? CALIBRATION_TAKEN : keep ? CALIBRATION_OUTDATED : CALIBRATION_SAME;
}

/* All digits of the numbers, so that what is read is what was written. */
size_t calibration_format(const struct calibration *c, char text[CALIBRATION_TEXT_SIZE])
{
    int length = snprintf(text, CALIBRATION_TEXT_SIZE,
                          "id %016" PRIx64 "\nversion %" PRIu32 "\nmeasured_at %" PRIu64 "\n"
                          "step_seconds %.17g\nmessage_seconds %.17g\nbytes_per_second %.17g\n"
                          "replaced",
                          c->id, c->version, c->measured_at, c->costs.step, c->costs.message,
                          c->costs.bytes_per_second);

    for (unsigned i = 0; i < CALIBRATION_REPLACED && c->replaced[i] != 0; i++)
        length += snprintf(text + length, CALIBRATION_TEXT_SIZE - (size_t)length, " %016" PRIx64,
                           c->replaced[i]);
    length += snprintf(text + length, CALIBRATION_TEXT_SIZE - (size_t)length, "\n");
    return (size_t)length;
}

int calibration_parse(const char *text, struct calibration *c)
{
    char again[CALIBRATION_TEXT_SIZE];
    int length = 0, more = 0;

    *c = (struct calibration){0};
    if (sscanf(text,
               "id %" SCNx64 " version %" SCNu32 " measured_at %" SCNu64 " step_seconds %lf"
               " message_seconds %lf bytes_per_second %lf replaced%n",
               &c->id, &c->version, &c->measured_at, &c->costs.step, &c->costs.message,
               &c->costs.bytes_per_second, &length) != 6 ||
        length == 0)
        return -1;
    for (unsigned i = 0; i < CALIBRATION_REPLACED; i++, length += more)
        if (sscanf(text + length, " %16" SCNx64 "%n", &c->replaced[i], &more) != 1)
            break;
    /* Whatever else is in it, or is not, it would not have been written like that. */
    (void)calibration_format(c, again);
    return strcmp(text, again) == 0 ? 0 : -1;
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

static void fill_head(struct exchanges *all, Peer__Calibration *body, Peer__Head *head)
{
    struct calibration *c = &all->calibration;

    body->id = c->id;
    body->version = c->version;
    while (body->n_replaced < CALIBRATION_REPLACED && c->replaced[body->n_replaced] != 0)
        body->n_replaced++;
    body->replaced = c->replaced;
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
        log_info("calibrated: %.3g us per step, %.3g us per message, %.4g Mbit/s",
                 c->costs.step * 1e6, c->costs.message * 1e6, c->costs.bytes_per_second * 8 / 1e6);
    else
        log_info("calibration reset: default costs from now on");
    if (storage->store_calibration != NULL)
        storage->store_calibration(storage->context, c);
    fill_head(all, &body, &head);
    router_flood(all->set.router, from, &head);
}

int exchanges_calibrate(struct exchanges *all, const struct predict_costs *costs,
                        uint64_t measured_at, struct error *e)
{
    struct calibration c;
    uint64_t id = 0;

    while (id == 0)
        router_random(all->set.router, &id, sizeof id);
    c = calibration_after(&all->calibration, id);
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
    Peer__Calibration body = PEER__CALIBRATION__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    struct calibration mine = all->calibration;
    struct calibration theirs = {
        .id = in->id,
        .version = in->version,
        .measured_at = in->measured_at,
        .costs = {.step = in->step_seconds,
                  .message = in->message_seconds,
                  .bytes_per_second = in->bytes_per_second},
    };

    if (calibration_check(&theirs, e) != 0)
        return -1;
    for (size_t i = 0; i < in->n_replaced; i++)
        name_too(&theirs, in->replaced[i]);
    switch (calibration_merge(&mine, &theirs)) {
    case CALIBRATION_SAME:
        all->calibration = mine;
        break;
    case CALIBRATION_TAKEN:
        take(all, &mine, (int)port);
        break;
    case CALIBRATION_OUTDATED:
        all->calibration = mine;
        fill_head(all, &body, &head);
        router_send(all->set.router, port, &head);
        break;
    }
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
