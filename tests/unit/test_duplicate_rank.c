/* Two machines of one rank, each with a right cable: a ring of three in which node 0 has one machine of rank 1 as its
 * neighbour, and node 2 the other one. The routers are real, and their cables take no time. */
#include "router_fixture.h"
#include "tests/support/cmocka.h"

#define MACHINES 4u
#define EARLIER 9u /* boot number of an earlier start of a node */

enum { plus0, minus0 };
enum { one, zero, two, other }; /* in the order of the cables */

static const uint32_t rank_of[MACHINES] = {1, 0, 2, 1};

struct line {
    struct router_fixture machine[MACHINES];
    struct cable {
        struct fixture_connection *end[2];
    } cable[MACHINES - 1]; /* between machine i and the next one */
};

static int no_frame(void *context, unsigned port, const struct peer_message *head,
                    const struct extents *body, uint32_t body_length, struct error *e)
{
    return error_set(e, ERROR_PROTOCOL, "nobody wants this");
}

static struct outgoing *no_next(void *context, unsigned port)
{
    return NULL;
}

static void nothing(void *context)
{
}

static void open_machine(struct line *l, unsigned i)
{
    struct router_fixture *f = &l->machine[i];
    const struct router_io io = fixture_begin(f, "3", rank_of[i]);
    const struct router_handler nobody = {f, no_frame, no_next, NULL, NULL, nothing, nothing};

    f->random = i + 1; /* each machine has a boot number of its own */
    f->router = router_new(&f->torus, rank_of[i], &io, &nobody, &f->pool, NULL);
    assert_non_null(f->router);
}

static void open_line(struct line *l)
{
    *l = (struct line){0};
    for (unsigned i = 0; i < MACHINES; i++)
        open_machine(l, i);
}

static void close_line(struct line *l)
{
    for (unsigned i = 0; i < MACHINES; i++)
        fixture_close(&l->machine[i]);
}

/* Takes the frames that wait at one end of a cable to the other end. Returns whether there were any. */
static bool carry(struct fixture_connection *from, struct fixture_connection *to)
{
    struct outgoing *frame;
    struct extent piece;
    bool any = false;

    while (from->link != NULL && (frame = link_next(from->link)) != NULL) {
        struct extent_cursor cursor = {0};
        fixture_feed(to, frame->head, frame->head_length);
        while (extents_take(&frame->body, &cursor, UINT32_MAX, &piece) > 0)
            fixture_feed(to, piece.data, piece.length);
        outgoing_free(router_outgoing(from->fixture->router), frame);
        any = true;
    }
    return any;
}

static void carry_all(struct line *l)
{
    bool any = true;

    while (any) {
        any = false;
        for (struct cable *c = l->cable; c < l->cable + MACHINES - 1; c++)
            if (c->end[0] != NULL)
                any |= (int)carry(c->end[0], c->end[1]) | (int)carry(c->end[1], c->end[0]);
    }
}

/* Joins machine i and the next one, whose ports are the two ends of a link. */
static void join(struct line *l, unsigned i, unsigned port)
{
    for (unsigned end = 0; end < 2; end++) {
        const unsigned at = end == 0 ? port : 1 - port;
        l->cable[i].end[end] = fixture_connect(&l->machine[i + end], at, at == plus0);
    }
    carry_all(l);
    for (unsigned end = 0; end < 2; end++)
        assert_int_equal(fixture_state_of(&l->machine[i + end], end == 0 ? port : 1 - port),
                         PORT_UP);
}

static void pass(struct line *l, uint64_t time)
{
    const uint64_t end = l->machine[0].now + time;

    for (uint64_t now = l->machine[0].now; now < end;) {
        uint64_t at = end;
        for (unsigned i = 0; i < MACHINES; i++) {
            const uint64_t due = router_deadline(l->machine[i].router);
            at = due < at ? due : at;
        }
        now = at > now ? at : now + 1;
        for (unsigned i = 0; i < MACHINES; i++) {
            l->machine[i].now = now;
            if (router_deadline(l->machine[i].router) <= now)
                router_tick(l->machine[i].router);
        }
        carry_all(l);
    }
}

static uint32_t version_of(struct line *l, unsigned i)
{
    return router_topology(l->machine[i].router)->entry[rank_of[i]].version;
}

/* Whether a machine says that two machines have rank 1, and nothing else of cables. */
static bool says_two(struct line *l, unsigned i)
{
    struct fault_report report;
    unsigned n = 0;

    for (; router_fault(l->machine[i].router, n, &report); n++)
        if (report.rank != 1 || report.fault.code != LINK_FAULT_DUPLICATE_RANK)
            return false;
    return n > 0;
}

static unsigned saying_two(struct line *l)
{
    unsigned count = 0;

    for (unsigned i = 0; i < MACHINES; i++)
        count += says_two(l, i);
    return count;
}

/* Both machines have said equally much, so that each of the other nodes keeps what its own neighbour claims. */
FIXTURE_TEST(struct line, l, open_line, close_line, two_machines_of_one_rank_are_named_by_all)
{
    join(l, one, minus0);
    join(l, two, minus0);
    pass(l, SECONDS);
    assert_int_equal(version_of(l, one), version_of(l, other));
    join(l, zero, minus0);
    pass(l, 20 * SECONDS);
    for (unsigned second = 0; second < 120; second++) {
        assert_int_equal(saying_two(l), MACHINES);
        pass(l, SECONDS);
    }
}

/* One of them has said more, so that they overrule each other; they go on whenever they state something else. */
TEST(two_machines_of_one_rank_are_named_whatever_they_state)
{
    static struct line l;

    for (uint64_t after = 0; after < 40 * MILLISECONDS; after += MILLISECONDS / 4) {
        open_line(&l);
        join(&l, one, minus0);
        join(&l, two, minus0);
        router_confirm(l.machine[one].router, 5);
        pass(&l, SECONDS);
        join(&l, zero, minus0);
        pass(&l, after);
        router_confirm(l.machine[one].router, 7);
        router_confirm(l.machine[other].router, 8);
        pass(&l, 20 * SECONDS);
        assert_int_equal(saying_two(&l), MACHINES);
        close_line(&l);
    }
}

FIXTURE_TEST(struct line, l, open_line, close_line, it_is_over_when_one_machine_is_gone)
{
    join(l, one, minus0);
    join(l, two, minus0);
    join(l, zero, minus0);
    pass(l, 20 * SECONDS);
    assert_int_equal(saying_two(l), MACHINES);
    for (unsigned end = 0; end < 2; end++) {
        struct fixture_connection *c = l->cable[two].end[end];
        link_closed(c->link, "reset");
        c->link = NULL;
    }
    pass(l, 120 * SECONDS);
    assert_int_equal(saying_two(l), 0);
    assert_int_equal(router_topology(l->machine[two].router)->entry[1].boot,
                     router_boot(l->machine[one].router));
}

/* A neighbour of node 5 of a 4x4 claims that a start of that node has said this. */
static void claim(struct router_fixture *f, unsigned port, uint32_t hops, uint32_t version,
                  uint64_t boot)
{
    fixture_say_entry(f->up[port],
                      &(struct peer_link_state_entry){
                          .rank = 5, .hops = hops, .version = version, .up = 3, .boot = boot});
}

static bool finds_fault(const struct router_fixture *f)
{
    return router_fault(f->router, 0, &(struct fault_report){0});
}

/* Claims of an earlier start may arrive until its links are lost. Nodes that have lost it keep its last claim, and tell it
 * when this node reaches them again. */
ROUTER_TEST(an_earlier_start_is_no_other_machine)
{
    fixture_link_up(f, plus0);
    for (uint32_t i = 0; i < 5; i++) {
        claim(f, plus0, 2, 1000 + 2 * i, EARLIER);
        fixture_stay_up(f, plus0, SECONDS);
        assert_false(finds_fault(f));
    }
    fixture_stay_up(f, plus0, 60 * SECONDS);
    (void)fixture_entries_sent(f->up[plus0], 5, NULL);
    claim(f, plus0, 2, 900, EARLIER); /* older than what this node states */
    claim(f, plus0, f->torus.nodes, 5000, EARLIER);
    fixture_pass(f, 2 * SECONDS);
    assert_int_equal(fixture_entries_sent(f->up[plus0], 5, NULL), 0);
    claim(f, plus0, 2, 5000, router_boot(f->router)); /* damaged, but of this start */
    assert_false(finds_fault(f));
    claim(f, plus0, 2, 6000, EARLIER); /* from a node that reaches the other machine */
    assert_true(finds_fault(f));
}

/* At once, and then once a second; the last claim does not stand. */
ROUTER_TEST(claims_of_another_boot_are_overruled)
{
    unsigned sent = 0;

    fixture_link_up(f, plus0);
    fixture_pass(f, 10 * MILLISECONDS);
    (void)fixture_entries_sent(f->up[plus0], 5, NULL);
    for (uint32_t i = 0; i < 40; i++) {
        claim(f, plus0, 2, 1000 + 2 * i, EARLIER);
        fixture_pass(f, 5 * MILLISECONDS);
        sent += fixture_entries_sent(f->up[plus0], 5, NULL);
    }
    assert_int_equal(sent, 1);
    fixture_pass(f, 900 * MILLISECONDS);
    assert_int_equal(fixture_entries_sent(f->up[plus0], 5, NULL), 1);
}
