/* The memory of tensors, as libtorus takes it. */
#pragma once

#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torus/group.h>

namespace torus_torch
{

/* Throws unless the tensor is one that the backend can send and receive. */
void check(const at::Tensor &tensor);
void check(const std::vector<at::Tensor> &tensors); /* also that they have the same type */

/* How libtorus combines elements of a type. */
struct Combination {
    torus_type type;
    torus_operator op;
    bool average; /* divide the sum of integers by the members */

    /* Throws if libtorus cannot do it. */
    Combination(at::ScalarType elements, const c10d::ReduceOp &op);
};

/* Combines vectors as libtorus does, in `into`. An average is a sum here: see divide(). */
void combine(torus_type type, torus_operator op, void *into, const void *from, size_t bytes);

/* Divides the elements of a vector. */
void divide(torus_type type, void *vector, size_t bytes, uint32_t by);

/* Returns the elements of a tensor in one piece: in its own memory if possible, else in new memory. */
at::Tensor packed(const at::Tensor &tensor);

/* Returns memory for the elements of a tensor, in one piece: its own if possible. */
at::Tensor room(const at::Tensor &tensor);

/* Returns the elements of all tensors one after another, in new memory. */
at::Tensor joined(const std::vector<at::Tensor> &tensors);

/* Copies the elements of `from`, one after another, to the tensors. */
void split(const at::Tensor &from, const std::vector<at::Tensor> &tensors);

/* One block for each member, each in memory of its own. */
class Blocks
{
  public:
    /* With the elements of the tensors, or with room for them. */
    Blocks(const std::vector<at::Tensor> &tensors, bool filled);

    void give_back() const; /* copies the elements to tensors that are not in one piece */

    /* A block's offset is from `base`. */
    uint8_t *base = nullptr;
    std::vector<size_t> bytes, offset;

  private:
    std::vector<at::Tensor> tensors_, memory_;
};

} // namespace torus_torch
