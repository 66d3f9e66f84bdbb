/* Groups of libtorus that fail, and processes that die or fork. */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/torusd/program/program.h"
#include "tests/support/cmocka.h"
#include "tests/unit/client_group_fixture.h"

CLIENT_GROUP_TEST(test_group_fails)
{
    struct torus_group *g = client_group_open(), *again, *part;
    struct torus_call *call[3];
    uint8_t buffer[100];
    int fd = torus_group_fd(g);

    programs_hold(&client_group_daemon, true);
    for (unsigned i = 0; i < 3; i++)
        OK(torus_start_broadcast(g, buffer, 100, 4, &call[i], &client_group_error));
    programs_do(&client_group_daemon, client_group_fail_all, "node 5 is down");
    assert_true(client_group_is_readable(fd, -1));
    FAILS(TORUS_ERROR_TIMEOUT, "node 5 is down", torus_call_wait(call[1], &client_group_error));
    FAILS(TORUS_ERROR_TIMEOUT, "node 5 is down", torus_call_test(call[0], &client_group_error));
    FAILS(TORUS_ERROR_TIMEOUT, "node 5 is down", torus_call_wait(call[2], &client_group_error));
    programs_await_groups(&client_group_daemon, 0);
    for (unsigned i = 0; i < 100; i++)
        FAILS(TORUS_ERROR_TIMEOUT, "node 5 is down", torus_barrier(g, &client_group_error));
    FAILS(TORUS_ERROR_TIMEOUT, "node 5 is down",
          torus_group_part(g, 1, &part, &client_group_error));
    FAILS(TORUS_ERROR_TIMEOUT, "node 5 is down",
          torus_memory_new(g, 1, &client_group_error) != NULL ? 0 : -1);
    programs_hold(&client_group_daemon, false);
    OK(client_group_open_named(NULL, 0, &again)); /* the name is free */
    OK(torus_barrier(again, &client_group_error));
    torus_group_close(again);
    torus_group_close(g);
}

/* Stands in for the one that libtorus calls. */
static unsigned slow_allocations;

int fallocate(int fd, int mode, off_t offset, off_t length)
{
    const struct timespec longer = {.tv_sec = MEMORY_UNUSED_MS / 1000 + 2};

    if (slow_allocations > 0) {
        slow_allocations--;
        (void)nanosleep(&longer, NULL);
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, length);
}

/* The daemon releases memory that a program does not allocate in time; a program that was only slow tries again. */
CLIENT_GROUP_TEST(test_slow_allocation)
{
    struct torus_group *g = client_group_open();
    uint8_t *memory;

    slow_allocations = 1;
    memory = torus_memory_new(g, 5000, &client_group_error);
    if (memory == NULL)
        fail_msg("%s", client_group_error.text);
    assert_int_equal(slow_allocations, 0);
    memory[4999] = 1;
    OK(torus_broadcast(g, memory, 5000, 0, &client_group_error));
    torus_group_close(g);
}

static void close_all(struct programs_fixture *f, void *argument)
{
    static const struct access_rules everybody;
    const struct programs_setup setup = {&f->loop, f->control, &f->groups, &everybody, f->shares};

    programs_close(f->programs);
    f->programs = programs_open(&setup, NULL);
}

CLIENT_GROUP_TEST(test_daemon_goes)
{
    struct torus_group *g = client_group_open(), *again;
    struct torus_call *call[2];
    int fd = torus_group_fd(g);

    programs_hold(&client_group_daemon, true);
    OK(torus_start_barrier(g, &call[0], &client_group_error));
    OK(torus_start_barrier(g, &call[1], &client_group_error));
    programs_do(&client_group_daemon, close_all, NULL);
    assert_true(client_group_is_readable(fd, -1));
    FAILS(TORUS_ERROR_LOST, "has gone away", torus_call_wait(call[1], &client_group_error));
    FAILS(TORUS_ERROR_LOST, "has gone away", torus_call_test(call[0], &client_group_error));
    FAILS(TORUS_ERROR_LOST, "has gone away", torus_barrier(g, &client_group_error));
    FAILS(TORUS_ERROR_LOST, "has gone away",
          torus_memory_new(g, 1, &client_group_error) != NULL ? 0 : -1);
    torus_group_close(g);
    programs_hold(&client_group_daemon, false);
    OK(client_group_open_named(NULL, 0, &again));
    OK(torus_barrier(again, &client_group_error));
    torus_group_close(again);
}

static volatile sig_atomic_t alarms;

static void count_alarm(int signal)
{
    if (++alarms == 1000) { /* twenty seconds: it would wait for ever */
        static const char text[] = "the daemon is gone, and its program still waits\n";
        ssize_t n = write(STDERR_FILENO, text, sizeof text - 1);
        (void)n;
        _exit(1);
    }
}

/* A program with a timer: a wait continues after each signal, and still ends. */
CLIENT_GROUP_TEST(test_daemon_goes_under_signals)
{
    const struct itimerval often = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
    const struct sigaction count = {.sa_handler = count_alarm};
    struct torus_group *g = client_group_open();
    struct sigaction before;
    struct torus_call *call;

    programs_hold(&client_group_daemon, true);
    OK(torus_start_barrier(g, &call, &client_group_error));
    programs_do(&client_group_daemon, close_all, NULL);
    alarms = 0;
    assert_int_equal(sigaction(SIGALRM, &count, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    FAILS(TORUS_ERROR_LOST, "has gone away", torus_call_wait(call, &client_group_error));
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    torus_group_close(g);
}

CLIENT_GROUP_TEST(test_calls_given_up)
{
    struct torus_group *g = client_group_open();
    struct torus_call *call;
    uint8_t from[600] = {0}, to[600];

    programs_hold(&client_group_daemon, true);
    OK(torus_start_alltoall(g, from, to, 100, &call, &client_group_error));
    torus_group_close(g);
    programs_await_groups(&client_group_daemon, 0);
    assert_int_equal(client_group_daemon.groups.closed, 1);
}

/* A killed program fails the group; one that leaves does not. */
CLIENT_GROUP_TEST(test_death)
{
    int status;

    for (unsigned i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct torus_group *g;
            if (client_group_open_named("mortal", 0, &g) != 0 ||
                torus_barrier(g, &client_group_error) != 0)
                _exit(1);
            if (i == 1)
                (void)kill(getpid(), SIGKILL);
            torus_group_close(g);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(i == 0 ? WIFEXITED(status) && WEXITSTATUS(status) == 0 : WIFSIGNALED(status));
        programs_await_groups(&client_group_daemon, 0);
        assert_int_equal(client_group_daemon.groups.closed, 1);
        assert_int_equal(client_group_daemon.groups.abandoned, i);
    }
    assert_contains(client_group_daemon.groups.why.text, "program of node 4 has died");
}

/* A forked child also has the socket, and lives on. */
CLIENT_GROUP_TEST(test_death_of_a_parent)
{
    int status, ends[2];
    char byte;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        struct torus_group *g;
        (void)close(ends[1]);
        if (client_group_open_named("parent", 0, &g) != 0 ||
            torus_barrier(g, &client_group_error) != 0)
            _exit(1);
        if (fork() == 0)
            _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1); /* until the test ends */
        _exit(2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), 2);
    programs_await_groups(&client_group_daemon, 0);
    assert_int_equal(client_group_daemon.groups.abandoned, 1);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* Whatever a forked child does with its copy of a group, the parent's group stays. */
CLIENT_GROUP_TEST(test_children)
{
    struct torus_group *g = client_group_open();
    uint8_t *memory = torus_memory_new(g, 6 * 100, &client_group_error), from[6 * 100];
    struct torus_call *call;
    int status;

    client_group_fill(from, sizeof from, 1);
    OK(torus_start_alltoall(g, from, memory, 100, &call, &client_group_error));
    pid_t child = fork();
    if (child == 0) {
        bool refused = torus_barrier(g, &client_group_error) != 0 &&
                       client_group_error.code == TORUS_ERROR_USAGE &&
                       torus_memory_new(g, 100, &client_group_error) == NULL &&
                       client_group_error.code == TORUS_ERROR_USAGE;
        torus_memory_free(g, memory);
        torus_group_close(g);
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    OK(torus_call_wait(call, &client_group_error));
    client_group_expect(memory, sizeof from, 1);
    client_group_fill(memory, sizeof from, 2);
    OK(torus_alltoall(g, memory, from, 100, &client_group_error));
    client_group_expect(from, sizeof from, 2);
    torus_memory_free(g, memory);
    torus_group_close(g);
    programs_await_groups(&client_group_daemon, 0);
    assert_int_equal(client_group_daemon.groups.abandoned, 0);
}
