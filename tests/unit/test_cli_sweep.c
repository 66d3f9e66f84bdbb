/* torusctl sweep: the tori of a range, the counts, and fits of counts that are known in closed form. */
#include "tests/support/cmocka.h"
#include "tests/unit/json_expect.h"
#include "tests/unit/run_cli.h"

static void answers(const char *command, const char *wanted)
{
    json_t *value = run_cli_json(command);

    json_expect(value, wanted);
    json_decref(value);
}

static void refuses(const char *command, const char *says)
{
    assert_int_equal(run_cli(command), 2);
    assert_contains(run_cli_output, says);
}

TEST(ranges)
{
    answers("sweep --dims 4x4..64x64 --algorithms stream",
            "torus_count=5 complete=true over=side results=#5 results.4.node_count=4096 "
            "results.3.dims.1=32 results.4.transmission=32768");
    answers("sweep --dims 4x4..15x15 --step 4 --algorithms stream",
            "torus_count=3 results.2.node_count=144");
    answers("sweep --dims 4x4..4x20 --step 8 --algorithms stream",
            "torus_count=3 over=nodes results.2.node_count=80 results.2.dims.0=4");
    answers("sweep --dims 4m..16m,7,complete:5 --algorithms a2",
            "torus_count=5 results.0.wrap.0=false results.3.node_count=7 "
            "results.4.network=complete:5 results.4.transmission=4");
}

TEST(refusals)
{
    refuses("sweep", "--dims is missing");
    refuses("sweep --dims 4x4..8", "as many dimensions");
    refuses("sweep --dims 4x4..8x8m", "as many dimensions");
    refuses("sweep --dims 8x8..4x4", "the smaller one first");
    refuses("sweep --dims 4..", "--dims");
    refuses("sweep --dims 1..1000 --step 1", "more than 256 tori");
    refuses("sweep --dims 4..8 --step 0", "would be the same");
    refuses("sweep --dims 4..8 --algorithms at3", "did you mean at2");
    refuses("sweep --dims 4..8 --algorithms ar,ar", "given twice");
    refuses("sweep --dims 4..8 --csv --json", "one or the other");
}

/* The formulas of the papers, and of 'torusctl algorithms'. */
TEST(closed_forms)
{
    answers("sweep --dims 4x4..24x24 --step 4 --algorithms at2,a2,a1,dim,tseng-gupta,ar",
            "fits=#15 results.5.algorithm=ar results.5.startups=none "
            "fits.0.algorithm=at2 fits.0.of=startups fits.0.formula=n/2_+_2 fits.0.exact=true "
            "fits.0.torus_count=6 fits.0.exponent=1 fits.0.factor=0.5 "
            "fits.1.of=transmission fits.1.formula=n^3/8 fits.2.of=critical_path "
            "fits.3.algorithm=a2 fits.3.formula=2n_-_2 fits.4.formula=n^3/2 "
            "fits.6.algorithm=a1 fits.6.formula=n^3/4_+_n^2_-_n "
            "fits.7.formula=n^4/4_+_n^3/4 fits.9.formula=n fits.10.formula=n^3/4 "
            "fits.12.algorithm=tseng-gupta fits.12.torus_count=3 fits.12.formula=n^3/8");
    answers("sweep --dims 4..64 --algorithms ar,ar1,stream",
            "fits.0.formula=n/2 fits.1.formula=n^2/8 fits.3.formula=n/4_+_1 "
            "fits.4.formula=n^2/8_+_n/2 fits.7.formula=n^2/8 fits.7.exact=true");
}

/* A row has what 'torusctl algorithms' has. */
TEST(rows)
{
    static const char *const same[] = {
        "operation", "port_model",      "startups",        "transmission", "critical_path", "bound",
        "bound_of",  "contended_steps", "port_model_kept", "minimal",      "efficiency"};
    json_t *swept = run_cli_json("sweep --dims 4x8"),
           *listed = run_cli_json("algorithms --dims 4x8"), *row;
    size_t found = 0, i;

    json_array_foreach(json_object_get(listed, "algorithms"), i, row)
    {
        if (!json_is_true(json_object_get(row, "accepts")) ||
            strcmp(json_string_value(json_object_get(row, "operation")), "exchange") != 0)
            continue;
        const json_t *its = json_array_get(json_object_get(swept, "results"), found++);
        assert_true(
            json_equal(json_object_get(its, "algorithm"), json_object_get(row, "algorithm")));
        for (size_t k = 0; k < sizeof same / sizeof same[0]; k++)
            assert_true(json_equal(json_object_get(its, same[k]), json_object_get(row, same[k])));
    }
    assert_int_equal(found, json_array_size(json_object_get(swept, "results")));
    assert_int_equal(json_array_size(json_object_get(swept, "fits")), 0);
    json_decref(swept);
    json_decref(listed);
}

TEST(limit)
{
    answers("sweep --dims 8x8,128x128 --algorithms atape --limit 1",
            "complete=true results.0.startups=65 results.1.startups=none");
    assert_int_equal(run_cli("sweep --dims 128x128 --algorithms atape"), 0);
    assert_contains(run_cli_output, "the limit is 2 s");
    refuses("sweep --dims 8x8 --limit 0", "--limit");
}
