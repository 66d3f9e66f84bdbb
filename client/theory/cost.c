#include "client/theory/cost.h"

#include "client/theory/formula.h"
#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/verify.h"
#include "daemon/lib/schedule/work.h"

const struct cost_parameters cost_paragon = {.ts = 75, .tw = 0.011, .rho = 0.014, .tp = 0};

struct cost_time cost_price(const struct cost_counts *counts, const struct cost_parameters *p,
                            double block_bytes)
{
    double block = block_bytes * p->tw;
    struct cost_time time = {
        .startups = counts->startups * p->ts,
        .transmission = counts->transmission * block,
        .rearrangement = counts->rearranged * block_bytes * p->rho,
        .hops = counts->hops * p->tp,
    };
    if (counts->overlapped && p->tp > block) {
        time.transmission = counts->transmission * p->tp;
        time.hops = counts->hops * block;
    }
    time.total = time.startups + time.transmission + time.rearrangement + time.hops;
    return time;
}

const char *cost_origin_name(enum cost_origin from)
{
    switch (from) {
    case COST_ENUMERATED:
        return "enumeration";
    case COST_BY_FORMULA:
        return "formula";
    }
    return "unknown";
}

bool cost_can_enumerate(const struct torus *t, const struct algorithm *a)
{
    return work_of(t, a) <= WORK_QUICK;
}

int cost_enumerate(const struct torus *t, const struct algorithm *a, const struct damage *rates,
                   struct cost *c, struct error *e)
{
    struct schedule_report report;

    if (schedule_verify_rated(t, a, rates, &report, e) != 0)
        return -1;
    c->from = COST_ENUMERATED;
    c->critical_path = report.critical_path / a->segments;
    c->counts = (struct cost_counts){
        .startups = report.startups,
        .transmission = report.transmission / a->segments,
        .hops = (double)report.hops,
    };
    return 0;
}

static int too_large(const struct torus *t, const struct algorithm *a, const struct formula *f,
                     struct error *e)
{
    char text[TORUS_TEXT_SIZE];

    torus_format(t, text);
    if (f == NULL)
        return error_set(
            e, ERROR_REFUSED,
            "%s has too many different routes on %s to count, and there is no formula for it",
            a->name, text);
    return error_set(
        e, ERROR_REFUSED,
        "%s has too many different routes on %s to count, and its formula only covers %s", a->name,
        text, f->covers_text);
}

int cost_find(const struct torus *t, const char *name, const struct damage *rates, struct cost *c,
              struct error *e)
{
    const struct algorithm *a = algorithm_find(name);
    const struct formula *f = formula_find(name);

    *c = (struct cost){.from = COST_BY_FORMULA};
    if (a == NULL && f == NULL)
        return error_set(e, ERROR_USAGE, "unknown algorithm '%.40s'", name);
    if (a != NULL && algorithm_accepts(a, t, e) != 0) {
        if (rates != NULL || f == NULL || formula_counts(f, t, &c->formula, NULL) != 0)
            return -1;
        a = NULL; /* the formula is for more networks than the schedule */
    }
    if (rates != NULL && a == NULL)
        return error_set(e, ERROR_REFUSED, "the formula for %s is for links of one rate", name);
    c->has_formula = rates == NULL && f != NULL && formula_counts(f, t, &c->formula, e) == 0;
    if (rates == NULL && f == NULL && a->family != NULL) {
        c->has_formula = true;
        c->formula = a->family->counts(a->family, t, a->degree);
    }
    if (a != NULL && cost_can_enumerate(t, a)) {
        if (cost_enumerate(t, a, rates, c, e) != 0)
            return -1;
        if (f != NULL)
            c->counts.rearranged = f->counts(t).rearranged;
        return 0;
    }
    if (!c->has_formula)
        return a != NULL ? too_large(t, a, f, e) : -1;
    c->counts = c->formula;
    return 0;
}
