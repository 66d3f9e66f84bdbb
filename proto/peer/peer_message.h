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

#include "proto/peer/copy_messages.h"
#include "proto/peer/data_messages.h"
#include "proto/peer/exchange_messages.h"
#include "proto/peer/group_messages.h"
#include "proto/peer/link_messages.h"
#include "proto/peer/survey_messages.h"

/* Every kind of message, by KIND(NAME, name, Name): PEER_NAME, struct peer_name, and Name in peer.proto. */
#define PEER_MESSAGES(KIND)                                                                        \
    KIND(STEPPED_DATA, stepped_data, SteppedData)                                                  \
    KIND(STREAMED_DATA, streamed_data, StreamedData)                                               \
    KIND(CLEAR, clear, Clear)                                                                      \
    KIND(HELLO, hello, Hello)                                                                      \
    KIND(PROOF, proof, Proof)                                                                      \
    KIND(REFUSAL, refusal, Refusal)                                                                \
    KIND(PROBE, probe, Probe)                                                                      \
    KIND(PROBE_ANSWERED, probe_answered, ProbeAnswered)                                            \
    KIND(HEARTBEAT, heartbeat, Heartbeat)                                                          \
    KIND(LINK_STATE, link_state, LinkState)                                                        \
    KIND(LINK_FAULT, link_fault, LinkFault)                                                        \
    KIND(PREPARE, prepare, Prepare)                                                                \
    KIND(SCHEDULE_QUERY, schedule_query, ScheduleQuery)                                            \
    KIND(SCHEDULE_PART, schedule_part, SchedulePart)                                               \
    KIND(SIZES, sizes, Sizes)                                                                      \
    KIND(ARRIVED, arrived, Arrived)                                                                \
    KIND(REPAIR_QUERY, repair_query, RepairQuery)                                                  \
    KIND(REPAIR_PART, repair_part, RepairPart)                                                     \
    KIND(LAYOUT, layout, Layout)                                                                   \
    KIND(READY, ready, Ready)                                                                      \
    KIND(GO, go, Go)                                                                               \
    KIND(REPEATED, repeated, Repeated)                                                             \
    KIND(ROUND_DONE, round_done, RoundDone)                                                        \
    KIND(ROUND_GO, round_go, RoundGo)                                                              \
    KIND(DONE, done, Done)                                                                         \
    KIND(COMMIT, commit, Commit)                                                                   \
    KIND(CONFIRM, confirm, Confirm)                                                                \
    KIND(NACK, nack, Nack)                                                                         \
    KIND(ABORT, abort, Abort)                                                                      \
    KIND(OUTCOME_QUERY, outcome_query, OutcomeQuery)                                               \
    KIND(OUTCOME, outcome, Outcome)                                                                \
    KIND(CALIBRATION, calibration, Calibration)                                                    \
    KIND(GROUP_CENSUS, group_census, GroupCensus)                                                  \
    KIND(GROUP_ANSWER, group_answer, GroupAnswer)                                                  \
    KIND(GROUP_REPORT, group_report, GroupReport)                                                  \
    KIND(GROUP_COMPARE, group_compare, GroupCompare)                                               \
    KIND(SURVEY_QUERY, survey_query, SurveyQuery)                                                  \
    KIND(SURVEY_ANSWER, survey_answer, SurveyAnswer)                                               \
    KIND(COPY_CALL, copy_call, CopyCall)                                                           \
    KIND(COPY_REFUSAL, copy_refusal, CopyRefusal)

#define PEER_KIND(NAME, name, Name) PEER_##NAME,
enum peer_kind { PEER_NOTHING, PEER_MESSAGES(PEER_KIND) PEER_KINDS };
#undef PEER_KIND

#define PEER_MEMBER(NAME, name, Name) struct peer_##name name;
struct Peer__Head; /* proto/peer.pb-c.h */

struct peer_message {
    enum peer_kind kind;
    void *owned;                 /* reading only: lists that were built, freed by
                                  * peer_message_free() */
    struct Peer__Head *unpacked; /* likewise, if made by peer_message_unpack() */
    union {
        PEER_MESSAGES(PEER_MEMBER)
    };
};
#undef PEER_MEMBER

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
