/* Tests how the preloads remember calls that stay with MPI while communicators take a lane from each other: one process of
 * two, with the test's functions in place of MPI, of lanes and of the daemon. */
#include <pthread.h>
#include <string.h>

#include "client/mpi/communicators/communicator.h"
#include "client/mpi/job/job.h"
#include "client/mpi/job/statistics.h"
#include "client/mpi/library/errors.h"
#include "client/mpi/library/real.h"
#include "tests/support/cmocka.h"

#define COMMS 3
#define COMM(n) ((MPI_Comm)(intptr_t)(n))
#define RANKS 2u

static struct communicator *record[COMMS + 1]; /* the attribute of each communicator */
static MPI_Comm_delete_attr_function *delete_record;
static unsigned questions;     /* votes in this call */
static void (*deciding)(void); /* called while the votes are combined that decide */
static bool has_room;          /* for groups of communicators */
static uint64_t now;           /* in nanoseconds */

/* ---- The job --------------------------------------------------------------------------------- */

void job_lock(void)
{
}

void job_unlock(void)
{
}

void job_wait(pthread_cond_t *condition)
{
    fail_msg("a call waits");
}

bool job_is_all(uint32_t dimensions)
{
    return dimensions == 1;
}

bool job_has_part(uint32_t dimensions)
{
    return dimensions == 1;
}

void job_fail(const struct torus_error *error)
{
    fail_msg("%s", error->text);
}

bool job_has_failed(struct torus_error *error)
{
    return false;
}

unsigned lanes_count(void)
{
    return LANES_MOST; /* no other one can be opened */
}

struct torus_group *lanes_part(unsigned lane, uint32_t dimensions)
{
    return lane == 0 ? (struct torus_group *)(uintptr_t)64 : NULL;
}

void lanes_enter(void)
{
}

void lanes_leave(void)
{
}

int lanes_open_another(struct torus_error *error)
{
    fail_msg("another lane");
    return -1;
}

void lanes_keep_another(void)
{
}

void lanes_close_another(void)
{
}

bool lanes_have_room_for_own(void)
{
    return has_room;
}

int lanes_open_own(uint32_t first, uint32_t number, const uint32_t *nodes, uint32_t count,
                   struct torus_group **group, struct torus_error *error)
{
    assert_true(has_room);
    assert_int_equal(count, RANKS);
    *group = (struct torus_group *)(uintptr_t)128;
    return 0;
}

void lanes_close_own(struct torus_group *group)
{
}

void fibers_start(struct fiber_line *line)
{
}

uint64_t statistics_now(void)
{
    return now;
}

const char *reason_text(enum reason reason)
{
    return "";
}

int neighborhood_read(struct communicator *c)
{
    return 0;
}

void neighborhood_free(struct neighborhood *n)
{
}

int attribute_stays(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    *flag = 0;
    return MPI_SUCCESS;
}

/* ---- MPI ------------------------------------------------------------------------------------- */

static int create_keyval(MPI_Comm_copy_attr_function *copy, MPI_Comm_delete_attr_function *delete,
                         int *keyval, void *extra)
{
    delete_record = delete;
    *keyval = 1;
    return MPI_SUCCESS;
}

static int get_attr(MPI_Comm comm, int keyval, void *value, int *found)
{
    struct communicator *const c = record[(intptr_t)comm];

    *found = c != NULL;
    memcpy(value, &c, sizeof c);
    return MPI_SUCCESS;
}

static int set_attr(MPI_Comm comm, int keyval, void *value)
{
    record[(intptr_t)comm] = value;
    return MPI_SUCCESS;
}

static int comm_size(MPI_Comm comm, int *size)
{
    *size = RANKS;
    return MPI_SUCCESS;
}

static int is_zero(MPI_Comm comm, int *value)
{
    *value = 0;
    return MPI_SUCCESS;
}

static int comm_group(MPI_Comm comm, MPI_Group *group)
{
    memset(group, 0, sizeof *group);
    return MPI_SUCCESS;
}

static int translate(MPI_Group group, int count, const int *ranks, MPI_Group other, int *result)
{
    memcpy(result, ranks, (size_t)count * sizeof *ranks);
    return MPI_SUCCESS;
}

static int group_free(MPI_Group *group)
{
    return MPI_SUCCESS;
}

static int no_handler(MPI_Comm comm, MPI_Errhandler *handler)
{
    return MPI_ERR_OTHER;
}

/* The other rank votes as this one does. */
static int allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op,
                     MPI_Comm comm)
{
    memcpy(receive, send, (size_t)count * sizeof(int));
    if (++questions == 2 && deciding != NULL)
        deciding();
    return MPI_SUCCESS;
}

/* ---- Communicators --------------------------------------------------------------------------- */

static struct job_process processes[RANKS] = {{0, true}, {1, true}};

static int begin(void **state)
{
    memset(record, 0, sizeof record);
    job = (struct job){.dims = 1,
                       .size = {RANKS},
                       .nodes = RANKS,
                       .per_node = 1,
                       .processes = RANKS,
                       .process = processes,
                       .threaded = true,
                       .leads = true};
    mpi.world = COMM(1);
    real.Comm_create_keyval = create_keyval;
    real.Comm_get_attr = get_attr;
    real.Comm_set_attr = set_attr;
    real.Comm_size = comm_size;
    real.Comm_rank = is_zero;
    real.Comm_test_inter = is_zero;
    real.Comm_group = comm_group;
    real.Group_translate_ranks = translate;
    real.Group_free = group_free;
    real.Comm_get_errhandler = no_handler;
    real.Allreduce = allreduce;
    deciding = NULL;
    has_room = false;
    now = 1;
    processes[1].leads = true;
    sharing_begin(communicator_of(COMM(1)));
    return 0;
}

static void free_comm(intptr_t n)
{
    if (record[n] != NULL)
        (void)delete_record(COMM(n), 1, record[n], NULL);
    record[n] = NULL;
}

static int end(void **state)
{
    for (intptr_t n = 1; n <= COMMS; n++)
        free_comm(n);
    job = (struct job){0};
    return 0;
}

static struct call_kind kind_of(intptr_t n)
{
    return (struct call_kind){.caller = record, .comm = COMM(n), .count = 4};
}

/* A call that goes the long way. Returns the reason why it cannot use the torus. */
static enum reason call_on(intptr_t n)
{
    struct communicator *c = communicator_of(COMM(n));
    enum reason reason;

    questions = 0;
    reason = communicator_enter(c);
    if (reason == REASON_SERVED)
        communicator_leave(c);
    return reason;
}

/* A call that goes the long way, and that is remembered. */
static void remember(intptr_t n)
{
    const struct call_kind kind = kind_of(n);

    assert_int_equal(call_on(n), REASON_SERVED);
    call_remember(OPERATION_Bcast, &kind, record[n], NULL);
}

static bool stays(intptr_t n)
{
    const struct call_kind kind = kind_of(n);

    return call_stays(OPERATION_Bcast, &kind);
}

static unsigned decisions;

static void owner_is_held(void)
{
    decisions++;
    assert_false(stays(1));
}

/* Makes calls on a communicator until it owns the lane. */
static void take_lane(intptr_t n)
{
    unsigned calls = 0;

    while (call_on(n) != REASON_SERVED)
        assert_true(++calls < 100);
}

TEST_WITH(begin, end, remembered_calls_are_counted)
{
    const struct call_kind other = {.caller = record, .comm = COMM(1), .count = 5};

    remember(1);
    for (unsigned i = 0; i < 10; i++)
        assert_true(stays(1));
    assert_false(call_stays(OPERATION_Bcast, &other));
    assert_false(call_stays(OPERATION_Barrier, &other));
    assert_int_equal(communicator_calls(record[1]), 11);
    assert_true((atomic_load(&record[1]->calls) & CALLS_OF_THREADS) != 0);
}

/* The votes have the number of the owner's calls, which must not change until all ranks know the owner. */
TEST_WITH(begin, end, a_lane_is_not_taken_from_a_call_that_passes)
{
    struct torus_group *group;

    remember(1);
    decisions = 0;
    deciding = owner_is_held;
    take_lane(2);
    assert_int_equal(decisions, 1);
    assert_false(stays(1)); /* the lane is gone: at ranks that have not remembered the call, too */
    assert_int_equal(call_on(1), REASON_ORDER);
    assert_int_equal(communicator_calls(record[1]), 2);
    assert_false(communicator_begin_request(record[1], &group));
    assert_false(stays(1));
    remember(2);
    assert_true(stays(2));
}

/* After a question that has changed nothing, calls pass again. */
TEST_WITH(begin, end, calls_pass_after_a_question)
{
    remember(1);
    for (unsigned i = 0; i < 64; i++) {
        for (unsigned k = 0; k < 20; k++)
            assert_true(stays(1));
        assert_int_not_equal(call_on(2), REASON_SERVED);
    }
}

TEST_WITH(begin, end, calls_wait_for_requests)
{
    struct torus_group *group;

    remember(1);
    assert_true(communicator_begin_request(record[1], &group));
    assert_false(stays(1));
    communicator_end_request(record[1]);
    assert_true(stays(1));
}

/* Its handle may be that of another communicator soon. */
TEST_WITH(begin, end, calls_of_a_freed_communicator_are_forgotten)
{
    take_lane(2);
    remember(2);
    assert_true(stays(2));
    free_comm(2);
    assert_false(stays(2));
}

TEST_WITH(begin, end, one_thread_asks_for_a_lane)
{
    uint32_t calls;

    job.threaded = false;
    take_lane(3);
    remember(3);
    calls = communicator_calls(record[3]);
    assert_true(stays(3)); /* without a lane of its own */
    assert_int_equal(communicator_calls(record[3]), calls + 1);
    communicator_wants_lane(record[3]);
    assert_false(stays(3));
}

/* A call on a communicator without a lane. */
static void remember_unserved(intptr_t n)
{
    const struct call_kind kind = kind_of(n);

    assert_int_not_equal(call_on(n), REASON_SERVED);
    call_remember(OPERATION_Bcast, &kind, record[n], &staying_unserved);
}

/* They pass until the ranks ask for a lane, at the same call as on ranks that remember nothing. */
TEST_WITH(begin, end, calls_without_a_lane_pass_until_a_question)
{
    const struct communicator *c;
    uint32_t asks = 0;

    remember(1);
    remember_unserved(2);
    c = record[2];
    for (unsigned i = 0; i < 1000; i++) {
        assert_true(stays(1)); /* often enough to keep the lane */
        assert_true(stays(1));
        if (stays(2))
            continue;
        assert_int_equal(communicator_calls(c) + 1, c->share.ask_at);
        assert_int_not_equal(call_on(2), REASON_SERVED);
        assert_true(questions > 0);
        asks++;
    }
    assert_in_range(asks, 8, 10); /* at calls 2, 4, 8... */
    assert_int_equal(communicator_calls(c), 1001);
}

/* What was remembered without a lane does not count with one, and the reverse. */
TEST_WITH(begin, end, a_lane_ends_what_was_remembered)
{
    remember(1);
    remember_unserved(2);
    take_lane(2);
    assert_false(stays(2));
    remember(2);
    assert_true(stays(2));
    remember_unserved(1);
    take_lane(1);
    assert_false(stays(2));
    assert_int_not_equal(call_on(2), REASON_SERVED);
}

static int is_inter(MPI_Comm comm, int *inter)
{
    *inter = 1;
    return MPI_SUCCESS;
}

TEST_WITH(begin, end, calls_that_are_never_served_pass)
{
    real.Comm_test_inter = is_inter;
    for (unsigned t = 0; t < 2; t++) {
        job.threaded = t == 1;
        remember_unserved(3);
        for (unsigned i = 0; i < 5000; i++)
            assert_true(stays(3));
        free_comm(3);
    }
}

#define HALF_A_SECOND UINT64_C(500000000)

/* Makes calls on communicator 3, whose nodes form no part, until it has a group. Returns their number, or 1000. */
static uint32_t calls_without_group(enum job_ways ways)
{
    uint32_t calls = 0;

    job.ways = ways;
    has_room = true;
    processes[1].leads = false;
    while (calls < 1000 && call_on(3) != REASON_SERVED)
        calls++;
    return calls;
}

/* A program may make many communicators for a few calls, and opening a group takes long. */
TEST_WITH(begin, end, a_group_must_pay_off)
{
    assert_int_equal(calls_without_group(WAYS_FASTER), 1000);
    now += HALF_A_SECOND - 1;
    assert_int_equal(calls_without_group(WAYS_FASTER), 1000);
    now++;
    assert_true(calls_without_group(WAYS_FASTER) < 1000);
    assert_int_equal(call_on(3), REASON_SERVED);
    assert_false(stays(3));
}

/* So that runs are alike, whatever the clock says. */
TEST_WITH(begin, end, a_group_is_opened_at_a_fixed_call)
{
    for (unsigned run = 0; run < 2; run++) {
        now += run * HALF_A_SECOND;
        assert_int_equal(calls_without_group(WAYS_FIXED), 15);
        free_comm(3);
        assert_int_equal(calls_without_group(WAYS_TORUS), 1);
        free_comm(3);
    }
}

#define WRITES 5000000

/* Two kinds that share an entry. */
static struct call_kind shared_kind[2];
static struct communicator of_kind[2];
static _Atomic bool written;

static void *write_entries(void *context)
{
    for (unsigned i = 0; i < WRITES; i++)
        call_remember(OPERATION_Barrier, &shared_kind[i % 2], &of_kind[i % 2], NULL);
    atomic_store(&written, true);
    return NULL;
}

/* Threads that read an entry while another one writes it get what belongs together. */
TEST_WITH(begin, end, entries_are_whole)
{
    const struct staying *entry;
    struct communicator *c;
    struct choice *choice;
    pthread_t thread;

    shared_kind[0] = shared_kind[1] = kind_of(1);
    entry = staying_at(OPERATION_Barrier, &shared_kind[0]);
    do
        shared_kind[1].count++;
    while (staying_at(OPERATION_Barrier, &shared_kind[1]) != entry);
    atomic_store(&written, false);
    assert_int_equal(pthread_create(&thread, NULL, write_entries, NULL), 0);
    for (unsigned i = 0; !atomic_load(&written); i++)
        if (staying_is_for(staying_at(OPERATION_Barrier, &shared_kind[i % 2]), &shared_kind[i % 2],
                           &c, &choice))
            assert_ptr_equal(c, &of_kind[i % 2]);
    assert_int_equal(pthread_join(thread, NULL), 0);
}
