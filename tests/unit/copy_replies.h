/* Replies of a fake daemon to requests for copies. */
#pragma once

#include "tests/unit/test_client_fake.h"

#define COPY_REPLY_NODES 3u

/* A result with three nodes, 5, 1 and 3 (in this order), which have added 2 entries and changed 1. Change what differs,
 * and send it with copy_reply_send(). */
struct copy_reply {
    Control__CopyResult result;
    Control__CopyResult__Node node[COPY_REPLY_NODES], *nodes[COPY_REPLY_NODES];
};

void copy_reply_make(struct copy_reply *r);
void copy_reply_send(int fd, struct copy_reply *r);

/* Sets the bytes of a field. */
void copy_reply_bytes(ProtobufCBinaryData *field, const char *bytes, size_t length);

void copy_reply_progress(int fd, uint32_t phase, uint64_t files, uint64_t bytes, uint64_t bytes_of);
