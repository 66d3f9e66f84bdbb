#include "daemon/schedule/algorithm.h"

#include <stdio.h>
#include <string.h>

#include "daemon/schedule/algorithms/family.h"
#include "daemon/schedule/algorithms/registry.h"
#include "daemon/schedule/detour.h"
#include "daemon/schedule/imported.h"
#include "daemon/schedule/product.h"

#define ALGORITHM_ROW(identifier, name) &algorithm_##identifier,
#define ALGORITHM_NAME(identifier, name) ", " name

static const struct algorithm *const registry[] = {ALGORITHMS(ALGORITHM_ROW)};

size_t algorithm_count(void)
{
    return sizeof registry / sizeof registry[0];
}

const struct algorithm *algorithm_at(size_t index)
{
    return index < algorithm_count() ? registry[index] : NULL;
}

const struct algorithm *algorithm_find(const char *name)
{
    for (size_t i = 0; i < algorithm_count(); i++)
        if (strcmp(registry[i]->name, name) == 0)
            return registry[i];
    return family_member(name);
}

const char *algorithm_names(void)
{
    static const char names[] = ALGORITHMS(ALGORITHM_NAME);
    return names + strlen(", ");
}

const char *algorithm_names_for(enum operation operation, char *names)
{
    size_t used = 0;

    names[0] = '\0';
    for (size_t i = 0; i < algorithm_count() && used < ALGORITHM_NAMES_SIZE; i++)
        if (registry[i]->operation == operation_of_algorithms(operation))
            used += (size_t)snprintf(names + used, ALGORITHM_NAMES_SIZE - used, "%s%s",
                                     used == 0 ? "" : ", ", registry[i]->name);
    return names;
}

int algorithm_refuse(const struct algorithm *a, const struct torus *t, struct error *e)
{
    char text[TORUS_TEXT_SIZE];
    return error_set(e, ERROR_REFUSED, "%s takes %s, not %s", a->name, a->accepts_text,
                     torus_format(t, text));
}

int algorithm_accepts(const struct algorithm *a, const struct torus *t, struct error *e)
{
    return a->imported != NULL     ? imported_accepts(a->imported, t, e)
           : a->detour != NULL     ? detour_accepts(a->detour, t, e)
           : a->accepts(t, e) == 0 ? family_check(a->name, t, e)
                                   : -1;
}

uint32_t algorithm_max_legs(const struct algorithm *a, const struct torus *t)
{
    return a->imported != NULL ? imported_max_legs(a->imported)
           : a->detour != NULL ? detour_max_legs(a->detour, a->operation)
                               : a->max_legs(t);
}

void algorithm_period(const struct algorithm *a, const struct torus *t, uint32_t *period)
{
    if (a->imported != NULL)
        imported_period(a->imported, period);
    else if (a->detour != NULL)
        torus_no_period(t, period);
    else
        a->period(t, period);
}

uint32_t algorithm_route(const struct algorithm *a, const struct torus *t, uint32_t source,
                         uint32_t destination, uint32_t segment, struct leg *legs)
{
    if (a->imported != NULL)
        return imported_route(a->imported, source, destination, segment, legs);
    if (a->detour != NULL)
        return detour_route(a->detour, a->operation, source, destination, segment, legs);
    if (a->route == NULL)
        return a->family->route(t, a->degree, source, destination, legs);
    return a->route(t, source, destination, segment, legs);
}

const char *port_model_name(enum port_model model)
{
    switch (model) {
    case PORT_MODEL_ALL:
        return "all-port";
    case PORT_MODEL_ONE:
        return "one-port";
    }
    return "unknown";
}

const char *operation_name(enum operation operation)
{
    switch (operation) {
    case OPERATION_EXCHANGE:
        return "exchange";
    case OPERATION_ALLGATHER:
        return "allgather";
    case OPERATION_BROADCAST:
        return "broadcast";
    case OPERATION_GROUP:
        return "group";
    case OPERATION_BARRIER:
        return "barrier";
    }
    return "unknown";
}

double algorithm_bound(const struct algorithm *a, const struct torus *t)
{
    if (a->operation == OPERATION_ALLGATHER && a->segments == 1)
        return torus_bound_broadcast(t);
    if (a->operation == OPERATION_ALLGATHER) {
        uint64_t in = (uint64_t)(t->nodes - 1) * a->segments, links = torus_fewest_links(t);
        return links > 0 ? (double)(in / links + (in % links != 0)) / a->segments : 0;
    }
    if (a->detour != NULL)
        return detour_bound(a->detour);
    if (a->port_model == PORT_MODEL_ALL)
        return torus_bound_all_port(t);
    if (!a->single_hops)
        return torus_bound_one_port(t);
    struct product p = product_of_torus(t);
    return product_bound_single_hops(&p);
}

const char *algorithm_bound_name(const struct algorithm *a)
{
    if (a->operation == OPERATION_ALLGATHER)
        return "all-to-all broadcast, all-port";
    if (a->detour != NULL)
        return "all-port, what is in order";
    if (a->port_model == PORT_MODEL_ALL)
        return "all-port";
    return a->single_hops ? "one-port, single hops" : "one-port, cut-through";
}
