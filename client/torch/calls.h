/* How a rank makes calls of a group: alone on its node, as the leader of the ranks there, or through their leader. */
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torus/group.h>

#include "client/torch/operation.h"

namespace torus_torch
{

/* Throws the error of a function of libtorus. */
[[noreturn]] void fail(const torus_error &error);

/* Returns an error of this code. */
torus_error error_of(torus_error_code code, const std::string &text);

/* Where the ranks of a group are. Ranks have the order of their nodes, so the ranks of a node follow one another. */
class Ranks
{
  public:
    /* nodes[r] is the node of rank r. */
    Ranks(const std::vector<uint32_t> &nodes, uint32_t mine);

    bool has_several() const /* on some node */
    {
        return nodes.size() < size;
    }

    uint32_t member_of(uint32_t rank) const; /* the index of its node in `nodes` */
    uint32_t count(uint32_t member) const;
    uint32_t local_of(uint32_t rank) const; /* its number on its node */

    uint32_t size, mine;
    uint32_t member; /* of `mine` */
    std::vector<uint32_t> nodes;
    std::vector<uint32_t> first; /* the first rank of each node, and `size` */
};

/* What a group needs to be opened. */
struct Place {
    std::string name;
    Ranks ranks;
    bool everywhere; /* on all nodes of the torus */
    c10::intrusive_ptr<c10d::Store> store;
    std::chrono::milliseconds timeout;
};

/* One thread uses it. */
class Calls
{
  public:
    virtual ~Calls() = default;

    /* Starts a call, of which `data` describes the data. Returns a handle for test(). Throws. */
    virtual void *start(const Operation &operation, const std::string &data,
                        uint32_t timeout_ms) = 0;

    /* Returns 0 if the call is still under way, 1 if it has succeeded, or -1 with *error. After 1 and -1 the handle is
     * invalid. */
    virtual int test(void *handle, torus_error *error) = 0;

    /* How many calls of a kind may be under way. */
    virtual size_t most(Kind kind) const = 0;

    /* Waits until `fd` is readable, or there is something to do for calls under way; if `idle`, there are none of this
     * rank. */
    virtual void wait(int fd, bool idle) = 0;

    /* Does what there is to do for other ranks of the node. */
    virtual void step()
    {
    }

    /* This rank makes no more calls, and those under way are given up. */
    virtual void leave()
    {
    }

    /* Whether other ranks of the node still use it. */
    virtual bool is_needed() const
    {
        return false;
    }
};

/* Throws. */
std::unique_ptr<Calls> open_calls(const Place &place);

/* A timeout for libtorus. */
uint32_t milliseconds(std::chrono::milliseconds timeout);

/* How long a group waits for memory of the daemons. torch's timeout is for calls, 30 minutes by default. Memory that a program
 * lacks comes back only when a group is closed, such as that of a program that is about to end. */
constexpr uint32_t memory_timeout_ms = 10000;

/* Opens the group of libtorus on the nodes of these ranks. Throws. */
torus_group *open_group(const Place &place);

/* How many calls of each kind a group of libtorus makes at a time. It has 64 at most, and calls of one kind must not take
 * the place of those that they wait for. */
constexpr size_t most_calls[size_t(Kind::count)] = {16, 24, 24};

} // namespace torus_torch
