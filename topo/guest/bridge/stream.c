#include "topo/guest/bridge/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topo/guest/bridge/complain.h"

#define HEADER 8u /* kind, service, channel (2), length or credit (4); big-endian */

static uint8_t *out;
static size_t out_begin, out_end, out_room;

void stream_say(enum kind kind, unsigned service, unsigned channel, const uint8_t *data, uint32_t n)
{
    size_t size = HEADER + (kind == DATA ? n : 0);
    uint8_t *at;

    if (out_begin > 0 && out_end + size > out_room) {
        memmove(out, out + out_begin, out_end - out_begin);
        out_end -= out_begin;
        out_begin = 0;
    }
    if (out_end + size > out_room) {
        out_room = 2 * (out_end + size);
        out = realloc(out, out_room);
        if (out == NULL)
            die("no memory");
    }
    at = out + out_end;
    at[0] = (uint8_t)kind;
    at[1] = (uint8_t)service;
    at[2] = (uint8_t)(channel >> 8);
    at[3] = (uint8_t)channel;
    for (unsigned i = 0; i < 4; i++)
        at[4 + i] = (uint8_t)(n >> (24 - 8 * i));
    if (kind == DATA)
        memcpy(at + HEADER, data, n);
    out_end += size;
}

size_t stream_waiting(void)
{
    return out_end - out_begin;
}

void stream_write(int fd)
{
    while (out_begin < out_end) {
        ssize_t n = write(fd, out + out_begin, out_end - out_begin);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) /* stream_read() will report that the stream has ended */
            return;
        out_begin += (size_t)n;
    }
    out_begin = out_end = 0;
}

bool stream_read(int fd, message_handler *handle)
{
    static uint8_t in[4 * (HEADER + PIECE)];
    static size_t have;
    size_t used = 0;
    ssize_t n = read(fd, in + have, sizeof in - have);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return true;
    if (n <= 0)
        return false;
    have += (size_t)n;
    while (have - used >= HEADER) {
        const uint8_t *at = in + used;
        uint32_t length =
            (uint32_t)at[4] << 24 | (uint32_t)at[5] << 16 | (uint32_t)at[6] << 8 | (uint32_t)at[7];
        size_t body = at[0] == DATA ? length : 0;
        if (at[0] < HELLO || at[0] > CLOSE || body > PIECE)
            die("the stream does not carry messages of a bridge");
        if (have - used < HEADER + body)
            break;
        handle(at[0], at[1], (unsigned)at[2] << 8 | at[3], at + HEADER, length);
        used += HEADER + body;
    }
    have -= used;
    memmove(in, in + used, have);
    return true;
}
