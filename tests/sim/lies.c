#include "tests/sim/lies.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/router/outgoing.h"
#include "proto/frame.h"
#include "tests/sim/memory.h"

#define LONG_TEXT 5000u
#define MANY 20000u

/* --- the fields --- */

struct walk {
    struct lie_field *out;
    size_t count, most;
};

static void walk_message(struct walk *w, struct lie_field *way, const ProtobufCMessageDescriptor *m)
{
    for (unsigned i = 0; i < m->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->fields[i];
        struct lie_field here = *way;
        if (here.depth == LIE_DEPTH)
            abort(); /* LIE_DEPTH is too small */
        here.way[here.depth++] = f;
        (void)snprintf(here.name, sizeof here.name, "%s.%s",
                       strchr(m->name, '.') + 1, /* without the package */
                       f->name);
        if (w->count < w->most)
            w->out[w->count] = here;
        w->count++;
        if (f->type == PROTOBUF_C_TYPE_MESSAGE)
            walk_message(w, &here, f->descriptor);
    }
}

size_t lie_fields(struct lie_field *out, size_t most)
{
    const ProtobufCMessageDescriptor *head = &peer__head__descriptor;
    struct walk w = {out, 0, most};

    for (unsigned i = 0; i < head->n_fields; i++) {
        if (head->fields[i].type != PROTOBUF_C_TYPE_MESSAGE)
            continue; /* the check of the head: a liar makes it right */
        struct lie_field way = {.kind = (Peer__Head__KindCase)head->fields[i].id};
        walk_message(&w, &way, head->fields[i].descriptor);
    }
    return w.count;
}

/* --- lies --- */

static const uint64_t numbers[] = {
    0, 1, 2, 1000, UINT32_MAX, 1u << 31, UINT64_MAX, UINT64_C(1) << 63, UINT64_C(1) << 45,
};
static const double costs[] = {0, -1, 1e-300, 1e300, INFINITY, NAN};
static const char *const texts[] = {
    "",
    "1-00000001-1",
    "99-00000001-1",
    "../../../tmp/x",
    "\x1b[2J\nnode 2 is down",
    "%s%n%99999d",
    "1000x1000x1000x1000",
    "auto",
    "stepped",
    "/",
};

#define NUMBERS (sizeof numbers / sizeof *numbers)
#define COSTS (sizeof costs / sizeof *costs)
#define TEXTS (sizeof texts / sizeof *texts)

/* Besides fixed values: the true value plus or minus one, doubled, or longer. */
static unsigned count_of(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return 1;
    case PROTOBUF_C_TYPE_DOUBLE:
        return COSTS;
    case PROTOBUF_C_TYPE_STRING:
        return TEXTS + 2;
    case PROTOBUF_C_TYPE_BYTES:
        return 4;
    case PROTOBUF_C_TYPE_MESSAGE:
        return 1;
    default:
        return NUMBERS + 2;
    }
}

#define LISTS 3u /* lies about a list: no elements, each twice, very many */

unsigned lie_count(const struct lie_field *field)
{
    const ProtobufCFieldDescriptor *f = field->way[field->depth - 1];

    if (f->label != PROTOBUF_C_LABEL_REPEATED)
        return count_of(f);
    return LISTS + (f->type == PROTOBUF_C_TYPE_MESSAGE ? 0 : count_of(f));
}

static size_t size_of(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

static void say_number(void *at, size_t size, unsigned value)
{
    uint64_t said = 0;

    memcpy(&said, at, size); /* little-endian machines only */
    if (value < NUMBERS)
        said = numbers[value];
    else
        said += value == NUMBERS ? 1 : UINT64_MAX;
    memcpy(at, &said, size);
}

static void say_text(const ProtobufCFieldDescriptor *f, char **at, unsigned value)
{
    const char *before = *at != NULL ? *at : "";
    char *text = sim_alloc(LONG_TEXT + strlen(before) + 2);

    if (value < TEXTS)
        (void)strcpy(text, texts[value]);
    else if (value == TEXTS)
        memset(text, 'x', LONG_TEXT);
    else
        (void)sprintf(text, "%sx", before);
    if (*at != f->default_value)
        free(*at);
    *at = text;
}

static void say_bytes(ProtobufCBinaryData *at, unsigned value)
{
    static const size_t length[] = {0, 1, 100000};
    size_t size = value < 3 ? length[value] : at->len;
    uint8_t *bytes = sim_alloc(size + 1);

    if (value == 3 && size > 0) {
        memcpy(bytes, at->data, size);
        bytes[size / 2] ^= 0x10;
    }
    free(at->data);
    *at = (ProtobufCBinaryData){size, bytes};
}

static void say_one(const ProtobufCFieldDescriptor *f, void *at, unsigned value)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = !*(protobuf_c_boolean *)at;
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        memcpy(at, &costs[value], sizeof costs[value]);
        break;
    case PROTOBUF_C_TYPE_STRING:
        say_text(f, at, value);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        say_bytes(at, value);
        break;
    case PROTOBUF_C_TYPE_MESSAGE: /* it is not there */
        protobuf_c_message_free_unpacked(*(ProtobufCMessage **)at, NULL);
        *(ProtobufCMessage **)at = NULL;
        break;
    default:
        say_number(at, size_of(f), value);
    }
}

/* A copy of an element that can be freed separately. */
static void copy_one(const ProtobufCFieldDescriptor *f, void *to, const void *from)
{
    const ProtobufCMessage *message;
    const ProtobufCBinaryData *bytes = from;
    ProtobufCBinaryData *copy = to;
    uint8_t *packed;
    size_t size;

    switch (f->type) {
    case PROTOBUF_C_TYPE_MESSAGE:
        message = *(const ProtobufCMessage *const *)from;
        size = protobuf_c_message_get_packed_size(message);
        packed = sim_alloc(size + 1);
        (void)protobuf_c_message_pack(message, packed);
        *(ProtobufCMessage **)to = protobuf_c_message_unpack(f->descriptor, NULL, size, packed);
        free(packed);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        *copy = (ProtobufCBinaryData){bytes->len, sim_alloc(bytes->len + 1)};
        memcpy(copy->data, bytes->data, bytes->len);
        break;
    default:
        memcpy(to, from, size_of(f));
    }
}

static bool say_list(const ProtobufCFieldDescriptor *f, uint8_t *message, unsigned value)
{
    size_t *count = (size_t *)(void *)(message + f->quantifier_offset), size = size_of(f);
    uint8_t **list = (uint8_t **)(void *)(message + f->offset);
    size_t wanted = value == 0 ? 0 : value == 1 ? 2 * *count : MANY;

    if (value >= LISTS) {
        if (*count == 0)
            return false;
        say_one(f, *list, value - LISTS);
        return true;
    }
    if (*count == 0 &&
        (value < 2 || f->type == PROTOBUF_C_TYPE_MESSAGE || f->type == PROTOBUF_C_TYPE_BYTES))
        return false;
    if (value == 0) { /* elements are freed, the list is kept for free_unpacked() */
        for (size_t i = 0; i < *count; i++)
            if (f->type == PROTOBUF_C_TYPE_MESSAGE)
                protobuf_c_message_free_unpacked(((ProtobufCMessage **)(void *)*list)[i], NULL);
            else if (f->type == PROTOBUF_C_TYPE_BYTES)
                free(((ProtobufCBinaryData *)(void *)*list)[i].data);
        free(*list);
        *list = NULL;
        *count = 0;
        return true;
    }
    size_t before = *count;
    *list = sim_realloc(*list, wanted * size);
    for (size_t i = before; i < wanted; i++) {
        if (before == 0)
            memset(*list + i * size, 0, size);
        else
            copy_one(f, *list + i * size, *list + i % before * size);
    }
    *count = wanted;
    return true;
}

bool lie_tell(Peer__Head *head, const struct lie_field *field, unsigned value)
{
    uint8_t *message = (uint8_t *)head->hello; /* the oneof's pointers share their place */
    unsigned last = field->depth - 1;

    if (head->kind_case != field->kind || message == NULL)
        return false;
    for (unsigned i = 0; i < last; i++) {
        const ProtobufCFieldDescriptor *f = field->way[i];
        void *at = message + f->offset;
        if (f->label == PROTOBUF_C_LABEL_REPEATED) {
            if (*(size_t *)(void *)(message + f->quantifier_offset) == 0)
                return false;
            at = *(void **)at;
        }
        message = *(uint8_t **)at;
        if (message == NULL)
            return false;
    }
    const ProtobufCFieldDescriptor *f = field->way[last];
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        return say_list(f, message, value);
    if (f->type == PROTOBUF_C_TYPE_MESSAGE && *(void **)(void *)(message + f->offset) == NULL)
        return false;
    say_one(f, message + f->offset, value);
    return true;
}

/* --- frames --- */

Peer__Head *lie_read(const uint8_t *bytes, size_t length, size_t *body)
{
    struct frame_prefix prefix;

    if (length < FRAME_PREFIX_SIZE ||
        frame_prefix_read(bytes, FRAME_MAX_HEAD, FRAME_MAX_BODY, &prefix, NULL) != 0 ||
        length < (size_t)FRAME_PREFIX_SIZE + prefix.head)
        return NULL;
    *body = (size_t)FRAME_PREFIX_SIZE + prefix.head;
    Peer__Head *head = peer__head__unpack(NULL, prefix.head, bytes + FRAME_PREFIX_SIZE);
    if (head != NULL)
        head->check = 0;
    return head;
}

uint8_t *lie_frame(const Peer__Head *head, const uint8_t *body, size_t body_length, size_t *length)
{
    size_t size = peer__head__get_packed_size(head);
    uint8_t *bytes = sim_alloc(FRAME_PREFIX_SIZE + size + HEAD_CHECK_SIZE + body_length);

    (void)peer__head__pack(head, bytes + FRAME_PREFIX_SIZE);
    *length = head_check_write(bytes, (uint32_t)size, (uint32_t)body_length);
    if (body_length > 0)
        memcpy(bytes + *length, body, body_length);
    *length += body_length;
    return bytes;
}
