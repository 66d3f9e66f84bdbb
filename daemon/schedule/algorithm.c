#include "daemon/schedule/algorithm.h"

#include <string.h>

#include "daemon/schedule/registry.h"

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
    return NULL;
}

const char *algorithm_names(void)
{
    static const char names[] = ALGORITHMS(ALGORITHM_NAME);
    return names + strlen(", ");
}

int algorithm_refuse(const struct algorithm *a, const struct torus *t, struct error *e)
{
    char text[TORUS_TEXT_SIZE];
    return error_set(e, ERROR_REFUSED, "%s takes %s, not %s", a->name, a->accepts_text,
                     torus_format(t, text));
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
    case OPERATION_BARRIER:
        return "barrier";
    }
    return "unknown";
}

double algorithm_bound(const struct algorithm *a, const struct torus *t)
{
    if (a->operation == OPERATION_ALLGATHER)
        return torus_bound_broadcast(t);
    return a->port_model == PORT_MODEL_ONE ? torus_bound_one_port(t) : torus_bound_all_port(t);
}
