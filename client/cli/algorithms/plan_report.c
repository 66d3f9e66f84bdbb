#include "client/cli/algorithms/plan_report.h"

#include "client/cli/terminal/json.h"
#include "client/theory/simulate.h"
#include "daemon/lib/schedule/detour/detour.h"

/* Converts a number of segments to blocks. */
static json_t *blocks(double segments, const struct algorithm *a)
{
    return json_number(segments / a->segments);
}

int plan_set_report(json_t *object, const struct algorithm *a, const struct schedule_report *r)
{
    return json_object_set_new(object, "startups", json_integer(r->startups)) |
           json_object_set_new(object, "transmission", blocks(r->transmission, a)) |
           json_object_set_new(object, "critical_path", blocks(r->critical_path, a)) |
           json_object_set_new(object, "bound", json_number(r->bound)) |
           json_object_set_new(object, "bound_of", json_string(algorithm_bound_name(a))) |
           json_object_set_new(object, "contended_steps", json_integer(r->contended_steps)) |
           json_object_set_new(object, "port_model_kept",
                               json_boolean(schedule_keeps_ports(a, r))) |
           json_object_set_new(object, "minimal", json_boolean(r->minimal));
}

int plan_set_found(json_t *object, const struct torus *t, const struct algorithm *a,
                   const struct schedule_report *report, struct error *e)
{
    const struct damage *damage = detour_damage(a->detour);
    double load = report->busiest / a->segments;
    char without[1024];
    uint64_t ticks;
    int r = 0;

    if (damage_format(damage, without, sizeof without)[0] != '\0')
        r |= json_object_set_new(object, "without", json_string(without));
    if (damage_format_rates(damage, without, sizeof without)[0] != '\0')
        r |= json_object_set_new(object, "rates", json_string(without));
    r |= json_object_set_new(object, "segments", json_integer(a->segments)) |
         json_object_set_new(object, "busiest", json_number(load)) |
         json_object_set_new(object, "bound", json_number(report->bound)) |
         json_object_set_new(object, "bound_of", json_string(algorithm_bound_name(a))) |
         json_object_set_new(object, "efficiency",
                             load > 0 ? json_real(report->bound / load) : json_null());
    if (a->operation == OPERATION_ALLGATHER)
        return r |
               json_object_set_new(object, "operation",
                                   json_string(schedule_operation_name(a->operation))) |
               json_object_set_new(object, "trees", json_integer(a->segments)) |
               json_object_set_new(object, "startups", json_integer(report->startups)) |
               json_object_set_new(object, "broadcast_bound",
                                   json_real(detour_broadcast_bound(a->detour)));
    if (simulate_stream(t, a, &ticks, e) == 0)
        r |= json_object_set_new(object, "streamed", json_number((double)ticks / a->segments));
    else if (e->code != ERROR_REFUSED) /* refused: too large to be simulated */
        r = -1;
    return r;
}

int plan_set_efficiency(json_t *object, const struct algorithm *a, const struct schedule_report *r)
{
    json_t *efficiency =
        r->transmission > 0 ? json_real(r->bound * a->segments / r->transmission) : json_null();
    return json_object_set_new(object, "efficiency", efficiency);
}

/* `away` is the distance of the other end of the leg in hops, through the port of the message. */
static json_t *message(const struct torus *t, uint32_t rank, const struct plan_message *m,
                       const char *does, uint32_t away)
{
    char name[TORUS_PORT_NAME_SIZE];
    uint32_t node =
        torus_walk(t, rank, torus_port_dim(t, m->port), torus_port_direction(t, m->port), away);
    json_t *o = json_object();
    int r = json_object_set_new(o, "step", json_integer(m->step)) |
            json_object_set_new(o, "does", json_string(does)) |
            json_object_set_new(o, "port", json_string(torus_port_name(t, rank, m->port, name))) |
            json_object_set_new(o, "node", json_integer(node)) |
            json_object_set_new(o, "hops", json_integer(m->hops)) |
            json_object_set_new(o, "blocks", json_integer(m->blocks));
    return json_checked(o, r);
}

static json_t *arrival(const struct torus *t, uint32_t rank, const struct plan_message *m)
{
    return message(t, rank, m, m->left > 0 ? "relays" : "receives", (uint32_t)(m->hops - m->left));
}

int plan_set_messages(json_t *object, const struct torus *t, const struct plan *p)
{
    json_t *list = json_array();
    uint32_t sent = 0, arrived = 0;
    int r = 0;

    for (uint32_t step = 0; step < p->steps; step++) {
        for (; sent < p->sends && p->send[sent].step == step; sent++)
            r |= json_array_append_new(
                list, message(t, p->rank, &p->send[sent], "sends", p->send[sent].hops));
        for (; arrived < p->arrivals && p->arrival[arrived].step == step; arrived++)
            r |= json_array_append_new(list, arrival(t, p->rank, &p->arrival[arrived]));
    }
    return r | json_object_set_new(object, "messages", list);
}
