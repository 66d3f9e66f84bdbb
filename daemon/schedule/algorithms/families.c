#include "daemon/schedule/algorithms/families.h"

#include <string.h>

#include "daemon/schedule/algorithms/cccube.h"

static const struct family *const families[] = {&family_cccube};

/* Reads a whole number of at least 1, without leading zeros. */
static bool read_degree(const char *text, uint32_t *degree)
{
    *degree = 0;
    if (*text < '1' || *text > '9')
        return false;
    for (; *text >= '0' && *text <= '9' && *degree <= TORUS_MAX_NODES; text++)
        *degree = 10 * *degree + (uint32_t)(*text - '0');
    return *text == '\0' && *degree <= TORUS_MAX_NODES;
}

/* Finds the family and degree in "<base>-q<degree>". */
static const struct family *parse(const char *name, uint32_t *degree)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const char *base = families[i]->base->name;
        size_t length = strlen(base);
        if (strncmp(name, base, length) == 0 && strncmp(name + length, "-q", 2) == 0 &&
            read_degree(name + length + 2, degree))
            return families[i];
    }
    return NULL;
}

int family_check(const char *name, const struct torus *t, struct error *e)
{
    uint32_t degree;
    const struct family *f = parse(name, &degree);

    return f == NULL ? 0 : family_accepts(f, degree, t, e);
}

const struct algorithm *family_member(const char *name)
{
    uint32_t degree;
    const struct family *f = parse(name, &degree);

    return f == NULL ? NULL : family_of_degree(f, degree);
}

const struct family *family_of_best(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strcmp(name, families[i]->best) == 0)
            return families[i];
    return NULL;
}
