#include "proto/peer/codec.h"
#include "proto/unpack.h"

/* --- memory --- */

struct peer_room {
    struct peer_room *next;
    max_align_t bytes[];
};

void *peer_room_add(void **owned, size_t size)
{
    struct peer_room *room = malloc(sizeof *room + size);

    if (room == NULL)
        return NULL;
    room->next = *owned;
    *owned = room;
    return room->bytes;
}

void peer_room_free(void *owned)
{
    for (struct peer_room *room = owned, *next; room != NULL; room = next) {
        next = room->next;
        free(room);
    }
}

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

PEER_PART(link_state_entry, link_state__entry, LinkState__Entry, PEER_LINK_STATE_ENTRY_FIELDS)
PEER_PART(port_report, port_report, PortReport, PEER_PORT_REPORT_FIELDS)
PEER_PART(node_report, node_report, NodeReport, PEER_NODE_REPORT_FIELDS)
PEER_PART(group_choice, group_table__choice, GroupTable__Choice, PEER_GROUP_CHOICE_FIELDS)
PEER_PART(group_table, group_table, GroupTable, PEER_GROUP_TABLE_FIELDS)
PEER_CODEC(clear, Clear, PEER_CLEAR_FIELDS)
PEER_CODEC(hello, Hello, PEER_HELLO_FIELDS)
PEER_CODEC(link_state, LinkState, PEER_LINK_STATE_FIELDS)
PEER_CODEC(done, Done, PEER_DONE_FIELDS)
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
PEER_CODEC(group_message, GroupMessage, PEER_GROUP_MESSAGE_FIELDS)
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

/* --- messages that stand alone --- */

size_t peer_hello_write(const struct peer_hello *hello, uint8_t *bytes, size_t size)
{
    struct peer_scratch scratch = {.owned = NULL};
    Peer__Hello packed;
    size_t length = 0;

    if (peer_hello_to_wire(hello, &packed, &scratch) == 0)
        length = peer__hello__get_packed_size(&packed);
    length = length <= size ? length : 0;
    if (length > 0)
        (void)peer__hello__pack(&packed, bytes);
    peer_room_free(scratch.owned);
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
    peer_room_free(owned);
    unpack_free(unpacked);
    return result;
}

size_t peer_group_table_write(const struct peer_group_table *table, uint8_t *bytes, size_t size)
{
    struct peer_scratch scratch = {.owned = NULL};
    Peer__GroupTable packed;
    size_t length = 0;

    if (peer_group_table_to_wire(table, &packed, &scratch) == 0) {
        length = peer__group_table__get_packed_size(&packed);
        if (length <= size)
            (void)peer__group_table__pack(&packed, bytes);
    }
    peer_room_free(scratch.owned);
    return length;
}

int peer_group_table_read(const uint8_t *bytes, size_t length,
                          int (*heard)(void *context, const struct peer_group_table *table),
                          void *context, bool *malformed)
{
    Peer__GroupTable *from =
        unpack_bounded(&peer__group_table__descriptor, bytes, length, UNPACK_MOST);
    struct peer_group_table table;
    struct error e;
    void *owned = NULL;

    *malformed = from == NULL || peer_group_table_from_wire(from, &table, &owned, &e) != 0;
    const int result = *malformed ? -1 : heard(context, &table);
    peer_room_free(owned);
    unpack_free(from);
    return result;
}
