#include "client/cli/named_algorithm.h"

#include "client/cli/suggest.h"

const struct algorithm *named_algorithm(const char *name, const enum operation *operation,
                                        struct error *e)
{
    const struct algorithm *a = algorithm_find(name);
    struct suggestion s = {.word = name};
    char names[ALGORITHM_NAMES_SIZE];

    if (a != NULL)
        return a;
    for (size_t i = 0; i < algorithm_count(); i++)
        if (operation == NULL || algorithm_at(i)->operation == operation_of_algorithms(*operation))
            suggest(&s, algorithm_at(i)->name);
    error_set(e, ERROR_USAGE, "unknown algorithm '%.40s'%s%s%s; known are: %s", name,
              s.best != NULL ? " (did you mean " : "", s.best != NULL ? s.best : "",
              s.best != NULL ? "?)" : "",
              operation == NULL ? algorithm_names() : algorithm_names_for(*operation, names));
    return NULL;
}
