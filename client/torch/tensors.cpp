#include "client/torch/tensors.h"

#include <algorithm>

namespace torus_torch
{

void check(const at::Tensor &tensor)
{
    TORCH_CHECK(tensor.defined(), "torus: a tensor is not defined");
    TORCH_CHECK(tensor.device().is_cpu(), "torus: only tensors of the CPU are supported, not of ",
                tensor.device());
    TORCH_CHECK(tensor.layout() == at::kStrided, "torus: sparse tensors are not supported");
    TORCH_CHECK(!tensor.is_quantized(), "torus: quantized tensors are not supported");
}

void check(const std::vector<at::Tensor> &tensors)
{
    for (const at::Tensor &tensor : tensors) {
        check(tensor);
        TORCH_CHECK(tensor.scalar_type() == tensors[0].scalar_type(),
                    "torus: the tensors have different types: ", tensors[0].scalar_type(), " and ",
                    tensor.scalar_type());
    }
}

static torus_operator operator_of(const c10d::ReduceOp &op, at::ScalarType elements)
{
    switch (op.op_) {
    case c10d::ReduceOp::SUM:
        return TORUS_SUM;
    case c10d::ReduceOp::AVG:
        return at::isIntegralType(elements, true) ? TORUS_SUM : TORUS_AVG;
    case c10d::ReduceOp::PRODUCT:
        return TORUS_PRODUCT;
    case c10d::ReduceOp::MIN:
        return TORUS_MIN;
    case c10d::ReduceOp::MAX:
        return TORUS_MAX;
    case c10d::ReduceOp::BAND:
        return TORUS_AND;
    case c10d::ReduceOp::BOR:
        return TORUS_OR;
    case c10d::ReduceOp::BXOR:
        return TORUS_XOR;
    default:
        TORCH_CHECK(false, "torus: this reduce operator is not supported");
    }
}

/* The types of torch that libtorus combines. */
static constexpr struct {
    at::ScalarType ours;
    torus_type theirs;
} types[] = {
    {at::kByte, TORUS_UINT8},
    {at::kChar, TORUS_INT8},
    {at::kShort, TORUS_INT16},
    {at::kInt, TORUS_INT32},
    {at::kLong, TORUS_INT64},
    {at::kHalf, TORUS_FLOAT16},
    {at::kBFloat16, TORUS_BFLOAT16},
    {at::kFloat, TORUS_FLOAT32},
    {at::kDouble, TORUS_FLOAT64},
    {at::kComplexFloat, TORUS_COMPLEX64},
    {at::kComplexDouble, TORUS_COMPLEX128},
    {at::kBool, TORUS_BOOL},
};

static torus_type type_of(at::ScalarType type)
{
    for (const auto &one : types)
        if (one.ours == type)
            return one.theirs;
    TORCH_CHECK(false, "torus: elements of type ", type, " cannot be combined");
}

/* Returns a tensor with this memory. */
static at::Tensor tensor_of(torus_type type, void *vector, size_t bytes)
{
    for (const auto &one : types)
        if (one.theirs == type)
            return at::from_blob(vector, {static_cast<int64_t>(bytes / torus_type_size(type))},
                                 at::TensorOptions(one.ours));
    TORCH_CHECK(false, "torus: elements have an unknown type");
}

void combine(torus_type type, torus_operator op, void *into, const void *from, size_t bytes)
{
    at::Tensor sum = tensor_of(type, into, bytes);
    const at::Tensor other = tensor_of(type, const_cast<void *>(from), bytes);
    const bool logical = type == TORUS_BOOL;

    switch (op) {
    case TORUS_SUM:
    case TORUS_AVG:
        logical ? sum.logical_or_(other) : sum.add_(other);
        break;
    case TORUS_PRODUCT:
        logical ? sum.logical_and_(other) : sum.mul_(other);
        break;
    case TORUS_MIN:
        at::minimum_out(sum, sum, other);
        break;
    case TORUS_MAX:
        at::maximum_out(sum, sum, other);
        break;
    case TORUS_AND:
        sum.bitwise_and_(other);
        break;
    case TORUS_OR:
        sum.bitwise_or_(other);
        break;
    case TORUS_XOR:
        sum.bitwise_xor_(other);
        break;
    }
}

void divide(torus_type type, void *vector, size_t bytes, uint32_t by)
{
    tensor_of(type, vector, bytes).div_(static_cast<int64_t>(by));
}

Combination::Combination(at::ScalarType elements, const c10d::ReduceOp &reduce_op)
    : op(operator_of(reduce_op, elements)),
      average(reduce_op.op_ == c10d::ReduceOp::AVG && op == TORUS_SUM)
{
    const bool bitwise = op == TORUS_AND || op == TORUS_OR || op == TORUS_XOR;
    const bool ordered = op == TORUS_MIN || op == TORUS_MAX;

    TORCH_CHECK(!bitwise || at::isIntegralType(elements, true), "torus: elements of type ",
                elements, " have no bitwise operators");
    TORCH_CHECK(!ordered || !at::isComplexType(elements),
                "torus: complex numbers have no minimum or maximum");
    TORCH_CHECK(!average || elements != at::kBool, "torus: booleans have no average");
    type = type_of(elements);
}

/* Whether the memory of the tensor has its elements in one piece, as they are. */
static bool is_plain(const at::Tensor &tensor)
{
    return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

at::Tensor packed(const at::Tensor &tensor)
{
    at::Tensor memory = room(tensor);

    if (!memory.is_same(tensor))
        memory.copy_(tensor);
    return memory;
}

at::Tensor room(const at::Tensor &tensor)
{
    return is_plain(tensor)
               ? tensor
               : at::empty(tensor.sizes(),
                           tensor.options().memory_format(at::MemoryFormat::Contiguous));
}

at::Tensor joined(const std::vector<at::Tensor> &tensors)
{
    int64_t count = 0, at = 0;
    for (const at::Tensor &tensor : tensors)
        count += tensor.numel();
    at::Tensor memory = at::empty({count}, tensors[0].options());
    for (const at::Tensor &tensor : tensors) {
        memory.narrow(0, at, tensor.numel()).view(tensor.sizes()).copy_(tensor);
        at += tensor.numel();
    }
    return memory;
}

void split(const at::Tensor &from, const std::vector<at::Tensor> &tensors)
{
    int64_t at = 0;

    for (const at::Tensor &tensor : tensors) {
        tensor.copy_(from.narrow(0, at, tensor.numel()).view(tensor.sizes()));
        at += tensor.numel();
    }
}

Blocks::Blocks(const std::vector<at::Tensor> &tensors, bool filled) : tensors_(tensors)
{
    std::vector<uint8_t *> places;

    for (const at::Tensor &tensor : tensors) {
        memory_.push_back(filled ? packed(tensor) : room(tensor));
        bytes.push_back(memory_.back().nbytes());
        places.push_back(static_cast<uint8_t *>(memory_.back().data_ptr()));
        if (bytes.back() > 0 && (base == nullptr || places.back() < base))
            base = places.back();
    }
    for (size_t i = 0; i < places.size(); i++)
        offset.push_back(bytes[i] > 0 ? static_cast<size_t>(places[i] - base) : 0);
}

void Blocks::give_back() const
{
    for (size_t i = 0; i < tensors_.size(); i++)
        if (!memory_[i].is_same(tensors_[i]))
            tensors_[i].copy_(memory_[i]);
}

} // namespace torus_torch
