/* SHA-256 (FIPS 180-4): the name of a file by its bytes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SHA256_TEXT_SIZE 65u /* 64 hexadecimal digits and the terminating 0 */

/* Writes the digest of the bytes as lower-case hexadecimal digits, as sha256sum prints it. */
void sha256_text(const void *bytes, size_t length, char text[SHA256_TEXT_SIZE]);
