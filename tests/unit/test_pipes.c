/* Bytes pass from socket to socket in pipes, in their order, or not at all. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/torusd/net/pipes.h"
#include "tests/support/cmocka.h"

#define BYTES 50000u

struct line {
    struct pipes pipes;
    int from, in, out, to; /* in: received from `from`; what is sent to `out` comes to `to` */
    uint8_t sent[BYTES], received[BYTES];
};

static int open_line(void **state)
{
    static struct line line;
    int first[2], second[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, first) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, second) != 0)
        return -1;
    line = (struct line){.from = first[0], .in = first[1], .out = second[0], .to = second[1]};
    pipes_init(&line.pipes, 1);
    for (uint32_t i = 0; i < BYTES; i++)
        line.sent[i] = (uint8_t)(i * 7 + i / 256);
    *state = &line;
    return 0;
}

static int close_line(void **state)
{
    struct line *line = *state;

    pipes_close(&line->pipes);
    (void)close(line->from);
    (void)close(line->in);
    (void)close(line->out);
    (void)close(line->to);
    return 0;
}

/* Sends all bytes, and fills a pipe with the first ones. */
static struct pipe *filled(struct line *line, uint32_t most, struct extent *bytes)
{
    struct pipe *pipe = pipes_take(&line->pipes);

    assert_non_null(pipe);
    assert_int_equal(write(line->from, line->sent, BYTES), BYTES);
    assert_int_equal(pipe_fill(pipe, line->in, most, bytes), 1);
    return pipe;
}

TEST_WITH(open_line, close_line, bytes_pass_in_their_order)
{
    struct line *line = *state;
    struct extent bytes;
    struct pipe *pipe = filled(line, 20000, &bytes);
    uint32_t have = 0;

    assert_int_equal(bytes.slab->where, SLAB_IN_PIPE);
    assert_true(bytes.length <= 20000);
    const uint8_t *next = bytes.data;
    while (have < BYTES) {
        const uint32_t end = have + bytes.length;
        while (have < end) {
            ssize_t n = pipe_drain(pipe, line->out, next, end - have, true);
            assert_true(n > 0);
            assert_int_equal(read(line->to, line->received + have, (size_t)n), n);
            next += n;
            have += (uint32_t)n;
        }
        if (have == BYTES)
            break;
        assert_int_equal(pipe_fill(pipe, line->in, BYTES - have, &bytes), 1);
        assert_ptr_equal(bytes.data, next);
    }
    assert_memory_equal(line->received, line->sent, BYTES);
    assert_int_equal(pipe_fill(pipe, line->in, BYTES, &bytes), -1);
    assert_int_equal(errno, EAGAIN);
    (void)shutdown(line->from, SHUT_WR);
    assert_int_equal(pipe_fill(pipe, line->in, BYTES, &bytes), 0);
    slab_unref(pipe->slab);
}

TEST_WITH(open_line, close_line, bytes_leave_in_their_order_only)
{
    struct line *line = *state;
    struct extent bytes;
    struct pipe *pipe = filled(line, 4000, &bytes);

    assert_int_equal(pipe_drain(pipe, line->out, bytes.data + 1, 10, false), -1);
    assert_int_equal(errno, EIO);
    assert_int_equal(pipe_drain(pipe, line->out, bytes.data, bytes.length + 1, false), -1);
    assert_int_equal(pipe_read(pipe, bytes.data, 10, line->received), 10);
    assert_memory_equal(line->received, line->sent, 10);
    assert_int_equal(pipe_read(pipe, bytes.data, 10, line->received), -1);
    assert_int_equal(pipe_drain(pipe, line->out, bytes.data + 10, 10, false), 10);
    assert_int_equal(read(line->to, line->received, BYTES), 10);
    assert_memory_equal(line->received, line->sent + 10, 10);
    slab_unref(pipe->slab);
}

TEST_WITH(open_line, close_line, a_pipe_is_used_again_only_if_it_is_empty)
{
    struct line *line = *state;
    struct extent bytes, later;
    struct pipe *pipe = filled(line, 4000, &bytes);

    slab_unref(pipe->slab); /* with bytes in it */
    assert_int_equal(line->pipes.count, 0);
    pipe = pipes_take(&line->pipes);
    assert_int_equal(pipe_fill(pipe, line->in, 4000, &later), 1);
    assert_int_equal(pipe_read(pipe, later.data, later.length, line->received), later.length);
    assert_memory_equal(line->received, line->sent + bytes.length, later.length);
    slab_unref(pipe->slab);
    assert_int_equal(line->pipes.count, 1);
    assert_ptr_equal(pipes_take(&line->pipes), pipe);
    slab_unref(pipe->slab);
}

TEST_WITH(open_line, close_line, there_are_few_pipes)
{
    struct line *line = *state;
    struct pipe *pipe[PIPES_A_PORT];

    for (unsigned i = 0; i < PIPES_A_PORT; i++) {
        pipe[i] = pipes_take(&line->pipes);
        assert_non_null(pipe[i]);
        assert_ptr_equal(pipes_find(&line->pipes, pipe[i]->base + 1000), pipe[i]);
    }
    assert_null(pipes_take(&line->pipes));
    assert_null(pipes_find(&line->pipes, line->sent));
    slab_unref(pipe[1]->slab);
    assert_ptr_equal(pipes_take(&line->pipes), pipe[1]);
    for (unsigned i = 0; i < PIPES_A_PORT; i++)
        slab_unref(pipe[i]->slab);
}
