#include "daemon/torusd/net/io_threads.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/lib/base/limits.h"
#include "daemon/lib/base/log.h"
#include "daemon/torusd/net/cipher.h"
#include "daemon/torusd/net/processors.h"
#include "proto/elapsed.h"
#include "proto/text.h"

#define STACK (256u * 1024u)
#define JOBS_MOST                                                                                  \
    128 /* of a thread: the directions of all ports, and of links that are being replaced */

struct io_thread {
    pthread_mutex_t mutex; /* of the fields up to `quits`, and of io_job.held and .stop */
    pthread_cond_t let_go;
    struct io_job *given;                /* last one first */
    struct io_job *answers, **at_answer; /* finished */
    bool sleeps, stops, quits;
    struct io_threads *all;
    pthread_t thread;
    int wake;                      /* eventfd */
    struct io_job *job[JOBS_MOST]; /* of the thread alone */
    unsigned jobs;
};

struct io_threads {
    uv_loop_t *loop;
    int wanted; /* IO_THREADS_AUTO: found when they are needed first, `begun` */
    unsigned ports;
    bool begun, closing;
    uv_work_t counting;
    /* Tells the loop of answers. Not uv_async_t: in libuv 1.44, the loop spins while a thread that has just sent one gets
     * no processor. */
    uv_poll_t finished;
    int event;               /* eventfd; -1: there are no threads */
    struct io_job *answered; /* taken from the threads */
    unsigned users; /* the owner, the work, and the handle: the last one frees this object */
    void (*closed)(void *context);
    void *context;
    struct io_thread *thread;
    unsigned count;
};

/* --- in an I/O thread --- */

/* The result of a step: the job is finished, or waits for its socket. */
enum step { FINISHED, WAITS };

static enum step fail(struct io_job *job, int error)
{
    job->error = error;
    return FINISHED;
}

/* After a call on the socket that failed, or found the end of the stream (0). */
static enum step no_bytes(struct io_job *job, ssize_t result)
{
    if (result == 0)
        return fail(job, UV_EOF);
    if (errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
        return fail(job, uv_translate_sys_error(errno));
    job->awaits = job->writes ? POLLOUT : POLLIN;
    return WAITS;
}

static enum step read_records(struct io_job *job)
{
    while (job->size - job->done >= CIPHER_RECORD) {
        size_t opened, size;
        const int result = cipher_open(job->cipher, job->room + job->done, &opened);
        if (result < 0)
            return fail(job, UV_EPROTO);
        if (result > 0) {
            job->done += opened;
            continue;
        }
        uint8_t *at = cipher_room(job->cipher, &size);
        const ssize_t length = recv(job->fd, at, size, MSG_DONTWAIT);
        if (length < 0 && errno == EAGAIN && job->done >= job->least)
            return FINISHED;
        if (length <= 0)
            return no_bytes(job, length);
        cipher_received(job->cipher, (size_t)length);
    }
    return FINISHED;
}

/* Returns 0, or -1 if there is no memory. */
static int seal_buffers(struct io_job *job)
{
    size_t length;

    for (unsigned i = 0; i < job->count; i++)
        if (cipher_seal(job->cipher, job->buffers[i].base, job->buffers[i].len) != 0)
            return -1;
    uint8_t *sealed = cipher_sealed(job->cipher, &length);
    if (sealed != NULL)
        job->sealed = uv_buf_init((char *)sealed, (unsigned)length);
    return sealed != NULL ? 0 : -1;
}

static enum step write_records(struct io_job *job)
{
    if (job->sealed.base == NULL && seal_buffers(job) != 0)
        return fail(job, UV_ENOMEM);
    while (job->sealed.len > 0) {
        const ssize_t written =
            send(job->fd, job->sealed.base, job->sealed.len, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (written <= 0)
            return no_bytes(job, written);
        job->sealed.base += written;
        job->sealed.len -= (size_t)written;
    }
    return FINISHED;
}

/* Works on a job that need not wait. Returns whether it is finished. */
static bool work_on(struct io_job *job)
{
    if ((job->writes ? write_records(job) : read_records(job)) == FINISHED)
        return true;
    if (job->until == 0 && job->done > 0)
        job->until = uv_hrtime() + IO_PATIENCE_MS * MILLISECONDS;
    return false;
}

static void signal_event(int event)
{
    const uint64_t one = 1;

    (void)!write(event, &one, sizeof one);
}

/* Gives a job back to the loop's thread. */
static void finish(struct io_thread *t, struct io_job *job)
{
    (void)pthread_mutex_lock(&t->mutex);
    const bool first = t->answers == NULL;
    job->held = false;
    job->next = NULL;
    *t->at_answer = job;
    t->at_answer = &job->next;
    (void)pthread_mutex_unlock(&t->mutex);
    if (first)
        signal_event(t->all->event);
}

/* Takes the jobs that are given, and lets go of those that are to stop. Returns whether the thread goes on. */
static bool take_given(struct io_thread *t)
{
    unsigned kept = 0;
    bool sleeps = true;

    (void)pthread_mutex_lock(&t->mutex);
    for (; t->given != NULL; t->given = t->given->next)
        t->job[t->jobs++] = t->given;
    for (unsigned i = 0; i < t->jobs; i++) {
        struct io_job *job = t->job[i];
        if (t->stops && job->stop) {
            job->held = false;
            continue;
        }
        t->job[kept++] = job;
        sleeps = sleeps && job->awaits != 0;
    }
    t->jobs = kept;
    if (t->stops)
        (void)pthread_cond_broadcast(&t->let_go);
    t->stops = false;
    t->sleeps = sleeps;
    const bool quits = t->quits;
    (void)pthread_mutex_unlock(&t->mutex);
    return !quits;
}

/* How long poll() may wait, in milliseconds. */
static int poll_time(const struct io_thread *t, uint64_t now)
{
    int time = -1;

    for (unsigned i = 0; i < t->jobs; i++) {
        const struct io_job *job = t->job[i];
        if (job->awaits == 0)
            return 0;
        if (job->until == 0)
            continue;
        const uint64_t left = (elapsed(now, job->until) + MILLISECONDS - 1) / MILLISECONDS;
        if (time < 0 || (int)left < time)
            time = (int)left;
    }
    return time;
}

/* Waits for the sockets of jobs, or for new jobs; not if a job can go on. */
static void wait_for_sockets(struct io_thread *t)
{
    struct pollfd fd[1 + JOBS_MOST];
    unsigned waiting = 0;
    uint64_t woken;

    for (unsigned i = 0; i < t->jobs; i++)
        waiting += t->job[i]->awaits != 0;
    if (waiting == 0 && t->jobs > 0)
        return;
    fd[0] = (struct pollfd){.fd = t->wake, .events = POLLIN};
    for (unsigned i = 0; i < t->jobs; i++)
        fd[1 + i] = (struct pollfd){.fd = t->job[i]->awaits != 0 ? t->job[i]->fd : -1,
                                    .events = (short)t->job[i]->awaits};
    if (poll(fd, 1 + t->jobs, poll_time(t, uv_hrtime())) <= 0)
        return;
    if (fd[0].revents != 0)
        (void)!read(t->wake, &woken, sizeof woken);
    for (unsigned i = 0; i < t->jobs; i++)
        if (fd[1 + i].revents != 0)
            t->job[i]->awaits = 0;
}

static void work_on_all(struct io_thread *t)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < t->jobs; i++) {
        struct io_job *job = t->job[i];
        const bool ends =
            (job->awaits == 0 && work_on(job)) || (job->until != 0 && uv_hrtime() >= job->until);
        if (ends)
            finish(t, job);
        else
            t->job[kept++] = job;
    }
    t->jobs = kept;
}

static void *run(void *argument)
{
    struct io_thread *t = argument;

    (void)pthread_setname_np(pthread_self(), "torusd-io");
    while (take_given(t)) {
        wait_for_sockets(t);
        work_on_all(t);
    }
    return NULL;
}

/* --- in the loop's thread --- */

static void on_finished(uv_poll_t *poll, int status, int events)
{
    struct io_threads *all = poll->data;
    struct io_job **last = &all->answered, *job;
    uint64_t number;

    (void)status, (void)events;
    (void)!read(all->event, &number, sizeof number);
    for (unsigned i = 0; i < all->count; i++) {
        struct io_thread *t = &all->thread[i];
        (void)pthread_mutex_lock(&t->mutex);
        *last = t->answers;
        if (t->answers != NULL)
            last = t->at_answer;
        t->answers = NULL;
        t->at_answer = &t->answers;
        (void)pthread_mutex_unlock(&t->mutex);
    }
    while ((job = all->answered) != NULL) {
        all->answered = job->next;
        job->thread = NULL;
        job->answered(job);
    }
}

static void release(struct io_threads *all)
{
    if (--all->users > 0)
        return;
    free(all->thread);
    all->closed(all->context);
    free(all);
}

static void on_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void end_thread(struct io_thread *t)
{
    (void)pthread_mutex_lock(&t->mutex);
    t->quits = true;
    (void)pthread_mutex_unlock(&t->mutex);
    signal_event(t->wake);
    (void)pthread_join(t->thread, NULL);
    (void)pthread_cond_destroy(&t->let_go);
    (void)pthread_mutex_destroy(&t->mutex);
    (void)close(t->wake);
}

/* Returns 0, or an error number. */
static int start_thread(struct io_threads *all, struct io_thread *t)
{
    pthread_attr_t attributes;
    sigset_t every, before;
    int error = pthread_attr_init(&attributes);

    if (error != 0)
        return error;
    t->all = all;
    t->at_answer = &t->answers;
    t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    error = t->wake < 0 ? errno : 0;
    (void)pthread_mutex_init(&t->mutex, NULL);
    (void)pthread_cond_init(&t->let_go, NULL);
    (void)sigfillset(&every);
    (void)pthread_attr_setstacksize(&attributes, STACK);
    (void)pthread_sigmask(SIG_SETMASK, &every, &before);
    if (error == 0)
        error = pthread_create(&t->thread, &attributes, run, t);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (error != 0 && t->wake >= 0)
        (void)close(t->wake);
    return error;
}

/* Makes what tells the loop of answers. Returns 0, or an error number. */
static int open_event(struct io_threads *all)
{
    const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int error = event < 0 ? errno : -uv_poll_init(all->loop, &all->finished, event);

    if (error != 0) {
        if (event >= 0)
            (void)close(event);
        return error;
    }
    all->event = event;
    all->finished.data = all;
    all->users++;
    (void)uv_poll_start(&all->finished, UV_READABLE, on_finished);
    return 0;
}

static void end_threads(struct io_threads *all)
{
    while (all->count > 0)
        end_thread(&all->thread[--all->count]);
    if (all->event < 0)
        return;
    (void)uv_poll_stop(&all->finished);
    (void)close(all->event);
    all->event = -1;
    uv_close((uv_handle_t *)&all->finished, on_closed);
}

static void start_threads(struct io_threads *all, unsigned count)
{
    all->begun = true;
    all->thread = count > 0 ? calloc(count, sizeof *all->thread) : NULL;
    if (count == 0)
        return;
    int error = all->thread != NULL ? open_event(all) : ENOMEM;
    while (error == 0 && all->count < count &&
           (error = start_thread(all, &all->thread[all->count])) == 0)
        all->count++;
    if (error == 0) {
        log_info("%u %s", count,
                 text_plural(count, "thread encrypts and decrypts long frames",
                             "threads encrypt and decrypt long frames"));
        return;
    }
    end_threads(all);
    log_warning(
        "cannot start I/O threads: %s: all frames are encrypted and decrypted by one thread",
        strerror(error));
}

static void on_count(uv_work_t *work)
{
    struct io_threads *all = work->data;

    all->wanted =
        (int)processors_io_threads(processors_usable(""), processors_sharing("/proc"), all->ports);
}

static void on_counted(uv_work_t *work, int status)
{
    struct io_threads *all = work->data;

    if (status == 0 && !all->closing)
        start_threads(all, (unsigned)all->wanted);
    release(all);
}

struct io_threads *io_threads_new(uv_loop_t *loop, int wanted, unsigned ports)
{
    struct io_threads *all = calloc(1, sizeof *all);

    if (all != NULL)
        *all = (struct io_threads){
            .loop = loop, .wanted = wanted, .ports = ports, .event = -1, .users = 1};
    return all;
}

bool io_threads_ready(struct io_threads *all)
{
    if (!all->begun && all->wanted != IO_THREADS_AUTO) {
        start_threads(all, (unsigned)all->wanted);
    } else if (!all->begun) {
        all->begun = true;
        all->counting.data = all;
        all->users += uv_queue_work(all->loop, &all->counting, on_count, on_counted) == 0;
    }
    return all->count > 0;
}

void io_threads_close(struct io_threads *all, void (*closed)(void *context), void *context)
{
    all->closing = true;
    all->closed = closed;
    all->context = context;
    end_threads(all);
    release(all);
}

void io_job_start(struct io_threads *all, unsigned lane, struct io_job *job)
{
    struct io_thread *t = &all->thread[lane % all->count];

    job->thread = t;
    job->done = 0;
    job->sealed = (uv_buf_t){0};
    job->error = job->awaits = 0;
    job->until = 0;
    job->stop = false;
    (void)pthread_mutex_lock(&t->mutex);
    job->held = true;
    job->next = t->given;
    t->given = job;
    const bool sleeps = t->sleeps;
    t->sleeps = false;
    (void)pthread_mutex_unlock(&t->mutex);
    if (sleeps)
        signal_event(t->wake);
}

static bool unlink_job(struct io_job **list, const struct io_job *job)
{
    while (*list != NULL && *list != job)
        list = &(*list)->next;
    if (*list == NULL)
        return false;
    *list = job->next;
    return true;
}

void io_job_stop(struct io_job *job)
{
    struct io_thread *t = job->thread;

    if (t == NULL)
        return;
    (void)pthread_mutex_lock(&t->mutex);
    if (job->held) {
        job->stop = t->stops = true;
        signal_event(t->wake);
    }
    while (job->held)
        (void)pthread_cond_wait(&t->let_go, &t->mutex);
    if (unlink_job(&t->answers, job)) {
        t->at_answer = &t->answers;
        while (*t->at_answer != NULL)
            t->at_answer = &(*t->at_answer)->next;
    }
    (void)pthread_mutex_unlock(&t->mutex);
    (void)unlink_job(&t->all->answered, job);
    job->thread = NULL;
}
