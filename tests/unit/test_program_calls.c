/* Calls of programs that break the rules, and many programs, stopped programs and dead programs: others are not
 * affected. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/unit/guest.h"

GUEST_TEST(test_wrong_calls)
{
    struct guest g;
    uint8_t *data;

    guest_open(&g, "calls");
    const int page = g.descriptor[0];
    const uint32_t number = guest_share(&g, 4096, &data);
    g.descriptor[0] = page;
    const struct program_request good = {.operation = GROUP_ALLTOALL,
                                         .part = 3,
                                         .size = 100,
                                         .send_memory = number,
                                         .send_size = 600,
                                         .receive_memory = number,
                                         .receive_offset = 3496,
                                         .receive_size = 600};
    const struct program_request counts = {.operation = GROUP_ALLTOALLV,
                                           .part = 3,
                                           .send_memory = number,
                                           .send_size = 1000,
                                           .receive_memory = number,
                                           .receive_size = 1000,
                                           .counts_memory = number,
                                           .counts_offset = 4096 - 4 * 6 * 8};
    memset(data, 0, 4096);
    assert_int_equal(guest_call(&g, &good), 0);
#define WRONG(from, field, value, words)                                                           \
    do {                                                                                           \
        struct program_request r = (from);                                                         \
        r.field = (value);                                                                         \
        assert_int_equal(guest_call(&g, &r), ERROR_USAGE);                                         \
        GUEST_SAYS(g.m.text, words);                                                               \
    } while (0)
    WRONG(good, receive_offset, 3497, "do not lie in shared memory");
    WRONG(good, receive_offset, UINT64_MAX, "do not lie");
    WRONG(good, send_offset, UINT64_MAX - 10, "do not lie");
    WRONG(good, send_size, UINT64_MAX, "do not lie");
    WRONG(good, send_memory, 2, "no shared memory 2");
    WRONG(good, send_memory, 0, "no shared memory 0");
    WRONG(good, receive_memory, UINT32_MAX, "no shared memory");
    WRONG(good, operation, 0, "operation 0");
    WRONG(good, operation, UINT32_MAX, "operation 4294967295");
    WRONG(good, part, 0, "no part");
    WRONG(good, part, 4, "no part with dimensions 0x4");
    WRONG(good, part, UINT32_MAX, "no part");
    WRONG(counts, counts_offset, 4096 - 4 * 6 * 8 + 1, "do not lie");
    WRONG(counts, counts_offset, UINT64_MAX - 7, "do not lie");
    WRONG(counts, counts_memory, 0, "no shared memory 0");
    WRONG(counts, counts_memory, 9, "no shared memory 9");
    assert_int_equal(guest_call(&g, &counts), 0);
    memset(data + 4096 - 4 * 6 * 8, 0xff, 4 * 6 * 8);
    assert_int_equal(guest_call(&g, &counts), ERROR_USAGE);
    assert_int_equal(guest_daemon.groups.calls, 2);
    assert_int_equal(guest_call(&g, &good), 0); /* and it can go on */
    (void)munmap(data, 4096);
    guest_close(&g);
    guest_expect_service(0);
}

/* What a program says about its data reaches the group; that of a program whose version has no such field is
 * unknown. */
GUEST_TEST(test_data_that_is_told)
{
    const struct program_request barrier = {
        .operation = GROUP_BARRIER, .part = 3, .data = {.type = REDUCTION_FLOAT64, .shape = 5}};

    for (uint32_t version = PROGRAM_OLDEST; version <= PROGRAM_VERSION; version++) {
        struct guest g;
        guest_version = version;
        guest_open(&g, "tells");
        assert_int_equal(guest_call(&g, &barrier), 0);
        const struct data_kind told = guest_daemon.groups.last.data;
        assert_int_equal(told.type, version >= 2 ? REDUCTION_FLOAT64 : 0);
        assert_int_equal(told.shape, version >= 2 ? 5 : 0);
        guest_close(&g);
        guest_expect_service(0);
    }
    guest_version = PROGRAM_VERSION;
}

GUEST_TEST(test_ring_that_jumps)
{
    static const uint32_t to[] = {PROGRAM_CALLS * PROGRAM_CALLS + 1, UINT32_MAX, UINT32_C(1) << 31};

    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        struct guest g;
        guest_open(&g, "jumps");
        atomic_store(&g.page->submitted, to[i]);
        guest_ring(&g);
        guest_expect_refusal(&g, ERROR_PROTOCOL, "more calls than there are slots");
        guest_close(&g);
        programs_await_groups(&guest_daemon, 0);
    }
    guest_expect_service(0);
}

/* The doorbell stays with the program. */
GUEST_TEST(test_ring_after_the_end)
{
    struct guest g;

    guest_open(&g, "late");
    guest_say(&g, PROGRAM_LEAVE, 0, 0, "");
    assert_int_equal(guest_hear(&g), 0);
    guest_expect_service(0); /* it has been freed */
    for (unsigned i = 0; i < 10; i++) {
        guest_ring(&g);
        guest_expect_service(0);
    }
    guest_close(&g);
}

GUEST_TEST(test_slot_in_use)
{
    struct guest g;

    guest_open(&g, "slots");
    programs_hold(&guest_daemon, true);
    for (unsigned i = 0; i < PROGRAM_CALLS; i++)
        g.page->slot[i].request =
            (struct program_request){.operation = GROUP_BARRIER, .part = 3, .number = i};
    atomic_store(&g.page->submitted, PROGRAM_CALLS);
    guest_ring(&g);
    while (atomic_load(&g.page->rung) != 0)
        (void)sched_yield();
    programs_hold(&guest_daemon, true); /* has been looked at */
    g.page->slot[1].request.number = PROGRAM_CALLS + 1;
    atomic_store(&g.page->submitted, PROGRAM_CALLS + 2);
    guest_ring(&g);
    guest_expect_refusal(&g, ERROR_PROTOCOL, "the slot of a call that has not ended");
    guest_close(&g);
    programs_hold(&guest_daemon, false);
    guest_expect_service(0);
}

/* Numbers that the program leaves out are no calls, whether or not their slots are in use; it may leave out many. */
GUEST_TEST(test_numbers_left_out)
{
    const uint32_t last = PROGRAM_CALLS * PROGRAM_CALLS - 1;
    struct guest g;

    guest_open(&g, "left out");
    programs_hold(&guest_daemon, true);
    for (unsigned i = 0; i < 3; i++)
        g.page->slot[i].request = (struct program_request){
            .operation = GROUP_BARRIER, .part = 3, .number = i * (PROGRAM_CALLS + 1)};
    atomic_store(&g.page->submitted, 2 * PROGRAM_CALLS + 3);
    guest_ring(&g);
    while (atomic_load(&g.page->rung) != 0)
        (void)sched_yield();
    programs_hold(&guest_daemon, false);
    while (atomic_load(&g.page->ended) != 3)
        (void)sched_yield();
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(atomic_load(&g.page->slot[i].ended), i * (PROGRAM_CALLS + 1) + 1);
    g.page->slot[last % PROGRAM_CALLS].request =
        (struct program_request){.operation = GROUP_BARRIER, .part = 3, .number = last};
    atomic_store(&g.page->submitted, last + 1);
    guest_ring(&g);
    while (atomic_load(&g.page->ended) != 4)
        (void)sched_yield();
    atomic_store(&g.page->submitted, last + 2 + PROGRAM_CALLS * PROGRAM_CALLS);
    guest_ring(&g);
    guest_expect_refusal(&g, ERROR_PROTOCOL, "more calls than there are slots");
    guest_close(&g);
    guest_expect_service(0);
}

struct scribbler {
    struct guest *guest;
    uint8_t *data;
    _Atomic bool stop;
};

/* Writes to requests and arrays all the time, mostly small numbers, from a thread of the program. */
static void *scribble(void *context)
{
    struct scribbler *s = context;
    uint32_t state = 1;

    while (!atomic_load(&s->stop))
        for (unsigned i = 0; i < PROGRAM_CALLS; i++) {
            volatile uint32_t *word = (volatile uint32_t *)&s->guest->page->slot[i].request;
            state = state * 1664525 + 1013904223;
            word[state >> 8 & 15] = state % 3 == 0 ? state : state >> 29;
            *(volatile uint32_t *)(s->data + (state >> 20 & 0x3ffc) % 4096) = state >> 22;
        }
    return NULL;
}

/* Sleeps until the page says that calls have ended, as libtorus does. */
struct sleeper {
    struct program_page *page;
    _Atomic pid_t thread;
    bool late;
};

static void *sleep_until_woken(void *context)
{
    struct sleeper *s = context;
    const struct timespec limit = {.tv_sec = 60};
    uint32_t ended = atomic_load(&s->page->ended);
    long result;

    atomic_store(&s->page->waiting, 1);
    atomic_store(&s->thread, gettid());
    do {
        result = syscall(SYS_futex, &s->page->ended, FUTEX_WAIT, ended, &limit, NULL, 0);
    } while (result != 0 && errno == EINTR);
    s->late = result != 0 && errno == ETIMEDOUT;
    return NULL;
}

static bool is_asleep(pid_t thread)
{
    char path[64], state = 'R';
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
    (void)fclose(file);
    return state == 'S';
}

/* A call ends once the other thread sleeps, so only the daemon can wake it. */
GUEST_TEST(test_sleeping_programs_are_woken)
{
    const struct program_request request = {.operation = GROUP_BARRIER, .part = 3};
    struct guest g;
    pthread_t thread;

    guest_open(&g, "sleeps");
    struct sleeper s = {.page = g.page};
    assert_int_equal(pthread_create(&thread, NULL, sleep_until_woken, &s), 0);
    while (atomic_load(&s.thread) == 0 || !is_asleep(s.thread))
        (void)sched_yield();
    assert_int_equal(guest_call(&g, &request), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(s.late);
    guest_close(&g);
    guest_expect_service(0);
}

GUEST_TEST(test_page_that_changes)
{
    struct scribbler s = {0};
    struct guest g;
    pthread_t thread;
    uint32_t number, failed = 0;
    int page;

    guest_open(&g, "changes");
    page = g.descriptor[0];
    number = guest_share(&g, 4096, &s.data);
    g.descriptor[0] = page;
    s.guest = &g;
    assert_int_equal(pthread_create(&thread, NULL, scribble, &s), 0);
    for (uint32_t k = 0; k < 5000; k++) {
        const struct program_request request = {.operation = 1 + k % (GROUP_OPERATIONS - 1),
                                                .part = 1 + k % 3,
                                                .type = 1,
                                                .operator= 1,
                                                .size = k % 100,
                                                .send_memory = number,
                                                .send_size = k % 100 * 6,
                                                .receive_memory = number,
                                                .receive_offset = 2000,
                                                .receive_size = k % 100 * 6,
                                                .counts_memory = number};
        failed += guest_call(&g, &request) != 0;
    }
    atomic_store(&s.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_in_range(failed, 1, 4999);
    (void)munmap(s.data, 4096);
    guest_close(&g);
    guest_expect_service(0);
}

/* The doorbell belongs to both sides: a program can make writing to it, or reading from it, wait for ever. */
GUEST_TEST(test_doorbell_that_blocks)
{
    const struct program_request barrier = {.operation = GROUP_BARRIER, .part = 3};
    uint64_t most = UINT64_MAX - 1;
    struct guest g;
    int fd;

    guest_open(&g, "blocks");
    fd = g.descriptor[PROGRAM_FD_DOORBELL];
    assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
    assert_int_equal(fcntl(g.descriptor[PROGRAM_FD_NOTICES], F_SETFL, 0), 0);
    assert_int_equal(guest_call(&g, &barrier), 0);
    assert_int_equal(read(fd, &most, sizeof most), sizeof most);
    most = UINT64_MAX - 2;
    assert_int_equal(write(fd, &most, sizeof most), sizeof most);
    guest_say(&g, PROGRAM_NOTICE, 0, 0, "");
    for (unsigned i = 0; i < 2000; i++) { /* notices that nobody reads */
        atomic_store(&g.page->noticed, 0);
        guest_say(&g, PROGRAM_NOTICE, 0, 0, "");
    }
    guest_expect_service(1);
    guest_close(&g);
    guest_expect_service(0);
}

/* ---- Many ------------------------------------------------------------------------------------ */

GUEST_TEST(test_ten_thousand_opens)
{
    struct guest g[40], more;
    char name[16];

    for (unsigned i = 0; i < 32; i++) {
        (void)snprintf(name, sizeof name, "g%u", i);
        guest_open(&g[i], name);
    }
    for (unsigned i = 0; i < 10000; i++) {
        struct program_message m = guest_message(PROGRAM_OPEN, 0, 0);
        (void)snprintf(m.text, sizeof m.text, "more");
        guest_connect(&more);
        (void)send(more.fd, &m, sizeof m, MSG_NOSIGNAL); /* it may have been refused already */
        guest_expect_refusal(&more, ERROR_BUSY, "a process can have at most 32");
        guest_close(&more);
    }
    for (unsigned i = 32; i < 40; i++)
        guest_connect(&g[i]); /* silent */
    for (unsigned i = 0; i < 1000; i++) {
        guest_connect(&more);
        guest_expect_refusal(&more, ERROR_BUSY, "a process can have at most 32");
        guest_close(&more);
    }
    assert_int_equal(
        guest_call(&g[31], &(struct program_request){.operation = GROUP_BARRIER, .part = 3}), 0);
    if (fork() == 0) { /* another process can */
        guest_connect(&more);
        guest_say(&more, PROGRAM_OPEN, 0, 0, "another");
        _exit(guest_hear(&more) == PROGRAM_OPENED ? 0 : 1);
    }
    int status;
    assert_true(wait(&status) > 0);
    assert_int_equal(status, 0);
    for (unsigned i = 0; i < 40; i++)
        guest_close(&g[i]);
    guest_open(&more, "g31"); /* at once */
    guest_close(&more);
    guest_expect_service(0);
}

static void many_strangers(struct programs_fixture *f, void *argument)
{
    *(uint64_t *)argument = uv_now(&f->loop);
}

/* A program that is stopped while calls end, and notices and answers are sent. */
GUEST_TEST(test_stopped)
{
    struct guest g;
    uint64_t now;

    guest_open(&g, "stopped");
    guest_say(&g, PROGRAM_NOTICE, 0, 0, "");
    for (unsigned i = 0; i < PROGRAM_CALLS; i++)
        g.page->slot[i].request =
            (struct program_request){.operation = GROUP_BARRIER, .part = 3, .number = i};
    atomic_store(&g.page->submitted, PROGRAM_CALLS);
    guest_ring(&g); /* and does nothing any more */
    programs_do(&guest_daemon, many_strangers, &now);
    guest_expect_service(1);
    while (atomic_load(&g.page->ended) != PROGRAM_CALLS)
        (void)sched_yield();
    guest_close(&g);
    guest_expect_service(0);
}

/* A program that asks and never reads is closed when there is no room for answers. */
GUEST_TEST(test_answers_not_read)
{
    struct guest g;
    unsigned sent = 0;

    guest_open(&g, "deaf");
    for (;; sent++) {
        struct program_message m = guest_message(PROGRAM_MEMORY, 0, 0);
        struct pollfd p = {g.fd, POLLOUT, 0};
        if (send(g.fd, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
            break;
        assert_int_equal(poll(&p, 1, -1), 1);
    }
    assert_true(sent > 1);
    guest_close(&g);
    guest_expect_service(0);
    GUEST_SAYS(guest_daemon.groups.why.text, "does not read");
}

static void die_after_asking(struct programs_fixture *f, void *argument)
{
    struct guest *g = argument;

    guest_say(g, PROGRAM_MEMORY, 0, 4096, "");
    guest_close(g);
}

/* A program that asks, and is gone before the answer, has died; it has broken no rule. */
GUEST_TEST(test_death_before_an_answer)
{
    struct guest g;

    guest_open(&g, "dead");
    programs_do(&guest_daemon, die_after_asking, &g);
    programs_await_groups(&guest_daemon, 0);
    GUEST_SAYS(guest_daemon.groups.why.text, "the program of node 4 has died");
    guest_expect_service(0);
}

/* A program that has closed descriptors that it did not know learns from the page that its group has failed, before it
 * writes to the file that has taken the descriptor of its doorbell. */
GUEST_TEST(test_connection_closed_by_mistake)
{
    struct guest g;

    guest_open(&g, "closed");
    (void)shutdown(g.fd, SHUT_RDWR);
    programs_await_groups(&guest_daemon, 0);
    guest_expect_service(0);
    assert_int_equal(atomic_load(&g.page->failed), 1);
    assert_int_equal(g.page->failure.code, ERROR_CANCELLED);
    GUEST_SAYS(g.page->failure.text,
               "the program of node 4 has died, or has ended without closing");
    guest_close(&g);
}

GUEST_TEST(test_no_descriptor_stays)
{
    struct guest g;
    uint8_t *data;
    unsigned before = programs_descriptors();
    int page;

    for (unsigned i = 0; i < 100; i++) {
        guest_open(&g, "leaks");
        page = g.descriptor[0];
        if (i % 3 != 0) {
            (void)guest_share(&g, 4096, &data);
            (void)munmap(data, 4096);
        }
        if (i % 4 == 0) {
            guest_say(&g, PROGRAM_MEMORY, 0, 4096, "");
            if (i % 8 == 0) {
                assert_int_equal(guest_hear(&g), PROGRAM_FILE);
                (void)close(g.descriptor[0]);
            }
        }
        g.descriptor[0] = page;
        if (i % 5 == 0)
            guest_say(&g, PROGRAM_LEAVE, 0, 0, "");
        guest_close(&g);
        programs_await_groups(&guest_daemon, 0);
    }
    guest_expect_service(0);
    assert_int_equal(programs_descriptors(), before);
}
