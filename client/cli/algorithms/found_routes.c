#include "client/cli/algorithms/found_routes.h"

#include <string.h>

bool found_is_name(const char *name, const struct torus *t)
{
    return !torus_is_plain(t) &&
           (strcmp(name, FOUND_NAME) == 0 || strcmp(name, FOUND_DISJOINT_NAME) == 0);
}

const struct algorithm *found_named(struct detour *found, const char *name, struct error *e)
{
    if (name != NULL && strcmp(name, FOUND_DISJOINT_NAME) == 0) {
        const struct algorithm *disjoint = detour_disjoint(found);
        if (disjoint == NULL)
            (void)error_set(e, ERROR_REFUSED,
                            FOUND_DISJOINT_NAME " finds trees on networks of up to %u nodes",
                            DETOUR_DISJOINT_MOST);
        return disjoint;
    }
    detour_find_bound(found);
    return detour_algorithm(found);
}

const struct algorithm *found_routes(const struct algorithm *a, const struct torus *t,
                                     struct detour **found, struct error *e)
{
    *found = NULL;
    if (!found_is_name(a->name, t))
        return a;
    if (detour_new_whole(found, t, e) != 0)
        return NULL;
    a = found_named(*found, a->name, e);
    if (a == NULL) {
        detour_free(*found);
        *found = NULL;
    }
    return a;
}
