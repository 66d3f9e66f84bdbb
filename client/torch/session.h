/* A libtorus group, and the thread that makes its calls. */
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torus/group.h>

namespace torus_torch
{

/* Throws the error of a function of libtorus. */
[[noreturn]] void fail(const torus_error &error);

/* A call that torch waits for. Its future has the list of the output tensors. */
class Work : public c10d::Work
{
  public:
    Work(int rank, c10d::OpType type, const char *title, const std::vector<at::Tensor> &inputs,
         std::vector<at::Tensor> outputs);

    /* Ends the work, with an error unless it is nullptr. */
    void end(std::exception_ptr error);

    /* The rank that sent the message, after a receive. */
    int sourceRank() const override;
    void set_source(int rank);

    std::vector<at::Tensor> result() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

  private:
    std::vector<at::Tensor> outputs_;
    std::atomic<int> source_ = -1;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
};

/* Calls of one kind are started in their order. Those of other kinds do not wait for them: other ranks may call first what
 * they need. */
enum class Kind { collective, send, receive, count };

/* How to make a call. Both functions run on the thread of the session. */
struct Call {
    Kind order;
    std::string data; /* what they are, for torus_group_describe() */
    uint32_t timeout_ms;
    c10::intrusive_ptr<Work> work;
    std::function<int(torus_call **, torus_error *)> start;
    std::function<void()> finish; /* after success */
};

class Session
{
  public:
    /* Opens a group of these nodes under this name. Throws. */
    Session(const std::string &name, const std::vector<uint32_t> &nodes, uint32_t timeout_ms);

    /* Waits for the calls that were submitted. */
    ~Session();

    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    /* Calls of one kind are started in the order in which they are submitted. */
    void submit(Call call);

    /* Returns a number for a group of torch that uses the session: the first gets 0. All ranks make the groups that share
     * a session in the same order. */
    uint64_t next_group()
    {
        return next_group_++;
    }

    const std::string &name() const
    {
        return name_;
    }

    torus_group *group() const
    {
        return group_;
    }

  private:
    struct Running {
        Call call;
        torus_call *handle;
    };

    void run();
    void start_waiting();
    bool start(Call &call);
    bool test_running();
    bool test_running(std::list<Running> &running);
    bool is_idle() const;
    bool take_submitted();
    void wait();
    void wake();

    const std::string name_;
    torus_group *group_ = nullptr;
    int wake_fd_;

    std::mutex mutex_; /* protects the next two */
    std::deque<Call> submitted_;
    bool ending_ = false;

    std::atomic<uint64_t> next_group_ = 0;

    /* Only the thread uses these; indexed by Kind. */
    std::deque<Call> waiting_[size_t(Kind::count)];
    std::list<Running> running_[size_t(Kind::count)];
    std::thread thread_;
};

} // namespace torus_torch
