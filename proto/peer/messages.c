#include "proto/peer/codec.h"
#include "proto/unpack.h"

/* --- parts of several messages --- */

static Peer__GroupCall *peer_write_call(bool has_call, const struct peer_group_call *m,
                                        struct peer_scratch *scratch)
{
    Peer__GroupCall *to = &scratch->call;

    if (!has_call)
        return NULL;
    peer__group_call__init(to);
    PEER_GROUP_CALL_FIELDS(PEER_WRITE_FIELD)
    return to;
}

static bool peer_read_call(const Peer__GroupCall *from, struct peer_group_call *m)
{
    if (from == NULL)
        return false;
    PEER_GROUP_CALL_FIELDS(PEER_READ_FIELD)
    return true;
}

static enum error_code peer_read_code(uint32_t code)
{
    return code > ERROR_NONE && code <= ERROR_BUSY ? (enum error_code)code : ERROR_IO;
}

/* --- messages that are no more than their fields --- */

PEER_CODEC(clear, Clear, PEER_CLEAR_FIELDS)
PEER_CODEC(proof, Proof, PEER_PROOF_FIELDS)
PEER_CODEC(probe, Probe, PEER_PROBE_FIELDS)
PEER_CODEC(probe_answered, ProbeAnswered, PEER_PROBE_ANSWERED_FIELDS)
PEER_CODEC(refusal, Refusal, PEER_REFUSAL_FIELDS)
PEER_CODEC(heartbeat, Heartbeat, PEER_HEARTBEAT_FIELDS)
PEER_CODEC(link_fault, LinkFault, PEER_LINK_FAULT_FIELDS)
PEER_CODEC(schedule_query, ScheduleQuery, PEER_SCHEDULE_QUERY_FIELDS)
PEER_CODEC(schedule_part, SchedulePart, PEER_SCHEDULE_PART_FIELDS)
PEER_CODEC(sizes, Sizes, PEER_SIZES_FIELDS)
PEER_CODEC(arrived, Arrived, PEER_ARRIVED_FIELDS)
PEER_CODEC(repair_query, RepairQuery, PEER_REPAIR_QUERY_FIELDS)
PEER_CODEC(repair_part, RepairPart, PEER_REPAIR_PART_FIELDS)
PEER_CODEC(layout, Layout, PEER_LAYOUT_FIELDS)
PEER_CODEC(ready, Ready, PEER_READY_FIELDS)
PEER_CODEC(go, Go, PEER_GO_FIELDS)
PEER_CODEC(repeated, Repeated, PEER_REPEATED_FIELDS)
PEER_CODEC(round_done, RoundDone, PEER_ROUND_DONE_FIELDS)
PEER_CODEC(round_go, RoundGo, PEER_ROUND_GO_FIELDS)
PEER_CODEC(commit, Commit, PEER_COMMIT_FIELDS)
PEER_CODEC(confirm, Confirm, PEER_CONFIRM_FIELDS)
PEER_CODEC(outcome_query, OutcomeQuery, PEER_OUTCOME_QUERY_FIELDS)
PEER_CODEC(outcome, Outcome, PEER_OUTCOME_FIELDS)
PEER_CODEC(calibration, Calibration, PEER_CALIBRATION_FIELDS)
PEER_CODEC(group_compare, GroupCompare, PEER_GROUP_COMPARE_FIELDS)
PEER_CODEC(group_census, GroupCensus, PEER_GROUP_CENSUS_FIELDS)
PEER_CODEC(group_answer, GroupAnswer, PEER_GROUP_ANSWER_FIELDS)
PEER_CODEC(group_report, GroupReport, PEER_GROUP_REPORT_FIELDS)
PEER_CODEC(survey_query, SurveyQuery, PEER_SURVEY_QUERY_FIELDS)
PEER_CODEC(survey_answer, SurveyAnswer, PEER_SURVEY_ANSWER_FIELDS)
PEER_CODEC(copy_call, CopyCall, PEER_COPY_CALL_FIELDS)
PEER_CODEC(abort, Abort, PEER_ABORT_FIELDS)
PEER_CODEC(copy_refusal, CopyRefusal, PEER_COPY_REFUSAL_FIELDS)
PEER_CODEC(stepped_data, SteppedData, PEER_STEPPED_DATA_FIELDS)
PEER_CODEC(streamed_data, StreamedData, PEER_STREAMED_DATA_FIELDS)

/* --- prepare and nack --- */

PEER_WRITE(prepare, Prepare)
{
    peer__prepare__init(to);
    PEER_PREPARE_FIELDS(PEER_WRITE_FIELD)
    return 0;
}

PEER_READ(prepare, Prepare)
{
    PEER_PREPARE_FIELDS(PEER_READ_FIELD)
    if (m->spec == NULL)
        return error_set(e, ERROR_PROTOCOL, "prepare of exchange %.40s has no specification",
                         m->id);
    return 0;
}

static struct culprit read_culprit(const Peer__Nack *from)
{
    struct culprit culprit = {.kind = CULPRIT_NONE};

    if (from->culprit > CULPRIT_NONE && from->culprit <= CULPRIT_PROGRAM) {
        culprit.kind = (enum culprit_kind)from->culprit;
        culprit.node = from->culprit_node;
        culprit.port = culprit.kind == CULPRIT_LINK ? from->culprit_port : 0;
    }
    return culprit;
}

PEER_WRITE(nack, Nack)
{
    peer__nack__init(to);
    PEER_NACK_FIELDS(PEER_WRITE_FIELD)
    to->culprit = (uint32_t)m->culprit.kind;
    to->culprit_node = m->culprit.node;
    to->culprit_port = m->culprit.port;
    return 0;
}

PEER_READ(nack, Nack)
{
    PEER_NACK_FIELDS(PEER_READ_FIELD)
    m->culprit = read_culprit(from);
    return 0;
}

/* --- link states --- */

static void write_entry(const struct peer_link_state_entry *m, Peer__LinkState__Entry *to)
{
    peer__link_state__entry__init(to);
    PEER_LINK_STATE_ENTRY_FIELDS(PEER_WRITE_FIELD)
}

static void read_entry(const Peer__LinkState__Entry *from, struct peer_link_state_entry *m){
    PEER_LINK_STATE_ENTRY_FIELDS(PEER_READ_FIELD)}

PEER_WRITE(link_state, LinkState)
{
    Peer__LinkState__Entry **pointer;
    Peer__LinkState__Entry *entry;

    peer__link_state__init(to);
    if (m->n_entry == 0)
        return 0;
    scratch->owned = calloc(m->n_entry, sizeof(Peer__LinkState__Entry *) + sizeof *entry);
    if (scratch->owned == NULL)
        return -1;
    pointer = scratch->owned;
    entry = (Peer__LinkState__Entry *)(pointer + m->n_entry);
    for (size_t i = 0; i < m->n_entry; i++) {
        write_entry(&m->entry[i], &entry[i]);
        pointer[i] = &entry[i];
    }
    to->n_entry = m->n_entry;
    to->entry = pointer;
    return 0;
}

PEER_READ(link_state, LinkState)
{
    struct peer_link_state_entry *entry = NULL;

    if (from->n_entry > 0 && (entry = calloc(from->n_entry, sizeof *entry)) == NULL)
        return peer_no_memory(e);
    for (size_t i = 0; i < from->n_entry; i++)
        read_entry(from->entry[i], &entry[i]);
    *m = (struct peer_link_state){from->n_entry, entry};
    *owned = entry;
    return 0;
}

/* --- hello --- */

PEER_WRITE(hello, Hello)
{
    ProtobufCBinaryData *key = NULL;

    peer__hello__init(to);
    if (m->n_key > 0 && (key = calloc(m->n_key, sizeof *key)) == NULL)
        return -1;
    for (size_t i = 0; i < m->n_key; i++)
        key[i] = peer_bytes(&m->key[i]);
    PEER_HELLO_FIELDS(PEER_WRITE_FIELD)
    to->n_key = m->n_key;
    to->key = key;
    scratch->owned = key;
    return 0;
}

PEER_READ(hello, Hello)
{
    struct peer_bytes *key = NULL;

    if (from->n_key > 0 && (key = calloc(from->n_key, sizeof *key)) == NULL)
        return peer_no_memory(e);
    for (size_t i = 0; i < from->n_key; i++)
        key[i] = (struct peer_bytes){from->key[i].data, from->key[i].len};
    PEER_HELLO_FIELDS(PEER_READ_FIELD)
    m->n_key = from->n_key;
    m->key = key;
    *owned = key;
    return 0;
}

size_t peer_hello_write(const struct peer_hello *hello, uint8_t *bytes, size_t size)
{
    struct peer_scratch scratch = {.owned = NULL};
    Peer__Hello packed;
    size_t length = 0;

    if (peer_hello_to_wire(hello, &packed, &scratch) != 0)
        return 0;
    length = peer__hello__get_packed_size(&packed);
    length = length <= size ? peer__hello__pack(&packed, bytes) : 0;
    free(scratch.owned);
    return length;
}

#define HELLO_UNPACKED_MOST 65536u

int peer_hello_read(const uint8_t *bytes, size_t length,
                    void (*heard)(void *context, const struct peer_hello *hello), void *context)
{
    Peer__Hello *unpacked =
        unpack_bounded(&peer__hello__descriptor, bytes, length, HELLO_UNPACKED_MOST);
    struct peer_hello hello;
    struct error e;
    void *owned = NULL;
    int result = -1;

    if (unpacked == NULL)
        return -1;
    if (peer_hello_from_wire(unpacked, &hello, &owned, &e) == 0) {
        heard(context, &hello);
        result = 0;
    }
    free(owned);
    unpack_free(unpacked);
    return result;
}

/* --- the table --- */

static void write_choice(const struct peer_group_choice *m, Peer__GroupTable__Choice *to)
{
    peer__group_table__choice__init(to);
    PEER_GROUP_CHOICE_FIELDS(PEER_WRITE_FIELD)
}

static void read_choice(const Peer__GroupTable__Choice *from, struct peer_group_choice *m)
{
    PEER_GROUP_CHOICE_FIELDS(PEER_READ_FIELD)
}

/* Memory in which choices are put one after another. */
struct written_choices {
    Peer__GroupTable__Choice **pointer, *choice;
};

static Peer__GroupTable__Choice **write_choices(const struct peer_group_choice *list, size_t count,
                                                struct written_choices *at)
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
    struct written_choices at = {room, (Peer__GroupTable__Choice *)(room + count)};

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

/* --- done: a list of nodes, each with a list of its ports --- */

/* --- writing --- */

/* Memory for all nodes and ports, in one piece. */
struct written {
    Peer__NodeReport **node_pointer, *node;
    Peer__PortReport **port_pointer, *port;
};

static void *written_new(struct written *w, size_t nodes, size_t ports)
{
    size_t node_size = sizeof *w->node_pointer + sizeof *w->node;
    size_t port_size = sizeof *w->port_pointer + sizeof *w->port;
    void *room = malloc(nodes * node_size + ports * port_size + 1);

    if (room == NULL)
        return NULL;
    w->node_pointer = room;
    w->port_pointer = (Peer__PortReport **)(w->node_pointer + nodes);
    w->node = (Peer__NodeReport *)(w->port_pointer + ports);
    w->port = (Peer__PortReport *)(w->node + nodes);
    return room;
}

static void write_port(const struct peer_port_report *m, Peer__PortReport *to)
{
    peer__port_report__init(to);
    PEER_PORT_REPORT_FIELDS(PEER_WRITE_FIELD)
}

static void write_node(const struct peer_node_report *m, Peer__NodeReport *to, struct written *at)
{
    peer__node_report__init(to);
    PEER_NODE_REPORT_FIELDS(PEER_WRITE_FIELD)
    to->n_port = m->n_port;
    to->port = at->port_pointer;
    for (size_t i = 0; i < m->n_port; i++) {
        write_port(&m->port[i], at->port);
        *at->port_pointer++ = at->port++;
    }
}

PEER_WRITE(done, Done)
{
    struct written at;
    size_t ports = 0;

    for (size_t i = 0; i < m->n_node; i++)
        ports += m->node[i].n_port;
    scratch->owned = written_new(&at, m->n_node, ports);
    if (scratch->owned == NULL)
        return -1;
    peer__done__init(to);
    PEER_DONE_FIELDS(PEER_WRITE_FIELD)
    to->n_node = m->n_node;
    to->node = at.node_pointer;
    for (size_t i = 0; i < m->n_node; i++) {
        at.node_pointer[i] = &at.node[i];
        write_node(&m->node[i], &at.node[i], &at);
    }
    return 0;
}

/* --- reading --- */

static void read_port(const Peer__PortReport *from, struct peer_port_report *m)
{
    PEER_PORT_REPORT_FIELDS(PEER_READ_FIELD)
}

static void read_node(const Peer__NodeReport *from, struct peer_node_report *m,
                      struct peer_port_report **at)
{
    PEER_NODE_REPORT_FIELDS(PEER_READ_FIELD)
    m->n_port = from->n_port;
    m->port = *at;
    for (size_t i = 0; i < from->n_port; i++)
        read_port(from->port[i], (*at)++);
}

PEER_READ(done, Done)
{
    struct peer_node_report *node;
    struct peer_port_report *port;
    size_t ports = 0;

    for (size_t i = 0; i < from->n_node; i++)
        ports += from->node[i]->n_port;
    node = malloc(from->n_node * sizeof *node + ports * sizeof *port + 1);
    if (node == NULL)
        return peer_no_memory(e);
    *owned = node;
    port = (struct peer_port_report *)(node + from->n_node);
    PEER_DONE_FIELDS(PEER_READ_FIELD)
    m->n_node = from->n_node;
    m->node = node;
    for (size_t i = 0; i < from->n_node; i++)
        read_node(from->node[i], &node[i], &port);
    return 0;
}
