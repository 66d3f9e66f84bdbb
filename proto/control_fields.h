/* The fields of control.proto, spec.proto and copy.proto that the daemon and libtorus both handle: one list for each
 * message, from which both are made. control.proto says what a field means.
 *
 * Of a message to a client, a row is F(KIND, its name, what the daemon puts there, its name in the struct of libtorus).
 * `from` is what the daemon has of the thing, and what libtorus reads:
 *
 *     SAME      a number with the same name everywhere: F(SAME, name); SAME_TEXT: such a text
 *     OF        the same, but the daemon has it in a part of its struct: F(OF, part, name)
 *     NUMBER    a number or truth value
 *     FLAG      a truth value that is a number in libtorus
 *     TEXT      a text, which libtorus makes printable
 *     NAMED     a text that libtorus converts with a function, its last argument
 *     CODE      the same for a number
 *
 * The daemon expands a list with CONTROL_FILL (daemon/torusd/control/internal.h), libtorus with CONTROL_READ
 * (client/libtorus/requests/results.h); there `to` is what is filled. */
#pragma once

/* --- requests: F(name in the message, name in the daemon's struct, name in the struct of libtorus) --- */

/* Spec: struct spec, struct torus_request. Texts by their names. */
#define SPEC_TEXTS(F) F(schedule) F(algorithm) F(barrier) F(from) F(to)
#define SPEC_NUMBERS(F)                                                                            \
    F(operation)                                                                                   \
    F(sender) F(block_bytes) F(missing_ok) F(replace) F(shrink) F(wait) F(trace) F(repeat)

/* CopyRequest: struct copy_request, struct torus_copy. */
#define COPY_REQUEST_NUMBERS(F)                                                                    \
    F(node, node, node)                                                                            \
    F(into, into, into)                                                                            \
    F(delete_, delete, remove)                                                                     \
    F(delete_root, delete_root, remove_root)                                                       \
    F(checksum, checksum, checksum)                                                                \
    F(dry_run, dry_run, dry_run)                                                                   \
    F(verify, verify, verify)                                                                      \
    F(as_it_comes, as_it_comes, as_it_comes)                                                       \
    F(shrink, shrink, shrink)                                                                      \
    F(wait, wait, wait)                                                                            \
    F(missing_ok, missing_ok, missing_ok)                                                          \
    F(trace, trace, trace)                                                                         \
    F(skip_changing, skip_changing, skip_changing)                                                 \
    F(copy_links, copy_links, copy_links)

/* Costs: struct predict_costs, struct torus_costs. */
#define CONTROL_COSTS(F)                                                                           \
    F(step_seconds, step, step_seconds)                                                            \
    F(message_seconds, message, message_seconds)                                                   \
    F(bytes_per_second, bytes_per_second, bytes_per_second)

/* --- Status --- */

/* What the node says of itself: struct control_server, with its setup `set`, router and torus; struct torus_status.
 * Lists follow by hand. */
#define CONTROL_STATUS(F)                                                                          \
    F(TEXT, version, TORUSD_VERSION, version)                                                      \
    F(TEXT, dims, torus_format(t, m->node.dims), dims)                                             \
    F(NUMBER, rank, router_rank(router), rank)                                                     \
    F(NUMBER, uptime_ms, elapsed(from->started, uv_hrtime()) / MILLISECONDS, uptime_ms)            \
    F(NUMBER, whole, topology_whole(router_topology(router)), whole)                               \
    F(NUMBER, link_mbit, set->link_mbit, link_mbit)                                                \
    F(NUMBER, memory_budget, set->memory_budget, memory_budget)                                    \
    F(NUMBER, memory_reserved, exchanges_reserved(set->exchanges), memory_reserved)                \
    F(NUMBER, memory_used, used, memory_used)                                                      \
    F(NUMBER, pid, (uint64_t)getpid(), pid)                                                        \
    F(NUMBER, peer_protocol, PROTOCOL_VERSION, peer_protocol)                                      \
    F(NUMBER, control_protocol, CONTROL_VERSION, control_protocol)                                 \
    F(NUMBER, program_protocol, PROGRAM_VERSION, program_protocol)                                 \
    F(NUMBER, peer_minor, router_minor(router), peer_minor)                                        \
    F(NUMBER, least_peer_minor, router_least_minor(router), least_peer_minor)                      \
    F(TEXT, host, m->node.host.nodename, host)                                                     \
    F(TEXT, metrics, set->metrics, metrics)

/* struct exchange_info, struct torus_activity */
#define CONTROL_STATUS_EXCHANGE(F)                                                                 \
    F(SAME_TEXT, id)                                                                               \
    F(SAME_TEXT, algorithm)                                                                        \
    F(NAMED, state, exchange_state_name(from->state), state, state_named)                          \
    F(SAME_TEXT, reason)                                                                           \
    F(NUMBER, root, from->root, coordinator)                                                       \
    F(NUMBER, age_ms, from->age_ns / MILLISECONDS, age_ms)                                         \
    F(SAME, round)                                                                                 \
    F(SAME, rounds)                                                                                \
    F(SAME, done_bytes)                                                                            \
    F(SAME, total_bytes)

/* struct group_info, struct torus_group_info */
#define CONTROL_STATUS_GROUP(F)                                                                    \
    F(SAME_TEXT, name)                                                                             \
    F(SAME_TEXT, id)                                                                               \
    F(SAME, open)                                                                                  \
    F(SAME_TEXT, missing)                                                                          \
    F(SAME_TEXT, avoids)                                                                           \
    F(NUMBER, process, from->process, pid)                                                         \
    F(SAME, calls)                                                                                 \
    F(SAME, calls_done)                                                                            \
    F(SAME, bytes_sent)                                                                            \
    F(SAME, bytes_received)                                                                        \
    F(NUMBER, early, from->early, early_bytes)                                                     \
    F(NUMBER, reserved, from->reserved, reserved_bytes)

/* struct copy_info, struct torus_copy_activity */
#define CONTROL_STATUS_COPY(F)                                                                     \
    F(SAME_TEXT, id)                                                                               \
    F(SAME, asker)                                                                                 \
    F(CODE, phase, from->progress.phase, phase, copy_phase_of)                                     \
    F(OF, progress, files)                                                                         \
    F(OF, progress, bytes)                                                                         \
    F(OF, progress, bytes_of)                                                                      \
    F(TEXT, waits_for, from->progress.waits_for, waits_for)                                        \
    F(SAME_TEXT, target)

/* struct fault_report, struct torus_link_fault; libtorus has no node for what was not found */
#define CONTROL_STATUS_LINK_FAULT(F)                                                               \
    F(NUMBER, node, from->rank, node)                                                              \
    F(SAME, port)                                                                                  \
    F(TEXT, code, link_fault_name(from->fault.code), code)                                         \
    F(TEXT, text, m->text[i], text)                                                                \
    F(NUMBER, found_node, found ? from->fault.found_rank : 0, found_node)                          \
    F(NUMBER, found_port, found ? from->fault.found_port : 0, found_port)

/* struct share_holder, struct torus_share */
#define CONTROL_STATUS_SHARE(F)                                                                    \
    F(TEXT, resource, shares_name(share), resource)                                                \
    F(SAME, user)                                                                                  \
    F(SAME, held)                                                                                  \
    F(NUMBER, most, shares_limit(all, share, from->user), most)                                    \
    F(NUMBER, capacity, shares_capacity(all, share), capacity)

/* struct exchange_unconfirmed, struct torus_unconfirmed; the nodes follow by hand */
#define CONTROL_STATUS_UNCONFIRMED(F)                                                              \
    F(SAME_TEXT, id)                                                                               \
    F(SAME, count)                                                                                 \
    F(SAME_TEXT, reason)

/* --- Links.Link: struct port_info with texts beside it; struct torus_link --- */

#define CONTROL_LINK(F)                                                                            \
    F(NUMBER, port, port, port)                                                                    \
    F(TEXT, name, texts->name, name)                                                               \
    F(SAME, neighbour)                                                                             \
    F(TEXT, address, texts->address, address)                                                      \
    F(NAMED, state, port_state_name(from->state), state, link_state_named)                         \
    F(SAME_TEXT, reason)                                                                           \
    F(SAME, tx_bytes)                                                                              \
    F(SAME, rx_bytes)                                                                              \
    F(OF, stat, rtt_us)                                                                            \
    F(OF, stat, rate_bps)                                                                          \
    F(NUMBER, up_ms, from->up_ns / MILLISECONDS, up_ms)                                            \
    F(SAME, connects)                                                                              \
    F(SAME_TEXT, key)                                                                              \
    F(FLAG, encrypted, from->encrypted, encrypted)                                                 \
    F(NUMBER, held_ms, from->held_ns / MILLISECONDS, held_ms)                                      \
    F(TEXT, interface, tcp_interface(set->tcp, port), interface)                                   \
    F(SAME, queue_bytes)                                                                           \
    F(NUMBER, unacked_bytes, from->stat.unacked, unacked_bytes)                                    \
    F(OF, stat, retransmits)                                                                       \
    F(OF, stat, mtu)                                                                               \
    F(NUMBER, hour_ms, from->hour_ns / MILLISECONDS, hour_ms)                                      \
    F(SAME, hour_tx_bytes)                                                                         \
    F(SAME, hour_retransmits)                                                                      \
    F(SAME, hour_connects)                                                                         \
    F(NUMBER, nominal_send_bps, (uint64_t)(from->rates.nominal.send * MBIT), nominal_send_bps)     \
    F(NUMBER, nominal_receive_bps, (uint64_t)(from->rates.nominal.receive * MBIT),                 \
      nominal_receive_bps)                                                                         \
    F(NUMBER, negotiated_bps, from->rates.negotiated *KBIT, negotiated_bps)                        \
    F(NUMBER, observed_bps, from->rates.observed *KBIT, observed_bps)                              \
    F(NUMBER, planned_bps, from->rates.planned *KBIT, planned_bps)                                 \
    F(TEXT, planned_from, rate_source_name(from->rates.source), planned_from)

/* --- Candidates.Candidate: struct candidate, struct torus_candidate --- */

#define CONTROL_CANDIDATE(F)                                                                       \
    F(TEXT, algorithm, from->algorithm->name, algorithm)                                           \
    F(NAMED, mode, mode_name(from->mode), mode, mode_named)                                        \
    F(OF, counts, segments)                                                                        \
    F(SAME, piece_bytes)                                                                           \
    F(OF, counts, steps)                                                                           \
    F(OF, counts, messages)                                                                        \
    F(OF, counts, blocks)                                                                          \
    F(SAME, seconds)

/* --- Progress and ExchangeResult --- */

/* struct exchange_progress, struct torus_progress */
#define CONTROL_PROGRESS(F)                                                                        \
    F(NAMED, state, exchange_state_name(from->state), state, state_named)                          \
    F(SAME, repetition)                                                                            \
    F(SAME, repeat)                                                                                \
    F(SAME, round)                                                                                 \
    F(SAME, rounds)                                                                                \
    F(SAME, done_bytes)                                                                            \
    F(SAME, total_bytes)                                                                           \
    F(SAME_TEXT, waits_for)                                                                        \
    F(NUMBER, missing_count, exchange_missing(client->exchange, missing, sizeof missing),          \
      missing_count)                                                                               \
    F(TEXT, missing, missing, missing)

/* struct exchange_result, struct torus_result; lists follow by hand */
#define CONTROL_RESULT(F)                                                                          \
    F(SAME_TEXT, id)                                                                               \
    F(TEXT, dims, torus_format(t, f->dims), dims)                                                  \
    F(SAME_TEXT, algorithm)                                                                        \
    F(NAMED, mode, mode_name(from->mode), mode, mode_named)                                        \
    F(NUMBER, nodes, t->nodes, nodes)                                                              \
    F(SAME, block_bytes)                                                                           \
    F(SAME, nanoseconds)                                                                           \
    F(SAME, bound)                                                                                 \
    F(NUMBER, link_mbit, link_mbit, link_mbit)                                                     \
    F(SAME, startups)                                                                              \
    F(SAME, transmission)                                                                          \
    F(SAME, rounds)                                                                                \
    F(SAME, blocks_delivered)                                                                      \
    F(SAME, bytes_delivered)                                                                       \
    F(SAME, repeat)                                                                                \
    F(NUMBER, all_nanoseconds, from->all_ns, all_nanoseconds)                                      \
    F(SAME_TEXT, without)                                                                          \
    F(SAME, reroutes)                                                                              \
    F(SAME, damages)                                                                               \
    F(SAME, kept_bytes)                                                                            \
    F(NUMBER, missing_files, from->unmoved.missing, missing_files)                                 \
    F(NUMBER, unused_files, from->unmoved.unused, unused_files)                                    \
    F(NUMBER, waited_nanoseconds, from->waited_ns, waited_nanoseconds)

/* struct exchange_node_report, struct torus_node */
#define CONTROL_RESULT_NODE(F)                                                                     \
    F(SAME, rank)                                                                                  \
    F(SAME, nanoseconds)                                                                           \
    F(SAME, most_starts)                                                                           \
    F(SAME, most_ends)                                                                             \
    F(NUMBER, missing_files, from->unmoved.missing, missing_files)                                 \
    F(NUMBER, unused_files, from->unmoved.unused, unused_files)

/* The same with the number p of a port; struct torus_port. */
#define CONTROL_RESULT_PORT(F)                                                                     \
    F(TEXT, name, torus_port_name(t, from->rank, p, f->name[at]), name)                            \
    F(OF, port[p], tx_bytes)                                                                       \
    F(OF, port[p], rx_bytes)                                                                       \
    F(OF, port[p], tx_blocks)                                                                      \
    F(OF, port[p], combined_messages)                                                              \
    F(OF, link[p], min_rtt_us)                                                                     \
    F(OF, link[p], rate_bps)

#define CONTROL_RESULT_ARRIVAL(F)                                                                  \
    F(SAME, rank)                                                                                  \
    F(NUMBER, after_nanoseconds, from->after_ns, after_nanoseconds)

/* --- CopyProgress and CopyResult --- */

/* struct copy_progress, struct torus_copy_progress */
#define CONTROL_COPY_PROGRESS(F)                                                                   \
    F(CODE, phase, from->phase, phase, copy_phase_of)                                              \
    F(SAME, files)                                                                                 \
    F(SAME, bytes)                                                                                 \
    F(SAME, bytes_of)                                                                              \
    F(SAME_TEXT, waits_for)

/* struct copy_result, struct torus_copy_result; paths and lists follow by hand */
#define CONTROL_COPY_RESULT(F)                                                                     \
    F(SAME_TEXT, id)                                                                               \
    F(SAME, bytes_sent)                                                                            \
    F(SAME, bytes_all)                                                                             \
    F(SAME, nanoseconds)                                                                           \
    F(SAME, compare_nanoseconds)                                                                   \
    F(SAME, left_out)                                                                              \
    F(SAME, attempts)                                                                              \
    F(SAME, links_out)                                                                             \
    F(NUMBER, skipped, from->changed, skipped)                                                     \
    F(TEXT, algorithm, from->by.algorithm, algorithm)                                              \
    F(NAMED, mode, from->by.algorithm[0] != '\0' ? mode_name(from->by.mode) : "", mode, mode_named)

/* struct copy_outcome, struct torus_copy_node; paths follow by hand */
#define CONTROL_COPY_NODE(F)                                                                       \
    F(NUMBER, rank, from->node, rank)                                                              \
    F(SAME, from)                                                                                  \
    F(CODE, code, from->error.code, code, code_of)                                                 \
    F(TEXT, error, from->error.code != ERROR_NONE ? from->error.text : "", error)                  \
    F(OF, report, files)                                                                           \
    F(OF, report, folders)                                                                         \
    F(OF, report, links)                                                                           \
    F(OF, report, added)                                                                           \
    F(OF, report, changed)                                                                         \
    F(OF, report, removed)                                                                         \
    F(OF, report, unchanged)                                                                       \
    F(OF, report, bytes)                                                                           \
    F(OF, report, bytes_missing)                                                                   \
    F(OF, report, not_owned)                                                                       \
    F(OF, report, not_attributed)                                                                  \
    F(OF, report, grown)
