#include "client/torch/process_group.h"

#include <algorithm>

#include <Python.h>
#include <torch/csrc/distributed/c10d/Utils.hpp>

#include "client/torch/tensors.h"

namespace torus_torch
{

using c10d::OpType;

ProcessGroup::ProcessGroup(std::shared_ptr<Session> session, c10::intrusive_ptr<c10d::Store> store,
                           int rank, int size, std::string name, std::chrono::milliseconds timeout)
    : c10d::ProcessGroup(rank, size), session_(std::move(session)), store_(std::move(store)),
      name_(std::move(name)), number_(session_->next_group()), timeout_(timeout)
{
    init();
}

/* The session waits for its thread, which may need Python's lock for functions that the user has added to futures. */
ProcessGroup::~ProcessGroup()
{
    if (Py_IsInitialized() && PyGILState_Check()) {
        PyThreadState *state = PyEval_SaveThread();
        session_.reset();
        PyEval_RestoreThread(state);
    }
}

/* A group of all ranks uses the session of the default group: a further one takes as much memory of the daemons. */
c10::intrusive_ptr<ProcessGroup> ProcessGroup::of_nodes(c10::intrusive_ptr<c10d::Store> store,
                                                        const std::vector<uint32_t> &nodes,
                                                        int rank, const std::string &name,
                                                        std::chrono::milliseconds timeout) const
{
    const int size = static_cast<int>(nodes.size());
    const auto session =
        size == size_
            ? session_
            : Session::open({session_->name() + "-" + name,
                             Ranks(nodes, static_cast<uint32_t>(rank)), false, store, timeout});

    return c10::make_intrusive<ProcessGroup>(session, std::move(store), rank, size, name, timeout);
}

ProcessGroup::WorkPointer ProcessGroup::submit(Request request)
{
    auto work = c10::make_intrusive<Work>(rank_, request.type, request.title, request.inputs,
                                          request.outputs);

    sequence_++;
    return submit(std::move(request), Kind::collective, std::move(work));
}

ProcessGroup::WorkPointer ProcessGroup::submit(Request request, Kind kind,
                                               c10::intrusive_ptr<Work> work)
{
    const auto timeout = request.timeout == c10d::kUnsetTimeout ? timeout_ : request.timeout;
    std::string data = request.inputs.empty() ? "" : c10::toString(request.inputs[0].scalar_type());

    if (!name_.empty())
        data += " of group " + name_;
    session_->submit({kind, data, milliseconds(timeout), work, std::move(request.prepare),
                      std::move(request.finish)});
    return work;
}

const at::Tensor &ProcessGroup::only(const Tensors &tensors) const
{
    TORCH_CHECK(tensors.size() == 1, "torus: expected one tensor, not ", tensors.size());
    check(tensors[0]);
    return tensors[0];
}

uint32_t ProcessGroup::root(int64_t rank) const
{
    TORCH_CHECK(rank >= 0 && rank < size_, "torus: the root ", rank,
                " is not a rank of a group of ", size_);
    return static_cast<uint32_t>(rank);
}

void ProcessGroup::check_count(const Tensors &tensors) const
{
    TORCH_CHECK(tensors.size() == static_cast<size_t>(size_),
                "torus: expected one tensor for each of ", size_, " ranks, not ", tensors.size());
    check(tensors);
}

static void check_type(const at::Tensor &input, const at::Tensor &output)
{
    TORCH_CHECK(input.scalar_type() == output.scalar_type(), "torus: the input has the type ",
                input.scalar_type(), ", but the output has ", output.scalar_type());
}

/* Returns the memory, or a copy of it if one of these tensors uses the same. */
static at::Tensor apart(const at::Tensor &memory, const std::vector<at::Tensor> &from)
{
    for (const at::Tensor &tensor : from)
        if (memory.numel() > 0 && tensor.is_alias_of(memory))
            return memory.clone();
    return memory;
}

static void give_back(const at::Tensor &memory, const at::Tensor &tensor)
{
    if (!memory.is_same(tensor))
        tensor.copy_(memory);
}

static void average(at::Tensor &memory, int members)
{
    memory.div_(members, "trunc");
}

static size_t count_of(const at::Tensor &memory)
{
    return static_cast<size_t>(memory.numel());
}

/* ---- Broadcast and reductions ---------------------------------------------------------------- */

ProcessGroup::WorkPointer ProcessGroup::broadcast(Tensors &tensors,
                                                  const c10d::BroadcastOptions &options)
{
    const at::Tensor tensor = only(tensors);
    const uint32_t from = root(options.rootRank);
    const bool sends = options.rootRank == rank_;
    auto memory = std::make_shared<at::Tensor>();

    return submit({OpType::BROADCAST, "torus:broadcast", options.timeout, tensors, tensors,
                   [=] {
                       *memory = sends ? packed(tensor) : room(tensor);
                       return Operation::blocks(Code::broadcast, nullptr, memory->data_ptr(),
                                                memory->nbytes(), from);
                   },
                   [=] {
                       if (!sends)
                           give_back(*memory, tensor);
                   }});
}

ProcessGroup::WorkPointer ProcessGroup::allreduce(Tensors &tensors,
                                                  const c10d::AllreduceOptions &options)
{
    const at::Tensor tensor = only(tensors);
    const Combination how(tensor.scalar_type(), options.reduceOp);
    auto memory = std::make_shared<at::Tensor>();
    const int size = size_;

    return submit({OpType::ALLREDUCE, "torus:all_reduce", options.timeout, tensors, tensors,
                   [=] {
                       *memory = packed(tensor);
                       return Operation::vectors(Code::allreduce, TORUS_IN_PLACE,
                                                 memory->data_ptr(), count_of(*memory), how.type,
                                                 how.op);
                   },
                   [=] {
                       if (how.average)
                           average(*memory, size);
                       give_back(*memory, tensor);
                   }});
}

ProcessGroup::WorkPointer
ProcessGroup::allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &options)
{
    TORCH_CHECK(!tensors.empty(), "torus: there is no tensor");
    check(tensors);
    const Combination how(tensors[0].scalar_type(), options.reduceOp);
    const Tensors all = tensors;
    auto memory = std::make_shared<at::Tensor>();
    const int size = size_;

    return submit(
        {OpType::ALLREDUCE_COALESCED, "torus:all_reduce", options.timeout, tensors, tensors,
         [=] {
             *memory = joined(all);
             return Operation::vectors(Code::allreduce, TORUS_IN_PLACE, memory->data_ptr(),
                                       count_of(*memory), how.type, how.op);
         },
         [=] {
             if (how.average)
                 average(*memory, size);
             split(*memory, all);
         }});
}

ProcessGroup::WorkPointer ProcessGroup::reduce(Tensors &tensors, const c10d::ReduceOptions &options)
{
    const at::Tensor tensor = only(tensors);
    const Combination how(tensor.scalar_type(), options.reduceOp);
    const uint32_t to = root(options.rootRank);
    const bool receives = options.rootRank == rank_;
    auto memory = std::make_shared<at::Tensor>();
    const int size = size_;

    return submit({OpType::REDUCE, "torus:reduce", options.timeout, tensors, tensors,
                   [=] {
                       *memory = packed(tensor);
                       return Operation::vectors(Code::reduce,
                                                 receives ? TORUS_IN_PLACE : memory->data_ptr(),
                                                 receives ? memory->data_ptr() : nullptr,
                                                 count_of(*memory), how.type, how.op, to);
                   },
                   [=] {
                       if (receives && how.average)
                           average(*memory, size);
                       if (receives)
                           give_back(*memory, tensor);
                   }});
}

/* `inputs` one after another are the vector; `outputs` has one tensor. */
ProcessGroup::WorkPointer ProcessGroup::reduce_to_members(OpType type, const char *title,
                                                          const Tensors &outputs,
                                                          const Tensors &inputs,
                                                          std::vector<size_t> counts,
                                                          const c10d::ReduceScatterOptions &options)
{
    const at::Tensor output = outputs[0];
    const Combination how(output.scalar_type(), options.reduceOp);
    auto send = std::make_shared<at::Tensor>(), receive = std::make_shared<at::Tensor>();
    auto elements = std::make_shared<std::vector<size_t>>(std::move(counts));
    const int size = size_;

    return submit({type, title, options.timeout, inputs, outputs,
                   [=] {
                       *send =
                           inputs.size() == 1 ? apart(packed(inputs[0]), {output}) : joined(inputs);
                       *receive = room(output);
                       Operation o = Operation::vectors(Code::reduce_scatter, send->data_ptr(),
                                                        receive->data_ptr(), 0, how.type, how.op);
                       o.counts = elements->data();
                       return o;
                   },
                   [=] {
                       if (how.average)
                           average(*receive, size);
                       give_back(*receive, output);
                   }});
}

ProcessGroup::WorkPointer ProcessGroup::reduce_scatter(Tensors &outputs,
                                                       std::vector<Tensors> &inputs,
                                                       const c10d::ReduceScatterOptions &options)
{
    const at::Tensor output = only(outputs);
    TORCH_CHECK(inputs.size() == 1, "torus: expected one list of inputs, not ", inputs.size());
    check_count(inputs[0]);
    check_type(inputs[0][0], output);
    std::vector<size_t> counts;
    for (const at::Tensor &input : inputs[0])
        counts.push_back(count_of(input));
    TORCH_CHECK(counts[static_cast<size_t>(rank_)] == count_of(output),
                "torus: the input for this rank and the output have different sizes");
    return reduce_to_members(OpType::REDUCE_SCATTER, "torus:reduce_scatter", outputs, inputs[0],
                             counts, options);
}

ProcessGroup::WorkPointer
ProcessGroup::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                   const c10d::ReduceScatterOptions &options)
{
    check({input, output});
    TORCH_CHECK(input.numel() == output.numel() * size_,
                "torus: the input must have the size of the output times the ", size_, " ranks");
    return reduce_to_members(OpType::_REDUCE_SCATTER_BASE, "torus:_reduce_scatter_base", {output},
                             {input}, std::vector<size_t>(size_t(size_), count_of(output)),
                             options);
}

/* ---- Gathering ------------------------------------------------------------------------------- */

ProcessGroup::WorkPointer ProcessGroup::allgather(std::vector<Tensors> &outputs, Tensors &inputs,
                                                  const c10d::AllgatherOptions &options)
{
    const at::Tensor input = only(inputs);
    TORCH_CHECK(outputs.size() == 1, "torus: expected one list of outputs, not ", outputs.size());
    const Tensors all = outputs[0];
    check_count(all);
    check_type(input, all[0]);
    TORCH_CHECK(all[size_t(rank_)].numel() == input.numel(),
                "torus: the input and the output for this rank have different sizes");
    auto send = std::make_shared<at::Tensor>();
    auto receive = std::make_shared<std::unique_ptr<Blocks>>();

    return submit({OpType::ALLGATHER, "torus:all_gather", options.timeout, inputs, all,
                   [=] {
                       *send = apart(packed(input), all);
                       *receive = std::make_unique<Blocks>(all, false);
                       const Blocks &to = **receive;
                       return Operation::lists(Code::allgatherv, send->data_ptr(), {}, to.base,
                                               {to.bytes.data(), to.offset.data()});
                   },
                   [=] { (*receive)->give_back(); }});
}

ProcessGroup::WorkPointer ProcessGroup::_allgather_base(at::Tensor &output, at::Tensor &input,
                                                        const c10d::AllgatherOptions &options)
{
    const at::Tensor from = input, to = output;
    check({from, to});
    TORCH_CHECK(to.numel() == from.numel() * size_,
                "torus: the output must have the size of the input times the ", size_, " ranks");
    auto send = std::make_shared<at::Tensor>(), receive = std::make_shared<at::Tensor>();

    return submit({OpType::_ALLGATHER_BASE,
                   "torus:_all_gather_base",
                   options.timeout,
                   {from},
                   {to},
                   [=] {
                       *send = apart(packed(from), {to});
                       *receive = room(to);
                       return Operation::blocks(Code::allgather, send->data_ptr(),
                                                receive->data_ptr(), send->nbytes());
                   },
                   [=] { give_back(*receive, to); }});
}

/* Output [i][k] becomes input k of rank i. */
ProcessGroup::WorkPointer ProcessGroup::allgather_coalesced(std::vector<Tensors> &outputs,
                                                            Tensors &inputs,
                                                            const c10d::AllgatherOptions &options)
{
    TORCH_CHECK(!inputs.empty(), "torus: there is no input");
    TORCH_CHECK(outputs.size() == size_t(size_), "torus: expected one list of outputs for each of ",
                size_, " ranks, not ", outputs.size());
    Tensors to, from = inputs;
    for (const Tensors &list : outputs) {
        TORCH_CHECK(list.size() == inputs.size(), "torus: expected ", inputs.size(),
                    " outputs for each rank, not ", list.size());
        for (size_t i = 0; i < list.size(); i++)
            TORCH_CHECK(list[i].numel() == inputs[i].numel(), "torus: output ", i,
                        " has another size than the input");
        to.insert(to.end(), list.begin(), list.end());
    }
    check(from);
    check(to);
    check_type(from[0], to[0]);
    auto send = std::make_shared<at::Tensor>(), receive = std::make_shared<at::Tensor>();
    const int size = size_;

    return submit({OpType::ALLGATHER_COALESCED, "torus:all_gather", options.timeout, inputs, to,
                   [=] {
                       *send = joined(from);
                       *receive = at::empty({send->numel() * size}, send->options());
                       return Operation::blocks(Code::allgather, send->data_ptr(),
                                                receive->data_ptr(), send->nbytes());
                   },
                   [=] { split(*receive, to); }});
}

ProcessGroup::WorkPointer ProcessGroup::gather(std::vector<Tensors> &outputs, Tensors &inputs,
                                               const c10d::GatherOptions &options)
{
    const at::Tensor input = only(inputs);
    const uint32_t to = root(options.rootRank);
    Tensors all;
    if (options.rootRank == rank_) {
        TORCH_CHECK(outputs.size() == 1, "torus: expected one list of outputs, not ",
                    outputs.size());
        all = outputs[0];
        check_count(all);
        check_type(input, all[0]);
        for (const at::Tensor &output : all)
            TORCH_CHECK(output.numel() == input.numel(),
                        "torus: an output has another size than the input");
    } else {
        TORCH_CHECK(outputs.empty(), "torus: only the root has outputs");
    }
    auto send = std::make_shared<at::Tensor>(), receive = std::make_shared<at::Tensor>();
    const int size = size_;

    return submit({OpType::GATHER, "torus:gather", options.timeout, inputs, all,
                   [=] {
                       *send = packed(input);
                       if (!all.empty())
                           *receive = at::empty({send->numel() * size}, send->options());
                       return Operation::blocks(Code::gather, send->data_ptr(),
                                                all.empty() ? nullptr : receive->data_ptr(),
                                                send->nbytes(), to);
                   },
                   [=] {
                       if (!all.empty())
                           split(*receive, all);
                   }});
}

/* ---- Exchanges ------------------------------------------------------------------------------- */

/* Tensor j of the inputs goes to rank j, and output i comes from rank i. */
ProcessGroup::WorkPointer ProcessGroup::exchange(OpType type, const char *title,
                                                 const Tensors &outputs, const Tensors &inputs,
                                                 std::chrono::milliseconds timeout)
{
    auto send = std::make_shared<std::unique_ptr<Blocks>>();
    auto receive = std::make_shared<std::unique_ptr<Blocks>>();

    return submit({type, title, timeout, inputs, outputs,
                   [=] {
                       Tensors apart_inputs;
                       for (const at::Tensor &input : inputs)
                           apart_inputs.push_back(apart(input, outputs));
                       *send = std::make_unique<Blocks>(apart_inputs, true);
                       *receive = std::make_unique<Blocks>(outputs, false);
                       const Blocks &from = **send, &to = **receive;
                       return Operation::lists(Code::alltoallv, from.base,
                                               {from.bytes.data(), from.offset.data()}, to.base,
                                               {to.bytes.data(), to.offset.data()});
                   },
                   [=] { (*receive)->give_back(); }});
}

ProcessGroup::WorkPointer ProcessGroup::alltoall(Tensors &outputs, Tensors &inputs,
                                                 const c10d::AllToAllOptions &options)
{
    check_count(outputs);
    check_count(inputs);
    check_type(inputs[0], outputs[0]);
    return exchange(OpType::ALLTOALL, "torus:all_to_all", outputs, inputs, options.timeout);
}

ProcessGroup::WorkPointer ProcessGroup::scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                                                const c10d::ScatterOptions &options)
{
    const at::Tensor output = only(outputs);
    const uint32_t from = root(options.rootRank);
    const bool sends = options.rootRank == rank_;
    Tensors all = {output};
    if (sends) {
        TORCH_CHECK(inputs.size() == 1, "torus: expected one list of inputs, not ", inputs.size());
        all = inputs[0];
        check_count(all);
        check_type(all[0], output);
        for (const at::Tensor &input : all)
            TORCH_CHECK(input.numel() == output.numel(),
                        "torus: an input has another size than the output");
    } else {
        TORCH_CHECK(inputs.empty(), "torus: only the root has inputs");
    }
    auto send = std::make_shared<at::Tensor>(), receive = std::make_shared<at::Tensor>();

    return submit({OpType::SCATTER, "torus:scatter", options.timeout, all, outputs,
                   [=] {
                       if (sends)
                           *send = joined(all);
                       *receive = room(output);
                       return Operation::blocks(Code::scatter, sends ? send->data_ptr() : nullptr,
                                                receive->data_ptr(), receive->nbytes(), from);
                   },
                   [=] { give_back(*receive, output); }});
}

/* Bytes and offsets of the rows of a tensor in one piece that each rank gets. */
static void rows(const std::vector<int64_t> &splits, const at::Tensor &tensor,
                 std::vector<size_t> *bytes, std::vector<size_t> *offset)
{
    const size_t row = tensor.size(0) > 0 ? tensor.nbytes() / size_t(tensor.size(0)) : 0;
    size_t at = 0;

    for (int64_t split : splits) {
        TORCH_CHECK(split >= 0, "torus: a split has the size ", split);
        bytes->push_back(size_t(split) * row);
        offset->push_back(at);
        at += bytes->back();
    }
}

ProcessGroup::WorkPointer ProcessGroup::alltoall_base(at::Tensor &output, at::Tensor &input,
                                                      std::vector<int64_t> &output_splits,
                                                      std::vector<int64_t> &input_splits,
                                                      const c10d::AllToAllOptions &options)
{
    struct Sides {
        at::Tensor memory[2];
        std::vector<size_t> bytes[2], offset[2];
    };
    const at::Tensor from = input, to = output;
    check({from, to});
    c10d::checkSplitSizes(input_splits, from, size_);
    c10d::checkSplitSizes(output_splits, to, size_);
    const bool equal = input_splits.empty() && output_splits.empty();
    TORCH_CHECK(!equal || from.numel() == to.numel(),
                "torus: without splits, the input and the output must have the same size");
    auto sides = std::make_shared<Sides>();
    if (!equal) {
        const std::vector<int64_t> even_in(size_t(size_), from.size(0) / size_);
        const std::vector<int64_t> even_out(size_t(size_), to.size(0) / size_);
        rows(input_splits.empty() ? even_in : input_splits, from, &sides->bytes[0],
             &sides->offset[0]);
        rows(output_splits.empty() ? even_out : output_splits, to, &sides->bytes[1],
             &sides->offset[1]);
    }
    const int size = size_;

    return submit({OpType::ALLTOALL_BASE,
                   "torus:all_to_all",
                   options.timeout,
                   {from},
                   {to},
                   [=] {
                       Sides &s = *sides;
                       s.memory[0] = apart(packed(from), {to});
                       s.memory[1] = room(to);
                       void *send = s.memory[0].data_ptr(), *receive = s.memory[1].data_ptr();
                       if (equal)
                           return Operation::blocks(Code::alltoall, send, receive,
                                                    s.memory[0].nbytes() / size_t(size));
                       return Operation::lists(Code::alltoallv, send,
                                               {s.bytes[0].data(), s.offset[0].data()}, receive,
                                               {s.bytes[1].data(), s.offset[1].data()});
                   },
                   [=] { give_back(sides->memory[1], to); }});
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Groups that share a session must not take each other's messages. */
uint64_t ProcessGroup::message_tag(int tag) const
{
    constexpr uint64_t most = uint64_t(1) << 12; /* tags have 44 bits: see leader.cpp */

    TORCH_CHECK(tag >= 0, "torus: the tag ", tag, " is negative");
    TORCH_CHECK(number_ < most, "torus: messages are possible in the first ", most,
                " groups of all ranks only");
    return number_ << 32 | uint64_t(tag);
}

/* Messages are no part of the order of the calls of a group. */
ProcessGroup::WorkPointer ProcessGroup::send(Tensors &tensors, int rank, int tag)
{
    const at::Tensor tensor = only(tensors);
    const uint32_t to = root(rank);
    const uint64_t number = message_tag(tag);
    auto memory = std::make_shared<at::Tensor>();

    return submit({OpType::SEND, "torus:send", timeout_, tensors, Tensors(),
                   [=] {
                       *memory = packed(tensor);
                       return Operation::blocks(Code::send, memory->data_ptr(), nullptr,
                                                memory->nbytes(), to, number);
                   },
                   nullptr},
                  Kind::send,
                  c10::make_intrusive<Work>(rank_, OpType::SEND, "torus:send", tensors, Tensors()));
}

ProcessGroup::WorkPointer ProcessGroup::recv(Tensors &tensors, int rank, int tag)
{
    const at::Tensor tensor = only(tensors);
    const uint32_t from = root(rank);
    const uint64_t number = message_tag(tag);
    auto memory = std::make_shared<at::Tensor>();
    auto work = c10::make_intrusive<Work>(rank_, OpType::RECV, "torus:recv", tensors, tensors);

    work->set_source(rank);
    return submit({OpType::RECV, "torus:recv", timeout_, tensors, tensors,
                   [=] {
                       *memory = room(tensor);
                       return Operation::blocks(Code::receive, nullptr, memory->data_ptr(),
                                                memory->nbytes(), from, number);
                   },
                   [=] { give_back(*memory, tensor); }},
                  Kind::receive, work);
}

ProcessGroup::WorkPointer ProcessGroup::recvAnysource(Tensors &tensors, int tag)
{
    const at::Tensor tensor = only(tensors);
    const uint64_t number = message_tag(tag);
    auto memory = std::make_shared<at::Tensor>();
    auto from = std::make_shared<uint32_t>();
    auto work = c10::make_intrusive<Work>(rank_, OpType::RECVANYSOURCE, "torus:recvAnySource",
                                          tensors, tensors);

    return submit({OpType::RECVANYSOURCE, "torus:recvAnySource", timeout_, tensors, tensors,
                   [=] {
                       *memory = room(tensor);
                       Operation o =
                           Operation::blocks(Code::receive_any, nullptr, memory->data_ptr(),
                                             memory->nbytes(), 0, number);
                       o.from = from.get();
                       return o;
                   },
                   [=] {
                       work->set_source(static_cast<int>(*from));
                       give_back(*memory, tensor);
                   }},
                  Kind::receive, work);
}

/* ---- Others ---------------------------------------------------------------------------------- */

ProcessGroup::WorkPointer ProcessGroup::barrier(const c10d::BarrierOptions &options)
{
    return submit({OpType::BARRIER,
                   "torus:barrier",
                   options.timeout,
                   {},
                   {},
                   [=] { return Operation::blocks(Code::barrier, nullptr, nullptr, 0); },
                   nullptr});
}

/* Returns whether the key is in the store, or comes before `end`. */
static bool comes(c10d::Store &store, const std::string &key,
                  std::chrono::steady_clock::time_point end)
{
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());

    try {
        store.wait({key}, std::max(left, std::chrono::milliseconds(1)));
        return true;
    } catch (const std::exception &) {
        return false;
    }
}

/* Rank 0 waits for the others, and tells them whether all have come. The errors are Gloo's. */
void ProcessGroup::monitoredBarrier(const c10d::BarrierOptions &options, bool all)
{
    const auto timeout = options.timeout == c10d::kUnsetTimeout ? timeout_ : options.timeout;
    const auto end = std::chrono::steady_clock::now() + timeout;
    const std::string key = c10::str("torus/monitored/", monitored_++, "/");
    std::vector<int> missing;

    if (rank_ != 0) {
        store_->set(key + std::to_string(rank_), {'y'});
        const bool passed =
            comes(*store_, key, end) && store_->get(key) == std::vector<uint8_t>{'y'};
        TORCH_CHECK(passed, "torus: Rank ", rank_,
                    " successfully reached monitoredBarrier, but "
                    "received errors while waiting for send/recv from rank 0. Rank 0 knows which "
                    "rank has not reached it");
        return;
    }
    TORCH_CHECK(timeout.count() > 0, "torus: Rank 0 timed out in monitoredBarrier after 0 ms");
    for (int rank = 1; rank < size_ && (all || missing.empty()); rank++)
        if (!comes(*store_, key + std::to_string(rank), end))
            missing.push_back(rank);
    store_->set(key, {static_cast<uint8_t>(missing.empty() ? 'y' : 'n')});
    TORCH_CHECK(missing.empty(), "torus: Rank", missing.size() == 1 ? " " : "s ",
                c10::Join(", ", missing), " failed to pass monitoredBarrier in ", timeout.count(),
                " ms");
}

/* All members count the same calls, so there is nothing to agree on. */
void ProcessGroup::setSequenceNumberForGroup()
{
}

uint64_t ProcessGroup::getSequenceNumberForGroup()
{
    return sequence_;
}

} // namespace torus_torch
