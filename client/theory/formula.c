#include "client/theory/formula.h"

#include <string.h>

#include "client/theory/formula_rows.h"

#define FORMULA_ROW(name) &formula_##name,

static const struct formula *const rows[] = {FORMULAS(FORMULA_ROW)};

size_t formula_count(void)
{
    return sizeof rows / sizeof rows[0];
}

const struct formula *formula_at(size_t index)
{
    return index < formula_count() ? rows[index] : NULL;
}

const struct formula *formula_find(const char *algorithm)
{
    for (size_t i = 0; i < formula_count(); i++)
        if (strcmp(rows[i]->algorithm, algorithm) == 0)
            return rows[i];
    return NULL;
}

int formula_counts(const struct formula *f, const struct torus *t, struct cost_counts *c,
                   struct error *e)
{
    char text[TORUS_TEXT_SIZE];

    if (!f->covers(t))
        return error_set(e, ERROR_REFUSED, "the formula of %s covers %s, not %s", f->algorithm,
                         f->covers_text, torus_format(t, text));
    *c = f->counts(t);
    if (f->rearrange != NULL)
        c->rearranged = f->rearrange(t);
    return 0;
}
