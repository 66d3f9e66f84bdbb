/* Every word of a peer has its time: one node of two, in each state, hears each word from the
 * other, which is the root. What has no place costs the peer its connection, and the node nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/exchange/exchange.h"
#include "failing_memory.h"
#include "router_fixture.h"

enum { PORT = 1, HANDLE = 8 }; /* of node 1, to node 0 */

#define ID "0-00000000-8" /* ends as the handle does */

struct node {
    struct router_fixture f;
    struct exchanges *exchanges;
    struct storage storage;
    struct source source;
    struct sink sink;
    unsigned opened; /* folders of exchanges */
    bool synced, committed, kept;
};

/* --- folders with empty blocks --- */

static struct node *current;

static uint64_t source_size(struct source *s, uint32_t destination)
{
    (void)s, (void)destination;
    return 0;
}

static int source_check(struct source *s, uint64_t *digest, struct error *e)
{
    (void)s, (void)digest, (void)e;
    return 0;
}

static void source_close(struct source *s)
{
    (void)s;
}

static int sink_write(struct sink *s, uint32_t origin, uint64_t offset, const struct extent *piece,
                      struct error *e)
{
    (void)s, (void)origin, (void)offset, (void)e;
    assert_int_equal(piece->length, 0);
    return 0;
}

static uint64_t sink_none(struct sink *s)
{
    (void)s;
    return 0;
}

static bool sink_finish(struct sink *s)
{
    (void)s;
    return current->synced;
}

static int sink_commit(struct sink *s, struct error *e)
{
    (void)s, (void)e;
    assert_false(current->committed);
    current->committed = true;
    return 0;
}

static void sink_close(struct sink *s, bool keep)
{
    (void)s;
    current->opened--;
    current->kept = keep;
}

static int open_folders(void *context, const struct folder_request *request,
                        const struct block_events *events, struct source **source,
                        struct sink **sink, struct error *e)
{
    static const struct source_ops source_ops = {
        .size = source_size, .check = source_check, .close = source_close};
    static const struct sink_ops sink_ops = {sink_write, sink_none,   sink_finish,
                                             sink_none,  sink_commit, sink_close};
    struct node *n = context;

    (void)request, (void)events, (void)e;
    n->source.ops = &source_ops;
    n->sink.ops = &sink_ops;
    n->opened++;
    *source = &n->source;
    *sink = &n->sink;
    return 0;
}

static bool was_committed(void *context, const char *id)
{
    (void)context, (void)id;
    return false;
}

static void each_in_doubt(void *context, void (*each)(void *argument, const char *id),
                          void *argument)
{
    (void)context, (void)each, (void)argument;
}

static int on_frame(void *context, unsigned port, const Peer__Head *head,
                    const struct extents *body, uint32_t body_length, struct error *e)
{
    return exchanges_frame(((struct node *)context)->exchanges, port, head, body, body_length, e);
}

static struct outgoing *on_next(void *context, unsigned port)
{
    struct node *n = context;
    return n->exchanges != NULL ? exchanges_next(n->exchanges, port) : NULL;
}

static void on_topology(void *context)
{
    struct node *n = context;
    if (n->exchanges != NULL)
        exchanges_topology(n->exchanges);
}

static void open_node_of(struct node *n, const char *dims)
{
    const struct router_handler handler = {n, on_frame, on_next, on_topology};

    *n = (struct node){.synced = true};
    current = n;
    fixture_open(&n->f, dims, 1, &handler);
    n->storage = (struct storage){.context = n,
                                  .open_folders = open_folders,
                                  .was_committed = was_committed,
                                  .each_in_doubt = each_in_doubt};
    const struct exchanges_setup setup = {
        .router = n->f.router, .storage = &n->storage, .memory_budget = 1 << 20};
    n->exchanges = exchanges_new(&setup);
    assert_non_null(n->exchanges);
    fixture_link_up(&n->f, PORT);
}

static void open_node(struct node *n)
{
    open_node_of(n, "2m");
}

static void close_node(struct node *n)
{
    exchanges_free(n->exchanges);
    n->exchanges = NULL;
    fixture_close(&n->f);
    assert_int_equal(n->opened, 0);
}

/* --- words --- */

enum word {
    PREPARE,
    READY,
    GO,
    DATA,
    NEXT_DATA, /* of a round that does not come */
    CLEAR,
    ROUND_DONE,
    ROUND_GO,
    DONE,
    COMMIT,
    COMMITTED,
    REPEATED,
    WORDS
};

static void say_of(struct node *n, uint32_t handle, enum word word)
{
    char id[] = ID, dims[TORUS_TEXT_SIZE], algorithm[] = "direct", mode[] = "stepped",
         from[] = "/in";
    char to[] = "/out";
    Peer__Prepare prepare = PEER__PREPARE__INIT;
    Peer__Ready ready = PEER__READY__INIT;
    Peer__Go go = PEER__GO__INIT;
    Peer__SteppedData data = PEER__STEPPED_DATA__INIT;
    Peer__Clear clear = PEER__CLEAR__INIT;
    Peer__RoundDone round_done = PEER__ROUND_DONE__INIT;
    Peer__RoundGo round_go = PEER__ROUND_GO__INIT;
    Peer__Done done = PEER__DONE__INIT;
    Peer__Commit commit = PEER__COMMIT__INIT;
    Peer__Committed committed = PEER__COMMITTED__INIT;
    Peer__Repeated repeated = PEER__REPEATED__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    uint32_t nothing = 0;

    switch (word) {
    case PREPARE:
        prepare.handle = handle;
        prepare.id = id;
        id[sizeof id - 2] = (char)('0' + handle % 10);
        prepare.root = 0;
        prepare.dims = torus_format(&n->f.torus, dims);
        prepare.algorithm = algorithm;
        prepare.mode = mode;
        prepare.from = from;
        prepare.to = to;
        prepare.window = 1;
        prepare.segment_bytes = 1000;
        prepare.timeout_ms = 60000;
        head.kind_case = PEER__HEAD__KIND_PREPARE;
        head.prepare = &prepare;
        break;
    case READY:
        ready.exchange = handle;
        head.kind_case = PEER__HEAD__KIND_READY;
        head.ready = &ready;
        break;
    case GO:
        go.exchange = handle;
        go.rounds = 1;
        head.kind_case = PEER__HEAD__KIND_GO;
        head.go = &go;
        break;
    case DATA:
    case NEXT_DATA:
        data.exchange = handle;
        data.round = word == NEXT_DATA;
        data.hops = 1;
        data.n_sizes = 1;
        data.sizes = &nothing;
        head.kind_case = PEER__HEAD__KIND_STEPPED_DATA;
        head.stepped_data = &data;
        break;
    case CLEAR:
        clear.exchange = handle;
        clear.hops = 3;
        clear.left = 1;
        head.kind_case = PEER__HEAD__KIND_CLEAR;
        head.clear = &clear;
        break;
    case ROUND_DONE:
        round_done.exchange = handle;
        head.kind_case = PEER__HEAD__KIND_ROUND_DONE;
        head.round_done = &round_done;
        break;
    case ROUND_GO:
        round_go.exchange = handle;
        round_go.round = 1;
        head.kind_case = PEER__HEAD__KIND_ROUND_GO;
        head.round_go = &round_go;
        break;
    case DONE:
        done.exchange = handle;
        head.kind_case = PEER__HEAD__KIND_DONE;
        head.done = &done;
        break;
    case COMMIT:
        commit.exchange = handle;
        head.kind_case = PEER__HEAD__KIND_COMMIT;
        head.commit = &commit;
        break;
    case COMMITTED:
        committed.exchange = handle;
        head.kind_case = PEER__HEAD__KIND_COMMITTED;
        head.committed = &committed;
        break;
    case REPEATED:
        repeated.exchange = handle;
        head.kind_case = PEER__HEAD__KIND_REPEATED;
        head.repeated = &repeated;
        break;
    case WORDS:
        break;
    }
    fixture_say(n->f.up[PORT], &head, NULL, 0);
}

static void say(struct node *n, enum word word)
{
    say_of(n, HANDLE, word);
}

/* The next word that the node says, link states apart. */
static Peer__Head__KindCase hear(struct node *n)
{
    Peer__Head__KindCase kind = PEER__HEAD__KIND__NOT_SET;
    Peer__Head *head;

    while ((kind == PEER__HEAD__KIND__NOT_SET || kind == PEER__HEAD__KIND_LINK_STATE) &&
           (head = fixture_next(n->f.up[PORT], NULL, 0, NULL)) != NULL) {
        kind = head->kind_case;
        peer__head__free_unpacked(head, NULL);
    }
    return kind;
}

static enum exchange_state state_of(struct node *n)
{
    struct exchange_info info;
    assert_int_equal(exchanges_list(n->exchanges, &info, 1), 1);
    return info.state;
}

/* The moments of an exchange, each reached from the one before. */
enum moment { UNKNOWN, IS_READY, RUNNING, SYNCING, IS_DONE, MOMENTS };

static void reach(struct node *n, enum moment moment)
{
    open_node(n);
    n->synced = moment >= IS_DONE;
    if (moment >= IS_READY) {
        say(n, PREPARE);
        assert_int_equal(hear(n), PEER__HEAD__KIND_READY);
        assert_int_equal(state_of(n), EXCHANGE_READY);
    }
    if (moment >= RUNNING) {
        say(n, GO);
        assert_int_equal(hear(n), PEER__HEAD__KIND_STEPPED_DATA);
        assert_int_equal(state_of(n), EXCHANGE_RUNNING);
    }
    if (moment >= SYNCING)
        say(n, DATA);
    if (moment >= IS_DONE) {
        assert_int_equal(hear(n), PEER__HEAD__KIND_DONE);
        assert_int_equal(state_of(n), EXCHANGE_DONE);
    }
}

static void each_word_has_its_time(void **state)
{
    static const bool has_a_place[MOMENTS][WORDS] = {
        [UNKNOWN][PREPARE] = true, [IS_READY][GO] = true,    [IS_READY][DATA] = true,
        [RUNNING][DATA] = true,    [IS_DONE][COMMIT] = true,
    };
    (void)state;
    for (enum moment moment = UNKNOWN; moment < MOMENTS; moment++)
        for (enum word word = PREPARE; word < WORDS; word++) {
            struct node n;
            reach(&n, moment);
            say(&n, word);
            bool taken = n.f.up[PORT]->link != NULL;
            if (taken != has_a_place[moment][word])
                fail_msg("moment %d: word %d was %s (%s)", moment, word,
                         taken ? "taken" : "refused", n.f.up[PORT]->last);
            assert_int_equal(n.committed, moment == IS_DONE && word == COMMIT);
            if (!taken && moment > UNKNOWN) { /* it has cost a link, so the exchange will fail */
                n.f.now += 10 * SECONDS;
                exchanges_tick(n.exchanges);
                assert_int_equal(state_of(&n),
                                 moment == IS_DONE ? EXCHANGE_IN_DOUBT : EXCHANGE_FAILED);
                assert_int_equal(n.kept, moment == IS_DONE);
                assert_int_equal(exchanges_reserved(n.exchanges), 0);
            }
            close_node(&n);
        }
}

static void what_comes_after_the_end_is_ignored(void **state)
{
    (void)state;
    for (enum word word = READY; word < WORDS; word++) {
        struct node n;
        reach(&n, IS_DONE);
        say(&n, COMMIT);
        assert_int_equal(hear(&n), PEER__HEAD__KIND_COMMITTED);
        assert_int_equal(state_of(&n), EXCHANGE_COMMITTED);
        assert_true(n.committed);
        say(&n, word);
        assert_non_null(n.f.up[PORT]->link);
        assert_int_equal(state_of(&n), EXCHANGE_COMMITTED);
        close_node(&n);
    }
}

static void say_abort(struct node *n, uint32_t handle, const char *id, bool final)
{
    Peer__Abort abort = PEER__ABORT__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    abort.exchange = handle;
    abort.id = (char *)(uintptr_t)id;
    abort.code = ERROR_IO;
    abort.reason = (char[]){"the root's\nword"};
    abort.final = final;
    head.kind_case = PEER__HEAD__KIND_ABORT;
    head.abort = &abort;
    fixture_say(n->f.up[PORT], &head, NULL, 0);
}

static void the_roots_verdict_ends_it_at_any_moment(void **state)
{
    (void)state;
    for (enum moment moment = IS_READY; moment < MOMENTS; moment++) {
        struct node n;
        struct exchange_info info;
        reach(&n, moment);
        say_abort(&n, HANDLE, "0-00000000-5", true); /* another one that once had the handle */
        assert_true(state_of(&n) < EXCHANGE_COMMITTED);
        say_abort(&n, HANDLE, ID, false); /* somebody fails: the root has not decided */
        assert_true(state_of(&n) < EXCHANGE_COMMITTED);
        say_abort(&n, HANDLE, ID, true);
        assert_int_equal(exchanges_list(n.exchanges, &info, 1), 1);
        assert_int_equal(info.state, EXCHANGE_FAILED);
        assert_string_equal(info.reason, "the root's?word");
        assert_int_equal(n.opened, 0);
        assert_false(n.kept);
        close_node(&n);
    }
}

static void prepares_that_no_root_sends_are_refused(void **state)
{
    enum { WRONG_ROOT, OWN_ROOT, WRONG_DIMS, LONG_PATH, LONG_TIME, KINDS };
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        char path[EXCHANGE_PATH_SIZE + 1];
        struct node n;
        Peer__Prepare prepare = PEER__PREPARE__INIT;
        Peer__Head head = PEER__HEAD__INIT;
        memset(path, 'x', sizeof path);
        path[EXCHANGE_PATH_SIZE] = '\0';
        prepare.handle = HANDLE;
        prepare.id = (char[]){ID};
        prepare.root = kind == WRONG_ROOT ? 2 : kind == OWN_ROOT ? 1 : 0;
        prepare.dims = kind == WRONG_DIMS ? (char[]){"2"} : (char[]){"2m"};
        prepare.algorithm = (char[]){"direct"};
        prepare.mode = (char[]){"stepped"};
        prepare.to = kind == LONG_PATH ? path : (char[]){""};
        prepare.window = 1;
        prepare.segment_bytes = 1;
        prepare.timeout_ms = kind == LONG_TIME ? UINT64_MAX : 1;
        head.kind_case = PEER__HEAD__KIND_PREPARE;
        head.prepare = &prepare;
        open_node(&n);
        fixture_say(n.f.up[PORT], &head, NULL, 0);
        assert_null(n.f.up[PORT]->link);
        assert_int_equal(exchanges_list(n.exchanges, &(struct exchange_info){0}, 1), 0);
        close_node(&n);
    }
}

static void a_node_that_cannot_says_why(void **state)
{
    enum { ALGORITHM, MODE, HALF_FOLDERS, NO_SEGMENT, MUCH_MEMORY, KINDS };
    static const char *const why[] = {"no algorithm \"none\"", "mode \"dreaming\" is unknown",
                                      "a source folder needs a target folder",
                                      "a round of 0 bytes a block", "bytes of memory here"};
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        struct node n;
        struct exchange_info info;
        Peer__Prepare prepare = PEER__PREPARE__INIT;
        Peer__Head head = PEER__HEAD__INIT;
        prepare.handle = HANDLE;
        prepare.id = (char[]){ID};
        prepare.dims = (char[]){"2m"};
        prepare.algorithm = kind == ALGORITHM ? (char[]){"none"} : (char[]){"direct"};
        prepare.mode = kind == MODE ? (char[]){"dreaming"} : (char[]){"stepped"};
        prepare.from = kind == HALF_FOLDERS ? (char[]){"/in"} : (char[]){""};
        prepare.window = 1;
        prepare.segment_bytes = kind == NO_SEGMENT ? 0 : kind == MUCH_MEMORY ? 1 << 30 : 1;
        prepare.timeout_ms = 1000;
        head.kind_case = PEER__HEAD__KIND_PREPARE;
        head.prepare = &prepare;
        open_node(&n);
        fixture_say(n.f.up[PORT], &head, NULL, 0);
        assert_non_null(n.f.up[PORT]->link); /* no fault of the peer */
        assert_int_equal(hear(&n), PEER__HEAD__KIND_ABORT);
        assert_int_equal(exchanges_list(n.exchanges, &info, 1), 1);
        assert_int_equal(info.state, EXCHANGE_FAILING); /* until the root has spoken */
        n.f.now += 10 * SECONDS;
        exchanges_tick(n.exchanges);
        assert_int_equal(exchanges_list(n.exchanges, &info, 1), 1);
        assert_int_equal(info.state, EXCHANGE_FAILED);
        if (strstr(info.reason, why[kind]) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", why[kind], info.reason);
        assert_int_equal(exchanges_reserved(n.exchanges), 0);
        close_node(&n);
    }
}

/* --- repetitions --- */

static void say_prepare_repeated(struct node *n, uint32_t repeat)
{
    Peer__Prepare prepare = PEER__PREPARE__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    prepare.handle = HANDLE;
    prepare.id = (char[]){ID};
    prepare.dims = (char[]){"2m"};
    prepare.algorithm = (char[]){"direct"};
    prepare.mode = (char[]){"stepped"};
    prepare.window = 1;
    prepare.segment_bytes = 1;
    prepare.timeout_ms = 60000;
    prepare.repeat = repeat;
    head.kind_case = PEER__HEAD__KIND_PREPARE;
    head.prepare = &prepare;
    fixture_say(n->f.up[PORT], &head, NULL, 0);
}

static void say_go(struct node *n, uint32_t repetition, uint64_t rounds)
{
    Peer__Go go = PEER__GO__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    go.exchange = HANDLE;
    go.repetition = repetition;
    go.rounds = rounds;
    head.kind_case = PEER__HEAD__KIND_GO;
    head.go = &go;
    fixture_say(n->f.up[PORT], &head, NULL, 0);
}

static void say_data(struct node *n, uint32_t round)
{
    Peer__SteppedData data = PEER__STEPPED_DATA__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    data.exchange = HANDLE;
    data.round = round;
    data.hops = 1;
    head.kind_case = PEER__HEAD__KIND_STEPPED_DATA;
    head.stepped_data = &data;
    fixture_say(n->f.up[PORT], &head, NULL, 0);
}

/* The moments of a session of two empty exchanges. */
enum session_moment { PREPARED, FIRST, BETWEEN, BETWEEN_WITH_DATA, SECOND, SESSION_MOMENTS };

static void reach_in_session(struct node *n, enum session_moment moment)
{
    open_node(n);
    say_prepare_repeated(n, 2);
    assert_int_equal(hear(n), PEER__HEAD__KIND_READY);
    if (moment >= FIRST) {
        say_go(n, 0, 1);
        assert_int_equal(hear(n), PEER__HEAD__KIND_STEPPED_DATA);
    }
    if (moment >= BETWEEN) {
        say_data(n, 0);
        assert_int_equal(hear(n), PEER__HEAD__KIND_REPEATED);
        assert_int_equal(hear(n), PEER__HEAD__KIND__NOT_SET); /* not before the next go */
    }
    if (moment >= BETWEEN_WITH_DATA)
        say_data(n, 1);
    if (moment >= SECOND) {
        say_go(n, 1, 1);
        assert_int_equal(hear(n), PEER__HEAD__KIND_STEPPED_DATA);
        assert_int_equal(hear(n), PEER__HEAD__KIND_DONE);
        assert_int_equal(state_of(n), EXCHANGE_COMMITTED);
    } else {
        assert_int_equal(state_of(n), moment == PREPARED ? EXCHANGE_READY : EXCHANGE_RUNNING);
    }
}

static void a_go_for_each_repetition(void **state)
{
    enum { GO_0, GO_1, GO_2, GO_1_LONGER, DATA_0, DATA_1, DATA_2, WORD_REPEATED, KINDS };
    static const bool has_a_place[SECOND][KINDS] = {
        [PREPARED][GO_0] = true, [PREPARED][DATA_0] = true, [FIRST][DATA_0] = true,
        [BETWEEN][GO_1] = true,  [BETWEEN][DATA_1] = true,  [BETWEEN_WITH_DATA][GO_1] = true,
    };
    struct node n;

    (void)state;
    reach_in_session(&n, SECOND);
    close_node(&n);
    for (enum session_moment moment = PREPARED; moment < SECOND; moment++)
        for (int kind = 0; kind < KINDS; kind++) {
            reach_in_session(&n, moment);
            if (kind <= GO_2)
                say_go(&n, (uint32_t)(kind - GO_0), 1);
            else if (kind == GO_1_LONGER)
                say_go(&n, 1, 2);
            else if (kind <= DATA_2)
                say_data(&n, (uint32_t)(kind - DATA_0));
            else
                say(&n, REPEATED);
            bool taken = n.f.up[PORT]->link != NULL;
            if (taken != has_a_place[moment][kind])
                fail_msg("moment %d: %d was %s (%s)", moment, kind, taken ? "taken" : "refused",
                         n.f.up[PORT]->last);
            close_node(&n);
        }
}

/* The middle one of three, with nothing to send: what it says of a repetition is what its child
 * says, if that was slower. Once, and in its turn. */
static void the_slowest_is_told_upwards(void **state)
{
    Peer__Prepare prepare = PEER__PREPARE__INIT;
    Peer__Ready ready = PEER__READY__INIT;
    Peer__Repeated repeated = PEER__REPEATED__INIT;
    Peer__Head head = PEER__HEAD__INIT, *heard;
    struct node n;

    (void)state;
    open_node_of(&n, "3m");
    fixture_link_up(&n.f, 1 - PORT);
    prepare.handle = ready.exchange = repeated.exchange = HANDLE;
    prepare.id = (char[]){ID};
    prepare.dims = (char[]){"3m"};
    prepare.algorithm = (char[]){"stream"};
    prepare.mode = (char[]){"streaming"};
    prepare.window = 1;
    prepare.segment_bytes = 1;
    prepare.timeout_ms = 60000;
    prepare.repeat = 3;
    head.kind_case = PEER__HEAD__KIND_PREPARE;
    head.prepare = &prepare;
    fixture_say(n.f.up[PORT], &head, NULL, 0);
    head.kind_case = PEER__HEAD__KIND_READY;
    head.ready = &ready;
    fixture_say(n.f.up[1 - PORT], &head, NULL, 0);
    assert_int_equal(hear(&n), PEER__HEAD__KIND_READY);
    say_go(&n, 0, 1);
    assert_int_equal(hear(&n), PEER__HEAD__KIND__NOT_SET); /* not before its child */
    repeated.nanoseconds = 123456789;
    head.kind_case = PEER__HEAD__KIND_REPEATED;
    head.repeated = &repeated;
    fixture_say(n.f.up[1 - PORT], &head, NULL, 0);
    heard = fixture_next(n.f.up[PORT], NULL, 0, NULL);
    assert_int_equal(heard->kind_case, PEER__HEAD__KIND_REPEATED);
    assert_int_equal(heard->repeated->repetition, 0);
    assert_int_equal(heard->repeated->nanoseconds, 123456789);
    peer__head__free_unpacked(heard, NULL);
    assert_non_null(n.f.up[1 - PORT]->link);
    fixture_say(n.f.up[1 - PORT], &head, NULL, 0); /* again */
    assert_null(n.f.up[1 - PORT]->link);
    close_node(&n);
}

static void a_session_that_is_too_long_is_refused(void **state)
{
    struct node n;

    (void)state;
    open_node(&n);
    say_prepare_repeated(&n, EXCHANGE_REPEAT_MOST + 1);
    assert_non_null(n.f.up[PORT]->link);
    assert_int_equal(hear(&n), PEER__HEAD__KIND_ABORT);
    close_node(&n);
    open_node(&n);
    say_prepare_repeated(&n, EXCHANGE_REPEAT_MOST);
    assert_int_equal(hear(&n), PEER__HEAD__KIND_READY);
    say_go(&n, 0, UINT64_MAX / EXCHANGE_REPEAT_MOST + 1);
    assert_null(n.f.up[PORT]->link);
    close_node(&n);
}

/* Node 2 says that all is well with it. */
static void say_link_state(struct node *n, unsigned port)
{
    Peer__LinkState__Entry entry = PEER__LINK_STATE__ENTRY__INIT, *entries = &entry;
    Peer__LinkState link_state = PEER__LINK_STATE__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    entry.rank = 2;
    entry.up = 3;
    link_state.n_entry = 1;
    link_state.entry = &entries;
    head.kind_case = PEER__HEAD__KIND_LINK_STATE;
    head.link_state = &link_state;
    fixture_say(n->f.up[port], &head, NULL, 0);
}

/* A link that has been down may have lost something: the exchange goes on over it no more, in
 * neither direction, but the link is as good as before for others. */
static void a_link_that_was_down_carries_the_exchange_no_more(void **state)
{
    struct node n;
    struct exchange_info info;
    (void)state;
    open_node_of(&n, "3");
    fixture_link_up(&n.f, 1 - PORT);
    say_link_state(&n, 1 - PORT);
    say(&n, PREPARE);
    assert_int_equal(hear(&n), PEER__HEAD__KIND_READY);
    fixture_link_up(&n.f, PORT); /* in place of the old one */
    say(&n, GO);
    assert_non_null(n.f.up[PORT]->link);
    assert_int_equal(hear(&n), PEER__HEAD__KIND__NOT_SET);
    assert_int_equal(state_of(&n), EXCHANGE_READY);
    say_of(&n, HANDLE + 1, PREPARE);
    assert_int_equal(hear(&n), PEER__HEAD__KIND_READY);
    n.f.now += 10 * SECONDS;
    exchanges_tick(n.exchanges);
    assert_int_equal(exchanges_list(n.exchanges, &info, 1), 1);
    assert_string_equal(info.id, "0-00000000-9");
    assert_int_equal(info.state, EXCHANGE_READY);
    close_node(&n);
}

/* Every allocation fails once: the exchange may fail of it, and nothing else. */
static bool run_out_of_memory(unsigned after, bool *committed)
{
    static const enum word life[] = {PREPARE, GO, DATA, COMMIT};
    struct exchange_info info[10];
    struct node n;

    open_node(&n);
    /* Others are known already: what uthash allocates for the first is not tested. */
    say_of(&n, HANDLE + 1, PREPARE);
    say_abort(&n, HANDLE + 2, "0-00000000-0", true);
    while (hear(&n) != PEER__HEAD__KIND__NOT_SET)
        ;
    memory_fails(after);
    for (size_t i = 0; i < sizeof life / sizeof life[0]; i++) {
        if (n.f.up[PORT]->link != NULL)
            say(&n, life[i]);
        while (hear(&n) != PEER__HEAD__KIND__NOT_SET)
            ;
    }
    bool fired = memory_failed();
    for (int i = 0; i < 20; i++) {
        n.f.now += 10 * SECONDS;
        router_tick(n.f.router);
        exchanges_tick(n.exchanges);
    }
    size_t known = exchanges_list(n.exchanges, info, 10);
    for (size_t i = 0; i < known; i++) {
        assert_true(info[i].state >= EXCHANGE_COMMITTED);
        if (strcmp(info[i].id, ID) == 0)
            assert_int_equal(n.committed, info[i].state == EXCHANGE_COMMITTED);
    }
    assert_int_equal(exchanges_reserved(n.exchanges), 0);
    *committed = n.committed;
    close_node(&n);
    return fired;
}

static void memory_may_run_out_at_any_moment(void **state)
{
    unsigned runs = 0;
    bool committed;
    (void)state;
    while (run_out_of_memory(runs, &committed)) {
        runs++;
        assert_in_range(runs, 1, 1000);
    }
    assert_true(committed); /* nothing has failed */
    assert_in_range(runs, 10, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_has_its_time),
        cmocka_unit_test(what_comes_after_the_end_is_ignored),
        cmocka_unit_test(the_roots_verdict_ends_it_at_any_moment),
        cmocka_unit_test(prepares_that_no_root_sends_are_refused),
        cmocka_unit_test(a_node_that_cannot_says_why),
        cmocka_unit_test(a_go_for_each_repetition),
        cmocka_unit_test(the_slowest_is_told_upwards),
        cmocka_unit_test(a_session_that_is_too_long_is_refused),
        cmocka_unit_test(a_link_that_was_down_carries_the_exchange_no_more),
        cmocka_unit_test(memory_may_run_out_at_any_moment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
