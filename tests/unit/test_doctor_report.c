/* How torusctl doctor shows what it has found: one finding a cause, counts of hosts, and what could not be seen. */
#include "client/cli/doctor/doctor.h"
#include "client/cli/doctor/report.h"
#include "doctor_fixture.h"
#include "tests/support/cmocka.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ring r;
static struct diagnosis diagnosis;
static char text[8192];

/* Judges the ring. Returns the report, and prints it into `text`. */
static json_t *report(bool all)
{
    doctor_judge(&r.doctor);
    diagnosis.doctor = r.doctor;
    json_t *value = doctor_report_value(&diagnosis, all);
    assert_non_null(value);
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    assert_int_equal(doctor_report_print(out, value), 0);
    assert_int_equal(fclose(out), 0);
    doctor_free(&r.doctor);
    return value;
}

static void has(const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

static int begin(void **state)
{
    ring_begin(&r);
    return 0;
}

/* The entry of a check in "checks". */
static const json_t *sights(const json_t *value, const char *name)
{
    const json_t *one;
    size_t i;

    json_array_foreach(json_object_get(value, "checks"), i, one)
    {
        if (strcmp(json_string_value(json_object_get(one, "check")), name) == 0)
            return one;
    }
    fail_msg("there is no check %s", name);
    return NULL;
}

static void expect_sights(const json_t *value, const char *name, int fine, int unseen, int wrong)
{
    const json_t *c = sights(value, name);

    assert_int_equal(json_integer_value(json_object_get(c, "fine")), fine);
    assert_int_equal(json_integer_value(json_object_get(c, "not_seen")), unseen);
    assert_int_equal(json_integer_value(json_object_get(c, "wrong")), wrong);
}

TEST_WITH(begin, NULL, all_is_fine)
{
    json_t *value = report(false);
    assert_string_equal(text, "4 of 4 hosts answered: 0 errors, 0 warnings, 0 hints\n");
    assert_string_equal(json_string_value(json_object_get(value, "worst")), "fine");
    expect_sights(value, "memory", 4, 0, 0);
    expect_sights(value, "links", 4, 0, 0);
    json_decref(value);
    value = report(true);
    has("fine     memory: alpha, beta, gamma and delta: ");
    json_decref(value);
}

/* Eight ends of links lose packets: that is one finding, with all hosts, and the first few ends. */
TEST_WITH(begin, NULL, alike_findings_are_one)
{
    for (uint32_t node = 0; node < RING; node++)
        for (unsigned port = 0; port < 2; port++)
            r.link[node][port].hour_retransmits = 1000 + node;
    json_t *value = report(false);
    const json_t *f = json_array_get(json_object_get(value, "findings"), 0);
    assert_int_equal(json_array_size(json_object_get(value, "findings")), 1);
    assert_int_equal(json_array_size(json_object_get(f, "hosts")), 4);
    assert_int_equal(json_array_size(json_object_get(f, "each")), 8);
    has("warning  losses: alpha, beta, gamma and delta: port +0 of alpha (eth0) has sent 1000");
    has("also: alpha: port -0 of alpha (eth1)");
    has("and 4 more of this kind");
    has("4 of 4 hosts answered: 0 errors, 1 warning, 0 hints\n");
    expect_sights(value, "losses", 0, 0, 4);
    json_decref(value);
}

/* One cause hides several checks: one line, and a count. It is not "fine". */
TEST_WITH(begin, NULL, what_was_not_seen)
{
    for (uint32_t node = 1; node < 3; node++) {
        ring_hide(&r, node, "memory.available");
        ring_hide(&r, node, "cpu.load");
        ring_set(&r, node, "unseen.memory.available_bytes", "hidden");
        ring_set(&r, node, "unseen.cpu.load", "hidden");
    }
    json_t *value = report(false);
    assert_string_equal(json_string_value(json_object_get(value, "worst")), "not seen");
    has("not seen load, memory: beta and gamma: hidden\n");
    has("4 of 4 hosts answered: 0 errors, 0 warnings, 0 hints; 2 checks could not be seen on 2 "
        "hosts\n");
    expect_sights(value, "memory", 2, 2, 0);
    json_decref(value);
}

TEST_WITH(begin, NULL, a_node_that_does_not_answer)
{
    ring_lose(&r, 2);
    json_t *value = report(false);
    const json_t *answered = json_object_get(value, "answered");
    assert_int_equal(json_integer_value(json_object_get(answered, "state")), 3);
    assert_int_equal(json_integer_value(json_object_get(answered, "facts")), 3);
    has("error    nodes: gamma: the node is down, or cannot be reached");
    has("3 of 4 hosts answered: 1 error, ");
    has("not seen mtu: beta and delta: the MTU of gamma, at the other end of a cable, is not "
        "known\n");
    has(" checks could not be seen on 3 hosts\n");
    expect_sights(value, "nodes", 3, 0, 1);
    expect_sights(value, "keys", 3, 1, 0);
    json_decref(value);
}

/* Both ends of a link that is down have something wrong. */
TEST_WITH(begin, NULL, a_link_has_two_hosts)
{
    r.link[1][0].state = r.link[2][1].state = TORUS_LINK_WAITING;
    json_t *value = report(false);
    expect_sights(value, "links", 2, 0, 2);
    has("error    links: beta and gamma: the link between");
    json_decref(value);
}
