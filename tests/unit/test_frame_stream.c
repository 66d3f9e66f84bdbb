/* Messages over a socket without a loop. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/control.pb-c.h"
#include "proto/frame.h"
#include "proto/unpack.h"
#include "tests/support/cmocka.h"

#define PARTS 40u
#define PART 20000u /* bytes: all messages together are more than a socket holds */

struct ends {
    int fd[2];
    struct frame_stream out, in;
};

static int open_ends(void **state)
{
    static struct ends ends;

    ends = (struct ends){0};
    *state = &ends;
    return socketpair(AF_UNIX, SOCK_STREAM, 0, ends.fd);
}

static int close_ends(void **state)
{
    struct ends *e = *state;

    (void)close(e->fd[0]);
    if (e->fd[1] >= 0)
        (void)close(e->fd[1]);
    frame_stream_free(&e->out);
    frame_stream_free(&e->in);
    return 0;
}

static void put(struct ends *e, uint32_t number)
{
    static uint8_t bytes[PART];
    Control__ScheduleRequest part = CONTROL__SCHEDULE_REQUEST__INIT;

    memset(bytes, (int)number, PART);
    part.offset = number;
    part.part = (ProtobufCBinaryData){PART, bytes};
    assert_int_equal(frame_stream_put(&e->out, &part.base), 0);
}

/* Takes the messages that have arrived; returns the number of the next one. */
static uint32_t take(struct ends *e, uint32_t number)
{
    const uint8_t *head;
    size_t length;
    struct error error;
    int more;

    while ((more = frame_stream_next(&e->in, 2 * PART, &head, &length, &error)) > 0) {
        Control__ScheduleRequest *part =
            unpack_bounded(&control__schedule_request__descriptor, head, length, 4 * PART);
        assert_non_null(part);
        assert_int_equal(part->offset, number);
        assert_int_equal(part->part.len, PART);
        assert_int_equal(part->part.data[PART - 1], (uint8_t)number);
        unpack_free(part);
        number++;
    }
    assert_int_equal(more, 0);
    return number;
}

TEST_WITH(open_ends, close_ends, messages_arrive_although_the_socket_is_full)
{
    struct ends *e = *state;
    uint32_t taken = 0;
    int sent, received;

    for (uint32_t i = 0; i < PARTS; i++)
        put(e, i);
    sent = frame_stream_send(&e->out, e->fd[0], MSG_DONTWAIT);
    assert_true(sent == -EAGAIN && frame_stream_is_sending(&e->out));
    while (taken < PARTS) {
        while ((received = frame_stream_receive(&e->in, e->fd[1], MSG_DONTWAIT)) == 1)
            taken = take(e, taken);
        assert_int_equal(received, -EAGAIN);
        sent = frame_stream_send(&e->out, e->fd[0], MSG_DONTWAIT);
        assert_true(sent == 0 || sent == -EAGAIN);
    }
    assert_false(frame_stream_is_sending(&e->out));
}

TEST_WITH(open_ends, close_ends, the_end_is_told)
{
    struct ends *e = *state;

    put(e, 1);
    assert_int_equal(frame_stream_send(&e->out, e->fd[0], 0), 0);
    assert_int_equal(shutdown(e->fd[0], SHUT_WR), 0);
    assert_int_equal(frame_stream_receive(&e->in, e->fd[1], 0), 1);
    assert_int_equal(take(e, 1), 2);
    assert_int_equal(frame_stream_receive(&e->in, e->fd[1], 0), 0);
    (void)close(e->fd[1]);
    e->fd[1] = -1;
    put(e, 2);
    assert_int_equal(frame_stream_send(&e->out, e->fd[0], 0), -EPIPE);
}
