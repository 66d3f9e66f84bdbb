/* The byte stream between both sides: messages that wait to be written to it, and those that are read. */
#ifndef TORUSD_TOPO_GUEST_BRIDGE_STREAM_H
#define TORUSD_TOPO_GUEST_BRIDGE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIECE 8192u     /* bytes of data in one message, at most */
#define OUT_FULL 65536u /* while so many bytes wait to be written, nothing is read from clients */

enum kind { HELLO = 1, OPEN, DATA, CREDIT, END, CLOSE };
enum service { CONTROL, SHELL, SERVICES };

/* The length of DATA, or the credit of CREDIT, is n; data is that of DATA only, and its owner's. */
typedef void message_handler(enum kind kind, unsigned service, unsigned channel,
                             const uint8_t *data, uint32_t n);

/* Appends a message to those that wait. data: n bytes for DATA, at most PIECE; else NULL. */
void stream_say(enum kind kind, unsigned service, unsigned channel, const uint8_t *data,
                uint32_t n);

/* The bytes that wait to be written. */
size_t stream_waiting(void);

/* Writes to the descriptor what it takes. */
void stream_write(int fd);

/* Reads from the descriptor, and hands over each message that is complete. Returns false at the
 * stream's end; dies if the stream carries anything else than messages. */
bool stream_read(int fd, message_handler *handle);

#endif
