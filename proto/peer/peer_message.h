/* A message between two daemons as one plain struct that the rest of the daemon fills and reads.
 * Only the files of this folder, and the decoder of frames, know how messages are encoded.
 *
 * A message borrows everything that it points to. A message that was read points into the unpacked
 * form: it is valid until that is freed, or until peer_message_free().
 *
 * Reading checks what can be checked without knowing the receiver: it makes texts printable in
 * place, turns unknown error codes into known ones, and refuses a message that lacks a required
 * part. The receiver checks what depends on the torus or on the state of an exchange. Unknown
 * fields are dropped. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/error.h"
#include "proto/peer_fields.h"

struct Torus__Spec; /* daemon/torusd/planning/spec.h reads and writes it; clients use it, too */

struct peer_bytes {
    const uint8_t *data; /* may be NULL if len is 0 */
    size_t len;
};

/* --- the structs: names and meanings are those of proto/peer_fields.h --- */

#define PEER_TYPE_uint32 uint32_t
#define PEER_TYPE_fixed32 uint32_t
#define PEER_TYPE_uint64 uint64_t
#define PEER_TYPE_fixed64 uint64_t
#define PEER_TYPE_double double
#define PEER_TYPE_bool bool

#define PEER_MEMBER(KIND, type, number, ...) PEER_MEMBER_##KIND(PEER_TYPE_##type, __VA_ARGS__)
#define PEER_MEMBER_NUMBER(type, name) type name;
#define PEER_MEMBER_TEXT(type, name) const char *name;
#define PEER_MEMBER_BYTES(type, name) struct peer_bytes name;
#define PEER_MEMBER_LIST(type, name)                                                               \
    size_t n_##name;                                                                               \
    const type *name;
#define PEER_MEMBER_CODE(type, name) enum error_code name;
#define PEER_MEMBER_CALL(type, name)                                                               \
    bool has_##name; /* otherwise it has no meaning */                                             \
    struct peer_group_call name;
#define PEER_MEMBER_SPEC(type, name) const struct Torus__Spec *name;
#define PEER_MEMBER_BYTES_LIST(type, name)                                                         \
    size_t n_##name;                                                                               \
    const struct peer_bytes *name;
#define PEER_MEMBER_PARTS(type, name, part)                                                        \
    size_t n_##name;                                                                               \
    const struct peer_##part *name;
#define PEER_MEMBER_CULPRIT(type, name) struct culprit name;
#define PEER_MEMBER_WIRE(type, name)

#define PEER_STRUCT(NAME, name, Name, number)                                                      \
    struct peer_##name {                                                                           \
        PEER_##NAME##_FIELDS(PEER_MEMBER)                                                          \
    };
PEER_STRUCT(GROUP_CALL, group_call, GroupCall, )
PEER_STRUCT(GROUP_CHOICE, group_choice, Choice, )
PEER_STRUCT(GROUP_TABLE, group_table, GroupTable, )
PEER_STRUCT(LINK_STATE_ENTRY, link_state_entry, Entry, )
PEER_STRUCT(PORT_REPORT, port_report, PortReport, )
PEER_STRUCT(NODE_REPORT, node_report, NodeReport, )
PEER_MESSAGES(PEER_STRUCT)
#undef PEER_STRUCT

/* --- a message --- */

#define PEER_KIND(NAME, name, Name, number) PEER_##NAME,
enum peer_kind { PEER_NOTHING, PEER_MESSAGES(PEER_KIND) PEER_KINDS };
#undef PEER_KIND

#define PEER_ONE(NAME, name, Name, number) struct peer_##name name;
struct Peer__Head; /* proto/peer.pb-c.h */

struct peer_message {
    enum peer_kind kind;
    void *owned;                 /* reading only: lists that were built, freed by
                                  * peer_message_free() */
    struct Peer__Head *unpacked; /* likewise, if made by peer_message_unpack() */
    union {
        PEER_MESSAGES(PEER_ONE)
    };
};
#undef PEER_ONE

/* The handle of the exchange that a message belongs to; for kinds that begin with a handle only. */
static inline uint32_t peer_message_exchange(const struct peer_message *m)
{
    return m->ready.exchange;
}

/* The room to ask for at once for a message of data whose length need not be computed. */
#define PEER_SHORT 58u

/* Encodes a message into the memory that room() returns: at least `size` bytes, or NULL if there
 * is no memory. Calls room() at most once. Returns the length, which may be less than `size`; 0
 * if there is no memory. */
size_t peer_message_write(const struct peer_message *m,
                          uint8_t *(*room)(void *context, size_t size), void *context);

/* Reads a message from its unpacked form, and makes the texts of that form printable. Returns 0,
 * and the caller gives *m to peer_message_free() before it frees the unpacked form; or -1 with
 * *e and nothing to free: the message is malformed (ERROR_PROTOCOL), or there is no memory. */
int peer_message_read(const struct Peer__Head *from, struct peer_message *m, struct error *e);
/* Frees what a message that was read owns, but not *m. */
void peer_message_free(struct peer_message *m);

/* Reads a message from its bytes; the caller gives *m to peer_message_free(), and frees nothing
 * else. Returns -1 also if the bytes are not a message. */
int peer_message_unpack(const uint8_t *bytes, size_t length, struct peer_message *m,
                        struct error *e);

/* --- messages that are not frames --- */

/* Writes a hello that stands alone, in a datagram, to at most `size` bytes. Returns its length,
 * or 0 on failure: it is longer than `size`, or memory is short. */
size_t peer_hello_write(const struct peer_hello *hello, uint8_t *bytes, size_t size);

/* Calls heard() with a hello that stands alone, which is valid during that call only. Returns 0,
 * or -1 on failure: the bytes are not a hello, or memory is short. */
int peer_hello_read(const uint8_t *bytes, size_t length,
                    void (*heard)(void *context, const struct peer_hello *hello), void *context);

/* Writes the table to at most `size` bytes. Returns the length of the table: if
 * that is more than `size`, nothing was written. Returns 0 if memory is short. */
size_t peer_group_table_write(const struct peer_group_table *table, uint8_t *bytes, size_t size);

/* Calls heard() with the table, which is valid during that call only. Returns what heard()
 * returns. On failure returns -1 with *malformed set: the bytes are not a table, or memory is short. */
int peer_group_table_read(const uint8_t *bytes, size_t length,
                          int (*heard)(void *context, const struct peer_group_table *table),
                          void *context, bool *malformed);
