/* The messages that exchange_fixture.h declares. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/schedule/algorithms/registry.h"
#include "daemon/schedule/routes/plan_build.h"
#include "exchange_fixture.h"

#define TEXT(text) ((char *)(uintptr_t)(text))

void xf_prepare_init(struct xf_prepare *p, const struct exchange_fixture *n)
{
    peer__prepare__init(&p->prepare);
    peer__head__init(&p->head);
    torus__spec__init(&p->spec);
    p->spec.algorithm = TEXT("direct");
    p->spec.mode = TEXT("stepped");
    p->spec.from = TEXT("/in");
    p->spec.to = TEXT("/out");
    p->spec.timeout_ms = 60000;
    p->prepare.exchange = XF_HANDLE;
    p->prepare.id = TEXT(XF_ID);
    p->prepare.dims = torus_format(&n->f.torus, p->dims);
    p->prepare.spec = &p->spec;
    p->prepare.window = 1;
    p->head.kind_case = PEER__HEAD__KIND_PREPARE;
    p->head.prepare = &p->prepare;
}

void xf_prepare_generated(struct xf_prepare *p)
{
    p->spec.from = p->spec.to = TEXT("");
    p->prepare.round_bytes = 1;
}

bool xf_say_handle(struct exchange_fixture *n, unsigned port, Peer__Head__KindCase kind,
                   uint32_t handle)
{
    Peer__Ready ready = PEER__READY__INIT;
    Peer__Commit commit = PEER__COMMIT__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    ready.exchange = commit.exchange = handle;
    head.kind_case = kind;
    if (kind == PEER__HEAD__KIND_READY)
        head.ready = &ready;
    else if (kind == PEER__HEAD__KIND_COMMIT)
        head.commit = &commit;
    else
        fail_msg("kind %d has more than a handle", (int)kind);
    return xf_say(n, port, &head);
}

bool xf_say_sized(struct exchange_fixture *n, unsigned port, uint32_t handle, uint64_t largest)
{
    Peer__Sized sized = PEER__SIZED__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    sized.exchange = handle;
    sized.largest_block = largest;
    head.kind_case = PEER__HEAD__KIND_SIZED;
    head.sized = &sized;
    return xf_say(n, port, &head);
}

bool xf_say_layout(struct exchange_fixture *n, unsigned port, uint32_t handle)
{
    Peer__Layout layout = PEER__LAYOUT__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    layout.exchange = handle;
    layout.round_bytes = 1000;
    layout.window = 1;
    layout.timeout_ms = 60000;
    head.kind_case = PEER__HEAD__KIND_LAYOUT;
    head.layout = &layout;
    return xf_say(n, port, &head);
}

bool xf_say_go(struct exchange_fixture *n, unsigned port, uint32_t handle, uint64_t rounds,
               uint32_t repetition)
{
    Peer__Go go = PEER__GO__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    go.exchange = handle;
    go.rounds = rounds;
    go.repetition = repetition;
    head.kind_case = PEER__HEAD__KIND_GO;
    head.go = &go;
    return xf_say(n, port, &head);
}

bool xf_say_round_done(struct exchange_fixture *n, unsigned port, uint32_t handle, uint64_t round)
{
    Peer__RoundDone round_done = PEER__ROUND_DONE__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    round_done.exchange = handle;
    round_done.round = round;
    head.kind_case = PEER__HEAD__KIND_ROUND_DONE;
    head.round_done = &round_done;
    return xf_say(n, port, &head);
}

bool xf_say_round_go(struct exchange_fixture *n, unsigned port, uint32_t handle, uint64_t round)
{
    Peer__RoundGo round_go = PEER__ROUND_GO__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    round_go.exchange = handle;
    round_go.round = round;
    head.kind_case = PEER__HEAD__KIND_ROUND_GO;
    head.round_go = &round_go;
    return xf_say(n, port, &head);
}

bool xf_say_repeated(struct exchange_fixture *n, unsigned port, uint32_t handle,
                     uint32_t repetition, uint64_t nanoseconds)
{
    Peer__Repeated repeated = PEER__REPEATED__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    repeated.exchange = handle;
    repeated.repetition = repetition;
    repeated.nanoseconds = nanoseconds;
    head.kind_case = PEER__HEAD__KIND_REPEATED;
    head.repeated = &repeated;
    return xf_say(n, port, &head);
}

static uint32_t steps_of(const struct exchange_fixture *n)
{
    struct plan plan;

    assert_int_equal(plan_build(&plan, &n->f.torus, algorithm_find("direct"), n->f.rank, NULL), 0);
    uint32_t steps = plan.steps;
    plan_free(&plan);
    return steps;
}

bool xf_say_done(struct exchange_fixture *n, unsigned port, uint32_t handle, uint32_t first,
                 uint32_t nodes)
{
    unsigned ports = torus_ports(&n->f.torus);
    Peer__PortReport port_report = PEER__PORT_REPORT__INIT, *port_reports[TORUS_MAX_PORTS];
    Peer__NodeReport node[XF_REPORTS], *reports[XF_REPORTS];
    Peer__Done done = PEER__DONE__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    uint32_t steps[64] = {0};

    assert_true(nodes <= XF_REPORTS);
    for (unsigned p = 0; p < ports; p++)
        port_reports[p] = &port_report;
    for (uint32_t i = 0; i < nodes; i++) {
        peer__node_report__init(&node[i]);
        node[i].rank = first + i;
        node[i].blocks_delivered = n->f.torus.nodes - 1;
        node[i].n_port = ports;
        node[i].port = port_reports;
        reports[i] = &node[i];
    }
    done.exchange = handle;
    done.n_node = nodes;
    done.node = reports;
    done.n_step_blocks = done.n_step_messages = steps_of(n);
    assert_true(done.n_step_blocks <= 64);
    done.step_blocks = done.step_messages = steps;
    head.kind_case = PEER__HEAD__KIND_DONE;
    head.done = &done;
    return xf_say(n, port, &head);
}

bool xf_say_clear(struct exchange_fixture *n, unsigned port, uint32_t handle)
{
    Peer__Clear clear = PEER__CLEAR__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    clear.exchange = handle;
    clear.hops = 3;
    clear.left = 1;
    head.kind_case = PEER__HEAD__KIND_CLEAR;
    head.clear = &clear;
    return xf_say(n, port, &head);
}

static bool say_arrival(struct exchange_fixture *n, const struct plan_message *m, uint32_t handle,
                        uint32_t round, bool sizes)
{
    Peer__SteppedData data = PEER__STEPPED_DATA__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    uint32_t nothing[64] = {0};

    assert_true(m->blocks <= 64);
    data.exchange = handle;
    data.round = round;
    data.step = m->step;
    data.hops = m->hops;
    data.left = m->left;
    data.n_sizes = sizes ? m->blocks : 0;
    data.sizes = nothing;
    head.kind_case = PEER__HEAD__KIND_STEPPED_DATA;
    head.stepped_data = &data;
    return xf_say(n, m->port, &head);
}

bool xf_say_data(struct exchange_fixture *n, unsigned port, uint32_t handle, uint32_t round,
                 unsigned index, bool sizes)
{
    struct plan plan;
    bool up = false;

    assert_int_equal(plan_build(&plan, &n->f.torus, algorithm_find("direct"), n->f.rank, NULL), 0);
    for (uint32_t i = 0; i < plan.arrivals; i++)
        if (plan.arrival[i].port == port && index-- == 0)
            up = say_arrival(n, &plan.arrival[i], handle, round, sizes);
    plan_free(&plan);
    return up;
}

void xf_say_all_data(struct exchange_fixture *n, uint32_t handle, uint32_t round, bool sizes)
{
    struct plan plan;

    assert_int_equal(plan_build(&plan, &n->f.torus, algorithm_find("direct"), n->f.rank, NULL), 0);
    for (uint32_t i = 0; i < plan.arrivals; i++) {
        if (!say_arrival(n, &plan.arrival[i], handle, round, sizes))
            fail_msg("data of step %u was refused: %s", plan.arrival[i].step,
                     n->f.up[plan.arrival[i].port]->last);
        (void)xf_drain(n);
    }
    plan_free(&plan);
}

bool xf_say_objection(struct exchange_fixture *n, unsigned port, uint32_t handle, const char *id,
                      uint32_t root, uint32_t code, const char *reason)
{
    Peer__Objection objection = PEER__OBJECTION__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    objection.exchange = handle;
    objection.id = TEXT(id);
    objection.root = root;
    objection.code = code;
    objection.reason = TEXT(reason);
    head.kind_case = PEER__HEAD__KIND_OBJECTION;
    head.objection = &objection;
    return xf_say(n, port, &head);
}

bool xf_say_verdict(struct exchange_fixture *n, unsigned port, uint32_t handle, const char *id,
                    uint32_t code, const char *reason, uint32_t left)
{
    Peer__Verdict verdict = PEER__VERDICT__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    verdict.exchange = handle;
    verdict.id = TEXT(id);
    verdict.code = code;
    verdict.reason = TEXT(reason);
    verdict.left = left;
    head.kind_case = PEER__HEAD__KIND_VERDICT;
    head.verdict = &verdict;
    return xf_say(n, port, &head);
}

bool xf_say_confirm(struct exchange_fixture *n, unsigned port, const char *id, uint32_t rank,
                    const char *obstacle)
{
    Peer__Confirm confirm = PEER__CONFIRM__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    confirm.id = TEXT(id);
    confirm.n_rank = 1;
    confirm.rank = &rank;
    confirm.obstacle = TEXT(obstacle);
    head.kind_case = PEER__HEAD__KIND_CONFIRM;
    head.confirm = &confirm;
    return xf_say(n, port, &head);
}

bool xf_say_query(struct exchange_fixture *n, unsigned port, const char *id, uint32_t asker)
{
    Peer__OutcomeQuery query = PEER__OUTCOME_QUERY__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    query.id = TEXT(id);
    query.asker = asker;
    head.kind_case = PEER__HEAD__KIND_OUTCOME_QUERY;
    head.outcome_query = &query;
    return xf_say(n, port, &head);
}

bool xf_say_outcome(struct exchange_fixture *n, unsigned port, const char *id, bool committed,
                    uint32_t asker)
{
    Peer__Outcome outcome = PEER__OUTCOME__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    outcome.id = TEXT(id);
    outcome.committed = committed;
    outcome.asker = asker;
    head.kind_case = PEER__HEAD__KIND_OUTCOME;
    head.outcome = &outcome;
    return xf_say(n, port, &head);
}
