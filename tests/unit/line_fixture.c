#include "line_fixture.h"
#include "tests/support/cmocka.h"

void line_open(struct exchange_fixture *n, uint32_t rank)
{
    xf_init(n);
    xf_open(n, "3m", rank);
}

void line_open_middle(struct exchange_fixture *n)
{
    line_open(n, 1);
}

size_t line_known(struct exchange_fixture *n)
{
    struct exchange_info info[1000];

    return exchanges_list(core_exchanges(n->core), info, 1000);
}

void line_hears_nack(struct exchange_fixture *n, enum error_code code, uint32_t about,
                     const char *part)
{
    struct peer_message *head = xf_next(n, PARENT);

    assert_non_null(head);
    assert_int_equal(head->kind, PEER_NACK);
    if (head->nack.code != code || (part != NULL && strstr(head->nack.reason, part) == NULL))
        fail_msg("%u: \"%s\" instead of %d: \"%s\"", head->nack.code, head->nack.reason, (int)code,
                 part != NULL ? part : "");
    if (about == TORUS_NO_NODE) {
        assert_int_equal(head->nack.culprit.kind, CULPRIT_NONE);
    } else {
        assert_int_equal(head->nack.culprit.kind, CULPRIT_NODE);
        assert_int_equal(head->nack.culprit.node, about);
    }
    message_forget(head);
}

bool line_hears_abort(struct exchange_fixture *n, unsigned port, enum error_code code)
{
    struct peer_message *head = xf_next(n, port);
    bool abort = head != NULL && head->kind == PEER_ABORT && head->abort.code == code;

    message_forget(head);
    return abort;
}

bool line_prepare(struct exchange_fixture *n, unsigned port, uint32_t root, uint32_t i,
                  uint64_t block_bytes)
{
    char id[EXCHANGE_ID_SIZE];
    struct xf_prepare p;

    xf_prepare_init(&p, n);
    xf_prepare_generated(&p);
    (void)snprintf(id, sizeof id, "%u-0000004d-%u", root, i);
    p.message.prepare.id = id;
    p.message.prepare.root = root;
    p.message.prepare.user = root; /* each has a user of its own */
    p.message.prepare.exchange = n->f.torus.nodes * i + root;
    p.spec.block_bytes = block_bytes;
    p.message.prepare.round_bytes = block_bytes > 0 ? block_bytes : 1;
    return xf_say(n, port, &p.message);
}

const struct spec line_generated = {
    .algorithm = "direct", .mode = MODE_STEPPED, .from = "", .to = "", .timeout_ns = 30 * SECONDS};

const struct spec line_barrier = {
    .algorithm = SPEC_AUTO, .operation = OPERATION_BARRIER, .barrier = "b"};

void line_prepare_barrier(struct xf_prepare *p)
{
    xf_prepare_generated(p);
    p->spec.operation = OPERATION_BARRIER;
    p->spec.barrier = (char *)(uintptr_t) "b";
    p->spec.algorithm = (char *)(uintptr_t) "saadschultz";
}

void line_root_open(struct line_root *r)
{
    struct error e;

    line_open(&r->f, 0);
    assert_non_null(xf_start(&r->f, &line_generated, &r->client, &e));
    xf_settle(&r->f);
    assert_true(line_root_learn(r));
}

bool line_root_learn(struct line_root *r)
{
    struct peer_message *head = xf_next(&r->f, CHILD);
    bool prepared = head != NULL && head->kind == PEER_PREPARE;

    if (prepared) {
        r->handle = head->prepare.exchange;
        (void)snprintf(r->id, sizeof r->id, "%s", head->prepare.id);
    }
    message_forget(head);
    return prepared;
}

bool line_root_object(struct line_root *r, uint32_t code, const char *reason)
{
    struct error why = {.code = (enum error_code)code, .culprit = {CULPRIT_NODE, 1, 0}};

    (void)snprintf(why.text, sizeof why.text, "%s", reason);
    return xf_say_nack_about(&r->f, CHILD, r->handle, r->id, 0, &why);
}
