// The header of libtorus in a C++ program, and that program linked with the library.
#include <torus/torus.h>

#include <cstdio>
#include <cstring>

static int failures;

static void check(bool holds, const char *what)
{
    if (!holds) {
        std::fprintf(stderr, "not so: %s\n", what);
        failures++;
    }
}
#define CHECK(condition) check(condition, #condition)

static void done(void *data, const torus_error *error)
{
    *static_cast<torus_error_code *>(data) = error != nullptr ? error->code : TORUS_ERROR_NONE;
}

int main()
{
    torus_request request;
    torus_costs costs;
    torus_error error;
    int (*const start)(torus_client *, torus_status **, torus_done_fn *, void *, torus_error *) =
        torus_client_start_status;
    torus_done_fn *const callback = done;

    torus_request_init(&request);
    torus_costs_init(&costs);
    CHECK(request.struct_size == sizeof request);
    CHECK(request.mode == TORUS_MODE_ANY);
    CHECK(costs.struct_size == sizeof costs);
    CHECK(start != nullptr && callback != nullptr);
    CHECK(std::strcmp(torus_operation_name(TORUS_BROADCAST), "broadcast") == 0);
    CHECK(torus_client_open("/nonexistent/control.sock", &error) == nullptr);
    CHECK(error.code == TORUS_ERROR_NO_DAEMON);
    return failures != 0;
}
