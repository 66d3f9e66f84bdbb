/* The codec of the messages between daemons. Every message is filled by its descriptor, so that a field of peer_fields.h
 * that the codec leaves out is noticed: reading and writing a message must give the same bytes. */
#include "failing_memory.h"
#include "proto/peer.pb-c.h"
#include "proto/peer/peer_message.h"
#include "tests/support/cmocka.h"

/* How the fields of a message are filled. */
struct filling {
    uint64_t number; /* of the next field that is a number; 0: the largest that it can be */
    const char *text;
    size_t items; /* of a list */
};

static uint64_t next_number(struct filling *f)
{
    return f->number > 0 ? f->number++ : UINT64_MAX;
}

static ProtobufCMessage *make(const ProtobufCMessageDescriptor *type, struct filling *f);

static size_t size_of(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return sizeof(uint32_t);
    }
}

static void fill_one(const ProtobufCFieldDescriptor *field, void *at, struct filling *f)
{
    ProtobufCBinaryData *bytes = at;

    switch (field->type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        /* An error code must exist, and so must the subject of a nack. */
        *(uint32_t *)at = strcmp(field->name, "code") == 0      ? ERROR_BUSY
                          : strcmp(field->name, "culprit") == 0 ? CULPRIT_LINK
                                                                : (uint32_t)next_number(f);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        *(uint64_t *)at = next_number(f);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = true;
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)at = 0.5 * (double)next_number(f);
        break;
    case PROTOBUF_C_TYPE_STRING:
        *(char **)at = strdup(f->text);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        bytes->len = 5;
        bytes->data = (uint8_t *)strdup("bytes");
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)at = make(field->descriptor, f);
        break;
    default:
        fail_msg("%s: a type of field that this test cannot fill", field->name);
    }
}

static ProtobufCMessage *make(const ProtobufCMessageDescriptor *type, struct filling *f)
{
    uint8_t *message = calloc(1, type->sizeof_message);

    assert_non_null(message);
    type->message_init((ProtobufCMessage *)message);
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        void *at = message + field->offset;
        if (field->label != PROTOBUF_C_LABEL_REPEATED) {
            fill_one(field, at, f);
            continue;
        }
        uint8_t *items = calloc(f->items + 1, size_of(field));
        assert_non_null(items);
        *(size_t *)(void *)(message + field->quantifier_offset) = f->items;
        *(void **)at = items;
        for (size_t k = 0; k < f->items; k++)
            fill_one(field, items + k * size_of(field), f);
    }
    return (ProtobufCMessage *)message;
}

/* A head with one of the messages that it may have, filled. */
static Peer__Head *make_head(const ProtobufCFieldDescriptor *kind, struct filling f)
{
    Peer__Head *head = calloc(1, sizeof *head);

    assert_non_null(head);
    peer__head__init(head);
    head->kind_case = (Peer__Head__KindCase)kind->id;
    head->ready = (Peer__Ready *)make(kind->descriptor, &f);
    return head;
}

struct written {
    uint8_t *bytes;
    size_t length, asked;
};

static uint8_t *give_room(void *context, size_t size)
{
    struct written *w = context;

    assert_null(w->bytes);
    w->asked = size;
    w->bytes = malloc(size);
    return w->bytes;
}

static void write_message(const struct peer_message *m, struct written *w)
{
    *w = (struct written){0};
    w->length = peer_message_write(m, give_room, w);
    assert_true(w->length > 0 && w->length <= w->asked);
}

/* The messages that Head can have. */
static const ProtobufCFieldDescriptor *kind_at(unsigned index)
{
    const ProtobufCFieldDescriptor *field = &peer__head__descriptor.fields[index];

    return field->type == PROTOBUF_C_TYPE_MESSAGE ? field : NULL;
}

#define FOR_EACH_KIND(kind)                                                                        \
    for (unsigned kind##_index = 0; kind##_index < peer__head__descriptor.n_fields;                \
         kind##_index++)                                                                           \
        for (const ProtobufCFieldDescriptor *kind = kind_at(kind##_index); kind != NULL;           \
             kind = NULL)

static void round_trip(const ProtobufCFieldDescriptor *kind, struct filling f)
{
    Peer__Head *head = make_head(kind, f);
    size_t length = peer__head__get_packed_size(head);
    uint8_t *packed = malloc(length);
    struct peer_message message;
    struct written w;
    struct error e;

    assert_non_null(packed);
    (void)peer__head__pack(head, packed);
    if (peer_message_read(head, &message, &e) != 0)
        fail_msg("%s is not read: %s", kind->name, e.text);
    write_message(&message, &w);
    if (w.length != length || memcmp(w.bytes, packed, length) != 0)
        fail_msg("%s: %zu bytes that are read and written become %zu others", kind->name, length,
                 w.length);
    peer_message_free(&message);
    free(w.bytes);
    free(packed);
    peer__head__free_unpacked(head, NULL);
}

TEST(messages_that_were_read_can_be_written_again)
{
    static const struct filling fillings[] = {
        {1, "a text", 3}, {0, "another text", 1}, {1000, "", 0}, {200, "t", 200}};

    for (size_t i = 0; i < sizeof fillings / sizeof *fillings; i++)
        FOR_EACH_KIND(kind)
    round_trip(kind, fillings[i]);
}

/* A neighbour may send anything. */
TEST(texts_become_printable)
{
    FOR_EACH_KIND(kind)
    {
        Peer__Head *head = make_head(kind, (struct filling){1, "a\nb\x1b[c\xff", 2});
        struct peer_message message;
        struct written w;
        struct error e;
        if (head->kind_case == PEER__HEAD__KIND_PREPARE) { /* its paths are bytes: spec.h */
            peer__head__free_unpacked(head, NULL);
            continue;
        }
        assert_int_equal(peer_message_read(head, &message, &e), 0);
        write_message(&message, &w);
        assert_null(memmem(w.bytes, w.length, "a\nb", 3));
        assert_null(memmem(w.bytes, w.length, "\x1b[c", 3));
        peer_message_free(&message);
        free(w.bytes);
        peer__head__free_unpacked(head, NULL);
    }
}

TEST(error_codes_that_do_not_exist_are_not_taken)
{
    static const struct {
        uint32_t said;
        enum error_code taken;
    } rows[] = {{0, ERROR_IO},
                {ERROR_USAGE, ERROR_USAGE},
                {ERROR_BUSY, ERROR_BUSY},
                {ERROR_BUSY + 1, ERROR_IO},
                {UINT32_MAX, ERROR_IO}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Peer__Nack nack = PEER__NACK__INIT;
        Peer__Abort abort = PEER__ABORT__INIT;
        Peer__Head head = PEER__HEAD__INIT;
        struct peer_message message;
        nack.code = abort.code = rows[i].said;
        head.kind_case = PEER__HEAD__KIND_NACK;
        head.nack = &nack;
        assert_int_equal(peer_message_read(&head, &message, NULL), 0);
        assert_int_equal(message.nack.code, rows[i].taken);
        head.kind_case = PEER__HEAD__KIND_ABORT;
        head.abort = &abort;
        assert_int_equal(peer_message_read(&head, &message, NULL), 0);
        assert_int_equal(message.abort.code, rows[i].taken);
    }
}

TEST(culprits_that_do_not_exist_are_nobody)
{
    static const struct {
        uint32_t said;
        struct culprit taken;
    } rows[] = {
        {CULPRIT_NONE, {CULPRIT_NONE, 0, 0}},        {CULPRIT_NODE, {CULPRIT_NODE, 7, 0}},
        {CULPRIT_LINK, {CULPRIT_LINK, 7, 3}},        {CULPRIT_PROGRAM, {CULPRIT_PROGRAM, 7, 0}},
        {CULPRIT_PROGRAM + 1, {CULPRIT_NONE, 0, 0}}, {UINT32_MAX, {CULPRIT_NONE, 0, 0}}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Peer__Nack nack = PEER__NACK__INIT;
        Peer__Head head = PEER__HEAD__INIT;
        struct peer_message message;
        nack.code = ERROR_IO;
        nack.culprit = rows[i].said;
        nack.culprit_node = 7;
        nack.culprit_port = 3;
        head.kind_case = PEER__HEAD__KIND_NACK;
        head.nack = &nack;
        assert_int_equal(peer_message_read(&head, &message, NULL), 0);
        assert_int_equal(message.nack.culprit.kind, rows[i].taken.kind);
        assert_int_equal(message.nack.culprit.node, rows[i].taken.node);
        assert_int_equal(message.nack.culprit.port, rows[i].taken.port);
    }
}

TEST(messages_without_what_they_need_are_refused)
{
    Peer__Prepare prepare = PEER__PREPARE__INIT;
    Peer__Head nothing = PEER__HEAD__INIT, head = PEER__HEAD__INIT;
    struct peer_message message;
    struct error e;

    assert_fails(peer_message_read(&nothing, &message, &e), e, ERROR_PROTOCOL, "");
    head.kind_case = PEER__HEAD__KIND_PREPARE;
    head.prepare = &prepare;
    assert_fails(peer_message_read(&head, &message, &e), e, ERROR_PROTOCOL, "");
}

/* Fields that a later version may add are not passed on. */
TEST(unknown_fields_are_dropped)
{
    static const uint8_t packed[] = {0x3a, 0x05, 0x08, 0x09, 0xa0, 0x06, 0x01}; /* ready: 1, 100 */
    Peer__Head *head = peer__head__unpack(NULL, sizeof packed, packed);
    struct peer_message message;
    struct written w;

    assert_non_null(head);
    assert_int_equal(head->ready->base.n_unknown_fields, 1);
    assert_int_equal(peer_message_read(head, &message, NULL), 0);
    write_message(&message, &w);
    assert_int_equal(w.length, 4);
    free(w.bytes);
    peer__head__free_unpacked(head, NULL);
}

/* A data message whose length is not computed beforehand needs no more than the room in every frame. */
TEST(short_data_needs_no_memory)
{
    static const uint32_t pieces[16];
    const struct peer_group_call call = {
        .number = UINT32_MAX, .signature = UINT32_MAX, .part = UINT32_MAX};
    const struct peer_message rows[] = {
        {.kind = PEER_STEPPED_DATA, .stepped_data = {.exchange = UINT32_MAX, .round = 127}},
        {.kind = PEER_STEPPED_DATA, .stepped_data = {.has_call = true, .call = call}},
        {.kind = PEER_STREAMED_DATA, .streamed_data = {.n_pieces = 7, .pieces = pieces}},
        {.kind = PEER_STREAMED_DATA,
         .streamed_data = {.n_pieces = 4, .pieces = pieces, .has_call = true, .call = call}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct written w;
        write_message(&rows[i], &w);
        assert_true(w.asked <= PEER_SHORT);
        free(w.bytes);
    }
}

/* What a call says about its data makes the head longer, whatever the numbers are. */
TEST(told_data_fits)
{
    static const uint32_t pieces[16] = {UINT32_MAX, UINT32_MAX};
    const struct peer_group_call call = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
                                         UINT32_MAX, UINT32_MAX, UINT32_MAX};

    for (size_t count = 0; count < 16; count++) {
        const struct peer_message rows[] = {
            {.kind = PEER_STEPPED_DATA,
             .stepped_data = {.exchange = UINT32_MAX,
                              .round = UINT32_MAX,
                              .step = UINT32_MAX,
                              .hops = UINT32_MAX,
                              .left = UINT32_MAX,
                              .has_call = true,
                              .call = call}},
            {.kind = PEER_STREAMED_DATA,
             .streamed_data = {.exchange = UINT32_MAX,
                               .round = UINT32_MAX,
                               .n_pieces = count,
                               .pieces = pieces,
                               .has_call = true,
                               .call = call}},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            struct written w;
            write_message(&rows[i], &w);
            assert_true(w.length <= w.asked);
            free(w.bytes);
        }
    }
}

TEST(memory_that_runs_out_is_told)
{
    FOR_EACH_KIND(kind)
    {
        Peer__Head *head = make_head(kind, (struct filling){1, "text", 2});
        struct peer_message message;
        struct written w = {0};
        struct error e;
        memory_counts_here(true);
        memory_fails(0);
        int result = peer_message_read(head, &message, &e);
        memory_counts_here(false);
        if (memory_failed()) {
            assert_fails(result, e, ERROR_MEMORY, "");
            assert_int_equal(peer_message_read(head, &message, &e), 0);
        }
        memory_counts_here(true);
        memory_fails(0);
        assert_int_equal(peer_message_write(&message, give_room, &w), 0);
        memory_counts_here(false);
        assert_true(memory_failed());
        free(w.bytes);
        peer_message_free(&message);
        peer__head__free_unpacked(head, NULL);
    }
}

/* --- messages outside of a head --- */

static void hear_hello(void *context, const struct peer_hello *hello)
{
    struct peer_hello *heard = context;

    assert_string_equal(hello->dims, "4x4");
    assert_int_equal(hello->n_key, 1);
    assert_memory_equal(hello->key[0].data, "key", 3);
    *heard = *hello;
}

TEST(a_hello_may_stand_alone)
{
    const struct peer_bytes key = {(const uint8_t *)"key", 3};
    const struct peer_hello hello = {
        .version = 7, .dims = "4x4", .rank = 5, .port = 1, .boot = 9, .n_key = 1, .key = &key};
    struct peer_hello heard = {0};
    uint8_t bytes[64];
    size_t length = peer_hello_write(&hello, bytes, sizeof bytes);

    assert_true(length > 0);
    assert_int_equal(peer_hello_write(&hello, bytes, length - 1), 0);
    assert_int_equal(peer_hello_write(&hello, bytes, sizeof bytes), length);
    assert_int_equal(peer_hello_read(bytes, length, hear_hello, &heard), 0);
    assert_int_equal(heard.rank, 5);
    assert_int_equal(heard.boot, 9);
    assert_int_equal(peer_hello_read(bytes, length - 1, hear_hello, &heard), -1);
}

static int hear_table(void *context, const struct peer_group_table *table)
{
    size_t *heard = context;

    assert_int_equal(table->n_exchange, 2);
    assert_int_equal(table->n_gather, 1);
    assert_int_equal(table->n_broadcast, 1);
    assert_string_equal(table->exchange[1].algorithm, "direct");
    assert_int_equal(table->exchange[1].octave, 4);
    assert_string_equal(table->gather[0].mode, "stepped");
    assert_string_equal(table->broadcast[0].algorithm, "tree");
    assert_int_equal(table->long_reduction, 1000);
    assert_int_equal(table->allgather_reduction, 2000);
    ++*heard;
    return 3;
}

TEST(a_table_may_stand_alone)
{
    const struct peer_group_choice exchange[] = {{0, "a1", "stepped"}, {4, "direct", "streaming"}};
    const struct peer_group_choice gather = {1, "g", "stepped"}, broadcast = {2, "tree", "stepped"};
    const struct peer_group_table table = {.n_exchange = 2,
                                           .exchange = exchange,
                                           .n_gather = 1,
                                           .gather = &gather,
                                           .n_broadcast = 1,
                                           .broadcast = &broadcast,
                                           .long_reduction = 1000,
                                           .allgather_reduction = 2000};
    uint8_t bytes[128];
    size_t length = peer_group_table_write(&table, bytes, sizeof bytes), heard = 0;
    bool malformed = true;

    assert_true(length > 0 && length < sizeof bytes);
    assert_int_equal(peer_group_table_write(&table, bytes, 1), length);
    assert_int_equal(peer_group_table_read(bytes, length, hear_table, &heard, &malformed), 3);
    assert_false(malformed);
    assert_int_equal(peer_group_table_read(bytes, length - 1, hear_table, &heard, &malformed), -1);
    assert_true(malformed);
    assert_int_equal(heard, 1);
}
