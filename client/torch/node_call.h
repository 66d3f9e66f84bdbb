/* A collective call of all ranks of a node, as one call of libtorus. */
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/torch/parcel.h"

namespace torus_torch
{

class NodeCall
{
  public:
    /* The parcels of all ranks of this node, in their order. */
    NodeCall(const Ranks &ranks, std::vector<const Parcel *> parcels);

    /* Returns how the calls of two ranks differ, or "". */
    std::string difference() const;

    /* Combines or joins what the ranks give, and starts the call. Returns 0, or -1 with *error. */
    int start(torus_group *group, torus_call **call, torus_error *error);

    /* After success: gives the ranks what they get. */
    void finish();

  private:
    const Parcel &root() const; /* if the root is on this node */
    void prepare_vectors();
    void prepare_blocks();
    void prepare_exchange();
    void combine();
    void divide(void *vector, size_t bytes) const;
    void copy_to_all(const void *from);
    void distribute_exchange();

    const Ranks &ranks_;
    const std::vector<const Parcel *> parcels_;
    const Parcel::Header &header_; /* of the first */
    const bool has_root_;
    Operation operation_;
    std::vector<size_t> bytes_[2], offset_[2]; /* of each node's blocks: given and taken */
    std::vector<uint8_t> room_[2];
};

} // namespace torus_torch
