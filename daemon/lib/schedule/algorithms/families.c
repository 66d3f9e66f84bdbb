#include "daemon/lib/schedule/algorithms/families.h"

#include <string.h>

#include "daemon/lib/schedule/algorithms/cccube.h"

#define FAMILIES (1 + CCCUBE_PORTS_MOST)

static const struct family *family_at(size_t i)
{
    return i == 0 ? &family_cccube : &family_cccube_ports[i - 1];
}

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

/* Finds the family and degree in "<base>-q<degree>". A base that is not in the registry is found here, too. */
static const struct family *parse(const char *name, uint32_t *degree)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        const char *base = family_at(i)->base->name;
        size_t length = strlen(base);
        *degree = 1;
        if (i > 0 && strcmp(name, base) == 0)
            return family_at(i);
        if (strncmp(name, base, length) == 0 && strncmp(name + length, "-q", 2) == 0 &&
            read_degree(name + length + 2, degree))
            return family_at(i);
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
    for (size_t i = 0; i < FAMILIES; i++)
        if (strcmp(name, family_at(i)->best) == 0)
            return family_at(i);
    return NULL;
}
