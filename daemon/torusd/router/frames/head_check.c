#include "daemon/torusd/router/frames/head_check.h"

#include <xxhash.h>

#define TAG_FIRST 0x8du /* of field 33, fixed32 */
#define TAG_SECOND 0x02u

static uint32_t compute_check(const uint8_t *head, uint32_t length, uint32_t body)
{
    return (uint32_t)XXH3_64bits_withSeed(head, length, (uint64_t)length << 32 | body);
}

uint32_t head_check_write(uint8_t *frame, uint32_t length, uint32_t body)
{
    uint8_t *at = frame + FRAME_PREFIX_SIZE;
    uint32_t check = compute_check(at, length, body);

    frame_prefix_write(frame, length + HEAD_CHECK_SIZE, body);
    at += length;
    *at++ = TAG_FIRST;
    *at++ = TAG_SECOND;
    for (unsigned i = 0; i < 4; i++)
        *at++ = (uint8_t)(check >> 8 * i);
    return FRAME_PREFIX_SIZE + length + HEAD_CHECK_SIZE;
}

bool head_check_holds(const uint8_t *head, uint32_t length, uint32_t body)
{
    uint32_t check = 0;

    if (length < HEAD_CHECK_SIZE)
        return false;
    const uint8_t *at = head + length - HEAD_CHECK_SIZE;
    if (at[0] != TAG_FIRST || at[1] != TAG_SECOND)
        return false;
    for (unsigned i = 0; i < 4; i++)
        check |= (uint32_t)at[2 + i] << 8 * i;
    return check == compute_check(head, length - HEAD_CHECK_SIZE, body);
}
