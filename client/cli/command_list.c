#include "client/cli/command_list.h"

#include <stddef.h>

extern const struct command command_status, command_links, command_algorithms, command_exchange,
    command_plan, command_predict, command_bounds, command_help, command_allgather,
    command_broadcast, command_barrier, command_calibrate, command_bench, command_simulate,
    command_perf, command_key, command_ip_routes, command_init, command_mpi_env, command_discover,
    command_doctor, command_support_bundle, command_routes, command_trace, command_report,
    command_copy, command_gather, command_scatter, command_top, command_serve;

/* clang-format off: one line a command */
const struct command *const commands[] = {
    &command_copy,
    &command_gather,
    &command_scatter,
    &command_exchange,
    &command_allgather,
    &command_broadcast,
    &command_barrier,
    &command_bench,
    &command_perf,
    &command_calibrate,
    &command_status,
    &command_links,
    &command_top,
    &command_serve,
    &command_doctor,
    &command_support_bundle,
    &command_trace,
    &command_report,
    &command_algorithms,
    &command_plan,
    &command_predict,
    &command_bounds,
    &command_simulate,
    &command_discover,
    &command_init,
    &command_routes,
    &command_ip_routes,
    &command_mpi_env,
    &command_key,
    &command_help,
    NULL, /* one line a command */
};
/* clang-format on */
