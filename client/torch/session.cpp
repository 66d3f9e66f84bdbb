#include "client/torch/session.h"

#include <algorithm>
#include <set>

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <ATen/core/grad_mode.h>

namespace torus_torch
{

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

Session::Session(const Place &place) : name_(place.name), calls_(open_calls(place))
{
    wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    TORCH_CHECK(wake_fd_ >= 0, "torus: no more descriptors");
    thread_ = std::thread([this] { run(); });
    (void)pthread_setname_np(thread_.native_handle(), "torus");
}

Session::~Session()
{
    thread_.join();
    close(wake_fd_);
}

/* A session that torch does not use any more stays while other ranks of the node need it. */
static std::mutex sessions_mutex;
static std::set<Session *> sessions;

bool Session::is_over()
{
    std::lock_guard<std::mutex> lock(mutex_);

    return is_over_;
}

/* Deletes the retired sessions that nobody needs any more. */
void Session::clear_retired()
{
    for (auto it = sessions.begin(); it != sessions.end();) {
        Session *const session = *it;
        const bool ended = session->is_retired_ && session->is_over();
        it = ended ? sessions.erase(it) : std::next(it);
        if (ended)
            delete session;
    }
}

std::shared_ptr<Session> Session::open(const Place &place)
{
    std::shared_ptr<Session> session(new Session(place), retire);
    std::lock_guard<std::mutex> lock(sessions_mutex);

    clear_retired();
    sessions.insert(session.get());
    return session;
}

void Session::end(Ending how)
{
    std::unique_lock<std::mutex> lock(mutex_);

    ending_ = std::max(ending_, how);
    wake();
    changed_.wait(lock, [&] { return is_over_ || (is_parked_ && how == Ending::after_calls); });
}

void Session::retire(Session *session)
{
    session->end(Ending::after_calls);
    std::lock_guard<std::mutex> lock(sessions_mutex);
    session->is_retired_ = true;
    clear_retired();
}

void Session::end_all(bool waits)
{
    std::lock_guard<std::mutex> lock(sessions_mutex);

    for (Session *session : sessions)
        session->end(waits ? Ending::after_guests : Ending::now);
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

void Session::take_submitted()
{
    uint64_t count;
    std::lock_guard<std::mutex> lock(mutex_);

    (void)!read(wake_fd_, &count, sizeof count);
    for (Call &call : submitted_)
        waiting_[size_t(call.order)].push_back(std::move(call));
    submitted_.clear();
}

/* Returns whether it is done with the call: false if too many calls are under way. */
bool Session::start(Call &call)
{
    std::list<Running> &running = running_[size_t(call.order)];

    if (running.size() >= calls_->most(call.order))
        return false;
    try {
        void *const handle = calls_->start(call.prepare(), call.data, call.timeout_ms);
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
        const int state = calls_->test(it->handle, &error);
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

/* Whether this rank makes no more calls. */
bool Session::is_leaving()
{
    std::lock_guard<std::mutex> lock(mutex_);

    return ending_ > Ending::after_calls || (ending_ == Ending::after_calls && is_idle());
}

/* Returns whether the session is over, because nobody else needs it. */
bool Session::leave()
{
    std::lock_guard<std::mutex> lock(mutex_);

    is_over_ = ending_ == Ending::now || !calls_->is_needed();
    is_parked_ = !is_over_;
    if (is_over_)
        calls_.reset(); /* the session may stay until the process ends */
    changed_.notify_all();
    return is_over_;
}

void Session::run()
{
    at::NoGradGuard no_grad;

    for (;;) {
        take_submitted();
        start_waiting();
        calls_->step();
        if (test_running())
            continue;
        if (has_left_ && leave())
            return;
        if (has_left_ || !is_leaving()) {
            calls_->wait(wake_fd_, is_idle());
        } else {
            calls_->leave(); /* calls of other ranks may fail */
            has_left_ = true;
        }
    }
}

} // namespace torus_torch
