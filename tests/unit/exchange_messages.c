/* The messages that exchange_fixture.h declares. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/plan.h"
#include "exchange_fixture.h"
#include "tests/support/cmocka.h"

#define TEXT(text) ((char *)(uintptr_t)(text))

void xf_prepare_init(struct xf_prepare *p, const struct exchange_fixture *n)
{
    torus__spec__init(&p->spec);
    p->spec.algorithm = TEXT("direct");
    p->spec.mode = TEXT("stepped");
    p->spec.from = TEXT("/in");
    p->spec.to = TEXT("/out");
    p->spec.timeout_ms = 60000;
    p->message = (struct peer_message){.kind = PEER_PREPARE,
                                       .prepare = {.exchange = XF_HANDLE,
                                                   .id = XF_ID,
                                                   .dims = torus_format(&n->f.torus, p->dims),
                                                   .spec = &p->spec,
                                                   .window = 1}};
}

void xf_prepare_generated(struct xf_prepare *p)
{
    p->spec.from = p->spec.to = TEXT("");
    p->message.prepare.round_bytes = 1;
}

bool xf_say_handle(struct exchange_fixture *n, unsigned port, enum peer_kind kind, uint32_t handle)
{
    const struct peer_message message = {.kind = kind, .ready = {handle}};

    if (kind != PEER_READY && kind != PEER_COMMIT)
        fail_msg("kind %d has more than a handle", (int)kind);
    return xf_say(n, port, &message);
}

bool xf_say_sized(struct exchange_fixture *n, unsigned port, uint32_t handle, uint64_t largest)
{
    const struct peer_message message = {.kind = PEER_SIZED,
                                         .sized = {.exchange = handle, .largest_block = largest}};

    return xf_say(n, port, &message);
}

bool xf_say_layout(struct exchange_fixture *n, unsigned port, uint32_t handle)
{
    const struct peer_message message = {
        .kind = PEER_LAYOUT,
        .layout = {.exchange = handle, .round_bytes = 1000, .window = 1, .timeout_ms = 60000}};

    return xf_say(n, port, &message);
}

bool xf_say_go(struct exchange_fixture *n, unsigned port, uint32_t handle, uint64_t rounds,
               uint32_t repetition)
{
    const struct peer_message message = {
        .kind = PEER_GO, .go = {.exchange = handle, .rounds = rounds, .repetition = repetition}};

    return xf_say(n, port, &message);
}

bool xf_say_round_done(struct exchange_fixture *n, unsigned port, uint32_t handle, uint64_t round)
{
    const struct peer_message message = {.kind = PEER_ROUND_DONE,
                                         .round_done = {.exchange = handle, .round = round}};

    return xf_say(n, port, &message);
}

bool xf_say_round_go(struct exchange_fixture *n, unsigned port, uint32_t handle, uint64_t round)
{
    const struct peer_message message = {.kind = PEER_ROUND_GO,
                                         .round_go = {.exchange = handle, .round = round}};

    return xf_say(n, port, &message);
}

bool xf_say_repeated(struct exchange_fixture *n, unsigned port, uint32_t handle,
                     uint32_t repetition, uint64_t nanoseconds)
{
    const struct peer_message message = {
        .kind = PEER_REPEATED,
        .repeated = {.exchange = handle, .repetition = repetition, .nanoseconds = nanoseconds}};

    return xf_say(n, port, &message);
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
    const struct peer_port_report port_report[TORUS_MAX_PORTS] = {{0}};
    struct peer_node_report node[XF_REPORTS];
    struct peer_done done = {0};
    uint32_t steps[64] = {0};

    assert_true(nodes <= XF_REPORTS);
    for (uint32_t i = 0; i < nodes; i++)
        node[i] = (struct peer_node_report){.rank = first + i,
                                            .blocks_delivered = n->f.torus.nodes - 1,
                                            .n_port = ports,
                                            .port = port_report};
    done.exchange = handle;
    done.n_node = nodes;
    done.node = node;
    done.n_step_blocks = done.n_step_messages = steps_of(n);
    assert_true(done.n_step_blocks <= 64);
    done.step_blocks = done.step_messages = steps;
    const struct peer_message head = {.kind = PEER_DONE, .done = done};
    return xf_say(n, port, &head);
}

bool xf_say_clear(struct exchange_fixture *n, unsigned port, uint32_t handle)
{
    const struct peer_message message = {.kind = PEER_CLEAR,
                                         .clear = {.exchange = handle, .hops = 3, .left = 1}};

    return xf_say(n, port, &message);
}

static bool say_arrival(struct exchange_fixture *n, const struct plan_message *m, uint32_t handle,
                        uint32_t round, bool sizes)
{
    struct peer_stepped_data data = {0};
    uint32_t nothing[64] = {0};

    assert_true(m->blocks <= 64);
    data.exchange = handle;
    data.round = round;
    data.step = m->step;
    data.hops = m->hops;
    data.left = m->left;
    data.n_sizes = sizes ? m->blocks : 0;
    data.sizes = nothing;
    const struct peer_message head = {.kind = PEER_STEPPED_DATA, .stepped_data = data};
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
    struct error why = {.code = (enum error_code)code};

    (void)snprintf(why.text, sizeof why.text, "%s", reason);
    return xf_say_objection_about(n, port, handle, id, root, &why);
}

bool xf_say_objection_about(struct exchange_fixture *n, unsigned port, uint32_t handle,
                            const char *id, uint32_t root, const struct error *why)
{
    const struct peer_message message = {.kind = PEER_OBJECTION,
                                         .objection = {.exchange = handle,
                                                       .id = id,
                                                       .root = root,
                                                       .code = why->code,
                                                       .reason = why->text,
                                                       .culprit = why->culprit}};

    return xf_say(n, port, &message);
}

bool xf_say_verdict(struct exchange_fixture *n, unsigned port, uint32_t handle, const char *id,
                    uint32_t code, const char *reason, uint32_t left)
{
    const struct peer_message message = {.kind = PEER_VERDICT,
                                         .verdict = {.exchange = handle,
                                                     .id = id,
                                                     .code = (enum error_code)code,
                                                     .reason = reason,
                                                     .left = left}};

    return xf_say(n, port, &message);
}

bool xf_say_confirm(struct exchange_fixture *n, unsigned port, const char *id, uint32_t rank,
                    const char *obstacle)
{
    const struct peer_message message = {
        .kind = PEER_CONFIRM,
        .confirm = {.id = id, .n_rank = 1, .rank = &rank, .obstacle = obstacle}};

    return xf_say(n, port, &message);
}

bool xf_say_query(struct exchange_fixture *n, unsigned port, const char *id, uint32_t asker)
{
    const struct peer_message message = {.kind = PEER_OUTCOME_QUERY,
                                         .outcome_query = {.id = id, .asker = asker}};

    return xf_say(n, port, &message);
}

bool xf_say_outcome(struct exchange_fixture *n, unsigned port, const char *id, bool committed,
                    uint32_t asker)
{
    const struct peer_message message = {
        .kind = PEER_OUTCOME, .outcome = {.id = id, .committed = committed, .asker = asker}};

    return xf_say(n, port, &message);
}
