#include "tests/contract/graphs.h"

#include "tests/support/cmocka.h"

void assert_close(double a, double b)
{
    assert_true(a - b < 1e-9 && b - a < 1e-9);
}

struct product graph_parse(const char *text)
{
    struct product p;
    struct error e;
    assert_success(product_parse(&p, text, &e), e);
    return p;
}

bool graph_linked(const struct factor *f, uint32_t a, uint32_t b)
{
    switch (f->kind) {
    case FACTOR_RING:
        return (a + 1) % f->nodes == b || (b + 1) % f->nodes == a;
    case FACTOR_ARRAY:
        return a + 1 == b || b + 1 == a;
    case FACTOR_COMPLETE:
        return true;
    case FACTOR_GRAPH:
        return graph_distance(f->graph, a, b) == 1;
    }
    return false;
}

bool graph_adjacent(const struct product *p, uint32_t a, uint32_t b)
{
    unsigned differing = 0;
    bool all = true;
    for (unsigned i = p->dims; i-- > 0;) {
        uint32_t n = p->factor[i].nodes;
        if (a % n != b % n) {
            differing++;
            all = all && graph_linked(&p->factor[i], a % n, b % n);
        }
        a /= n;
        b /= n;
    }
    return differing == 1 && all;
}

uint32_t graph_moved(const struct product *p, uint32_t node, unsigned dim, int32_t stride)
{
    uint32_t below = 1, n = p->factor[dim].nodes;
    for (unsigned i = dim + 1; i < p->dims; i++)
        below *= p->factor[i].nodes;
    uint32_t at = node / below % n;
    uint32_t next = (uint32_t)(((int64_t)at + n + stride) % n);
    return node - at * below + next * below;
}
