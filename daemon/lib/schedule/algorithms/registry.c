#include "daemon/lib/schedule/algorithms/registry.h"

#include <stdio.h>
#include <string.h>
#include <threads.h>

#include "daemon/lib/schedule/algorithms/family.h"

#define ALGORITHM_ROW(identifier, name) {&algorithm_##identifier, 1},
#define MEMBER_ROW(base, name, degree) {&algorithm_##base, degree},
#define ALGORITHM_NAME(identifier, name) ", " name
#define MEMBER_NAME(base, name, degree) ", " name

static const struct {
    const struct algorithm *base;
    uint32_t degree; /* 1: the base itself; otherwise a member of its family */
} rows[] = {ALGORITHMS(ALGORITHM_ROW, MEMBER_ROW)};

#define ROWS (sizeof rows / sizeof rows[0])

static const struct algorithm *registry[ROWS];

static void fill_registry(void)
{
    for (size_t i = 0; i < ROWS; i++)
        registry[i] = rows[i].degree == 1 ? rows[i].base
                                          : family_of_degree(rows[i].base->family, rows[i].degree);
}

size_t algorithm_count(void)
{
    return ROWS;
}

const struct algorithm *algorithm_at(size_t index)
{
    static once_flag filled = ONCE_FLAG_INIT;

    call_once(&filled, fill_registry);
    return index < ROWS ? registry[index] : NULL;
}

bool algorithm_is_listed(const struct algorithm *a)
{
    for (size_t i = 0; i < ROWS; i++)
        if (algorithm_at(i) == a)
            return true;
    return false;
}

const struct algorithm *algorithm_find(const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(algorithm_at(i)->name, name) == 0)
            return algorithm_at(i);
    const struct algorithm *found = dim_with_ports(name);
    return found != NULL ? found : family_member(name);
}

const char *algorithm_names(void)
{
    static const char names[] = ALGORITHMS(ALGORITHM_NAME, MEMBER_NAME);
    return names + strlen(", ");
}

const char *algorithm_names_for(enum schedule_operation operation, char *names)
{
    size_t used = 0;

    names[0] = '\0';
    for (size_t i = 0; i < ROWS && used < ALGORITHM_NAMES_SIZE; i++)
        if (algorithm_at(i)->operation == schedule_operation_of_algorithms(operation))
            used += (size_t)snprintf(names + used, ALGORITHM_NAMES_SIZE - used, "%s%s",
                                     used == 0 ? "" : ", ", algorithm_at(i)->name);
    return names;
}
