/* suh-shin: the counts of Suh and Shin's algorithm that Liu, Gu, Bi, Tu, Dong: Optimal All-to-All Personalized Communication
 * in All-Port Tori print in Table II. tests/support/rivals.py has the rule once more, node by node. */
#include "client/theory/formula.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

TEST(every_rectangle)
{
    contract_every_rectangle("suh-shin", LARGEST / 4 * LARGEST / 4);
}

TEST(is_table_two)
{
    static const char *const tori[] = {"4x4", "8x8", "8x12", "12x8", "4x16", "16x16", "32x32"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        const struct torus t = contract_torus(tori[i]);
        const struct schedule_report r = contract_verify(&t, "suh-shin");
        struct cost_counts formula;
        assert_int_equal(formula_counts(formula_find("suh-shin"), &t, &formula, NULL), 0);
        assert_true(r.startups == formula.startups && r.transmission == formula.transmission);
        assert_int_equal(r.contended_steps, 0);
        assert_true(r.one_port_kept);
    }
}
