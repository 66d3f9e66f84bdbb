#include "client/torch/session.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ATen/core/grad_mode.h>
#include <torus/torus.h>

namespace torus_torch
{

void fail(const torus_error &error)
{
    throw std::runtime_error(
        std::string(error.code == TORUS_ERROR_TIMEOUT ? "torus: Timed out waiting: " : "torus: ") +
        error.text);
}

/* ---- Work ------------------------------------------------------------------------------------ */

Work::Work(int rank, c10d::OpType type, const char *title, const std::vector<at::Tensor> &inputs,
           std::vector<at::Tensor> outputs)
    : c10d::Work(rank, type, title, inputs), outputs_(std::move(outputs)),
      future_(
          c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get())))
{
}

void Work::end(std::exception_ptr error)
{
    if (error != nullptr)
        future_->setError(error);
    else
        future_->markCompleted(c10::IValue(outputs_));
    finish(error);
}

int Work::sourceRank() const
{
    TORCH_CHECK(source_ >= 0, "torus: the work has received no message");
    return source_;
}

void Work::set_source(int rank)
{
    source_ = rank;
}

std::vector<at::Tensor> Work::result()
{
    TORCH_CHECK(isCompleted(), "torus: the work has not ended; wait for it first");
    return outputs_;
}

c10::intrusive_ptr<c10::ivalue::Future> Work::getFuture()
{
    return future_;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

Session::Session(const std::string &name, const std::vector<uint32_t> &nodes, uint32_t timeout_ms)
    : name_(name)
{
    torus_group_options options;
    torus_error error;

    torus_group_options_init(&options);
    options.name = name.c_str();
    options.timeout_ms = timeout_ms;
    if (!nodes.empty()) {
        options.members = nodes.data();
        options.member_count = static_cast<uint32_t>(nodes.size());
    }
    if (torus_group_open(&options, &group_, &error) != 0)
        fail(error);
    wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (wake_fd_ < 0) {
        torus_group_close(group_);
        throw std::runtime_error("torus: no more descriptors");
    }
    thread_ = std::thread([this] { run(); });
    (void)pthread_setname_np(thread_.native_handle(), "torus");
}

Session::~Session()
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        ending_ = true;
    }
    wake();
    thread_.join();
    torus_group_close(group_);
    close(wake_fd_);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

void Session::wake()
{
    const uint64_t one = 1;

    (void)!write(wake_fd_, &one, sizeof one);
}

void Session::submit(Call call)
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        submitted_.push_back(std::move(call));
    }
    wake();
}

/* Returns whether the session ends. */
bool Session::take_submitted()
{
    uint64_t count;
    std::lock_guard<std::mutex> lock(mutex_);

    (void)!read(wake_fd_, &count, sizeof count);
    for (Call &call : submitted_)
        waiting_[size_t(call.order)].push_back(std::move(call));
    submitted_.clear();
    return ending_;
}

/* How many calls of each kind are under way at most. A group of libtorus has 64 at most, and calls of one kind must not
 * take the place of those that they wait for. */
static constexpr size_t most_running[size_t(Kind::count)] = {16, 24, 24};

/* Returns whether it is done with the call: false if too many calls are under way. */
bool Session::start(Call &call)
{
    std::list<Running> &running = running_[size_t(call.order)];
    torus_call *handle = nullptr;
    torus_error error;

    if (running.size() >= most_running[size_t(call.order)])
        return false;
    try {
        torus_group_set_timeout(group_, call.timeout_ms);
        torus_group_describe(group_, call.data.c_str(), nullptr, 0);
        if (call.start(&handle, &error) != 0)
            fail(error);
        running.push_back({std::move(call), handle});
    } catch (...) {
        call.work->end(std::current_exception());
    }
    return true;
}

void Session::start_waiting()
{
    for (std::deque<Call> &waiting : waiting_)
        while (!waiting.empty() && start(waiting.front()))
            waiting.pop_front();
}

/* Ends the calls that have ended. Returns whether there was one. */
bool Session::test_running(std::list<Running> &running)
{
    bool any = false;

    for (auto it = running.begin(); it != running.end();) {
        torus_error error;
        const int state = torus_call_test(it->handle, &error);
        if (state == 0) {
            ++it;
            continue;
        }
        /* What the end of the work calls may submit other work. */
        Call call = std::move(it->call);
        it = running.erase(it);
        any = true;
        std::exception_ptr problem;
        try {
            if (state < 0)
                fail(error);
            if (call.finish)
                call.finish();
        } catch (...) {
            problem = std::current_exception();
        }
        call.work->end(problem);
    }
    return any;
}

bool Session::test_running()
{
    bool any = false;

    for (std::list<Running> &running : running_)
        any |= test_running(running);
    return any;
}

bool Session::is_idle() const
{
    bool idle = true;

    for (size_t i = 0; i < size_t(Kind::count); i++)
        idle &= waiting_[i].empty() && running_[i].empty();
    return idle;
}

void Session::wait()
{
    pollfd fds[] = {{wake_fd_, POLLIN, 0}, {torus_group_fd(group_), POLLIN, 0}};

    (void)poll(fds, is_idle() ? 1 : 2, -1);
}

void Session::run()
{
    at::NoGradGuard no_grad;

    for (;;) {
        const bool ending = take_submitted();
        start_waiting();
        if (test_running())
            continue;
        if (ending && is_idle())
            return;
        wait();
    }
}

} // namespace torus_torch
