#include "proto/peer/codec.h"
#include "proto/unpack.h"

#define GROUP_COMPARE(NUMBER, TEXT, BYTES, LIST)                                                   \
    NUMBER(exchange) NUMBER(part) NUMBER(number) NUMBER(signature)
PEER_CODEC(group_compare, GroupCompare, GROUP_COMPARE)

#define GROUP_CENSUS(NUMBER, TEXT, BYTES, LIST)                                                    \
    NUMBER(exchange) NUMBER(initiator) NUMBER(part) NUMBER(number) NUMBER(id)
PEER_CODEC(group_census, GroupCensus, GROUP_CENSUS)

#define GROUP_ANSWER(NUMBER, TEXT, BYTES, LIST)                                                    \
    NUMBER(exchange) LIST(missing) NUMBER(others) NUMBER(id)
PEER_CODEC(group_answer, GroupAnswer, GROUP_ANSWER)

#define GROUP_REPORT(NUMBER, TEXT, BYTES, LIST)                                                    \
    NUMBER(exchange)                                                                               \
    NUMBER(initiator) NUMBER(part) NUMBER(number) LIST(missing) NUMBER(others) NUMBER(incomplete)
PEER_CODEC(group_report, GroupReport, GROUP_REPORT)

/* --- the table --- */

#define CHOICE(NUMBER, TEXT, BYTES, LIST) NUMBER(octave) TEXT(algorithm) TEXT(mode)

static void write_choice(const struct peer_group_choice *m, Peer__GroupTable__Choice *to)
{
    peer__group_table__choice__init(to);
    PEER_WRITE_FIELDS(CHOICE)
}

static void read_choice(const Peer__GroupTable__Choice *from, struct peer_group_choice *m)
{
    PEER_READ_FIELDS(CHOICE)
}

/* Memory in which choices are put one after another. */
struct written {
    Peer__GroupTable__Choice **pointer, *choice;
};

static Peer__GroupTable__Choice **write_choices(const struct peer_group_choice *list, size_t count,
                                                struct written *at)
{
    Peer__GroupTable__Choice **first = at->pointer;

    for (size_t i = 0; i < count; i++) {
        write_choice(&list[i], at->choice);
        *at->pointer++ = at->choice++;
    }
    return first;
}

size_t peer_group_table_write(const struct peer_group_table *table, uint8_t *bytes, size_t size)
{
    size_t count = table->n_exchange + table->n_gather + table->n_broadcast, length;
    Peer__GroupTable packed = PEER__GROUP_TABLE__INIT;
    Peer__GroupTable__Choice **room =
        calloc(count + 1, sizeof *room + sizeof(Peer__GroupTable__Choice));
    struct written at = {room, (Peer__GroupTable__Choice *)(room + count)};

    if (room == NULL)
        return 0;
    packed.n_exchange = table->n_exchange;
    packed.exchange = write_choices(table->exchange, table->n_exchange, &at);
    packed.n_gather = table->n_gather;
    packed.gather = write_choices(table->gather, table->n_gather, &at);
    packed.n_broadcast = table->n_broadcast;
    packed.broadcast = write_choices(table->broadcast, table->n_broadcast, &at);
    packed.long_reduction = table->long_reduction;
    packed.allgather_reduction = table->allgather_reduction;
    length = peer__group_table__get_packed_size(&packed);
    if (length <= size)
        (void)peer__group_table__pack(&packed, bytes);
    free(room);
    return length;
}

static const struct peer_group_choice *read_choices(Peer__GroupTable__Choice **from, size_t count,
                                                    struct peer_group_choice **at)
{
    const struct peer_group_choice *first = *at;

    for (size_t i = 0; i < count; i++)
        read_choice(from[i], (*at)++);
    return first;
}

int peer_group_table_read(const uint8_t *bytes, size_t length,
                          int (*heard)(void *context, const struct peer_group_table *table),
                          void *context, bool *malformed)
{
    Peer__GroupTable *from =
        unpack_bounded(&peer__group_table__descriptor, bytes, length, UNPACK_MOST);
    struct peer_group_choice *room = NULL, *at;
    int result = -1;

    if (from != NULL)
        room = calloc(from->n_exchange + from->n_gather + from->n_broadcast + 1, sizeof *room);
    *malformed = room == NULL;
    if (room != NULL) {
        at = room;
        const struct peer_group_table table = {
            .n_exchange = from->n_exchange,
            .n_gather = from->n_gather,
            .n_broadcast = from->n_broadcast,
            .exchange = read_choices(from->exchange, from->n_exchange, &at),
            .gather = read_choices(from->gather, from->n_gather, &at),
            .broadcast = read_choices(from->broadcast, from->n_broadcast, &at),
            .long_reduction = from->long_reduction,
            .allgather_reduction = from->allgather_reduction,
        };
        result = heard(context, &table);
    }
    free(room);
    unpack_free(from);
    return result;
}
