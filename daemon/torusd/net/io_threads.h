/* I/O threads: each reads and decrypts, or encrypts and writes, for encrypted connections, while the loop's thread runs
 * the engines. A thread has jobs, which the loop's thread gives it; a job is one direction of one socket and of its
 * cipher, and the memory that it reads into or writes from. While a job is under way, the loop's thread touches none of
 * these.
 *
 *     loop's thread                                   I/O thread
 *     io_job_start()  ── given, under its lock ──>    takes all that are given, and works on those that can go on;
 *                                                     waits with poll() for the sockets of the others
 *     job->answered() <── answers, eventfd ─────      the job is finished
 *     io_job_stop()   ── stop, under its lock ──>     lets go of the job between two steps
 *
 * The locks are held to link or unlink a job only, never in a system call or while bytes are encrypted. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct cipher;
struct io_thread;
struct io_threads;

struct io_job {
    /* Set by the loop's thread. */
    void (*answered)(
        struct io_job *job); /* called in the loop's thread, when the job is finished */
    void *context;
    bool writes; /* else it reads */
    int fd;
    struct cipher *cipher;

    /* Reading: records are opened into the room until `least` bytes are there, and as many more as have arrived and as
     * fit: a record is opened only where there is room for CIPHER_RECORD bytes. The job also ends IO_PATIENCE_MS after
     * the first bytes, since a link must hear of them. */
    uint8_t *room;
    size_t size, least, done;

    /* Writing: the buffers are sealed, and all records are written. */
    const uv_buf_t *buffers;
    unsigned count;
    uv_buf_t sealed; /* what is left of the records; base NULL: nothing is sealed so far */

    /* The result: 0, or an error of libuv: UV_EOF at the end of the stream, UV_ENOMEM if there was no memory to encrypt
     * bytes, UV_EPROTO if a record is not what the peer has encrypted. What was done before it counts. */
    int error;

    /* Used by io_threads.c. */
    struct io_thread *thread; /* NULL: not under way */
    struct io_job *next;
    bool held, stop; /* held: by the thread */
    int awaits;      /* POLLIN or POLLOUT; 0: nothing */
    uint64_t until;  /* when a read that has some bytes ends; 0: it has none */
};

#define IO_PATIENCE_MS 2

/* Returns threads for a node with that many ports, which are started when they are needed first: as many as `wanted` says, or
 * as the processors allow (IO_THREADS_AUTO, processors.h). NULL if there is no memory. */
struct io_threads *io_threads_new(uv_loop_t *loop, int wanted, unsigned ports);
/* Whether jobs can be given. To be called when there is work for threads. */
bool io_threads_ready(struct io_threads *threads);
/* Ends the threads; no job is under way. Calls closed(context), perhaps later from the loop, when all is freed. */
void io_threads_close(struct io_threads *threads, void (*closed)(void *context), void *context);

/* Gives a job to the thread of this lane; the lanes are spread over the threads. */
void io_job_start(struct io_threads *threads, unsigned lane, struct io_job *job);
static inline bool io_job_under_way(const struct io_job *job)
{
    return job->thread != NULL;
}
/* Takes a job back, if it is under way: answered() is not called. Waits until its thread has let go of it, at most for
 * one step of each of its jobs: the records of one room or batch, and system calls that do not block. */
void io_job_stop(struct io_job *job);
