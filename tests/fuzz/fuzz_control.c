/* Bytes of a client at the control socket. Input: a byte for the size of the pieces, then the stream. */
#include <string.h>

#include "proto/control.pb-c.h"
#include "proto/frame.h"
#include "tests/fuzz/fuzz.h"

#define MAX_REQUEST 65536u

static int take(struct frame_stream *s, uint64_t *hash)
{
    const uint8_t *head;
    size_t length;
    struct error e;
    int more;

    while ((more = frame_stream_next(s, MAX_REQUEST, &head, &length, &e)) > 0) {
        Control__Request *request = control__request__unpack(NULL, length, head);
        if (request == NULL)
            return -1;
        *hash = *hash * 31 + (uint64_t)request->kind_case;
        if (request->kind_case == CONTROL__REQUEST__KIND_EXCHANGE &&
            request->exchange->spec != NULL)
            *hash = *hash * 31 + strlen(request->exchange->spec->algorithm) +
                    strlen(request->exchange->spec->from) + strlen(request->exchange->spec->to);
        control__request__free_unpacked(request, NULL);
    }
    return more;
}

static int feed(const uint8_t *data, size_t size, size_t piece, uint64_t *hash)
{
    struct frame_stream s = {0};
    int result = 0;

    *hash = 0;
    while (size > 0 && result == 0) {
        size_t n = piece < size ? piece : size, room;
        uint8_t *at = frame_stream_room(&s, n, &room);
        REQUIRE(at != NULL && room >= n);
        memcpy(at, data, n);
        frame_stream_added(&s, n);
        result = take(&s, hash);
        REQUIRE(s.capacity <= 8 * (size_t)MAX_REQUEST + 8 * piece); /* bounded for any input */
        data += n;
        size -= n;
    }
    frame_stream_free(&s);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    size_t piece = 1u + input_byte(&in);
    uint64_t whole, pieces;

    int result = feed(in.data, in.size, in.size > 0 ? in.size : 1, &whole);
    REQUIRE(feed(in.data, in.size, piece, &pieces) == result);
    REQUIRE(whole == pieces);
    return 0;
}
