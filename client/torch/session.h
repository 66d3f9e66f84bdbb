/* The thread that makes the calls of a group of libtorus. */
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

#include "client/torch/calls.h"

namespace torus_torch
{

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

/* How to make a call. Both functions run on the thread of the session. */
struct Call {
    Kind order;
    std::string data; /* what they are, for torus_group_describe() */
    uint32_t timeout_ms;
    c10::intrusive_ptr<Work> work;
    std::function<Operation()> prepare;
    std::function<void()> finish; /* after success */
};

class Session
{
  public:
    /* Opens a group. Its end waits for the calls that were submitted. Throws. */
    static std::shared_ptr<Session> open(const Place &place);

    /* The process ends: gives up the calls of this rank. With `waits`, goes on making those of other ranks of this node until
     * they do not need it any more. */
    static void end_all(bool waits);

    explicit Session(const Place &place);
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

  private:
    struct Running {
        Call call;
        void *handle; /* of Calls */
    };

    void run();
    void start_waiting();
    bool start(Call &call);
    bool test_running();
    bool test_running(std::list<Running> &running);
    bool is_idle() const;
    void take_submitted();
    bool is_leaving();
    bool leave();
    enum class Ending { no, after_calls, after_guests, now };
    void end(Ending how);
    void wake();
    bool is_over();
    static void retire(Session *session);
    static void clear_retired();

    const std::string name_;
    std::unique_ptr<Calls> calls_;
    int wake_fd_;

    std::mutex mutex_; /* protects these */
    std::condition_variable changed_;
    std::deque<Call> submitted_;
    Ending ending_ = Ending::no; /* this rank makes no more calls */
    bool is_parked_ = false;     /* it has ended, but other ranks of the node need it */
    bool is_over_ = false;
    bool is_retired_ = false; /* torch does not use it any more */

    std::atomic<uint64_t> next_group_ = 0;

    /* Only the thread uses these; indexed by Kind. */
    bool has_left_ = false;
    std::deque<Call> waiting_[size_t(Kind::count)];
    std::list<Running> running_[size_t(Kind::count)];
    std::thread thread_;
};

} // namespace torus_torch
