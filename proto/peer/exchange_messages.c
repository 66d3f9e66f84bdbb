#include "proto/peer/codec.h"

#define PREPARE(NUMBER, TEXT, BYTES, LIST)                                                         \
    NUMBER(exchange)                                                                               \
    TEXT(id)                                                                                       \
    NUMBER(root)                                                                                   \
    TEXT(dims)                                                                                     \
    NUMBER(round_bytes)                                                                            \
    NUMBER(window)                                                                                 \
    LIST(without) LIST(missing) NUMBER(avoids_links) TEXT(resumes) NUMBER(user) LIST(rates)

PEER_WRITE(prepare, Prepare)
{
    peer__prepare__init(to);
    PEER_WRITE_FIELDS(PREPARE)
    to->spec = (Torus__Spec *)(uintptr_t)m->spec; /* packing only reads it */
    return 0;
}

PEER_READ(prepare, Prepare)
{
    PEER_READ_FIELDS(PREPARE)
    m->spec = from->spec;
    if (m->spec == NULL)
        return error_set(e, ERROR_PROTOCOL, "prepare of exchange %.40s has no specification",
                         m->id);
    return 0;
}

#define SCHEDULE_QUERY(NUMBER, TEXT, BYTES, LIST) TEXT(digest) NUMBER(offset)
PEER_CODEC(schedule_query, ScheduleQuery, SCHEDULE_QUERY)

#define SCHEDULE_PART(NUMBER, TEXT, BYTES, LIST)                                                   \
    TEXT(digest) NUMBER(total) NUMBER(offset) BYTES(part)
PEER_CODEC(schedule_part, SchedulePart, SCHEDULE_PART)

#define SIZES(NUMBER, TEXT, BYTES, LIST) NUMBER(exchange) NUMBER(largest_block) NUMBER(total_bytes)
PEER_CODEC(sizes, Sizes, SIZES)

#define ARRIVED(NUMBER, TEXT, BYTES, LIST) NUMBER(exchange) NUMBER(node) LIST(spans) LIST(sizes)
PEER_CODEC(arrived, Arrived, ARRIVED)

#define REPAIR_QUERY(NUMBER, TEXT, BYTES, LIST)                                                    \
    NUMBER(exchange) NUMBER(source) NUMBER(destination) NUMBER(offset) NUMBER(length)
PEER_CODEC(repair_query, RepairQuery, REPAIR_QUERY)

#define REPAIR_PART(NUMBER, TEXT, BYTES, LIST)                                                     \
    NUMBER(exchange) NUMBER(source) NUMBER(destination) NUMBER(offset) BYTES(part)
PEER_CODEC(repair_part, RepairPart, REPAIR_PART)

#define LAYOUT(NUMBER, TEXT, BYTES, LIST)                                                          \
    NUMBER(exchange)                                                                               \
    NUMBER(round_bytes) NUMBER(window) NUMBER(timeout_ms) TEXT(algorithm) TEXT(mode)
PEER_CODEC(layout, Layout, LAYOUT)

#define READY(NUMBER, TEXT, BYTES, LIST) NUMBER(exchange) LIST(arrivals)
PEER_CODEC(ready, Ready, READY)

#define GO(NUMBER, TEXT, BYTES, LIST)                                                              \
    NUMBER(exchange) NUMBER(rounds) NUMBER(repetition) LIST(arrivals)
PEER_CODEC(go, Go, GO)

#define REPEATED(NUMBER, TEXT, BYTES, LIST) NUMBER(exchange) NUMBER(repetition) NUMBER(nanoseconds)
PEER_CODEC(repeated, Repeated, REPEATED)

#define ROUND_DONE(NUMBER, TEXT, BYTES, LIST) NUMBER(exchange) NUMBER(round)
PEER_CODEC(round_done, RoundDone, ROUND_DONE)

#define ROUND_GO(NUMBER, TEXT, BYTES, LIST) NUMBER(exchange) NUMBER(round)
PEER_CODEC(round_go, RoundGo, ROUND_GO)

#define COMMIT(NUMBER, TEXT, BYTES, LIST) NUMBER(exchange)
PEER_CODEC(commit, Commit, COMMIT)

#define CONFIRM(NUMBER, TEXT, BYTES, LIST) TEXT(id) LIST(rank) TEXT(obstacle)
PEER_CODEC(confirm, Confirm, CONFIRM)

#define OUTCOME_QUERY(NUMBER, TEXT, BYTES, LIST) TEXT(id) NUMBER(initiator)
PEER_CODEC(outcome_query, OutcomeQuery, OUTCOME_QUERY)

#define OUTCOME(NUMBER, TEXT, BYTES, LIST) TEXT(id) NUMBER(committed) NUMBER(initiator)
PEER_CODEC(outcome, Outcome, OUTCOME)

#define CALIBRATION(NUMBER, TEXT, BYTES, LIST)                                                     \
    NUMBER(version)                                                                                \
    NUMBER(measured_at)                                                                            \
    NUMBER(step_seconds) NUMBER(message_seconds) NUMBER(bytes_per_second) NUMBER(id) LIST(replaced)
PEER_CODEC(calibration, Calibration, CALIBRATION)

/* --- failures --- */

static enum error_code read_code(uint32_t code)
{
    return code > ERROR_NONE && code <= ERROR_BUSY ? (enum error_code)code : ERROR_IO;
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

#define NACK(NUMBER, TEXT, BYTES, LIST)                                                            \
    NUMBER(exchange) TEXT(id) NUMBER(root) TEXT(reason) NUMBER(retry_may_help)

PEER_WRITE(nack, Nack)
{
    peer__nack__init(to);
    PEER_WRITE_FIELDS(NACK)
    to->code = (uint32_t)m->code;
    to->culprit = (uint32_t)m->culprit.kind;
    to->culprit_node = m->culprit.node;
    to->culprit_port = m->culprit.port;
    return 0;
}

PEER_READ(nack, Nack)
{
    PEER_READ_FIELDS(NACK)
    m->code = read_code(from->code);
    m->culprit = read_culprit(from);
    return 0;
}

#define ABORT(NUMBER, TEXT, BYTES, LIST)                                                           \
    NUMBER(exchange) TEXT(id) TEXT(reason) NUMBER(left) NUMBER(before_go)

PEER_WRITE(abort, Abort)
{
    peer__abort__init(to);
    PEER_WRITE_FIELDS(ABORT)
    to->code = (uint32_t)m->code;
    return 0;
}

PEER_READ(abort, Abort)
{
    PEER_READ_FIELDS(ABORT)
    m->code = read_code(from->code);
    return 0;
}
