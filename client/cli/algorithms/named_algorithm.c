#include "client/cli/algorithms/named_algorithm.h"

#include <stdio.h>
#include <string.h>
#include <torus/torus.h>

#include "client/theory/formula.h"
#include "daemon/lib/command_line/options.h"
#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"

const struct algorithm *named_algorithm(const char *name, const enum schedule_operation *operation,
                                        struct error *e)
{
    const struct algorithm *a = algorithm_find(name);
    struct suggestion s = {.word = name};
    char names[ALGORITHM_NAMES_SIZE];

    if (a != NULL)
        return a;
    if (family_of_best(name) != NULL) {
        error_set(e, ERROR_USAGE,
                  "%s stands for different algorithms, depending on the size of the blocks: "
                  "'torusctl predict --algorithm %s --block-size SIZE' shows which one",
                  name, name);
        return NULL;
    }
    for (size_t i = 0; i < algorithm_count(); i++)
        if (operation == NULL ||
            algorithm_at(i)->operation == schedule_operation_of_algorithms(*operation))
            suggest(&s, algorithm_at(i)->name);
    error_set(e, ERROR_USAGE, "unknown algorithm '%.40s'%s%s%s; known are: %s", name,
              s.best != NULL ? " (did you mean " : "", s.best != NULL ? s.best : "",
              s.best != NULL ? "?)" : "",
              operation == NULL ? algorithm_names() : algorithm_names_for(*operation, names));
    return NULL;
}

bool has_q(const char *name)
{
    const struct algorithm *a = algorithm_find(name);

    return a != NULL && a->family != NULL && a == a->family->base;
}

const char *spelled_algorithm(const char *name, const char *q, struct error *e)
{
    char spelled[32];
    const char *given = name != NULL ? name : TORUS_AUTO;
    const struct algorithm *a = algorithm_find(given);
    const struct family *best = family_of_best(given), *f = a != NULL ? a->family : best;

    bool is_known =
        f != NULL || a != NULL || formula_find(given) != NULL || strcmp(given, TORUS_AUTO) == 0;

    if (q == NULL || !is_known)
        return name;
    if (f == NULL)
        (void)error_set(e, ERROR_USAGE,
                        "--q is for algorithms that run in any number of packets: it requires "
                        "--algorithm cccube");
    else if (!has_q(given))
        (void)error_set(e, ERROR_USAGE,
                        "--q: %s has the number of packets in its name: give --algorithm %s, or "
                        "omit --q",
                        given, f->base->name);
    else if (strcmp(q, "best") == 0)
        return f->best;
    else if ((size_t)snprintf(spelled, sizeof spelled, "%s-q%s", given, q) < sizeof spelled &&
             algorithm_find(spelled) != NULL)
        return algorithm_find(spelled)->name;
    else
        (void)error_set(e, ERROR_USAGE,
                        "--q: '%.40s' is not a number of packets from 1 to %u, or best", q,
                        TORUS_MAX_NODES);
    return NULL;
}

bool leaves_choice(const char *name)
{
    return strcmp(name, TORUS_AUTO) == 0 || family_of_best(name) != NULL;
}

const char *requested_algorithm(const char *name, enum schedule_operation operation,
                                struct error *e)
{
    const struct family *f = family_of_best(name);
    const struct algorithm *a;

    if (strcmp(name, TORUS_AUTO) == 0)
        return TORUS_AUTO;
    if (f != NULL && f->base->operation == schedule_operation_of_algorithms(operation))
        return f->best;
    a = named_algorithm(f != NULL ? f->base->name : name, &operation, e);
    return a != NULL ? a->name : NULL;
}

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

int daemon_torus_of_status(const struct torus_status *status, struct torus *t, struct error *e)
{
    for (size_t i = 0; i < status->graph_count; i++)
        if (graph_of_edges(status->graphs[i]->edges, status->graphs[i]->number_count / 2, e) ==
            NULL)
            return -1;
    if (torus_parse_named(t, status->dims, e) == 0)
        return 0;
    e->code = ERROR_PROTOCOL;
    return error_wrap(e, "the daemon's dimensions are invalid");
}

int daemon_torus_parse(const struct cli *cli, const char *dims, struct torus *t)
{
    struct torus_status *status;
    struct torus_error failed;
    struct error e;

    if (strstr(dims, "graph:") != NULL && torus_parse_named(t, dims, NULL) != 0) {
        if (torus_client_status(cli->client, &status, &failed) != 0)
            return cli_fail_client(cli, &failed);
        (void)daemon_torus_of_status(status, t, &e); /* an error shows below */
        torus_status_free(status);
    }
    if (torus_parse_named(t, dims, &e) == 0)
        return EXIT_DONE;
    e.code = ERROR_PROTOCOL;
    (void)error_wrap(&e, "the daemon's dimensions are invalid");
    return cli_fail(cli, &e);
}
