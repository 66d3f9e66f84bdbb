#include "client/mpi/job/fibers.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "client/mpi/job/job.h"
#include "client/mpi/job/statistics.h"

#define STACK ((size_t)256 << 10) /* only touched pages need memory */
#define IDLE_STACKS 16u           /* unused stacks that are kept */

/* Nanoseconds of a rest: between two looks at requests of MPI; otherwise, if MPI is idle and if it is busy. */
#define MIXED_LEAST 20000u
#define MIXED_MOST 1000000u
#define IDLE_LEAST 1000000u
#define IDLE_MOST 10000000u
#define BUSY 100000u

struct fiber {
    struct fiber *next; /* in the order in which they were begun */
    struct fiber_line *line;
    void (*body)(void *context);
    void (*ended)(void *context);
    void *context;
    ucontext_t here, caller;
    struct stack *stack;
    bool started; /* the fiber counts no more in line->unstarted */
    bool turn;
    bool has_ended;
    unsigned
        watchers; /* threads in torus_call_pause() with `call`, which must not be ended meanwhile */
    struct torus_call *call;
    int result; /* of the call */
    struct torus_error error;
};

/* At the low end of a stack, after a page that is not accessible. */
struct stack {
    struct stack *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects all of the following */
static struct fiber *fibers, **end = &fibers;
static struct stack *idle;
static unsigned idle_count;
static uint64_t pass;
static _Atomic unsigned count; /* fibers that have not ended */
static unsigned unstarted;     /* those that have not started their call */

static _Thread_local struct fiber *current;

static void lock(void)
{
    if (job_has_threads())
        (void)pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    if (job_has_threads())
        (void)pthread_mutex_unlock(&mutex);
}

/* ---- Stacks ---------------------------------------------------------------------------------- */

static struct stack *new_stack(void)
{
    struct stack *s = idle;
    char *at;

    if (s != NULL) {
        idle = s->next;
        idle_count--;
        return s;
    }
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    at = mmap(NULL, page + STACK, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    (void)mprotect(at, page, PROT_NONE);
    return (struct stack *)(void *)(at + page);
}

static void free_stack(struct stack *s)
{
    if (idle_count == IDLE_STACKS) {
        const size_t page = (size_t)sysconf(_SC_PAGESIZE);
        (void)munmap((char *)s - page, page + STACK);
        return;
    }
    s->next = idle;
    idle = s;
    idle_count++;
}

/* ---- Switching ------------------------------------------------------------------------------- */

/* A fiber may continue in another thread than before, so nothing in it may keep the address of `current`. */
__attribute__((noinline)) static struct fiber *here(void)
{
    return current;
}

static void yield(void)
{
    struct fiber *f = here();

    (void)swapcontext(&f->here, &f->caller);
}

static void start(struct fiber *f)
{
    if (f->started)
        return;
    f->started = true;
    f->line->unstarted--;
    unstarted--;
}

static void run(void)
{
    struct fiber *f = here();

    f->body(f->context);
    start(f);
    f->has_ended = true;
}

/* Continues the fiber until it waits or ends. Returns whether it waits. */
static bool resume(struct fiber *f)
{
    current = f;
    (void)swapcontext(&f->caller, &f->here);
    current = NULL;
    if (!f->has_ended)
        return true;
    for (struct fiber **at = &fibers; *at != NULL; at = &(*at)->next)
        if (*at == f) {
            *at = f->next;
            if (end == &f->next)
                end = at;
            break;
        }
    free_stack(f->stack);
    atomic_fetch_sub_explicit(&count, 1, memory_order_relaxed);
    f->ended(f->context);
    return false;
}

/* Returns whether the fiber can be run on its stack. */
static bool prepare(struct fiber *f)
{
    if (getcontext(&f->here) != 0)
        return false;
    f->here.uc_stack.ss_sp = f->stack;
    f->here.uc_stack.ss_size = STACK;
    f->here.uc_link = &f->caller;
    makecontext(&f->here, run, 0);
    return true;
}

/* ---- The starter ----------------------------------------------------------------------------- */

/* Only so many calls can be under way. Those that come after them start when others have ended: in the next call of MPI in
 * which fibers make progress, or by this thread, because the program may wait in another function of MPI, for a rank that
 * waits for these calls. The thread calls no function of MPI, which may not allow other threads. */
static struct {
    pthread_once_t once;
    pthread_t thread;
    bool exists, stops;
    pthread_cond_t wanted; /* a fiber waits to start its call, or the thread is to stop */
} starter = {.once = PTHREAD_ONCE_INIT, .wanted = PTHREAD_COND_INITIALIZER};

static _Thread_local bool is_starter;

static void start_calls(void)
{
    pass++;
    for (struct fiber *f = fibers; f != NULL; f = f->next) {
        f->turn = !f->started && f->line->stuck != pass;
        if (f->turn && resume(f) && !f->started)
            f->line->stuck = pass;
    }
}

static void *run_starter(void *ignored)
{
    (void)ignored;
    is_starter = true;
    lock();
    while (!starter.stops) {
        if (unstarted == 0) {
            (void)pthread_cond_wait(&starter.wanted, &mutex);
            continue;
        }
        start_calls();
        unlock();
        (void)poll(NULL, 0, 1);
        lock();
    }
    unlock();
    return NULL;
}

/* From now on there are several threads, so nothing may be locked here. */
static void create_starter(void)
{
    sigset_t all, old;

    job.has_starter = true;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old); /* the program's signals are not for it */
    starter.exists = pthread_create(&starter.thread, NULL, run_starter, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void fibers_end(void)
{
    if (!starter.exists)
        return;
    lock();
    starter.stops = true;
    (void)pthread_cond_signal(&starter.wanted);
    unlock();
    (void)pthread_join(starter.thread, NULL);
    starter.exists = false;
}

/* ---- Beginning ------------------------------------------------------------------------------- */

struct fiber *fiber_begin(void (*body)(void *context), void (*ended)(void *context), void *context,
                          struct fiber_line *line)
{
    struct fiber *f = calloc(1, sizeof *f);
    bool is_late;

    if (f == NULL)
        return NULL;
    lock();
    f->stack = new_stack();
    if (f->stack == NULL || !prepare(f)) {
        if (f->stack != NULL)
            free_stack(f->stack);
        unlock();
        free(f);
        return NULL;
    }
    f->line = line;
    f->body = body;
    f->ended = ended;
    f->context = context;
    f->turn = line->unstarted++ == 0;
    unstarted++;
    *end = f;
    end = &f->next;
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    is_late = resume(f) && !f->started;
    if (is_late)
        (void)pthread_cond_signal(&starter.wanted);
    unlock();
    if (is_late)
        (void)pthread_once(&starter.once, create_starter);
    return f;
}

void fiber_free(struct fiber *f)
{
    free(f);
}

/* ---- In a fiber ------------------------------------------------------------------------------ */

bool fiber_is_here(void)
{
    return here() != NULL;
}

void fiber_await_turn(void)
{
    struct fiber *f = here();

    while (f != NULL && !f->turn)
        yield();
}

void fiber_lose_turn(void)
{
    here()->turn = false;
}

void fiber_has_started(void)
{
    if (here() != NULL)
        start(here());
}

/* As here(). */
__attribute__((noinline)) static bool is_in_starter(void)
{
    return is_starter;
}

void fiber_leave_starter(void)
{
    while (here() != NULL && is_in_starter())
        yield();
}

int fiber_await_call(struct torus_call *call, struct torus_error *error)
{
    struct fiber *f = here();

    f->call = call;
    f->result = 0;
    while (f->result == 0)
        yield();
    if (f->result < 0)
        *error = f->error;
    return f->result;
}

/* ---- Progress -------------------------------------------------------------------------------- */

/* Whether the fiber can continue. */
static bool is_ready(struct fiber *f)
{
    if (f->call == NULL) {
        f->turn = f->line->stuck != pass;
        return f->turn;
    }
    if (f->watchers > 0)
        return false;
    f->result = torus_call_poll(f->call, &f->error);
    if (f->result == 0)
        return false;
    f->call = NULL;
    return true;
}

/* Continues all fibers that are ready. The mutex must be locked. */
static void make_pass(void)
{
    pass++;
    for (struct fiber *f = fibers, *next; f != NULL; f = next) {
        next = f->next;
        if (is_ready(f) && resume(f) && !f->started)
            f->line->stuck = pass;
    }
}

void fibers_progress(void)
{
    if (atomic_load_explicit(&count, memory_order_relaxed) == 0)
        return;
    lock();
    make_pass();
    unlock();
}

void fibers_start(struct fiber_line *line)
{
    struct fibers_rest rest;
    bool waits = true;

    if (atomic_load_explicit(&count, memory_order_relaxed) == 0)
        return;
    fibers_rest_begin(&rest, false);
    while (waits) {
        lock();
        if (line->unstarted > 0)
            make_pass();
        waits = line->unstarted > 0;
        unlock();
        if (waits)
            fibers_rest(NULL, &rest);
    }
}

/* ---- Rests ----------------------------------------------------------------------------------- */

void fibers_rest_begin(struct fibers_rest *rest, bool mixed)
{
    *rest = (struct fibers_rest){.begin = statistics_now(), .mixed = mixed};
}

static uint64_t limit(uint64_t value, uint64_t least, uint64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Returns `f` or, if its call is not under way, another fiber with a call; NULL: there is none. */
static struct fiber *with_call(struct fiber *f)
{
    if (f != NULL && f->call != NULL)
        return f;
    for (f = fibers; f != NULL && f->call == NULL; f = f->next)
        ;
    return f;
}

void fibers_rest(struct fiber *f, struct fibers_rest *rest)
{
    const uint64_t taken = statistics_now() - rest->begin;
    uint64_t slice = rest->busy    ? BUSY
                     : rest->mixed ? limit(taken / 8, MIXED_LEAST, MIXED_MOST)
                                   : limit(taken / 8, IDLE_LEAST, IDLE_MOST);

    lock();
    f = with_call(f);
    if (f != NULL)
        f->watchers++;
    unlock();
    if (f != NULL)
        (void)torus_call_pause(f->call, slice);
    else
        (void)poll(NULL, 0, 1);
    lock();
    if (f != NULL) {
        f->watchers--;
        rest->printed = rest->printed || torus_call_print_late(f->call, taken);
    }
    unlock();
    rest->busy = torus_call_progress_mpi() && !rest->mixed;
}
