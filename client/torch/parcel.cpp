#include <algorithm>
#include <cstring>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <c10/util/Exception.h>

#include "client/torch/parcel.h"

namespace torus_torch
{

/* What a rank gives and gets, in bytes, and for each rank if these differ. */
struct Sizes {
    size_t in = 0, out = 0;
    std::vector<size_t> given, taken;
};

static size_t sum(const std::vector<size_t> &numbers)
{
    size_t all = 0;

    for (size_t number : numbers)
        all += number;
    return all;
}

static Sizes sizes_of(const Operation &o, const Ranks &ranks)
{
    const size_t element = torus_type_size(o.type), n = ranks.size;
    const bool is_root = o.peer == ranks.mine;
    Sizes s;

    switch (o.code) {
    case Code::broadcast:
        (is_root ? s.in : s.out) = o.size;
        break;
    case Code::allreduce:
        s.in = s.out = o.size * element;
        break;
    case Code::reduce:
        s.in = o.size * element;
        s.out = is_root ? s.in : 0;
        break;
    case Code::reduce_scatter:
        for (size_t rank = 0; rank < n; rank++)
            s.given.push_back(o.counts[rank] * element);
        s.in = sum(s.given);
        s.out = s.given[ranks.mine];
        break;
    case Code::allgather:
    case Code::allgatherv:
        for (size_t rank = 0; rank < n; rank++)
            s.taken.push_back(o.code == Code::allgather ? o.size : o.received.bytes[rank]);
        s.in = s.taken[ranks.mine];
        s.out = sum(s.taken);
        break;
    case Code::gather:
        s.in = o.size;
        s.out = is_root ? o.size * n : 0;
        break;
    case Code::scatter:
        s.in = is_root ? o.size * n : 0;
        s.out = o.size;
        break;
    case Code::alltoall:
        s.given = s.taken = std::vector<size_t>(n, o.size);
        s.in = s.out = o.size * n;
        break;
    case Code::alltoallv:
        s.given.assign(o.sent.bytes, o.sent.bytes + n);
        s.taken.assign(o.received.bytes, o.received.bytes + n);
        s.in = sum(s.given);
        s.out = sum(s.taken);
        break;
    case Code::send:
        s.in = o.size;
        break;
    case Code::receive:
        s.out = o.size;
        break;
    default:
        break;
    }
    return s;
}

/* Where data begins: torch's arithmetic requires that elements are aligned. */
static size_t start_of_data(size_t ranks)
{
    constexpr size_t alignment = 64;
    const size_t end = sizeof(Parcel::Header) + 2 * ranks * sizeof(size_t);

    return (end + alignment - 1) / alignment * alignment;
}

Parcel::Parcel(const Operation &o, const std::string &data, uint32_t timeout_ms, const Ranks &ranks)
    : ranks_(ranks.size)
{
    const Sizes sizes = sizes_of(o, ranks);
    const void *from = o.send != nullptr && o.send != TORUS_IN_PLACE ? o.send : o.receive;
    Header header = {o.code, o.peer, timeout_ms, o.type,    o.op,
                     o.size, o.tag,  sizes.in,   sizes.out, {}};

    TORCH_CHECK(o.code != Code::receive_any,
                "torus: several ranks are on a node: recv needs the rank that sends (src)");
    TORCH_CHECK(kind_of(o.code) == Kind::collective || o.peer != ranks.mine,
                "torus: a rank cannot send itself a message");
    data.copy(header.data, sizeof header.data - 1);
    fd_ = memfd_create("torus-call", MFD_CLOEXEC);
    TORCH_CHECK(fd_ >= 0, "torus: no more descriptors");
    const size_t bytes = start_of_data(ranks_) + sizes.in + sizes.out;
    if (ftruncate(fd_, static_cast<off_t>(bytes)) != 0) {
        close(fd_);
        TORCH_CHECK(false, "torus: no memory for ", bytes, " bytes");
    }
    map(bytes);
    memcpy(memory_, &header, sizeof header);
    std::copy(sizes.given.begin(), sizes.given.end(), given());
    std::copy(sizes.taken.begin(), sizes.taken.end(), taken());
    uint8_t *to = in();
    if (o.code == Code::alltoallv) {
        for (size_t rank = 0; rank < ranks_; to += sizes.given[rank++])
            if (sizes.given[rank] > 0)
                memcpy(to, static_cast<const uint8_t *>(o.send) + o.sent.offset[rank],
                       sizes.given[rank]);
    } else if (sizes.in > 0) {
        memcpy(to, from, sizes.in);
    }
}

Parcel::Parcel(int fd, uint32_t ranks) : ranks_(ranks), fd_(fd)
{
    struct stat about = {};

    (void)fstat(fd, &about);
    map(static_cast<size_t>(about.st_size));
    const size_t head = start_of_data(ranks_);
    if (bytes_ >= head && bytes_ - head == header().in_bytes + header().out_bytes)
        return;
    (void)munmap(memory_, bytes_);
    close(fd_);
    TORCH_CHECK(false, "torus: a rank of this node has another release");
}

void Parcel::map(size_t bytes)
{
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    bytes_ = bytes;
    if (memory_ == MAP_FAILED) {
        close(fd_);
        TORCH_CHECK(false, "torus: no memory for ", bytes, " bytes");
    }
}

Parcel::~Parcel()
{
    (void)munmap(memory_, bytes_);
    close(fd_);
}

size_t *Parcel::given() const
{
    return reinterpret_cast<size_t *>(static_cast<Header *>(memory_) + 1);
}

size_t *Parcel::taken() const
{
    return given() + ranks_;
}

uint8_t *Parcel::in() const
{
    return static_cast<uint8_t *>(memory_) + start_of_data(ranks_);
}

uint8_t *Parcel::out() const
{
    return in() + header().in_bytes;
}

void Parcel::unpack(const Operation &o) const
{
    auto *const to = static_cast<uint8_t *>(o.receive);
    const uint8_t *from = out();

    if (o.code != Code::allgatherv && o.code != Code::alltoallv) {
        if (header().out_bytes > 0)
            memcpy(to, from, header().out_bytes);
        return;
    }
    for (size_t rank = 0; rank < ranks_; from += taken()[rank++])
        if (taken()[rank] > 0)
            memcpy(to + o.received.offset[rank], from, taken()[rank]);
}

} // namespace torus_torch
