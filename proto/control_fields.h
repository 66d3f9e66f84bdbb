/* The fields of the messages between clients and the daemon that both sides handle alike: one list for each message,
 * from which come their .proto files, what the daemon fills, and what libtorus reads. The other fields (lists, paths
 * and a few more) stand in control.proto.in, spec.proto.in and copy.proto.in, and are set by hand.
 *
 * A message to a client has rows F(KIND, type on the wire, number, name, what the daemon puts there, its name in the
 * struct of libtorus). `from` is what the daemon has of the thing, and what libtorus reads:
 *
 *     SAME      a number with the same name everywhere: no more arguments; SAME_TEXT: such a text
 *     OF        the same, but the daemon has it in a part of its struct: F(OF, type, number, part, name)
 *     NUMBER    a number or truth value
 *     FLAG      a truth value that is a number in libtorus
 *     TEXT      a text, which libtorus makes printable
 *     NAMED     a text that libtorus converts with a function, its last argument
 *     CODE      the same for a number
 *
 * The daemon expands a list with CONTROL_FILL (daemon/torusd/control/internal.h), libtorus with CONTROL_READ
 * (client/libtorus/requests/results.h); there `to` is what is filled. */
#pragma once

/* A request or a reply, for as long as the block that it is in: CONTROL_REPLY(LINKS, links, &links). */
#define CONTROL_REQUEST(KIND, member, body)                                                        \
    (&(const Control__Request){.base = PROTOBUF_C_MESSAGE_INIT(&control__request__descriptor),     \
                               .kind_case = CONTROL__REQUEST__KIND_##KIND,                         \
                               {.member = (body)}})
#define CONTROL_REPLY(KIND, member, body)                                                          \
    (&(const Control__Reply){.base = PROTOBUF_C_MESSAGE_INIT(&control__reply__descriptor),         \
                             .kind_case = CONTROL__REPLY__KIND_##KIND,                             \
                             {.member = (body)}})

/* As fields of protobuf; of requests, and of messages to a client. */
#define REQUEST_FIELD(type, number, name, ...) type name = number;
#define CONTROL_FIELD(KIND, type, number, ...) CONTROL_FIELD_##KIND(type, number, __VA_ARGS__, )
#define CONTROL_FIELD_NUMBER(type, number, name, ...) type name = number;
#define CONTROL_FIELD_SAME CONTROL_FIELD_NUMBER
#define CONTROL_FIELD_SAME_TEXT CONTROL_FIELD_NUMBER
#define CONTROL_FIELD_OF(type, number, part, name, ...) type name = number;
#define CONTROL_FIELD_FLAG CONTROL_FIELD_NUMBER
#define CONTROL_FIELD_TEXT CONTROL_FIELD_NUMBER
#define CONTROL_FIELD_NAMED CONTROL_FIELD_NUMBER
#define CONTROL_FIELD_CODE CONTROL_FIELD_NUMBER

/* clang-format off */

/* --- requests: F(type on the wire, number, name, name in the daemon's struct, name in the struct of libtorus) --- */

/* Spec: struct spec, struct torus_request. Texts by their names. */
#define SPEC_TEXTS(F) \
    /* instead of algorithm: digest of a schedule (daemon/lib/schedule/file/imported.h) */ \
    F(string, 12, schedule) \
    /* a name, or from a client "auto": the algorithm that is predicted to be the fastest */ \
    F(string, 1, algorithm) \
    F(string, 5, barrier) /* barrier or group: its name */ \
    /* group: its members, if they are not all nodes: ranks and ranges of ranks, ascending, "0-2,7" */ \
    F(string, 19, members) \
    F(string, 7, from) /* folders, with %r for the node's rank; empty: generated blocks */ \
    F(string, 8, to)
#define SPEC_NUMBERS(F) \
    F(uint32, 3, operation) /* enum schedule_operation (daemon/lib/schedule/algorithm.h) */ \
    F(uint32, 4, sender) /* broadcast: rank of the node that has the block */ \
    F(uint64, 6, block_bytes) /* generated blocks; ignored with folders */ \
    F(bool, 9, missing_ok) /* a missing source file counts as an empty block */ \
    /* an old result at `to` is replaced; otherwise `to` must not exist, or must be empty */ \
    F(bool, 17, replace) \
    /* exchange, auto; group: nodes that are down are left out instead of failing the exchange */ \
    F(bool, 14, shrink) \
    /* nodes that are down are waited for, within the timeout, instead of failing the exchange */ \
    F(bool, 15, wait) \
    F(bool, 18, trace) /* every node records what it does (daemon/lib/trace) */ \
    F(uint32, 10, repeat) /* exchanges back to back; 0 means 1 */

/* CopyRequest: struct copy_request, struct torus_copy. */
#define COPY_REQUEST_NUMBERS(F) \
    F(uint32, 2, node, node, node) /* the node that has the trees; gather: that gets them */ \
    /* sources keep their names, in the folder `target`; otherwise the one source becomes `target` */ \
    F(bool, 5, into, into, into) \
    F(bool, 8, delete_, delete, remove) /* what the target has and the source lacks is removed */ \
    F(bool, 21, delete_root, delete_root, remove_root) /* `delete` may have a data root as its target */ \
    F(bool, 9, checksum, checksum, checksum) /* compare contents, even if sizes and times are equal */ \
    F(bool, 10, dry_run, dry_run, dry_run) /* compare only, and say what a copy would do */ \
    F(bool, 11, verify, verify, verify) /* compare contents only, and say what differs */ \
    F(bool, 12, as_it_comes, as_it_comes, as_it_comes) /* each file is put in place when it is complete */ \
    F(bool, 13, shrink, shrink, shrink) /* nodes that are down are left out */ \
    F(bool, 14, wait, wait, wait) /* nodes that are down are waited for */ \
    F(bool, 17, missing_ok, missing_ok, missing_ok) /* a source that does not exist counts as an empty one */ \
    F(bool, 18, trace, trace, trace) /* every node records what it does (daemon/lib/trace) */ \
    /* All below: peer protocol of minor version 3. */ \
    /* files that change meanwhile are left out; otherwise the copy fails */ \
    F(bool, 19, skip_changing, skip_changing, skip_changing) \
    F(bool, 22, copy_links, copy_links, copy_links) /* symbolic links are copied as what they lead to */

/* Costs: struct predict_costs, struct torus_costs. */
#define CONTROL_COSTS(F) \
    F(double, 1, step_seconds, step, step_seconds) \
    F(double, 2, message_seconds, message, message_seconds) \
    F(double, 3, bytes_per_second, bytes_per_second, bytes_per_second)

/* --- Status --- */

/* What the node says of itself: struct control_server, with its setup `set`, router and torus; struct torus_status.
 * Lists follow by hand. */
#define CONTROL_STATUS(F) \
    F(TEXT, string, 1, version, TORUSD_VERSION, version) \
    F(TEXT, string, 2, dims, torus_format(t, m->node.dims), dims) \
    F(NUMBER, uint32, 3, rank, router_rank(router), rank) \
    F(NUMBER, uint64, 5, uptime_ms, elapsed(from->started, uv_hrtime()) / MILLISECONDS, uptime_ms) \
    /* every link of every node is up, as far as this node knows */ \
    F(NUMBER, bool, 6, whole, topology_whole(router_topology(router)), whole) \
    F(NUMBER, double, 10, link_mbit, set->link_mbit, link_mbit) /* nominal; 0 = unknown */ \
    F(NUMBER, uint64, 11, memory_budget, set->memory_budget, memory_budget) /* bytes for blocks on their way */ \
    F(NUMBER, uint64, 12, memory_reserved, exchanges_reserved(set->exchanges), memory_reserved) \
    F(NUMBER, uint64, 13, memory_used, used, memory_used) /* in slabs, now */ \
    F(NUMBER, uint64, 14, pid, (uint64_t)getpid(), pid) \
    /* PROTOCOL_VERSION, CONTROL_VERSION (frame.h), PROGRAM_VERSION (program.h); all three are 0 if unknown */ \
    F(NUMBER, uint32, 18, peer_protocol, PROTOCOL_VERSION, peer_protocol) \
    F(NUMBER, uint32, 19, control_protocol, CONTROL_VERSION, control_protocol) \
    F(NUMBER, uint32, 20, program_protocol, PROGRAM_VERSION, program_protocol) \
    /* minor version of the peer protocol that this node speaks, and the least one of all nodes that can be reached */ \
    F(NUMBER, uint32, 40, peer_minor, router_minor(router), peer_minor) \
    F(NUMBER, uint32, 41, least_peer_minor, router_least_minor(router), least_peer_minor) \
    F(TEXT, string, 24, host, m->node.host.nodename, host) /* uname -n */ \
    /* address for monitoring, "127.0.0.1:9101"; "": none */ \
    F(TEXT, string, 50, metrics, set->metrics, metrics)

/* struct exchange_info, struct torus_activity */
#define CONTROL_STATUS_EXCHANGE(F) \
    F(SAME_TEXT, string, 1, id) \
    F(SAME_TEXT, string, 2, algorithm) \
    /* exchange_state_name() (daemon/torusd/exchange/states.c) */ \
    F(NAMED, string, 3, state, exchange_state_name(from->state), state, state_named) \
    F(SAME_TEXT, string, 4, reason) /* of a failure */ \
    /* the node that was asked for the exchange, and coordinates it */ \
    F(NUMBER, uint32, 5, root, from->root, coordinator) \
    F(NUMBER, uint64, 6, age_ms, from->age_ns / MILLISECONDS, age_ms) \
    F(SAME, uint64, 7, round) /* at this node */ \
    F(SAME, uint64, 8, rounds) /* of a repetition */ \
    F(SAME, uint64, 9, done_bytes) /* delivered at this node in this repetition */ \
    F(SAME, uint64, 10, total_bytes) /* to be delivered at this node in a repetition; 0 = unknown */

/* struct group_info, struct torus_group_info */
#define CONTROL_STATUS_GROUP(F) \
    F(SAME_TEXT, string, 1, name) \
    F(SAME_TEXT, string, 2, id) \
    F(SAME, bool, 3, open) /* opened by programs on all nodes; otherwise it is being opened */ \
    /* while not open: ranks where the group has not been opened, as far as this node knows */ \
    F(SAME_TEXT, string, 11, missing) \
    /* nodes that the group leaves out, and links that its calls avoid, for people: "link 3:+0, node 7" */ \
    F(SAME_TEXT, string, 12, avoids) \
    /* the program's process id; 0 = unknown, as in another namespace */ \
    F(NUMBER, uint64, 10, process, from->process, pid) \
    F(SAME, uint64, 4, calls) /* made by the program */ \
    F(SAME, uint64, 5, calls_done) \
    F(SAME, uint64, 6, bytes_sent) /* bytes of blocks sent to other members */ \
    F(SAME, uint64, 7, bytes_received) \
    F(NUMBER, uint64, 8, early, from->early, early_bytes) /* bytes that arrived before their calls */ \
    /* memory for such bytes, a part of memory_reserved */ \
    F(NUMBER, uint64, 9, reserved, from->reserved, reserved_bytes) \
    /* of the links that its calls use, as in LinkRates; empty: all are alike */ \
    F(TEXT, string, 13, rates, from->links.rates, rates) \
    F(NUMBER, uint64, 14, full_bps, from->links.full_bps, full_bps)

/* struct copy_info, struct torus_copy_activity */
#define CONTROL_STATUS_COPY(F) \
    F(SAME_TEXT, string, 1, id) \
    F(SAME, uint32, 2, asker) /* the node that was asked for the copy */ \
    /* enum copy_phase (daemon/torusd/copy/copy.h) */ \
    F(CODE, uint32, 3, phase, from->progress.phase, phase, copy_phase_of) \
    F(OF, uint64, 4, progress, files) /* as in CopyProgress, at this node */ \
    F(OF, uint64, 5, progress, bytes) \
    F(OF, uint64, 6, progress, bytes_of) \
    F(TEXT, string, 7, waits_for, from->progress.waits_for, waits_for) \
    F(SAME_TEXT, string, 8, target) /* for people */

/* struct fault_report, struct torus_link_fault; libtorus has no node for what was not found */
#define CONTROL_STATUS_LINK_FAULT(F) \
    F(NUMBER, uint32, 1, node, from->rank, node) \
    F(SAME, uint32, 2, port) \
    /* link_fault_name() (daemon/torusd/router/faults.h) */ \
    F(TEXT, string, 3, code, link_fault_name(from->fault.code), code) \
    F(TEXT, string, 4, text, m->text[i], text) /* for people */ \
    F(NUMBER, uint32, 6, found_node, found ? from->fault.found_rank : 0, found_node) \
    F(NUMBER, uint32, 7, found_port, found ? from->fault.found_port : 0, found_port)

/* struct share_holder, struct torus_share */
#define CONTROL_STATUS_SHARE(F) \
    /* shares_name(): "programs"; it counts places, or bytes if the name ends in "_bytes" */ \
    F(TEXT, string, 1, resource, shares_name(share), resource) \
    F(SAME, uint32, 2, user) /* uid here; for what another node has asked for, uid at that node */ \
    F(SAME, uint64, 3, held) /* what that user holds */ \
    /* the most that the user may hold now, including what it holds; less if others hold more */ \
    F(NUMBER, uint64, 4, most, shares_limit(all, share, from->user), most) \
    /* what all users together may hold */ \
    F(NUMBER, uint64, 5, capacity, shares_capacity(all, share), capacity)

/* struct exchange_unconfirmed, struct torus_unconfirmed; the nodes follow by hand */
#define CONTROL_STATUS_UNCONFIRMED(F) \
    F(SAME_TEXT, string, 1, id) \
    F(SAME, uint32, 2, count) /* nodes that have not confirmed */ \
    F(SAME_TEXT, string, 4, reason) /* why they have not, and what happens next */

/* --- Links.Link: struct port_info with texts beside it; struct torus_link --- */

#define CONTROL_LINK(F) \
    F(NUMBER, uint32, 1, port, port, port) \
    F(TEXT, string, 2, name, texts->name, name) /* "+0" */ \
    F(SAME, uint32, 3, neighbour) /* rank */ \
    /* the dialled address, or the one listened on, as configured */ \
    F(TEXT, string, 4, address, texts->address, address) \
    /* up, dialling, waiting, hello, probing, held */ \
    F(NAMED, string, 6, state, port_state_name(from->state), state, link_state_named) \
    F(SAME_TEXT, string, 7, reason) /* why it is not up */ \
    F(SAME, uint64, 8, tx_bytes) /* since this connection came up */ \
    F(SAME, uint64, 9, rx_bytes) \
    F(OF, uint32, 10, stat, rtt_us) /* TCP_INFO; 0 = unknown */ \
    /* bits a second, delivered while data always waited for the link; 0 = unknown */ \
    F(OF, uint64, 11, stat, rate_bps) \
    F(NUMBER, uint64, 12, up_ms, from->up_ns / MILLISECONDS, up_ms) \
    F(SAME, uint32, 13, connects) /* how many times the link has come up */ \
    /* id of the cluster key that the neighbour has proved to have; empty: none */ \
    F(SAME_TEXT, string, 14, key) \
    F(FLAG, bool, 15, encrypted, from->encrypted, encrypted) \
    /* how long the link must still be quiet before it is used again */ \
    F(NUMBER, uint64, 16, held_ms, from->held_ns / MILLISECONDS, held_ms) \
    /* the interface that the link uses, or would use; empty: not known */ \
    F(TEXT, string, 17, interface, tcp_interface(set->tcp, port), interface) \
    F(SAME, uint64, 18, queue_bytes) /* of frames that wait in the daemon for this link */ \
    /* sent, and not acknowledged by the neighbour's system */ \
    F(NUMBER, uint64, 19, unacked_bytes, from->stat.unacked, unacked_bytes) \
    F(OF, uint32, 20, stat, retransmits) /* packets that TCP has sent again since the link came up */ \
    F(OF, uint32, 21, stat, mtu) /* of the route to the neighbour; 0 = unknown */ \
    /* how far back the next three reach, at most about an hour; 0 = unknown */ \
    F(NUMBER, uint64, 22, hour_ms, from->hour_ns / MILLISECONDS, hour_ms) \
    F(SAME, uint64, 23, hour_tx_bytes) /* of all connections */ \
    F(SAME, uint64, 24, hour_retransmits) \
    F(SAME, uint32, 25, hour_connects) \
    /* What the link can carry, in bits a second; 0 = unknown (daemon/torusd/router/rates.h). */ \
    /* away from this node, as configured */ \
    F(NUMBER, uint64, 26, nominal_send_bps, (uint64_t)(from->rates.nominal.send * MBIT), nominal_send_bps) \
    F(NUMBER, uint64, 27, nominal_receive_bps, (uint64_t)(from->rates.nominal.receive * MBIT), nominal_receive_bps) \
    F(NUMBER, uint64, 28, negotiated_bps, from->rates.negotiated *KBIT, negotiated_bps) /* by the card */ \
    /* carried lately while data always waited for the link, with headers */ \
    F(NUMBER, uint64, 29, observed_bps, from->rates.observed *KBIT, observed_bps) \
    /* what plans use, away from this node */ \
    F(NUMBER, uint64, 30, planned_bps, from->rates.planned *KBIT, planned_bps) \
    /* nominal, negotiated, observed, neighbour; empty: unknown */ \
    F(TEXT, string, 31, planned_from, rate_source_name(from->rates.source), planned_from)

/* --- Candidates.Candidate: struct candidate, struct torus_candidate --- */

#define CONTROL_CANDIDATE(F) \
    F(TEXT, string, 1, algorithm, from->algorithm->name, algorithm) \
    F(NAMED, string, 2, mode, mode_name(from->mode), mode, mode_named) /* stepped, streaming */ \
    F(OF, uint32, 3, counts, segments) /* parts of a block that take different routes */ \
    F(SAME, uint64, 4, piece_bytes) /* bytes of a block that travel together */ \
    F(OF, double, 5, counts, steps) /* consecutive steps on the longest path */ \
    /* messages that a node sends or passes on, on average, while blocks are small */ \
    F(OF, double, 6, counts, messages) \
    F(OF, double, 7, counts, blocks) /* blocks on the busiest channel, summed over steps */ \
    F(SAME, double, 8, seconds) /* predicted */

/* --- LinkRates: struct link_rates, struct torus_link_rates; absent: all links were taken for equal --- */

#define CONTROL_LINK_RATES(F) \
    /* "6:-1=0.4": channels that are slower than the fastest ones; ends in "..." if they are too many */ \
    F(SAME_TEXT, string, 1, rates) \
    F(SAME, uint64, 2, full_bps) /* rate of the fastest ones, in bits a second; 0 = unknown */ \
    /* Lower bounds at these rates, and if all links were equal: blocks that a channel of the full rate carries one after
     * another; 0 = unknown. */ \
    F(SAME, double, 3, bound) \
    F(SAME, double, 4, equal_bound)

/* --- Progress and ExchangeResult --- */

/* struct exchange_progress, struct torus_progress */
#define CONTROL_PROGRESS(F) \
    F(NAMED, string, 5, state, exchange_state_name(from->state), state, state_named) /* as in Status */ \
    F(SAME, uint32, 6, repetition) \
    F(SAME, uint32, 7, repeat) \
    F(SAME, uint64, 1, round) \
    F(SAME, uint64, 2, rounds) \
    F(SAME, uint64, 3, done_bytes) /* bytes delivered at the asked node */ \
    F(SAME, uint64, 4, total_bytes) /* bytes to be delivered at the asked node */ \
    /* what is down while the exchange waits for it: "node 4 (1,0)"; empty: nothing */ \
    F(SAME_TEXT, string, 8, waits_for) \
    F(NUMBER, uint32, 10, missing_count, exchange_missing(client->exchange, missing, sizeof missing), missing_count) \
    /* barrier: ranks of nodes that have not entered it, "3, 7 ...", as far as the asked node knows */ \
    F(TEXT, string, 9, missing, missing, missing)

/* struct exchange_result, struct torus_result; lists follow by hand */
#define CONTROL_RESULT(F) \
    F(SAME_TEXT, string, 1, id) \
    F(TEXT, string, 2, dims, torus_format(t, f->dims), dims) \
    F(SAME_TEXT, string, 3, algorithm) \
    F(NAMED, string, 4, mode, mode_name(from->mode), mode, mode_named) /* stepped, streaming */ \
    F(NUMBER, uint32, 5, nodes, t->nodes, nodes) \
    F(SAME, uint64, 6, block_bytes) /* the largest block, where sizes differ */ \
    F(SAME, uint64, 7, nanoseconds) \
    F(SAME, double, 8, bound) /* blocks on the busiest channel; as in LinkRates, if there are any */ \
    F(NUMBER, double, 9, link_mbit, link_mbit, link_mbit) /* nominal; 0 = unknown */ \
    F(SAME, uint32, 10, startups) /* counted, per round; 0 when streaming, which has no steps */ \
    F(SAME, uint64, 11, transmission) /* counted, per round; 0 when streaming */ \
    F(SAME, uint64, 12, rounds) \
    F(SAME, uint64, 13, blocks_delivered) \
    F(SAME, uint64, 14, bytes_delivered) \
    F(SAME, uint32, 18, repeat) \
    /* from the first `go` until all nodes had done the last repetition */ \
    F(NUMBER, uint64, 20, all_nanoseconds, from->all_ns, all_nanoseconds) \
    /* links that were down, and avoided: "link 3:+0, link 7:+1"; empty: none */ \
    F(SAME_TEXT, string, 21, without) \
    F(SAME, uint32, 22, reroutes) /* retries because a link or node went down */ \
    F(SAME, uint32, 31, replans) /* retries because the rates of links had changed */ \
    F(SAME, uint32, 25, damages) /* retries and repairs because data was damaged on its way */ \
    /* bytes that an earlier attempt had received, and the last one did not send again */ \
    F(SAME, uint64, 23, kept_bytes) \
    /* source files of all nodes that did not exist, and counted as empty */ \
    F(NUMBER, uint64, 26, missing_files, from->unmoved.missing, missing_files) \
    /* files of source folders that are named after no node, and were not sent */ \
    F(NUMBER, uint64, 27, unused_files, from->unmoved.unused, unused_files) \
    /* barrier: from when the client entered until all nodes had */ \
    F(NUMBER, uint64, 28, waited_nanoseconds, from->waited_ns, waited_nanoseconds)

/* struct exchange_node_report, struct torus_node */
#define CONTROL_RESULT_NODE(F) \
    F(SAME, uint32, 1, rank) \
    F(SAME, uint64, 2, nanoseconds) \
    F(SAME, uint32, 4, most_starts) /* the most legs that started at this node at the same time */ \
    F(SAME, uint32, 5, most_ends) /* the most legs that ended at this node at the same time */ \
    F(NUMBER, uint64, 6, missing_files, from->unmoved.missing, missing_files) \
    F(NUMBER, uint64, 7, unused_files, from->unmoved.unused, unused_files)

/* The same with the number p of a port; struct torus_port. */
#define CONTROL_RESULT_PORT(F) \
    F(TEXT, string, 1, name, torus_port_name(t, from->rank, p, f->name[at]), name) \
    F(OF, uint64, 2, port[p], tx_bytes) \
    F(OF, uint64, 3, port[p], rx_bytes) \
    F(OF, uint64, 4, port[p], tx_blocks) \
    F(OF, uint64, 5, port[p], combined_messages) \
    F(OF, uint32, 6, link[p], min_rtt_us) /* the shortest round trip that TCP has seen lately; 0 = unknown */ \
    F(OF, uint64, 7, link[p], rate_bps) /* as in Link */

#define CONTROL_RESULT_ARRIVAL(F) \
    F(SAME, uint32, 1, rank) \
    /* after the first node, by the clock of node 0; late by the time that messages took to get there */ \
    F(NUMBER, uint64, 2, after_nanoseconds, from->after_ns, after_nanoseconds)

/* --- CopyProgress and CopyResult --- */

/* struct copy_progress, struct torus_copy_progress */
#define CONTROL_COPY_PROGRESS(F) \
    /* enum copy_phase (daemon/torusd/copy/copy.h) */ \
    F(CODE, uint32, 1, phase, from->phase, phase, copy_phase_of) \
    F(SAME, uint64, 2, files) /* files that the phase has read or compared at the asked node */ \
    F(SAME, uint64, 3, bytes) /* of the stream that have been moved, as the asked node knows */ \
    F(SAME, uint64, 4, bytes_of) /* bytes that will be moved; 0: not known yet */ \
    F(SAME_TEXT, string, 5, waits_for) /* nodes that the copy waits for, for people; "": none */

/* struct copy_result, struct torus_copy_result; paths and lists follow by hand */
#define CONTROL_COPY_RESULT(F) \
    F(SAME_TEXT, string, 8, id) \
    F(SAME, uint64, 2, bytes_sent) /* of files, once each, however many nodes needed them */ \
    F(SAME, uint64, 3, bytes_all) /* of files in the sources */ \
    F(SAME, uint64, 4, nanoseconds) \
    F(SAME, uint64, 5, compare_nanoseconds) /* of these, until it was known what is missing */ \
    F(SAME, uint64, 6, left_out) /* sockets, FIFOs and devices, which are not copied */ \
    F(SAME, uint32, 9, attempts) /* 1, or more if links or nodes went down */ \
    F(SAME, uint64, 13, links_out) /* symbolic links that lead to places which the copy does not have */ \
    /* files that changed meanwhile, with skip_changing */ \
    F(NUMBER, uint64, 11, skipped, from->changed, skipped) \
    /* the algorithm that carried most of the files; "": nothing was moved */ \
    F(TEXT, string, 15, algorithm, from->by.algorithm, algorithm) \
    /* the mode of that algorithm: "stepped" or "streaming" */ \
    F(NAMED, string, 16, mode, from->by.algorithm[0] != '\0' ? mode_name(from->by.mode) : "", mode, mode_named)

/* struct copy_outcome, struct torus_copy_node; paths follow by hand */
#define CONTROL_COPY_NODE(F) \
    F(NUMBER, uint32, 1, rank, from->node, rank) \
    F(SAME, uint32, 2, from) /* gather and exchange: the node whose trees these are */ \
    F(CODE, uint32, 3, code, from->error.code, code, code_of) /* enum error_code; 0: everything is in place */ \
    F(TEXT, string, 4, error, from->error.code != ERROR_NONE ? from->error.text : "", error) \
    F(OF, uint64, 5, report, files) \
    F(OF, uint64, 6, report, folders) \
    F(OF, uint64, 7, report, links) \
    F(OF, uint64, 8, report, added) \
    F(OF, uint64, 9, report, changed) \
    F(OF, uint64, 10, report, removed) \
    F(OF, uint64, 11, report, unchanged) \
    F(OF, uint64, 12, report, bytes) \
    F(OF, uint64, 13, report, bytes_missing) \
    F(OF, uint64, 14, report, not_owned) \
    F(OF, uint64, 15, report, not_attributed) \
    F(OF, uint64, 18, report, grown) /* verify: changed files of which the beginning is there */

/* clang-format on */
