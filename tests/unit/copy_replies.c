#include "tests/unit/copy_replies.h"

#include <string.h>

void copy_reply_bytes(ProtobufCBinaryData *field, const char *bytes, size_t length)
{
    *field = (ProtobufCBinaryData){.len = length, .data = (uint8_t *)(uintptr_t)bytes};
}

void copy_reply_make(struct copy_reply *r)
{
    static const uint32_t ranks[COPY_REPLY_NODES] = {5, 1, 3};

    control__copy_result__init(&r->result);
    for (unsigned i = 0; i < COPY_REPLY_NODES; i++) {
        Control__CopyResult__Node *n = &r->node[i];
        control__copy_result__node__init(n);
        n->rank = ranks[i];
        n->from = 6;
        n->files = 10;
        n->folders = 2;
        n->links = 1;
        n->added = 2;
        n->changed = 1;
        n->unchanged = 10;
        n->bytes = 4 << 20;
        n->bytes_missing = 3 << 20;
        copy_reply_bytes(&n->first, "a/b", 3);
        r->nodes[i] = n;
    }
    r->result.n_node = COPY_REPLY_NODES;
    r->result.node = r->nodes;
    r->result.bytes_sent = 3 << 20;
    r->result.bytes_all = 4 << 20;
    r->result.nanoseconds = 2000000000;
    r->result.compare_nanoseconds = 500000000;
    r->result.id = (char *)(uintptr_t) "6.7.1";
    r->result.attempts = 1;
}

void copy_reply_send(int fd, struct copy_reply *r)
{
    fake_reply(fd, CONTROL_REPLY(COPY_RESULT, copy_result, &r->result));
}

void copy_reply_progress(int fd, uint32_t phase, uint64_t files, uint64_t bytes, uint64_t bytes_of)
{
    Control__CopyProgress body = CONTROL__COPY_PROGRESS__INIT;

    body.phase = phase;
    body.files = files;
    body.bytes = bytes;
    body.bytes_of = bytes_of;
    fake_reply(fd, CONTROL_REPLY(COPY_PROGRESS, copy_progress, &body));
}
