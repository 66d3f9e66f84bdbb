/* The byte stream between both sides: a queue of messages to write, and a reader of messages. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIECE 8192u     /* bytes of data in one message, at most */
#define OUT_FULL 65536u /* while this many bytes wait to be written, nothing is read from clients */

enum kind { HELLO = 1, OPEN, DATA, CREDIT, END, CLOSE };
enum service { CONTROL, SHELL, SERVICES };

/* n is the length of DATA, or the credit of CREDIT. data is valid for DATA only, until the handler returns. */
typedef void message_handler(enum kind kind, unsigned service, unsigned channel,
                             const uint8_t *data, uint32_t n);

/* Appends a message to the queue. data: n bytes for DATA, at most PIECE; otherwise NULL. */
void stream_say(enum kind kind, unsigned service, unsigned channel, const uint8_t *data,
                uint32_t n);

/* The bytes in the queue. */
size_t stream_waiting(void);

/* Writes as much of the queue as the descriptor takes without blocking. */
void stream_write(int fd);

/* Reads from the descriptor once, and calls `handle` for each complete message. Returns false at the
 * stream's end. Dies if the stream does not carry messages. */
bool stream_read(int fd, message_handler *handle);
