/* The backend "torus" of torch.distributed: collective operations of c10d by calls of a libtorus group. */
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "client/torch/session.h"

namespace torus_torch
{

class ProcessGroup : public c10d::ProcessGroup
{
  public:
    /* Several groups of torch may share a session. Their members see by `name` whether they call the same one. */
    ProcessGroup(std::shared_ptr<Session> session, c10::intrusive_ptr<c10d::Store> store, int rank,
                 int size, std::string name, std::chrono::milliseconds timeout);
    ~ProcessGroup() override;

    /* Opens a group of ranks on these nodes, in their order, of which this one is number `rank`. Throws. */
    c10::intrusive_ptr<ProcessGroup> of_nodes(c10::intrusive_ptr<c10d::Store> store,
                                              const std::vector<uint32_t> &nodes, int rank,
                                              const std::string &name,
                                              std::chrono::milliseconds timeout) const;

    const std::string getBackendName() const override
    {
        return "torus";
    }

    using Tensors = std::vector<at::Tensor>;
    using WorkPointer = c10::intrusive_ptr<c10d::Work>;

    WorkPointer broadcast(Tensors &tensors, const c10d::BroadcastOptions &options) override;
    WorkPointer allreduce(Tensors &tensors, const c10d::AllreduceOptions &options) override;
    WorkPointer allreduce_coalesced(Tensors &tensors,
                                    const c10d::AllreduceCoalescedOptions &options) override;
    WorkPointer reduce(Tensors &tensors, const c10d::ReduceOptions &options) override;
    WorkPointer allgather(std::vector<Tensors> &outputs, Tensors &inputs,
                          const c10d::AllgatherOptions &options) override;
    WorkPointer _allgather_base(at::Tensor &output, at::Tensor &input,
                                const c10d::AllgatherOptions &options) override;
    WorkPointer allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
                                    const c10d::AllgatherOptions &options) override;
    WorkPointer gather(std::vector<Tensors> &outputs, Tensors &inputs,
                       const c10d::GatherOptions &options) override;
    WorkPointer scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                        const c10d::ScatterOptions &options) override;
    WorkPointer reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                               const c10d::ReduceScatterOptions &options) override;
    WorkPointer _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                     const c10d::ReduceScatterOptions &options) override;
    WorkPointer alltoall_base(at::Tensor &output, at::Tensor &input,
                              std::vector<int64_t> &output_splits,
                              std::vector<int64_t> &input_splits,
                              const c10d::AllToAllOptions &options) override;
    WorkPointer alltoall(Tensors &outputs, Tensors &inputs,
                         const c10d::AllToAllOptions &options) override;
    WorkPointer barrier(const c10d::BarrierOptions &options) override;
    /* Asks the store who has called it, so the group remains usable when ranks are missing. */
    void monitoredBarrier(const c10d::BarrierOptions &options, bool all) override;
    WorkPointer send(Tensors &tensors, int rank, int tag) override;
    WorkPointer recv(Tensors &tensors, int rank, int tag) override;
    WorkPointer recvAnysource(Tensors &tensors, int tag) override;
    void setSequenceNumberForGroup() override;
    uint64_t getSequenceNumberForGroup() override;

  private:
    struct Request {
        c10d::OpType type;
        const char *title;
        std::chrono::milliseconds timeout;
        const Tensors &inputs;
        const Tensors &outputs;
        std::function<Operation()> prepare;
        std::function<void()> finish;
    };

    WorkPointer submit(Request request);
    WorkPointer submit(Request request, Kind kind, c10::intrusive_ptr<Work> work);
    uint64_t message_tag(int tag) const;
    WorkPointer reduce_to_members(c10d::OpType type, const char *title, const Tensors &outputs,
                                  const Tensors &inputs, std::vector<size_t> counts,
                                  const c10d::ReduceScatterOptions &options);
    WorkPointer exchange(c10d::OpType type, const char *title, const Tensors &outputs,
                         const Tensors &inputs, std::chrono::milliseconds timeout);
    const at::Tensor &only(const Tensors &tensors) const;
    uint32_t root(int64_t rank) const;
    void check_count(const Tensors &tensors) const;

    std::shared_ptr<Session> session_;
    c10::intrusive_ptr<c10d::Store> store_;
    std::string name_;
    const uint64_t number_; /* among the groups of the session */
    std::chrono::milliseconds timeout_;
    uint64_t sequence_ = 0, monitored_ = 0;
};

} // namespace torus_torch
