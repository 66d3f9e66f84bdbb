#include "client/torch/calls.h"

#include <algorithm>
#include <limits>

#include <poll.h>

#include <c10/util/Exception.h>

#include "client/torch/node_links.h"

namespace torus_torch
{

void fail(const torus_error &error)
{
    throw std::runtime_error(
        std::string(error.code == TORUS_ERROR_TIMEOUT ? "torus: Timed out waiting: " : "torus: ") +
        error.text);
}

torus_error error_of(torus_error_code code, const std::string &text)
{
    torus_error error = {};

    error.code = code;
    text.copy(error.text, sizeof error.text - 1);
    return error;
}

uint32_t milliseconds(std::chrono::milliseconds timeout)
{
    constexpr auto most = std::numeric_limits<uint32_t>::max();

    return timeout.count() > most ? most : static_cast<uint32_t>(timeout.count());
}

/* ---- Ranks ----------------------------------------------------------------------------------- */

Ranks::Ranks(const std::vector<uint32_t> &node_of, uint32_t own_rank)
    : size(static_cast<uint32_t>(node_of.size())), mine(own_rank)
{
    for (uint32_t rank = 0; rank < size; rank++)
        if (rank == 0 || node_of[rank] != node_of[rank - 1]) {
            nodes.push_back(node_of[rank]);
            first.push_back(rank);
        }
    first.push_back(size);
    member = member_of(mine);
}

uint32_t Ranks::member_of(uint32_t rank) const
{
    return static_cast<uint32_t>(std::upper_bound(first.begin(), first.end(), rank) -
                                 first.begin() - 1);
}

uint32_t Ranks::count(uint32_t of_member) const
{
    return first[of_member + 1] - first[of_member];
}

uint32_t Ranks::local_of(uint32_t rank) const
{
    return rank - first[member_of(rank)];
}

/* ---- Groups ---------------------------------------------------------------------------------- */

torus_group *open_group(const Place &place)
{
    torus_group_options options;
    torus_group *group;
    torus_error error;

    torus_group_options_init(&options);
    options.name = place.name.c_str();
    options.timeout_ms = milliseconds(place.timeout);
    options.memory_timeout_ms = memory_timeout_ms;
    if (!place.everywhere) {
        options.members = place.ranks.nodes.data();
        options.member_count = static_cast<uint32_t>(place.ranks.nodes.size());
    }
    if (torus_group_open(&options, &group, &error) != 0)
        fail(error);
    return group;
}

/* One rank is on each node. */
class Alone : public Calls
{
  public:
    explicit Alone(torus_group *group) : group_(group)
    {
    }

    ~Alone() override
    {
        torus_group_close(group_);
    }

    void *start(const Operation &operation, const std::string &data, uint32_t timeout_ms) override
    {
        torus_call *call;
        torus_error error;

        torus_group_set_timeout(group_, timeout_ms);
        torus_group_describe(group_, data.c_str(), nullptr, 0);
        if (operation.start(group_, &call, &error) != 0)
            fail(error);
        return call;
    }

    int test(void *handle, torus_error *error) override
    {
        return torus_call_test(static_cast<torus_call *>(handle), error);
    }

    size_t most(Kind kind) const override
    {
        return most_calls[size_t(kind)];
    }

    void wait(int fd, bool idle) override
    {
        pollfd fds[] = {{fd, POLLIN, 0}, {torus_group_fd(group_), POLLIN, 0}};

        (void)poll(fds, idle ? 1 : 2, -1);
    }

  private:
    torus_group *const group_;
};

std::unique_ptr<Calls> open_calls(const Place &place)
{
    const Ranks &ranks = place.ranks;
    constexpr size_t most = most_calls[size_t(Kind::send)];

    if (!ranks.has_several())
        return std::make_unique<Alone>(open_group(place));
    for (uint32_t m = 0; m < ranks.nodes.size(); m++)
        TORCH_CHECK(ranks.count(m) <= most, "torus: ", ranks.count(m), " ranks are on node ",
                    ranks.nodes[m], ": start at most ", most, " on a node");
    return ranks.local_of(ranks.mine) == 0 ? open_leader(place) : open_guest(place);
}

} // namespace torus_torch
