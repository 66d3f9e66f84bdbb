/* Several ranks on a node: the first one leads, and makes the calls of libtorus for all of them. The others, its guests,
 * send it their calls as parcels. */
#pragma once

#include <memory>
#include <string>

#include "client/torch/calls.h"
#include "client/torch/operation.h"

namespace torus_torch
{

/* A call of one rank, with its data, in memory that can be passed on to the leader. */
class Parcel
{
  public:
    struct Header {
        Code code;
        uint32_t peer, timeout_ms;
        torus_type type;
        torus_operator op;
        uint64_t size, tag;
        uint64_t in_bytes, out_bytes; /* what the rank gives, and gets */
        char data[64];
    };

    /* Copies what the rank gives. Throws. */
    Parcel(const Operation &operation, const std::string &data, uint32_t timeout_ms,
           const Ranks &ranks);

    /* Takes over the descriptor of another rank's parcel. Throws. */
    Parcel(int fd, uint32_t ranks);

    ~Parcel();
    Parcel(const Parcel &) = delete;
    Parcel &operator=(const Parcel &) = delete;

    /* Copies what the rank gets to the memory of its operation. */
    void unpack(const Operation &operation) const;

    const Header &header() const
    {
        return *static_cast<Header *>(memory_);
    }

    /* The bytes that each rank gets of what this one gives, and that this one gets of each, if these differ in the
     * operation. */
    size_t *given() const;
    size_t *taken() const;

    uint8_t *in() const;
    uint8_t *out() const;

    int fd() const
    {
        return fd_;
    }

  private:
    void map(size_t bytes);

    void *memory_ = nullptr;
    size_t bytes_ = 0;
    const size_t ranks_;
    int fd_ = -1;
};

/* What the leader answers. */
struct Answer {
    uint64_t number; /* of the request */
    int32_t state;   /* as of Calls::test() */
    torus_error error;
};

} // namespace torus_torch
