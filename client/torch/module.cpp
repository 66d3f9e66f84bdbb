/* The extension module torch_torus._backend. */
#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>
#include <torus/torus.h>

#include "client/torch/process_group.h"

namespace torus_torch
{

using Pointer = c10::intrusive_ptr<c10d::ProcessGroup>;

/* Returns which node this is, and the dimensions of the torus. */
static std::pair<uint32_t, std::string> place()
{
    torus_error error;
    torus_status *status;
    torus_client *client = torus_client_open(nullptr, &error);

    if (client == nullptr)
        fail(error);
    const int result = torus_client_status(client, &status, &error);
    torus_client_close(client);
    if (result != 0)
        fail(error);
    std::pair<uint32_t, std::string> found(status->rank, status->dims);
    torus_status_free(status);
    return found;
}

using Store = c10::intrusive_ptr<c10d::Store>;

/* nodes[r] is the node of rank r. `everywhere`: these are all nodes of the torus. */
static Pointer open(const Store &store, const std::string &name, const std::vector<uint32_t> &nodes,
                    bool everywhere, int rank, std::chrono::milliseconds timeout)
{
    const Ranks ranks(nodes, static_cast<uint32_t>(rank));
    auto session = Session::open({name, ranks, everywhere, store, timeout});

    return c10::make_intrusive<ProcessGroup>(session, store, rank, static_cast<int>(nodes.size()),
                                             "", timeout);
}

static Pointer of_nodes(const Pointer &world, const Store &store,
                        const std::vector<uint32_t> &nodes, int rank, const std::string &name,
                        std::chrono::milliseconds timeout)
{
    auto *group = dynamic_cast<ProcessGroup *>(world.get());

    TORCH_CHECK(group != nullptr, "torus: the default group has another backend");
    return group->of_nodes(store, nodes, rank, name, timeout);
}

PYBIND11_MODULE(_backend, m)
{
    py::call_guard<py::gil_scoped_release> released;

    m.attr("memory_seconds") = memory_timeout_ms / 1000.0;
    m.def("place", &place, released);
    m.def("open", &open, released);
    m.def("of_nodes", &of_nodes, released);
    m.def("end_all", &Session::end_all, py::arg("waits"), released);
}

} // namespace torus_torch
