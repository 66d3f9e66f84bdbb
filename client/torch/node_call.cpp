#include "client/torch/node_call.h"

#include <cstring>
#include <numeric>

#include "client/torch/tensors.h"

namespace torus_torch
{

NodeCall::NodeCall(const Ranks &ranks, std::vector<const Parcel *> parcels)
    : ranks_(ranks), parcels_(std::move(parcels)), header_(parcels_[0]->header()),
      has_root_(ranks.member_of(header_.peer) == ranks.member)
{
}

const Parcel &NodeCall::root() const
{
    return *parcels_[ranks_.local_of(header_.peer)];
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static std::string text_of(const Parcel::Header &h)
{
    return c10::str(name_of(h.code), " of size ", h.size, ", root ", h.peer, ", operator ", h.op,
                    ", data ", h.data[0] != 0 ? h.data : "none");
}

std::string NodeCall::difference() const
{
    const size_t arrays = 2 * size_t(ranks_.size) * sizeof(size_t);
    const bool same_arrays = header_.code == Code::reduce_scatter ||
                             header_.code == Code::allgather || header_.code == Code::allgatherv;

    const std::string one = text_of(header_);
    const uint32_t first = ranks_.first[ranks_.member];

    for (size_t i = 1; i < parcels_.size(); i++) {
        const std::string other = text_of(parcels_[i]->header());
        if (one != other)
            return c10::str("rank ", first, " calls ", one, ", but rank ", first + i, " calls ",
                            other);
        if (same_arrays && memcmp(parcels_[0]->given(), parcels_[i]->given(), arrays) != 0)
            return c10::str("ranks ", first, " and ", first + i, " name different sizes in ", one);
    }
    return "";
}

/* ---- Before the call ------------------------------------------------------------------------- */

static size_t sum(const std::vector<size_t> &numbers)
{
    return std::accumulate(numbers.begin(), numbers.end(), size_t(0));
}

static std::vector<size_t> offsets(const std::vector<size_t> &bytes)
{
    std::vector<size_t> result;
    size_t at = 0;

    for (size_t one : bytes) {
        result.push_back(at);
        at += one;
    }
    return result;
}

/* Combines the vectors of all ranks in the memory of the first. */
void NodeCall::combine()
{
    for (size_t i = 1; i < parcels_.size(); i++)
        torus_torch::combine(header_.type, header_.op, parcels_[0]->in(), parcels_[i]->in(),
                             header_.in_bytes);
}

/* The average is that of all ranks, and libtorus knows only how many nodes there are. */
void NodeCall::divide(void *vector, size_t bytes) const
{
    if (header_.op == TORUS_AVG)
        torus_torch::divide(header_.type, vector, bytes, ranks_.size);
}

void NodeCall::prepare_vectors()
{
    const size_t element = torus_type_size(header_.type);
    uint8_t *const vector = parcels_[0]->in();

    combine();
    if (header_.op == TORUS_AVG)
        operation_.op = TORUS_SUM;
    operation_.send = TORUS_IN_PLACE;
    operation_.receive = vector;
    if (header_.code == Code::reduce && !has_root_) {
        operation_.send = vector;
        operation_.receive = nullptr;
    } else if (header_.code == Code::reduce_scatter) {
        for (size_t m = 0; m < ranks_.nodes.size(); m++)
            bytes_[0].push_back(std::accumulate(parcels_[0]->given() + ranks_.first[m],
                                                parcels_[0]->given() + ranks_.first[m + 1],
                                                size_t(0)) /
                                element);
        room_[1].resize(bytes_[0][ranks_.member] * element);
        operation_.send = vector;
        operation_.receive = room_[1].data();
        operation_.counts = bytes_[0].data();
    }
}

/* Blocks of ranks one after another are the block of a node. */
void NodeCall::prepare_blocks()
{
    const bool gathers = header_.code != Code::scatter;
    size_t at = 0, here = 0;

    for (size_t m = 0; m < ranks_.nodes.size(); m++)
        bytes_[1].push_back(header_.code == Code::allgather || header_.code == Code::allgatherv
                                ? std::accumulate(parcels_[0]->taken() + ranks_.first[m],
                                                  parcels_[0]->taken() + ranks_.first[m + 1],
                                                  size_t(0))
                                : header_.size * ranks_.count(uint32_t(m)));
    offset_[1] = offsets(bytes_[1]);
    here = bytes_[1][ranks_.member];
    room_[gathers ? 0 : 1].resize(here);
    operation_.size = here;
    operation_.received = {bytes_[1].data(), offset_[1].data()};
    operation_.sent = operation_.received;
    for (size_t i = 0; gathers && i < parcels_.size(); at += parcels_[i++]->header().in_bytes)
        memcpy(room_[0].data() + at, parcels_[i]->in(), parcels_[i]->header().in_bytes);
    if (header_.code == Code::scatter) {
        operation_.code = Code::scatterv;
        operation_.send = has_root_ ? root().in() : nullptr;
        operation_.receive = room_[1].data();
        return;
    }
    operation_.send = room_[0].data();
    if (header_.code == Code::gather) {
        operation_.code = Code::gatherv;
        operation_.receive = has_root_ ? root().out() : nullptr;
    } else {
        operation_.code = Code::allgatherv;
        operation_.receive = parcels_[0]->out();
    }
}

/* The block from one node to another has all data of the first rank of that node, then of its next, and so on, each in the
 * order of the ranks of the other node. */
void NodeCall::prepare_exchange()
{
    std::vector<size_t> at(parcels_.size());

    for (size_t m = 0; m < ranks_.nodes.size(); m++) {
        size_t given = 0, taken = 0;
        for (const Parcel *parcel : parcels_)
            for (size_t rank = ranks_.first[m]; rank < ranks_.first[m + 1]; rank++) {
                given += parcel->given()[rank];
                taken += parcel->taken()[rank];
            }
        bytes_[0].push_back(given);
        bytes_[1].push_back(taken);
    }
    for (int side = 0; side < 2; side++) {
        offset_[side] = offsets(bytes_[side]);
        room_[side].resize(sum(bytes_[side]));
    }
    uint8_t *to = room_[0].data();
    for (size_t m = 0; m < ranks_.nodes.size(); m++)
        for (size_t i = 0; i < parcels_.size(); i++) {
            const size_t *given = parcels_[i]->given();
            const size_t bytes =
                std::accumulate(given + ranks_.first[m], given + ranks_.first[m + 1], size_t(0));
            memcpy(to, parcels_[i]->in() + at[i], bytes);
            to += bytes;
            at[i] += bytes;
        }
    operation_.code = Code::alltoallv;
    operation_.send = room_[0].data();
    operation_.receive = room_[1].data();
    operation_.sent = {bytes_[0].data(), offset_[0].data()};
    operation_.received = {bytes_[1].data(), offset_[1].data()};
}

int NodeCall::start(torus_group *group, torus_call **call, torus_error *error)
{
    operation_.code = header_.code;
    operation_.size = header_.size;
    operation_.peer = ranks_.member_of(header_.peer);
    operation_.type = header_.type;
    operation_.op = header_.op;
    switch (header_.code) {
    case Code::broadcast:
        operation_.receive = has_root_ ? root().in() : parcels_[0]->out();
        break;
    case Code::allreduce:
    case Code::reduce:
    case Code::reduce_scatter:
        prepare_vectors();
        break;
    case Code::alltoall:
    case Code::alltoallv:
        prepare_exchange();
        break;
    case Code::barrier:
        break;
    default:
        prepare_blocks();
    }
    return operation_.start(group, call, error);
}

/* ---- After the call -------------------------------------------------------------------------- */

void NodeCall::copy_to_all(const void *from)
{
    for (const Parcel *parcel : parcels_)
        if (parcel->out() != from && parcel->header().out_bytes > 0)
            memcpy(parcel->out(), from, parcel->header().out_bytes);
}

void NodeCall::distribute_exchange()
{
    std::vector<size_t> at(parcels_.size());
    const uint8_t *from = room_[1].data();

    for (size_t rank = 0; rank < ranks_.size; rank++)
        for (size_t i = 0; i < parcels_.size(); i++) {
            const size_t bytes = parcels_[i]->taken()[rank];
            memcpy(parcels_[i]->out() + at[i], from, bytes);
            at[i] += bytes;
            from += bytes;
        }
}

void NodeCall::finish()
{
    const uint8_t *from = room_[1].data();

    switch (header_.code) {
    case Code::alltoall:
    case Code::alltoallv:
        distribute_exchange();
        break;
    case Code::reduce_scatter:
        divide(room_[1].data(), room_[1].size());
        [[fallthrough]];
    case Code::scatter:
        for (const Parcel *parcel : parcels_) {
            memcpy(parcel->out(), from, parcel->header().out_bytes);
            from += parcel->header().out_bytes;
        }
        break;
    case Code::reduce:
        if (!has_root_)
            break;
        [[fallthrough]];
    case Code::allreduce:
        divide(operation_.receive, header_.in_bytes);
        [[fallthrough]];
    case Code::broadcast:
    case Code::allgather:
    case Code::allgatherv:
        copy_to_all(operation_.receive);
        break;
    default: /* a gather is where it belongs */
        break;
    }
}

} // namespace torus_torch
