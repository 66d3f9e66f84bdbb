#include "daemon/torusd/exchange/link_costs.h"

#include "daemon/lib/base/log.h"
#include "daemon/lib/schedule/predict.h"
#include "daemon/torusd/exchange/attempt.h"
#include "daemon/torusd/exchange/job.h"

const struct calibration *exchanges_calibration(const struct exchanges *exchanges)
{
    return &exchanges->calibration;
}

struct predict_costs exchanges_costs(const struct exchanges *exchanges)
{
    const struct exchanges_setup *set = &exchanges->set;
    struct predict_costs costs =
        exchanges->calibration.measured_at != 0
            ? exchanges->calibration.costs
            : predict_default_costs(set->link_mbit, set->daemons_per_processor);

    costs.burst = set->link_burst;
    costs.frame = predict_frame(set->link_mbit, set->daemons_per_processor, set->link_burst);
    return costs;
}

const uint32_t *exchanges_relayed_frames(const struct exchanges *exchanges)
{
    return exchanges->relayed;
}

void exchanges_rates_changed(struct exchanges *exchanges, double link_mbit)
{
    const struct exchanges_setup *set = &exchanges->set;
    struct port_rates rates;

    exchanges->set.link_mbit = link_mbit;
    for (unsigned port = 0; port < torus_ports(router_torus(set->router)); port++) {
        router_port_rates(set->router, port, &rates);
        exchanges->relayed[port] =
            relay_frame(rates.nominal.send, set->daemons_per_processor, set->link_burst);
    }
}

static struct peer_message message_of(const struct calibration *c)
{
    size_t replaced = 0;

    while (replaced < CALIBRATION_REPLACED && c->replaced[replaced] != 0)
        replaced++;
    return (struct peer_message){.kind = PEER_CALIBRATION,
                                 .calibration = {.version = c->version,
                                                 .measured_at = c->measured_at,
                                                 .step_seconds = c->costs.step,
                                                 .message_seconds = c->costs.message,
                                                 .bytes_per_second = c->costs.bytes_per_second,
                                                 .id = c->id,
                                                 .n_replaced = replaced,
                                                 .replaced = c->replaced}};
}

/* Uses this calibration from now on, and tells all neighbours except the one it came from (-1: none). */
static void use_calibration(struct exchanges *exchanges, const struct calibration *c, int from)
{
    const struct storage *storage = exchanges->set.storage;

    exchanges->calibration = *c;
    if (c->measured_at != 0)
        log_info("calibrated: %.3g us per step, %.3g us per message, %.4g Mbit/s",
                 c->costs.step * 1e6, c->costs.message * 1e6, c->costs.bytes_per_second * 8 / 1e6);
    else
        log_info("calibration reset: default costs from now on");
    if (storage->store_calibration != NULL)
        storage->store_calibration(storage->context, c);
    const struct peer_message message = message_of(&exchanges->calibration);
    router_flood(exchanges->set.router, from, &message);
}

int exchanges_calibrate(struct exchanges *exchanges, const struct predict_costs *costs,
                        uint64_t measured_at, struct error *e)
{
    struct calibration c;
    uint64_t id = 0;

    while (id == 0)
        router_random(exchanges->set.router, &id, sizeof id);
    c = calibration_after(&exchanges->calibration, id);
    if (costs != NULL) {
        if (calibration_check_costs(costs, e) != 0)
            return -1;
        c.costs = *costs;
        c.measured_at = measured_at > 0 ? measured_at : 1;
    }
    if (calibration_check(&c, e) != 0)
        return -1;
    use_calibration(exchanges, &c, -1);
    return 0;
}

int link_costs_heard(struct exchanges *exchanges, unsigned port, const struct peer_calibration *in,
                     struct error *e)
{
    struct peer_message answer;
    struct calibration mine = exchanges->calibration;
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
        calibration_replaces(&theirs, in->replaced[i]);
    switch (calibration_merge(&mine, &theirs)) {
    case CALIBRATION_SAME:
        exchanges->calibration = mine;
        break;
    case CALIBRATION_TAKEN:
        use_calibration(exchanges, &mine, (int)port);
        break;
    case CALIBRATION_OUTDATED:
        exchanges->calibration = mine;
        answer = message_of(&mine);
        router_send(exchanges->set.router, port, &answer);
        break;
    }
    return 0;
}

void link_costs_topology(struct exchanges *exchanges)
{
    struct router *router = exchanges->set.router;
    uint32_t up = router_topology(router)->entry[router_rank(router)].up;
    const struct peer_message message = message_of(&exchanges->calibration);

    for (unsigned port = 0; port < TORUS_MAX_PORTS && exchanges->calibration.version > 0; port++)
        if ((up & ~exchanges->calibration_told & 1u << port) != 0)
            router_send(router, port, &message);
    exchanges->calibration_told = up;
}

void link_costs_load(struct exchanges *exchanges)
{
    const struct storage *storage = exchanges->set.storage;
    struct calibration c;
    struct error e;
    int found;

    if (storage->load_calibration == NULL)
        return;
    found = storage->load_calibration(storage->context, &c, &e);
    if (found > 0)
        found = calibration_check(&c, &e) == 0 ? 1 : -1;
    if (found > 0)
        exchanges->calibration = c;
    else if (found < 0)
        log_warning("the stored calibration is ignored: %s", e.text);
}
