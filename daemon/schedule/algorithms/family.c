#include "daemon/schedule/algorithms/family.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/schedule/algorithms/cccube.h"
#include "proto/text.h"

enum { ALL_DEGREES = 128 }; /* up to this one every degree is tried */

static const struct family *const families[] = {&family_cccube};

/* A member that has been asked for. Never changed, and never freed: the list only grows at its
 * beginning. */
struct member {
    struct algorithm algorithm;
    struct member *next;
    char name[32];
    char summary[128];
};

static struct member *_Atomic members;

/* A number from 1 on, without leading zeros. */
static bool read_degree(const char *text, uint32_t *degree)
{
    *degree = 0;
    if (*text < '1' || *text > '9')
        return false;
    for (; *text >= '0' && *text <= '9' && *degree <= TORUS_MAX_NODES; text++)
        *degree = 10 * *degree + (uint32_t)(*text - '0');
    return *text == '\0' && *degree <= TORUS_MAX_NODES;
}

/* The family and degree in "<base>-q<degree>". */
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
    char text[TORUS_TEXT_SIZE];
    uint32_t degree;
    const struct family *f = parse(name, &degree);

    if (f == NULL)
        return 0;
    if (f->base->accepts(t, e) != 0)
        return -1;
    if (degree <= f->most(t))
        return 0;
    return error_set(e, ERROR_REFUSED, "%s is not possible on %s: at most %s-q%u", name,
                     torus_format(t, text), f->base->name, f->most(t));
}

static struct member *make(const struct family *f, uint32_t degree)
{
    struct member *m = calloc(1, sizeof *m);

    if (m == NULL)
        return NULL;
    m->algorithm = *f->base;
    m->algorithm.family = f;
    m->algorithm.degree = degree;
    m->algorithm.route = NULL;
    (void)snprintf(m->name, sizeof m->name, "%s-q%u", f->base->name, degree);
    (void)snprintf(m->summary, sizeof m->summary, "%s, in %u %s", f->summary, degree,
                   text_plural(degree, "packet", "packets"));
    m->algorithm.name = m->name;
    m->algorithm.summary = m->summary;
    m->algorithm.startups = f->startups;
    m->algorithm.transmission = f->transmission;
    return m;
}

static const struct algorithm *find(const struct member *first, const struct family *f,
                                    uint32_t degree)
{
    for (const struct member *m = first; m != NULL; m = m->next)
        if (m->algorithm.family == f && m->algorithm.degree == degree)
            return &m->algorithm;
    return NULL;
}

const struct algorithm *family_member(const char *name)
{
    struct member *first = atomic_load(&members), *m;
    const struct algorithm *found;
    uint32_t degree;
    const struct family *f = parse(name, &degree);

    if (f == NULL)
        return NULL;
    if (degree == 1)
        return f->base;
    found = find(first, f, degree);
    if (found != NULL)
        return found;
    m = make(f, degree);
    if (m == NULL)
        return NULL;
    do { /* another thread may be making the same one */
        found = find(first, f, degree);
        if (found != NULL) {
            free(m);
            return found;
        }
        m->next = first;
    } while (!atomic_compare_exchange_weak(&members, &first, m));
    return &m->algorithm;
}

size_t family_made_count(void)
{
    size_t count = 0;

    for (const struct member *m = atomic_load(&members); m != NULL; m = m->next)
        count++;
    return count;
}

const struct family *family_of_best(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strcmp(name, families[i]->best) == 0)
            return families[i];
    return NULL;
}

const struct algorithm *family_of_degree(const struct family *f, uint32_t degree)
{
    char name[32];

    if (degree <= 1)
        return f->base;
    (void)snprintf(name, sizeof name, "%s-q%u", f->base->name, degree);
    return algorithm_find(name);
}

uint32_t family_best(const struct family *f, const struct torus *t, family_price_fn *price,
                     void *context)
{
    uint32_t most = f->most(t), best = 1;
    double lowest = price(f, t, 1, context);

    for (uint32_t degree = 2; degree <= most; degree += degree < ALL_DEGREES ? 1 : degree) {
        double this = price(f, t, degree, context);
        if (this < lowest) {
            lowest = this;
            best = degree;
        }
    }
    return best;
}
