/* Converts between plain structs and those of protobuf-c; for the files of this folder only. The writing and the reading
 * function of a message come from the list of its fields (proto/peer_fields.h): PEER_CODEC(go, Go, PEER_GO_FIELDS). */
#pragma once

#include <stdlib.h>

#include "proto/peer.pb-c.h"
#include "proto/peer/peer_message.h"
#include "proto/text.h"

/* Memory that *to may point to beside *m, until *to has been packed. */
struct peer_scratch {
    Peer__GroupCall call;
    void *owned; /* NULL at first; the caller gives it to peer_room_free() after that */
};

/* Returns memory that *owned (NULL at first) gets; NULL: there is none. */
void *peer_room_add(void **owned, size_t size);
/* Frees all memory of `owned`. */
void peer_room_free(void *owned);

/* Writing borrows what *m points to. The functions return 0, or -1 if there is no memory. */
#define PEER_WRITE(name, Name)                                                                     \
    int peer_##name##_to_wire(const struct peer_##name *m, Peer__##Name *to,                       \
                              __attribute__((unused)) struct peer_scratch *scratch)
/* Reading makes the texts of *from printable, and lets *m point to them. *owned gets memory, which the caller gives to
 * peer_room_free() when *m is no longer used, or at once on failure. The functions return 0, or -1 with *e. */
#define PEER_READ(name, Name)                                                                      \
    int peer_##name##_from_wire(const Peer__##Name *from, struct peer_##name *m,                   \
                                __attribute__((unused)) void **owned,                              \
                                __attribute__((unused)) struct error *e)

#define PEER_DECLARE(NAME, name, Name, number)                                                     \
    PEER_WRITE(name, Name);                                                                        \
    PEER_READ(name, Name);
PEER_MESSAGES(PEER_DECLARE)
#undef PEER_DECLARE

#define PEER_WRITE_FIELD(KIND, type, number, ...) PEER_WRITE_##KIND(__VA_ARGS__)
#define PEER_WRITE_NUMBER(field) to->field = m->field;
#define PEER_WRITE_TEXT(field) to->field = peer_text(m->field);
#define PEER_WRITE_BYTES(field) to->field = peer_bytes(&m->field);
#define PEER_WRITE_LIST(field)                                                                     \
    to->n_##field = m->n_##field;                                                                  \
    to->field = (void *)(uintptr_t)m->field; /* packing only reads it */
#define PEER_WRITE_CODE(field) to->field = (uint32_t)m->field;
#define PEER_WRITE_CALL(field) to->field = peer_write_call(m->has_##field, &m->field, scratch);
#define PEER_WRITE_SPEC(field) to->field = (Torus__Spec *)(uintptr_t)m->field; /* likewise */
#define PEER_WRITE_BYTES_LIST(field)                                                               \
    to->n_##field = m->n_##field;                                                                  \
    if (m->n_##field > 0) {                                                                        \
        to->field = peer_room_add(&scratch->owned, m->n_##field * sizeof *to->field);              \
        if (to->field == NULL)                                                                     \
            return -1;                                                                             \
    }                                                                                              \
    for (size_t i = 0; i < m->n_##field; i++)                                                      \
        to->field[i] = peer_bytes(&m->field[i]);
#define PEER_WRITE_PARTS(field, part)                                                              \
    to->n_##field = m->n_##field;                                                                  \
    if (m->n_##field > 0) {                                                                        \
        __typeof__(*to->field) parts =                                                             \
            peer_room_add(&scratch->owned, m->n_##field * (sizeof *parts + sizeof parts));         \
        if (parts == NULL)                                                                         \
            return -1;                                                                             \
        to->field = (void *)(parts + m->n_##field);                                                \
        for (size_t i = 0; i < m->n_##field; i++) {                                                \
            to->field[i] = &parts[i];                                                              \
            if (peer_##part##_to_wire(&m->field[i], &parts[i], scratch) != 0)                      \
                return -1;                                                                         \
        }                                                                                          \
    }
#define PEER_WRITE_CULPRIT(field)
#define PEER_WRITE_WIRE(field)

#define PEER_READ_FIELD(KIND, type, number, ...) PEER_READ_##KIND(__VA_ARGS__)
#define PEER_READ_NUMBER(field) m->field = from->field;
#define PEER_READ_TEXT(field)                                                                      \
    text_clean(from->field);                                                                       \
    m->field = from->field;
#define PEER_READ_BYTES(field) m->field = (struct peer_bytes){from->field.data, from->field.len};
#define PEER_READ_LIST(field)                                                                      \
    m->n_##field = from->n_##field;                                                                \
    m->field = from->field;
#define PEER_READ_CODE(field) m->field = peer_read_code(from->field);
#define PEER_READ_CALL(field) m->has_##field = peer_read_call(from->field, &m->field);
#define PEER_READ_SPEC(field) m->field = from->field;
#define PEER_READ_BYTES_LIST(field)                                                                \
    m->n_##field = from->n_##field;                                                                \
    m->field = NULL;                                                                               \
    if (from->n_##field > 0) {                                                                     \
        struct peer_bytes *list = peer_room_add(owned, from->n_##field * sizeof *list);            \
        if (list == NULL)                                                                          \
            return peer_no_memory(e);                                                              \
        for (size_t i = 0; i < from->n_##field; i++)                                               \
            list[i] = (struct peer_bytes){from->field[i].data, from->field[i].len};                \
        m->field = list;                                                                           \
    }
#define PEER_READ_PARTS(field, part)                                                               \
    m->n_##field = from->n_##field;                                                                \
    m->field = NULL;                                                                               \
    if (from->n_##field > 0) {                                                                     \
        struct peer_##part *parts = peer_room_add(owned, from->n_##field * sizeof *parts);         \
        if (parts == NULL)                                                                         \
            return peer_no_memory(e);                                                              \
        for (size_t i = 0; i < from->n_##field; i++)                                               \
            if (peer_##part##_from_wire(from->field[i], &parts[i], owned, e) != 0)                 \
                return -1;                                                                         \
        m->field = parts;                                                                          \
    }
#define PEER_READ_CULPRIT(field)
#define PEER_READ_WIRE(field)

#define PEER_CODEC_OF(name, wire, Name, FIELDS)                                                    \
    PEER_WRITE(name, Name)                                                                         \
    {                                                                                              \
        peer__##wire##__init(to);                                                                  \
        FIELDS(PEER_WRITE_FIELD)                                                                   \
        return 0;                                                                                  \
    }                                                                                              \
    PEER_READ(name, Name)                                                                          \
    {                                                                                              \
        FIELDS(PEER_READ_FIELD)                                                                    \
        return 0;                                                                                  \
    }

#define PEER_CODEC(name, Name, FIELDS) PEER_CODEC_OF(name, name, Name, FIELDS)
/* Defines the same functions for a message that is a part of another one, or that stands alone. */
#define PEER_PART(name, wire, Name, FIELDS)                                                        \
    static PEER_WRITE(name, Name);                                                                 \
    static PEER_READ(name, Name);                                                                  \
    PEER_CODEC_OF(name, wire, Name, FIELDS)

static inline char *peer_text(const char *text)
{
    return (char *)(uintptr_t)(text != NULL ? text : ""); /* packing only reads it */
}

static inline ProtobufCBinaryData peer_bytes(const struct peer_bytes *bytes)
{
    return (ProtobufCBinaryData){bytes->len, (uint8_t *)(uintptr_t)bytes->data};
}

static inline int peer_no_memory(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for a message");
}
