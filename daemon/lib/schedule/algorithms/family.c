#include "daemon/lib/schedule/algorithms/family.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

enum { ALL_DEGREES = 128 }; /* every degree up to this one is tried */

/* A member in the list of all that have been asked for. Never changed and never freed: the list
 * only grows at its beginning, and is read without a lock. */
struct member {
    struct algorithm algorithm;
    struct member *next;
    char name[32];
    char summary[192];
};

static struct member *_Atomic members;

static struct member first_members[FAMILY_NEED_NO_MEMORY];
static atomic_uint first_members_used;

int family_accepts(const struct family *f, uint32_t degree, const struct torus *t, struct error *e)
{
    char text[TORUS_TEXT_SIZE];

    if (!f->base->takes(t))
        return algorithm_refuse(f->base, t, e);
    if (degree <= f->most(f, t))
        return 0;
    return error_set(e, ERROR_REFUSED, "%s-q%u is not possible on %s: at most %s-q%u",
                     f->base->name, degree, torus_format(t, text), f->base->name, f->most(f, t));
}

static int member_accepts(const struct algorithm *a, const struct torus *t, struct error *e)
{
    if (!a->family->base->takes(t))
        return algorithm_refuse(a, t, e);
    return family_accepts(a->family, a->degree, t, e);
}

static uint32_t member_route(const struct algorithm *a, const struct torus *t, uint32_t source,
                             uint32_t destination, uint32_t segment, struct leg *legs)
{
    (void)segment;
    return a->family->route(a->family, t, a->degree, source, destination, legs);
}

const struct algorithm_methods family_methods = {.accepts = member_accepts, .route = member_route};

static struct member *new_member(void)
{
    if (atomic_load(&first_members_used) < FAMILY_NEED_NO_MEMORY) {
        unsigned i = atomic_fetch_add(&first_members_used, 1);
        if (i < FAMILY_NEED_NO_MEMORY)
            return &first_members[i];
    }
    return calloc(1, sizeof(struct member));
}

/* Frees a member that another thread made at the same time. If it is one of first_members, its
 * place stays used. */
static void free_member(struct member *m)
{
    if (m < first_members || m >= first_members + FAMILY_NEED_NO_MEMORY)
        free(m);
}

static struct member *make(const struct family *f, uint32_t degree)
{
    struct member *m = new_member();

    if (m == NULL)
        return NULL;
    m->algorithm = *f->base;
    m->algorithm.methods = &family_methods;
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

const struct algorithm *family_of_degree(const struct family *f, uint32_t degree)
{
    struct member *first = atomic_load(&members), *m;
    const struct algorithm *found;

    if (degree == 1)
        return f->base;
    found = find(first, f, degree);
    if (found != NULL)
        return found;
    m = make(f, degree);
    if (m == NULL)
        return NULL;
    do { /* another thread may be making the same member */
        found = find(first, f, degree);
        if (found != NULL) {
            free_member(m);
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

uint32_t family_best(const struct family *f, const struct torus *t, family_price_fn *price,
                     void *context)
{
    uint32_t most = f->most(f, t), best = 1;
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
