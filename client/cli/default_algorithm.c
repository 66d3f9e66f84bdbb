#include "client/cli/default_algorithm.h"

#include "client/cli/suggest.h"

const struct algorithm *default_algorithm(const struct torus *t, enum operation operation,
                                          struct error *e)
{
    static const char *const preferred[] = {"at2", "ar", "direct", "yangwang", "saadschultz"};
    char text[TORUS_TEXT_SIZE];

    for (size_t i = 0; i < sizeof preferred / sizeof preferred[0]; i++) {
        const struct algorithm *a = algorithm_find(preferred[i]);
        if (a != NULL && a->operation == operation_of_algorithms(operation) &&
            a->accepts(t, e) == 0)
            return a;
    }
    error_set(e, ERROR_REFUSED, "no algorithm takes a torus of %s", torus_format(t, text));
    return NULL;
}

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
