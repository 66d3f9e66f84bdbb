/* I/O threads read and write what they are given, and let go of it when they are told to. Built with ThreadSanitizer,
 * too. */
#include <errno.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/torusd/net/cipher.h"
#include "daemon/torusd/net/io_threads.h"
#include "tests/support/cmocka.h"

#define BYTES (1u << 20)
#define ROOM (128u * 1024u)
#define BUFFERS 40u

struct world {
    uv_loop_t loop;
    struct io_threads *threads;
    int from, to; /* a connection */
    struct io_job in, out;
    unsigned read, written; /* answers */
    uv_buf_t buffers[BUFFERS];
    uint32_t chance;
    uint8_t sent[BYTES], received[BYTES + ROOM];
};

static struct world world;

static uint32_t chance(uint32_t below)
{
    world.chance = world.chance * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)world.chance * below >> 32);
}

static void on_read(struct io_job *job)
{
    assert_false(io_job_under_way(job));
    world.read++;
}

static void on_written(struct io_job *job)
{
    assert_false(io_job_under_way(job));
    world.written++;
}

static int open_world(void **state)
{
    const int size = 16 * 1024; /* so that writers wait */
    struct link_keys mine = {0}, theirs = {0};
    int fd[2];

    memset(&world, 0, sizeof world);
    if (sodium_init() < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd) != 0 ||
        setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) != 0)
        return -1;
    world.from = fd[0];
    world.to = fd[1];
    memset(mine.send, 1, CIPHER_KEY_SIZE);
    memset(theirs.receive, 1, CIPHER_KEY_SIZE);
    for (uint32_t i = 0; i < BYTES; i++)
        world.sent[i] = (uint8_t)chance(256);
    (void)uv_loop_init(&world.loop);
    world.threads = io_threads_new(&world.loop, 2, 2);
    world.in = (struct io_job){.answered = on_read, .fd = world.to, .cipher = cipher_new(&theirs)};
    world.out = (struct io_job){.answered = on_written,
                                .fd = world.from,
                                .writes = true,
                                .cipher = cipher_new(&mine),
                                .buffers = world.buffers};
    return world.threads != NULL && io_threads_ready(world.threads) && world.in.cipher != NULL &&
                   world.out.cipher != NULL
               ? 0
               : -1;
}

static void on_closed(void *context)
{
    *(bool *)context = true;
}

static int close_world(void **state)
{
    bool closed = false;

    (void)state;
    io_job_stop(&world.in);
    io_job_stop(&world.out);
    io_threads_close(world.threads, on_closed, &closed);
    (void)uv_run(&world.loop, UV_RUN_DEFAULT);
    cipher_free(world.in.cipher);
    cipher_free(world.out.cipher);
    (void)close(world.from);
    (void)close(world.to);
    return closed && uv_loop_close(&world.loop) == 0 ? 0 : -1;
}

#define WORLD_TEST(name) TEST_WITH(open_world, close_world, name)

static void await(const unsigned *answers)
{
    const unsigned before = *answers;

    while (*answers == before)
        (void)uv_run(&world.loop, UV_RUN_ONCE);
}

static void give_read(size_t done, size_t size, size_t least)
{
    world.in.room = world.received + done;
    world.in.size = size;
    world.in.least = least;
    io_job_start(world.threads, 0, &world.in);
}

/* Gives the bytes from `done` on in buffers of all lengths. */
static void give_write(size_t done, size_t end)
{
    unsigned count = 0;

    while (done < end) {
        const size_t most = end - done, some = 1 + chance(60000);
        const size_t length = count + 1 == BUFFERS || some > most ? most : some;
        world.buffers[count++] = uv_buf_init((char *)world.sent + done, (unsigned)length);
        done += length;
    }
    world.out.count = count;
    io_job_start(world.threads, 1, &world.out);
}

WORLD_TEST(bytes_pass)
{
    give_write(0, BYTES);
    for (size_t done = 0; done < BYTES; done += world.in.done) {
        give_read(done, ROOM, BYTES - done < ROOM ? BYTES - done : CIPHER_RECORD);
        await(&world.read);
        assert_int_equal(world.in.error, 0);
    }
    assert_memory_equal(world.received, world.sent, BYTES);
    if (world.written == 0)
        await(&world.written);
    assert_int_equal(world.out.error, 0);
}

/* Puts the records of so many bytes into world.received, and returns their length. */
static size_t seal(size_t bytes)
{
    give_write(0, bytes);
    await(&world.written);
    const ssize_t length = read(world.to, world.received, sizeof world.received);
    assert_true(length > (ssize_t)bytes);
    return (size_t)length;
}

static void send_on(size_t length)
{
    assert_int_equal(write(world.from, world.received, length), length);
}

WORLD_TEST(a_damaged_record_ends_the_read)
{
    const size_t length = seal(1000);

    world.received[length - 500] ^= 1;
    send_on(length);
    give_read(0, ROOM, 1000);
    await(&world.read);
    assert_int_equal(world.in.error, UV_EPROTO);
    assert_int_equal(world.in.done, 0);
}

WORLD_TEST(the_end_comes_after_the_bytes)
{
    send_on(seal(1000));
    assert_int_equal(shutdown(world.from, SHUT_WR), 0);
    give_read(0, ROOM, 2000);
    await(&world.read);
    assert_int_equal(world.in.error, UV_EOF);
    assert_int_equal(world.in.done, 1000);
}

WORLD_TEST(a_peer_that_is_gone_ends_the_write)
{
    give_write(0, BYTES);
    assert_int_equal(close(world.to), 0);
    world.to = -1;
    await(&world.written);
    assert_int_equal(world.out.error, UV_EPIPE);
}

/* A link must hear of bytes, even if those that it waits for do not come. */
WORLD_TEST(a_read_gives_what_it_has_when_no_more_comes)
{
    send_on(seal(10));
    give_read(0, ROOM, 1000);
    await(&world.read);
    assert_int_equal(world.in.error, 0);
    assert_int_equal(world.in.done, 10);
}

WORLD_TEST(a_read_that_need_not_wait_ends_at_once)
{
    give_read(0, ROOM, 0);
    await(&world.read);
    assert_int_equal(world.in.error, 0);
    assert_int_equal(world.in.done, 0);
}

WORLD_TEST(a_read_ends_when_its_room_has_none_for_a_record)
{
    give_write(0, BYTES);
    give_read(0, 2 * CIPHER_RECORD - 1, 2 * CIPHER_RECORD - 1);
    await(&world.read);
    assert_int_equal(world.in.error, 0);
    assert_in_range(world.in.done, CIPHER_RECORD, 2 * CIPHER_RECORD - 1);
}

/* --- taking jobs back --- */

WORLD_TEST(jobs_that_wait_are_taken_back)
{
    give_write(0, BYTES);
    io_job_stop(&world.out);
    while (read(world.to, world.received, ROOM) > 0)
        ;
    give_read(0, ROOM, 1);
    io_job_stop(&world.in);
    assert_false(io_job_under_way(&world.in) || io_job_under_way(&world.out));
    assert_int_equal(write(world.from, world.sent, 100), 100);
    (void)uv_run(&world.loop, UV_RUN_NOWAIT);
    assert_int_equal(world.read + world.written, 0);
    assert_int_equal(read(world.to, world.received, ROOM), 100);
}

/* Lets the threads run for a while, in which answers may arrive. */
static void let_run(void)
{
    for (uint32_t turns = chance(4); turns > 0; turns--)
        (void)uv_run(&world.loop, UV_RUN_NOWAIT);
    for (uint32_t spins = chance(20000); spins > 0; spins--)
        __asm__ volatile("");
}

/* Whenever reads are taken back, each byte has been read once, or is still to be read. */
WORLD_TEST(reads_are_taken_back_at_any_time)
{
    size_t received = 0;

    give_write(0, BYTES);
    while (received < BYTES) {
        give_read(received, ROOM, 1 + chance(ROOM));
        let_run();
        io_job_stop(&world.in);
        assert_int_equal(world.in.error, 0);
        received += world.in.done;
    }
    assert_memory_equal(world.received, world.sent, BYTES);
}

/* Whenever a write is taken back, the peer has whole records and the beginning of one. */
WORLD_TEST(writes_are_taken_back_at_any_time)
{
    give_write(0, BYTES);
    give_read(0, ROOM, 1 + chance(ROOM));
    let_run();
    io_job_stop(&world.out);
    assert_int_equal(shutdown(world.from, SHUT_WR), 0);
    size_t received = 0;
    while (true) {
        if (io_job_under_way(&world.in))
            await(&world.read);
        received += world.in.done;
        if (world.in.error != 0)
            break;
        give_read(received, ROOM, 1);
    }
    assert_int_equal(world.in.error, UV_EOF);
    assert_memory_equal(world.received, world.sent, received);
}
