/* The fields of the messages between daemons: one list for each message, from which come the .proto file, the plain
 * structs (peer/peer_message.h) and their codec (peer/codec.h). peer.proto.in says what a message is for.
 *
 * A row is F(KIND, type on the wire, number, name):
 *
 *     NUMBER      a number or truth value
 *     TEXT        a text, printable when it was read
 *     BYTES       struct peer_bytes
 *     LIST        numbers: `n_rank` of them at `rank`
 *     CODE        enum error_code; ERROR_IO for a code that does not exist
 *     CALL        struct peer_group_call, with `has_call`
 *     SPEC        struct Torus__Spec; never NULL in a message that was read
 *     BYTES_LIST  a list of struct peer_bytes
 *     PARTS       a list of messages; a fifth argument names their struct
 *     CULPRIT     struct culprit, which the codec of its message reads and writes: CULPRIT_NONE for an unknown kind; its
 *                 node and port may not exist
 *     WIRE        a further number of such a field */
#pragma once

/* clang-format off */

/* Every kind of message, by KIND(NAME, name, Name, number): PEER_NAME, struct peer_name, and Name with the number of
 * its field in Head. */
#define PEER_MESSAGES(KIND) \
    KIND(STEPPED_DATA, stepped_data, SteppedData, 1) \
    KIND(STREAMED_DATA, streamed_data, StreamedData, 15) \
    KIND(CLEAR, clear, Clear, 17) \
    KIND(HELLO, hello, Hello, 2) \
    KIND(PROOF, proof, Proof, 29) \
    KIND(REFUSAL, refusal, Refusal, 3) \
    KIND(PROBE, probe, Probe, 35) \
    KIND(PROBE_ANSWERED, probe_answered, ProbeAnswered, 36) \
    KIND(HEARTBEAT, heartbeat, Heartbeat, 4) \
    KIND(LINK_STATE, link_state, LinkState, 5) \
    KIND(LINK_FAULT, link_fault, LinkFault, 37) \
    KIND(PREPARE, prepare, Prepare, 6) \
    KIND(SCHEDULE_QUERY, schedule_query, ScheduleQuery, 24) \
    KIND(SCHEDULE_PART, schedule_part, SchedulePart, 25) \
    KIND(SIZES, sizes, Sizes, 20) \
    KIND(ARRIVED, arrived, Arrived, 30) \
    KIND(REPAIR_QUERY, repair_query, RepairQuery, 31) \
    KIND(REPAIR_PART, repair_part, RepairPart, 32) \
    KIND(LAYOUT, layout, Layout, 21) \
    KIND(READY, ready, Ready, 7) \
    KIND(GO, go, Go, 8) \
    KIND(REPEATED, repeated, Repeated, 18) \
    KIND(ROUND_DONE, round_done, RoundDone, 9) \
    KIND(ROUND_GO, round_go, RoundGo, 10) \
    KIND(DONE, done, Done, 11) \
    KIND(COMMIT, commit, Commit, 12) \
    KIND(CONFIRM, confirm, Confirm, 13) \
    KIND(NACK, nack, Nack, 22) \
    KIND(ABORT, abort, Abort, 14) \
    KIND(OUTCOME_QUERY, outcome_query, OutcomeQuery, 23) \
    KIND(OUTCOME, outcome, Outcome, 16) \
    KIND(CALIBRATION, calibration, Calibration, 19) \
    KIND(GROUP_CENSUS, group_census, GroupCensus, 26) \
    KIND(GROUP_ANSWER, group_answer, GroupAnswer, 27) \
    KIND(GROUP_REPORT, group_report, GroupReport, 34) \
    KIND(GROUP_COMPARE, group_compare, GroupCompare, 28) \
    KIND(GROUP_MESSAGE, group_message, GroupMessage, 42) \
    KIND(SURVEY_QUERY, survey_query, SurveyQuery, 38) \
    KIND(SURVEY_ANSWER, survey_answer, SurveyAnswer, 39) \
    KIND(COPY_CALL, copy_call, CopyCall, 40) \
    KIND(COPY_REFUSAL, copy_refusal, CopyRefusal, 41)

#define PEER_GROUP_CALL_FIELDS(F) \
    /* 4 * (the call's number among those of its part, modulo 64) + the stage; or 2: the agreement of the \
     * members after a restart of the group */ \
    F(NUMBER, uint32, 1, number) \
    /* of the call's arguments: finds members that have made different calls */ \
    F(NUMBER, fixed32, 2, signature) \
    F(NUMBER, uint32, 3, part) /* bit d: dimension d; 0: the whole group */ \
    /* The next three say what the program has told about its data; 0: it told nothing, or the node is below 14.3. \
     * A member that knows nothing of its own data passes on what it has heard. */ \
    F(NUMBER, uint32, 4, data_type) /* of the elements: as in proto/group_call.h */ \
    F(NUMBER, fixed32, 5, data_shape) /* a hash of the shape */ \
    F(NUMBER, uint32, 6, data_member) /* number of the member whose data it is, plus 1; 0: of the sender */ \
    /* In a group of some nodes: the number of the channel between two members, plus 1, by which nodes pass the frame on \
     * (daemon/lib/schedule/detour/overlay.h). Added by 14.7 */ \
    F(NUMBER, uint32, 7, channel)

#define PEER_GROUP_CHOICE_FIELDS(F) \
    F(NUMBER, uint32, 1, octave) /* for blocks of 2^octave bytes or more */ \
    F(TEXT, string, 2, algorithm) \
    F(TEXT, string, 3, mode)

#define PEER_LINK_STATE_ENTRY_FIELDS(F) \
    F(NUMBER, uint32, 1, rank) \
    /* 0: the sender itself; the number of nodes, or more: the node cannot be reached */ \
    F(NUMBER, uint32, 2, hops) \
    F(NUMBER, uint32, 3, up) /* bit p: port p is up */ \
    F(NUMBER, fixed64, 4, boot) \
    F(NUMBER, uint32, 5, version) /* the higher version is the newer */ \
    F(NUMBER, uint32, 6, minor) /* minor version of the protocol that this node speaks */ \
    /* Digest of the link states with which the IP routes of this node agree \
     * (daemon/lib/cluster/route_planner.h); 0: not said. Added by 14.2. */ \
    F(NUMBER, fixed64, 7, confirmed) \
    /* Whether IP packets of other nodes may pass through this node: 0: not said, 1: yes, 2: no. Added by 14.4. */ \
    F(NUMBER, uint32, 8, forwards) \
    /* bit p: port p is up, but has brought nothing for a moment: IP routes avoid it. Added by 14.4 */ \
    F(NUMBER, uint32, 9, quiet) \
    /* For each port, the kbit/s that this node can send there, and those that it can receive; 0: not known. A \
     * channel has the smaller number of those that its two ends state. Empty: nothing is known. Added by 14.6. */ \
    F(LIST, uint32, 10, rates)

#define PEER_PORT_REPORT_FIELDS(F) \
    F(NUMBER, uint64, 1, tx_bytes) \
    F(NUMBER, uint64, 2, rx_bytes) \
    F(NUMBER, uint64, 3, tx_blocks) \
    F(NUMBER, uint64, 4, combined_messages) \
    F(NUMBER, uint32, 5, min_rtt_us) /* of the link's connection, 0 = unknown */ \
    /* bits a second, delivered while data always waited for the link; 0 = unknown */ \
    F(NUMBER, uint64, 6, rate_bps)

#define PEER_NODE_REPORT_FIELDS(F) \
    F(NUMBER, uint32, 1, rank) \
    F(NUMBER, uint64, 2, nanoseconds) \
    F(NUMBER, uint64, 3, blocks_delivered) \
    F(NUMBER, uint64, 4, bytes_delivered) \
    F(PARTS, PortReport, 5, port, port_report) /* by port number */ \
    F(NUMBER, uint32, 6, most_starts) /* the most legs that started here at the same time */ \
    F(NUMBER, uint32, 7, most_ends) /* the most legs that ended here at the same time */ \
    F(NUMBER, uint32, 8, repaired) /* pieces that arrived here damaged, and were repaired */ \
    F(NUMBER, uint64, 9, missing_files) /* source files that do not exist, and count as empty */ \
    F(NUMBER, uint64, 10, unused_files) /* files that are named after no node, and were not sent */

#define PEER_STEPPED_DATA_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) /* Prepare.handle */ \
    F(NUMBER, uint32, 2, round) /* modulo 128 */ \
    F(NUMBER, uint32, 3, step) \
    F(NUMBER, uint32, 4, hops) /* length of the leg */ \
    F(NUMBER, uint32, 5, left) /* hops that are left on arrival */ \
    F(CALL, GroupCall, 7, call) /* for data of a group; otherwise absent */ \
    F(LIST, uint32, 6, sizes) /* if blocks differ in size: bytes of each block that begins here */ \
    /* Files: digests of the pieces of 256 bytes or more that end in this frame \
     * (daemon/torusd/engine/piece_digest.h). */ \
    F(LIST, fixed64, 8, digests)

#define PEER_GROUP_COMPARE_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) /* Prepare.handle */ \
    F(NUMBER, uint32, 2, part) /* bit d: dimension d; 0: the whole group */ \
    F(NUMBER, uint32, 3, number) /* of that call in the part */ \
    F(NUMBER, fixed32, 4, signature) \
    F(NUMBER, uint32, 5, channel) /* as in GroupCall. Added by 14.7 */

#define PEER_GROUP_MESSAGE_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) /* Prepare.handle */ \
    F(NUMBER, uint32, 2, kind) /* enum frame_kind (daemon/torusd/group/message_state.h) */ \
    F(NUMBER, uint32, 3, from) /* node of the member that sends the frame */ \
    F(NUMBER, uint32, 4, to) /* node of the member that it is for; the others pass it on */ \
    F(NUMBER, uint32, 5, number) /* of the receive, among those of this receiver from this sender; with the \
     * highest bit: among its receives from any member */ \
    F(NUMBER, uint64, 6, tag) /* of the message */ \
    F(NUMBER, uint64, 7, size) /* of the message, in bytes */ \
    F(NUMBER, uint64, 8, offset) /* data: of the first byte of the body; asked for: of the first byte that lacks */ \
    F(NUMBER, uint64, 9, until) /* the sender may send bytes before this one */ \
    F(NUMBER, fixed64, 10, digest) /* of the body; 0 in an unchecked group */

#define PEER_GROUP_CENSUS_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) /* Prepare.handle */ \
    F(NUMBER, uint32, 2, initiator) /* the node that asks */ \
    F(NUMBER, uint32, 3, part) /* of the initiator: bit d: dimension d; 0: the whole group */ \
    F(NUMBER, uint32, 4, number) /* of that call in the part */ \
    F(NUMBER, uint32, 5, id) /* given by the root, ascending */

#define PEER_GROUP_ANSWER_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) \
    F(LIST, uint32, 2, missing) /* the first few nodes that have not made the call */ \
    F(NUMBER, uint32, 3, others) /* how many more nodes have not */ \
    F(NUMBER, uint32, 4, id) /* GroupCensus.id */

#define PEER_GROUP_REPORT_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) /* Prepare.handle */ \
    F(NUMBER, uint32, 2, initiator) /* as in GroupCensus */ \
    F(NUMBER, uint32, 3, part) \
    F(NUMBER, uint32, 4, number) \
    F(LIST, uint32, 5, missing) /* as in GroupAnswer */ \
    F(NUMBER, uint32, 6, others) \
    F(NUMBER, bool, 7, incomplete) /* not all nodes have answered */

#define PEER_GROUP_TABLE_FIELDS(F) \
    /* Rising. On networks with other factors than rings and lines there is no exchange, and the others name \
     * `trees` or `disjoint`. Where routes are found (there, and on damaged tori), members take from an \
     * allgather or broadcast only whether its algorithm splits blocks: then they use disjoint trees. */ \
    F(PARTS, Choice, 1, exchange, group_choice) \
    F(PARTS, Choice, 2, gather, group_choice) \
    F(PARTS, Choice, 4, broadcast, group_choice) /* also for a reduce, which uses the same trees in reverse */ \
    F(NUMBER, uint64, 3, long_reduction) /* bytes from which a vector counts as long */ \
    /* bytes up to which all blocks of an allgather are sent as one vector */ \
    F(NUMBER, uint64, 5, allgather_reduction)

#define PEER_STREAMED_DATA_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) /* Prepare.handle */ \
    F(NUMBER, uint32, 2, round) /* modulo 128 */ \
    F(CALL, GroupCall, 5, call) /* as in SteppedData */ \
    /* What the body holds: the place of each piece in the order of all pieces that cross this channel in a \
     * round (schedule/passages.h). Only the last piece may be incomplete. */ \
    F(LIST, uint32, 3, pieces) \
    F(LIST, uint32, 4, sizes) /* if blocks differ in size: bytes of each block that begins here */ \
    F(LIST, fixed64, 6, digests) /* as in SteppedData */

#define PEER_CLEAR_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) \
    F(NUMBER, uint32, 2, round) /* as in SteppedData */ \
    F(NUMBER, uint32, 3, step) \
    F(NUMBER, uint32, 4, hops) \
    F(NUMBER, uint32, 5, left)

#define PEER_HELLO_FIELDS(F) \
    F(NUMBER, uint32, 1, version) \
    F(TEXT, string, 2, dims) /* "4x8", with `m` behind a size that does not wrap */ \
    F(NUMBER, uint32, 3, rank) \
    F(NUMBER, uint32, 4, port) /* the sender's port of this link */ \
    F(NUMBER, fixed64, 5, boot) /* another number after each start of the sender; never 0 */ \
    F(BYTES_LIST, bytes, 6, key) /* ids of the sender's cluster keys, the preferred one first */ \
    F(BYTES, bytes, 7, challenge) /* 32 random bytes, if the sender has a key */ \
    F(NUMBER, bool, 8, encrypt) /* frames after the proofs are encrypted; both sides must want the same */ \
    F(BYTES, bytes, 9, ephemeral) /* with `encrypt`: an X25519 public key made for this connection */ \
    F(NUMBER, uint32, 10, minor) /* minor version of the protocol; the oldest ones do not say it */

#define PEER_PROOF_FIELDS(F) \
    F(BYTES, bytes, 1, digest)

#define PEER_PROBE_FIELDS(F) \
    F(BYTES, bytes, 1, filler) /* has no meaning */

#define PEER_PROBE_ANSWERED_FIELDS(F) \
    F(NUMBER, uint32, 1, bytes) /* bytes of the probe's filler */

#define PEER_REFUSAL_FIELDS(F) \
    F(TEXT, string, 1, reason)

#define PEER_HEARTBEAT_FIELDS(F) \
    F(NUMBER, uint32, 1, interval_ms) /* between two heartbeats of the sender; 0 means a second */ \
    F(NUMBER, fixed64, 2, at) /* when it was sent, by the sender's clock, in nanoseconds; 0: not said */ \
    F(NUMBER, fixed64, 3, echo) /* `at` of the last heartbeat that the sender has received, and how many */ \
    F(NUMBER, fixed64, 4, held) /* nanoseconds ago it arrived; both 0: none */ \
    /* has no meaning: fills a slow link to find out whether it is faster now (daemon/torusd/router/rates.h). \
     * Added by 14.6 */ \
    F(BYTES, bytes, 5, filler)

#define PEER_LINK_STATE_FIELDS(F) \
    F(PARTS, Entry, 1, entry, link_state_entry)

#define PEER_LINK_FAULT_FIELDS(F) \
    F(NUMBER, uint32, 1, rank) \
    F(NUMBER, uint32, 2, port) \
    F(NUMBER, fixed64, 3, boot) /* of that node */ \
    F(NUMBER, uint32, 4, number) /* the higher number is the newer */ \
    F(NUMBER, uint32, 5, code) /* enum link_fault_code; 0: the fault is over */ \
    F(NUMBER, uint32, 6, found_rank) /* what is at the other end of the cable, if the code is about that */ \
    F(NUMBER, uint32, 7, found_port) \
    F(NUMBER, uint32, 8, left) /* hops that the message may still make */ \
    F(NUMBER, uint32, 9, sent) /* MTU faults: bytes of which none was acknowledged; 0: nothing has arrived */ \
    F(NUMBER, uint32, 10, mtu) /* MTU faults: MTU of the node; 0 = unknown */

#define PEER_PREPARE_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) /* handle of the exchange: a short name for its messages */ \
    /* for people, and to tell attempts of two starts of the root apart: root-boot-counter */ \
    F(TEXT, string, 2, id) \
    F(NUMBER, uint32, 3, root) \
    F(TEXT, string, 4, dims) \
    F(SPEC, torus.Spec, 5, spec) \
    /* most bytes of one block in one round; 0: sizes differ, so Layout has the number */ \
    F(NUMBER, uint64, 6, round_bytes) \
    F(NUMBER, uint32, 7, window) /* rounds that are under way at the same time */ \
    /* Links that are down, each as node * dimensions + dimension of its end at a + port; ascending. The tree and \
     * the routes avoid them. A node that knows of other links that are down objects. */ \
    F(LIST, uint32, 8, without) \
    /* Spec.shrink: nodes that do not take part, ascending; their links are not in `without`. */ \
    F(LIST, uint32, 10, missing) \
    /* the root retries without links that go down, so a node that loses a link reports it soon */ \
    F(NUMBER, bool, 9, avoids_links) \
    /* "", or the id of the first attempt: bytes that arrived in earlier attempts are not sent again. For a \
     * group: the group has been open, and restarts. */ \
    F(TEXT, string, 11, resumes) \
    /* The uid, at the root, of the user who asked (0 also if the root does not say it). Whatever the exchange \
     * takes at a node counts as that user's share; where a program has entered a group or barrier, it counts \
     * as the share of that program's user. */ \
    F(NUMBER, uint32, 12, user) \
    /* For each channel that is slower than the fastest links, its number (rank * ports + port) and its rate in \
     * thousandths of theirs; channels rising. Routes are found for these rates. Added by 14.6. */ \
    F(LIST, uint32, 13, rates) \
    /* A group restarts, and data of it was damaged before: blocks are sent from their beginning, whatever of them \
     * has arrived. Nodes before this field send the rest only. */ \
    F(NUMBER, bool, 14, from_begin)

#define PEER_SCHEDULE_QUERY_FIELDS(F) \
    F(TEXT, string, 1, digest) \
    F(NUMBER, uint32, 2, offset)

#define PEER_SCHEDULE_PART_FIELDS(F) \
    F(TEXT, string, 1, digest) \
    F(NUMBER, uint32, 2, total) /* bytes of the whole schedule; 0: the sender does not have it either */ \
    F(NUMBER, uint32, 3, offset) \
    F(BYTES, bytes, 4, part)

#define PEER_SIZES_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) \
    F(NUMBER, uint64, 2, largest_block) \
    F(NUMBER, uint64, 3, total_bytes) /* sum of their blocks for other nodes; 2^64 - 1 if it is more */

#define PEER_ARRIVED_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) \
    F(NUMBER, uint32, 2, node) \
    /* For each span: the node that the block comes from, its first byte, its bytes; ascending, without overlap. */ \
    F(LIST, uint64, 3, spans) \
    F(LIST, uint64, 4, sizes) /* files: sizes of its own blocks, by destination */

#define PEER_REPAIR_QUERY_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) \
    F(NUMBER, uint32, 2, source) \
    F(NUMBER, uint32, 3, destination) /* the node that asks */ \
    F(NUMBER, uint64, 4, offset) /* of the piece in the block */ \
    F(NUMBER, uint32, 5, length)

#define PEER_REPAIR_PART_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) \
    F(NUMBER, uint32, 2, source) \
    F(NUMBER, uint32, 3, destination) \
    F(NUMBER, uint64, 4, offset) \
    F(BYTES, bytes, 5, part)

#define PEER_LAYOUT_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) \
    F(NUMBER, uint64, 2, round_bytes) \
    F(NUMBER, uint32, 3, window) \
    F(NUMBER, uint64, 4, timeout_ms) /* time left from now on */ \
    F(TEXT, string, 5, algorithm) /* the algorithm that the root has chosen, if Prepare said "auto" */ \
    F(TEXT, string, 6, mode) /* mode of that algorithm */

#define PEER_READY_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) \
    /* Barriers: pairs of a rank and how many microseconds before this message its client had entered \
     * (daemon/torusd/exchange/report.h). Empty if a node has a minor version below 4. */ \
    F(LIST, uint64, 2, arrivals)

#define PEER_GO_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) \
    F(NUMBER, uint64, 2, rounds) /* of one repetition */ \
    F(NUMBER, uint32, 3, repetition) \
    /* Barriers: pairs of a rank, ascending, and how many microseconds after the first node its client entered. \
     * Empty if a node has a minor version below 4. */ \
    F(LIST, uint64, 4, arrivals)

#define PEER_REPEATED_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) \
    F(NUMBER, uint32, 2, repetition) \
    F(NUMBER, uint64, 3, nanoseconds) /* of the slowest of these nodes, from its Go to its last block */

#define PEER_ROUND_DONE_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) \
    F(NUMBER, uint64, 2, round)

#define PEER_ROUND_GO_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) \
    F(NUMBER, uint64, 2, round) /* the round that may start */

#define PEER_DONE_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) \
    F(PARTS, NodeReport, 2, node, node_report) \
    F(LIST, uint32, 3, step_blocks) /* per step: most blocks on any channel in any round */ \
    F(LIST, uint32, 4, step_messages) /* per step: most combined messages on any channel */ \
    F(NUMBER, fixed64, 5, sent_digest) /* sums over blocks; equal when all nodes are added up */ \
    F(NUMBER, fixed64, 6, delivered_digest)

#define PEER_COMMIT_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange)

#define PEER_CONFIRM_FIELDS(F) \
    F(TEXT, string, 1, id) \
    F(LIST, uint32, 2, rank) \
    F(TEXT, string, 3, obstacle) /* why the node of the only rank could not; "": there is no obstacle */

#define PEER_NACK_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) \
    F(TEXT, string, 2, id) \
    F(NUMBER, uint32, 3, root) \
    F(CODE, uint32, 4, code) /* enum error_code */ \
    F(TEXT, string, 5, reason) \
    /* blocks were damaged on their way here, and may arrive undamaged in a retry */ \
    F(NUMBER, bool, 6, retry_may_help) \
    F(CULPRIT, uint32, 7, culprit) /* enum culprit_kind (proto/error.h): what the reason names */ \
    F(WIRE, uint32, 8, culprit_node) /* for every kind except none */ \
    F(WIRE, uint32, 9, culprit_port) /* for a link: the node's port */

#define PEER_ABORT_FIELDS(F) \
    F(NUMBER, uint32, 1, exchange) \
    F(TEXT, string, 2, id) \
    F(CODE, uint32, 3, code) /* enum error_code */ \
    F(TEXT, string, 4, reason) \
    F(NUMBER, uint32, 5, left) /* flooded: hops that the message may still make; 0: down the tree only */ \
    F(NUMBER, bool, 6, before_go) /* the root has not sent Go in any attempt */

#define PEER_OUTCOME_QUERY_FIELDS(F) \
    F(TEXT, string, 1, id) \
    F(NUMBER, uint32, 2, initiator)

#define PEER_OUTCOME_FIELDS(F) \
    F(TEXT, string, 1, id) \
    F(NUMBER, bool, 2, committed) \
    F(NUMBER, uint32, 3, initiator)

#define PEER_CALIBRATION_FIELDS(F) \
    F(NUMBER, uint32, 1, version) \
    F(NUMBER, uint64, 2, measured_at) /* seconds since 1970; 0: reset, and all costs are 0 */ \
    F(NUMBER, double, 3, step_seconds) \
    F(NUMBER, double, 4, message_seconds) \
    F(NUMBER, double, 5, bytes_per_second) \
    F(NUMBER, fixed64, 6, id) \
    F(LIST, fixed64, 7, replaced) /* ids of older calibrations */

#define PEER_SURVEY_QUERY_FIELDS(F) \
    F(NUMBER, uint32, 1, initiator) \
    F(NUMBER, fixed64, 2, id) /* random; tells the surveys of a node apart */ \
    F(NUMBER, uint32, 3, kind) /* enum survey_kind */ \
    F(NUMBER, uint32, 4, left) /* hops that the message may still make */

#define PEER_SURVEY_ANSWER_FIELDS(F) \
    F(NUMBER, uint32, 1, initiator) \
    F(NUMBER, fixed64, 2, id) \
    F(NUMBER, uint32, 3, node) /* that answers */ \
    F(NUMBER, uint32, 4, part) /* number of this part, from 0 */ \
    F(NUMBER, uint32, 5, parts) /* of the whole answer */ \
    F(BYTES, bytes, 6, bytes) /* at most SURVEY_PART; relays and the initiator pass them on unread */ \
    F(NUMBER, uint32, 7, left) /* hops that the message may still make */

#define PEER_COPY_CALL_FIELDS(F) \
    F(NUMBER, uint32, 1, initiator) \
    F(NUMBER, fixed64, 2, id) /* random; tells the copies of a node apart */ \
    F(NUMBER, uint32, 3, attempt) /* of the copy, from 1 */ \
    F(NUMBER, uint32, 4, number) /* of this call, from 1, through all attempts */ \
    /* CopyRequest (copy.proto.in), at most COPY_REQUEST_MOST bytes; none: the initiator has given up */ \
    F(BYTES, bytes, 5, request) \
    F(NUMBER, uint32, 6, left) /* hops that the message may still make */

#define PEER_COPY_REFUSAL_FIELDS(F) \
    F(NUMBER, uint32, 1, initiator) \
    F(NUMBER, fixed64, 2, id) \
    F(NUMBER, uint32, 3, attempt) \
    F(NUMBER, uint32, 4, node) /* that refuses */ \
    F(CODE, uint32, 5, code) /* enum error_code; ERROR_BUSY: it may take part later */ \
    F(TEXT, string, 6, reason) \
    F(NUMBER, uint32, 7, left) /* hops that the message may still make */

/* clang-format on */

/* --- as a message of protobuf --- */

#define PEER_HEAD(NAME, name, Name, number) Name name = number;
#define PEER_FIELD(KIND, type, number, name, ...) PEER_FIELD_##KIND(type, number, name)
#define PEER_FIELD_NUMBER(type, number, name) type name = number;
#define PEER_FIELD_TEXT PEER_FIELD_NUMBER
#define PEER_FIELD_BYTES PEER_FIELD_NUMBER
#define PEER_FIELD_CODE PEER_FIELD_NUMBER
#define PEER_FIELD_CALL PEER_FIELD_NUMBER
#define PEER_FIELD_SPEC PEER_FIELD_NUMBER
#define PEER_FIELD_CULPRIT PEER_FIELD_NUMBER
#define PEER_FIELD_WIRE PEER_FIELD_NUMBER
#define PEER_FIELD_LIST(type, number, name) repeated type name = number[packed = true];
#define PEER_FIELD_BYTES_LIST(type, number, name) repeated type name = number;
#define PEER_FIELD_PARTS PEER_FIELD_BYTES_LIST
