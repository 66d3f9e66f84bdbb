/* A rank that is not the first on its node. */
#include <cstring>
#include <map>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <c10/util/Exception.h>

#include "client/torch/node_links.h"

namespace torus_torch
{

class Guest : public Calls
{
  public:
    Guest(const Place &place, int fd) : ranks_(place.ranks), fd_(fd)
    {
    }

    ~Guest() override
    {
        close(fd_);
    }

    void *start(const Operation &operation, const std::string &data, uint32_t timeout_ms) override
    {
        auto call = std::make_unique<Given>(++last_, operation, data, timeout_ms, ranks_);

        if (lost_ || !send_parcel(fd_, call->number, call->parcel.fd()))
            fail(lost());
        return (calls_[last_] = std::move(call)).get();
    }

    int test(void *handle, torus_error *error) override
    {
        auto *const call = static_cast<Given *>(handle);
        const int state = call->state;

        if (state > 0)
            call->parcel.unpack(call->operation);
        else if (state < 0)
            *error = call->error;
        if (state != 0)
            calls_.erase(call->number);
        return state;
    }

    size_t most(Kind kind) const override
    {
        return most_on_node(kind, ranks_);
    }

    void wait(int fd, bool idle) override
    {
        pollfd fds[] = {{fd, POLLIN, 0}, {fd_, POLLIN, 0}};

        (void)poll(fds, idle ? 1 : 2, -1);
    }

    void step() override
    {
        Answer answer;

        while (!lost_ && !calls_.empty()) {
            const ssize_t got = recv(fd_, &answer, sizeof answer, MSG_DONTWAIT);
            if (got < 0 && (errno == EAGAIN || errno == EINTR))
                return;
            if (got != sizeof answer)
                lose();
            else if (const auto it = calls_.find(answer.number); it != calls_.end())
                end(*it->second, answer.state, answer.error);
        }
    }

  private:
    struct Given {
        Given(uint64_t request, const Operation &o, const std::string &data, uint32_t timeout_ms,
              const Ranks &ranks)
            : number(request), operation(o), parcel(o, data, timeout_ms, ranks)
        {
        }

        const uint64_t number;
        const Operation operation;
        const Parcel parcel;
        int state = 0;
        torus_error error;
    };

    static void end(Given &call, int state, const torus_error &error)
    {
        call.state = state;
        call.error = error;
    }

    torus_error lost() const
    {
        return error_of(TORUS_ERROR_LOST, c10::str("rank ", ranks_.first[ranks_.member],
                                                   ", the first on this node, has ended"));
    }

    void lose()
    {
        lost_ = true;
        for (auto &one : calls_)
            end(*one.second, -1, lost());
    }

    const Ranks ranks_;
    const int fd_;
    uint64_t last_ = 0;
    bool lost_ = false;
    std::map<uint64_t, std::unique_ptr<Given>> calls_;
};

std::unique_ptr<Calls> open_guest(const Place &place)
{
    const int fd = connect_leader(place);
    auto guest = std::make_unique<Guest>(place, fd);
    Answer answer;

    const ssize_t got = recv(fd, &answer, sizeof answer, 0);
    if (got == sizeof answer && answer.state < 0)
        fail(answer.error);
    TORCH_CHECK(got == sizeof answer, "torus: rank ", place.ranks.first[place.ranks.member],
                ", the first on this node, has ended while the group was opened");
    return guest;
}

} // namespace torus_torch
