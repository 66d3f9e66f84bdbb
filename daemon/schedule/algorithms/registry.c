#include "daemon/schedule/algorithms/registry.h"

#include <stdio.h>
#include <string.h>

#include "daemon/schedule/algorithms/families.h"
#include "daemon/schedule/algorithms/rows.h"

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
