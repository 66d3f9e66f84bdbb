/* The end of a peer's head: Head.check, by which the node that takes it knows that neither the head nor the
 * lengths before it have been damaged on the way. What TCP's sum lets through would otherwise be an order of its
 * own: data of another exchange, or of another call. Bodies are not covered: blocks have digests. */
#ifndef TORUSD_ROUTER_FRAMES_HEAD_CHECK_H
#define TORUSD_ROUTER_FRAMES_HEAD_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/frame.h"

#define HEAD_CHECK_SIZE 6u /* bytes: a tag of two, and fixed32 */

/* Of a frame in front of a body of `body` bytes, the `length` bytes of the packed head are there, behind room for
 * the prefix and with room for HEAD_CHECK_SIZE more behind them: writes the check and the prefix. Returns the bytes
 * of both and the head. */
uint32_t head_check_write(uint8_t *frame, uint32_t length, uint32_t body);

/* Whether the `length` bytes of a head, the last of which are its check, and both lengths are what was written. */
bool head_check_holds(const uint8_t *head, uint32_t length, uint32_t body);

#endif
