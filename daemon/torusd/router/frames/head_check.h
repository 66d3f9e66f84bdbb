/* Head.check, at the end of each head: a checksum of the head and of the lengths in front of it. TCP's
 * checksum misses some damage; without this check a damaged head could be taken for data of another exchange
 * or call. Bodies are not covered, because blocks have digests. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/frame.h"

#define HEAD_CHECK_SIZE 6u /* bytes: a tag of two, and fixed32 */

/* Writes the check and the prefix of a frame whose body has `body` bytes. `frame` has room for the prefix,
 * then the `length` bytes of the packed head, then room for HEAD_CHECK_SIZE bytes. Returns how many bytes
 * prefix, head and check have together. */
uint32_t head_check_write(uint8_t *frame, uint32_t length, uint32_t body);

/* Whether a head of `length` bytes, which include its check at the end, and the two lengths in the prefix
 * are as they were written. */
bool head_check_holds(const uint8_t *head, uint32_t length, uint32_t body);
