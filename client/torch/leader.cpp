/* The first rank of a node makes the calls of libtorus for all ranks there. Messages between them stay on the node. */
#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <set>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <c10/util/Exception.h>

#include "client/torch/node_call.h"
#include "client/torch/node_links.h"

namespace torus_torch
{

using Clock = std::chrono::steady_clock;

/* What a rank of the node has in a call. */
struct Part {
    Part(uint32_t of, uint64_t request, std::unique_ptr<Parcel> given)
        : local(of), number(request), parcel(std::move(given))
    {
    }

    const uint32_t local;
    const uint64_t number; /* of the request, for the answer */
    const std::unique_ptr<Parcel> parcel;
    std::optional<Operation> operation; /* of the leader's own parts */
    Clock::time_point end = Clock::time_point::max();
    torus_call *call = nullptr; /* of a message to another node */
    int state = 0;
    torus_error error = {};
};

using PartPointer = std::shared_ptr<Part>;

/* A collective call: the parts of the ranks that have made it so far. */
struct Collective {
    std::vector<PartPointer> parts;
    Clock::time_point end;
    std::unique_ptr<NodeCall> node_call; /* once all have made it */
    torus_call *call = nullptr;

    bool has_begun() const
    {
        return node_call != nullptr;
    }
};

/* Messages between two ranks of the node with the same tag, in the order of their calls: sends, or receives. */
struct Waiting {
    std::deque<PartPointer> sends, receives;
};

class Leader : public Calls
{
  public:
    Leader(const Place &place, const std::vector<int> &guests)
        : ranks_(place.ranks), parts_(ranks_.count(ranks_.member)), next_(parts_.size()),
          left_(parts_.size())
    {
        fds_ = guests;
        fds_.insert(fds_.begin(), -1); /* its own */
    }

    ~Leader() override
    {
        torus_group_close(group_);
        for (int fd : fds_)
            if (fd >= 0)
                close(fd);
    }

    /* Opens the group, and tells the guests. Throws. */
    void open(const Place &place)
    {
        Answer answer = {0, 1, {}};
        std::exception_ptr problem;

        try {
            group_ = open_group(place);
        } catch (const std::exception &error) {
            answer.state = -1;
            answer.error =
                error_of(TORUS_ERROR_IO, std::string(error.what()).substr(strlen("torus: ")));
            problem = std::current_exception();
        }
        for (size_t local = 1; local < fds_.size(); local++)
            (void)send(fds_[local], &answer, sizeof answer, MSG_NOSIGNAL);
        if (problem != nullptr)
            std::rethrow_exception(problem);
    }

    void *start(const Operation &operation, const std::string &data, uint32_t timeout_ms) override
    {
        auto parcel = std::make_unique<Parcel>(operation, data, timeout_ms, ranks_);
        const auto part = std::make_shared<Part>(0, 0, std::move(parcel));

        part->operation = operation;
        own_[part.get()] = part;
        take(part);
        return part.get();
    }

    int test(void *handle, torus_error *error) override
    {
        const auto found = own_.find(static_cast<Part *>(handle));
        const PartPointer part = found->second;

        if (part->state == 0)
            return 0;
        own_.erase(found);
        if (part->state > 0)
            part->parcel->unpack(*part->operation);
        else
            *error = part->error;
        return part->state;
    }

    size_t most(Kind kind) const override
    {
        return most_on_node(kind, ranks_);
    }

    void wait(int fd, bool) override
    {
        std::vector<pollfd> fds = {{fd, POLLIN, 0}};

        for (int guest : fds_)
            fds.push_back({guest, POLLIN, 0}); /* -1: poll() leaves it out */
        if (group_ != nullptr && is_calling())
            fds.push_back({torus_group_fd(group_), POLLIN, 0});
        (void)poll(fds.data(), fds.size(), milliseconds_left());
    }

    void step() override
    {
        for (uint32_t local = 1; local < fds_.size(); local++)
            listen_to(local);
        test_collectives();
        test_messages();
        check_time();
    }

    void leave() override
    {
        part_with(0);
    }

    bool is_needed() const override
    {
        return std::any_of(fds_.begin(), fds_.end(), [](int fd) { return fd >= 0; });
    }

  private:
    using Key = std::tuple<uint32_t, uint32_t, uint64_t>; /* sender, receiver, tag */

    uint32_t rank_of(size_t local) const
    {
        return ranks_.first[ranks_.member] + uint32_t(local);
    }

    /* ---- Parts ------------------------------------------------------------------------------- */

    void listen_to(uint32_t local)
    {
        uint64_t number;
        int fd, got = 0;

        while (fds_[local] >= 0 && (got = receive_parcel(fds_[local], &number, &fd)) > 0)
            try {
                auto parcel = std::make_unique<Parcel>(fd, ranks_.size);
                take(std::make_shared<Part>(local, number, std::move(parcel)));
            } catch (const c10::Error &error) {
                fail_all(error_of(TORUS_ERROR_PROTOCOL, error.what_without_backtrace()));
                got = -1;
                break;
            }
        if (got < 0) {
            close(fds_[local]);
            fds_[local] = -1;
            part_with(local);
        }
    }

    void take(const PartPointer &part)
    {
        const Parcel::Header &header = part->parcel->header();

        parts_[part->local].insert(part);
        if (header.timeout_ms > 0)
            part->end = Clock::now() + std::chrono::milliseconds(header.timeout_ms);
        if (failure_)
            end(part, -1, *failure_);
        else if (kind_of(header.code) == Kind::collective)
            join(part);
        else if (ranks_.member_of(header.peer) == ranks_.member)
            pass(part);
        else
            start_message(part);
    }

    void end(const PartPointer &part, int state, const torus_error &error)
    {
        if (parts_[part->local].erase(part) == 0)
            return;
        part->state = state;
        part->error = error;
        if (part->local > 0) {
            const Answer answer = {part->number, state, error};
            (void)send(fds_[part->local], &answer, sizeof answer, MSG_NOSIGNAL);
        }
    }

    /* Other nodes learn of it, because this one closes the group while a call is under way: if there is none, a barrier with
     * a description that no other call has. */
    void close_group(const torus_error &reason)
    {
        torus_call *call;
        torus_error error;

        torus_group_describe(group_, reason.text, nullptr, 0);
        (void)torus_start_barrier(group_, &call, &error);
        torus_group_close(std::exchange(group_, nullptr));
    }

    /* The group has failed, and fails on all nodes. */
    void fail_all(const torus_error &error)
    {
        if (failure_)
            return;
        failure_ = error;
        close_group(error); /* before memory goes that its calls use */
        collectives_.clear();
        messages_.clear();
        waiting_.clear();
        for (const auto &parts : parts_)
            for (const PartPointer &part : std::set<PartPointer>(parts))
                end(part, -1, error);
    }

    /* A rank makes no more calls. */
    void part_with(uint32_t local)
    {
        left_[local] = true;
        if (!parts_[local].empty())
            fail_all(error_of(TORUS_ERROR_LOST, c10::str("rank ", rank_of(local), " has ended")));
        else
            check_left();
    }

    /* Fails if a rank that has left is missing in a call. */
    void check_left()
    {
        for (const auto &one : collectives_)
            for (size_t local = 0; local < left_.size(); local++)
                if (!one.second.has_begun() && left_[local] && one.second.parts[local] == nullptr)
                    return fail_all(error_of(TORUS_ERROR_LOST, c10::str("rank ", rank_of(local),
                                                                        " has left the group")));
        for (const auto &one : waiting_)
            if (left_[std::get<0>(one.first)] || left_[std::get<1>(one.first)])
                return fail_all(
                    error_of(TORUS_ERROR_LOST, c10::str("a rank waits for a message between ranks ",
                                                        rank_of(std::get<0>(one.first)), " and ",
                                                        rank_of(std::get<1>(one.first)),
                                                        ", one of which has left the group")));
    }

    /* ---- Collective calls -------------------------------------------------------------------- */

    void join(const PartPointer &part)
    {
        const uint64_t number = next_[part->local]++;
        Collective &call = collectives_[number];

        if (call.parts.empty()) {
            call.parts.resize(next_.size());
            call.end = part->end;
        }
        call.parts[part->local] = part;
        if (std::find(call.parts.begin(), call.parts.end(), nullptr) == call.parts.end())
            start_collective(number);
        else
            check_left();
    }

    void start_collective(uint64_t number)
    {
        Collective &call = collectives_[number];
        const Parcel::Header &header = call.parts[0]->parcel->header();
        std::vector<const Parcel *> parcels;
        torus_error error;

        for (const PartPointer &part : call.parts)
            parcels.push_back(part->parcel.get());
        call.node_call = std::make_unique<NodeCall>(ranks_, parcels);
        call.end = Clock::time_point::max(); /* from now on that of libtorus counts */
        const std::string difference = call.node_call->difference();
        if (!difference.empty())
            return fail_all(error_of(TORUS_ERROR_USAGE, difference));
        torus_group_set_timeout(group_, header.timeout_ms);
        torus_group_describe(group_, header.data, nullptr, 0);
        try {
            if (call.node_call->start(group_, &call.call, &error) == 0)
                return;
            end_collective(call, -1, error);
            collectives_.erase(number);
        } catch (const std::exception &problem) { /* no memory */
            fail_all(error_of(TORUS_ERROR_MEMORY, problem.what()));
        }
    }

    void end_collective(const Collective &call, int state, const torus_error &error)
    {
        for (const PartPointer &part : call.parts)
            end(part, state, error);
    }

    void test_collectives()
    {
        for (auto it = collectives_.begin(); it != collectives_.end();) {
            const Collective &call = it->second;
            torus_error error;
            const int state = call.call != nullptr ? torus_call_test(call.call, &error) : 0;
            if (state < 0)
                return fail_all(error);
            if (state > 0) {
                call.node_call->finish();
                end_collective(call, state, {});
            }
            it = state > 0 ? collectives_.erase(it) : std::next(it);
        }
    }

    /* ---- Messages ---------------------------------------------------------------------------- */

    /* Between ranks of this node. */
    void pass(const PartPointer &part)
    {
        const Parcel::Header &header = part->parcel->header();
        const uint32_t other = ranks_.local_of(header.peer);
        const bool sends = header.code == Code::send;
        const Key key(sends ? part->local : other, sends ? other : part->local, header.tag);
        Waiting &waiting = waiting_[key];

        (sends ? waiting.sends : waiting.receives).push_back(part);
        if (waiting.sends.empty() || waiting.receives.empty())
            return check_left();
        const PartPointer from = waiting.sends.front(), to = waiting.receives.front();
        waiting.sends.pop_front();
        waiting.receives.pop_front();
        if (waiting.sends.empty() && waiting.receives.empty())
            waiting_.erase(key);
        const uint64_t sent = from->parcel->header().size, wanted = to->parcel->header().size;
        if (sent != wanted)
            return fail_all(
                error_of(TORUS_ERROR_USAGE,
                         c10::str("rank ", rank_of(from->local), " sends ", sent,
                                  " bytes, but rank ", rank_of(to->local), " receives ", wanted)));
        memcpy(to->parcel->out(), from->parcel->in(), sent);
        end(from, 1, {});
        end(to, 1, {});
    }

    /* To or from another node, whose leader uses the same tag. */
    void start_message(const PartPointer &part)
    {
        const Parcel::Header &header = part->parcel->header();
        const uint64_t here = part->local, there = ranks_.local_of(header.peer);
        const bool sends = header.code == Code::send;
        Operation operation =
            Operation::blocks(header.code, part->parcel->in(), part->parcel->out(), header.size,
                              ranks_.member_of(header.peer), header.tag);
        torus_error error;

        operation.tag |= (sends ? here : there) << 44 | (sends ? there : here) << 50;
        torus_group_set_timeout(group_, header.timeout_ms);
        torus_group_describe(group_, header.data, nullptr, 0);
        part->end = Clock::time_point::max();
        if (operation.start(group_, &part->call, &error) != 0)
            return end(part, -1, error);
        messages_.push_back(part);
    }

    void test_messages()
    {
        for (auto it = messages_.begin(); it != messages_.end();) {
            torus_error error;
            const int state = torus_call_test((*it)->call, &error);
            if (state < 0)
                return fail_all(error);
            if (state > 0)
                end(*it, state, {});
            it = state > 0 ? messages_.erase(it) : std::next(it);
        }
    }

    /* ---- Time -------------------------------------------------------------------------------- */

    void check_time()
    {
        const auto now = Clock::now();

        for (const auto &one : collectives_)
            for (size_t local = 0; one.second.end <= now && local < left_.size(); local++)
                if (!one.second.has_begun() && one.second.parts[local] == nullptr)
                    return fail_all(
                        error_of(TORUS_ERROR_TIMEOUT,
                                 c10::str("rank ", rank_of(local), " has not made the call")));
        for (const auto &one : waiting_)
            for (const auto *list : {&one.second.sends, &one.second.receives})
                if (!list->empty() && list->front()->end <= now)
                    return fail_all(error_of(
                        TORUS_ERROR_TIMEOUT,
                        c10::str("a message from rank ", rank_of(std::get<0>(one.first)),
                                 " to rank ", rank_of(std::get<1>(one.first)), " has not been ",
                                 list == &one.second.sends ? "received" : "sent")));
    }

    int milliseconds_left() const
    {
        auto end = Clock::time_point::max();

        for (const auto &one : collectives_)
            end = std::min(end, one.second.end);
        for (const auto &one : waiting_)
            for (const auto *list : {&one.second.sends, &one.second.receives})
                if (!list->empty())
                    end = std::min(end, list->front()->end);
        if (end == Clock::time_point::max())
            return -1;
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count() + 1;
        return int(std::clamp<int64_t>(left, 0, 3600 * 1000));
    }

    bool is_calling() const
    {
        return !messages_.empty() ||
               std::any_of(collectives_.begin(), collectives_.end(),
                           [](const auto &one) { return one.second.call != nullptr; });
    }

    const Ranks ranks_;
    torus_group *group_ = nullptr;
    std::vector<int>
        fds_; /* of the guests, by their numbers on the node; -1: this rank, or it has left */
    std::map<Part *, PartPointer> own_;
    std::vector<std::set<PartPointer>> parts_; /* under way, of each rank here */
    std::map<uint64_t, Collective> collectives_;
    std::vector<uint64_t> next_; /* the number of the next collective call of each rank here */
    std::vector<bool> left_;
    std::list<PartPointer> messages_; /* between nodes */
    std::map<Key, Waiting> waiting_;
    std::optional<torus_error> failure_;
};

std::unique_ptr<Calls> open_leader(const Place &place)
{
    auto leader = std::make_unique<Leader>(place, accept_guests(place));

    leader->open(place);
    return leader;
}

} // namespace torus_torch
