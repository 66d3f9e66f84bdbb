#include "client/cli/command_list.h"

#include <stddef.h>

extern const struct command command_status, command_links, command_algorithms, command_exchange,
    command_plan, command_predict, command_bounds, command_help, command_allgather,
    command_broadcast, command_barrier, command_calibrate, command_bench, command_simulate,
    command_perf, command_key, command_ip_routes, command_init, command_mpi_env, command_discover,
    command_doctor, command_support_bundle, command_routes, command_trace, command_report,
    command_copy, command_gather, command_scatter, command_top, command_serve;

static const struct command *const files[] = {&command_copy, &command_gather, &command_scatter,
                                              NULL};
static const struct command *const collective_operations[] = {
    &command_exchange, &command_allgather, &command_broadcast, &command_barrier, NULL};
static const struct command *const what_the_torus_does[] = {&command_status, &command_links,
                                                            &command_top, &command_serve, NULL};
static const struct command *const what_is_wrong[] = {&command_doctor, &command_support_bundle,
                                                      &command_trace, &command_report, NULL};
static const struct command *const measuring[] = {&command_bench, &command_perf, &command_calibrate,
                                                  NULL};
static const struct command *const schedules[] = {
    &command_algorithms, &command_plan, &command_predict, &command_bounds, &command_simulate, NULL};
static const struct command *const setting_up[] = {&command_discover, &command_init, &command_key,
                                                   NULL};
static const struct command *const other_programs[] = {&command_routes, &command_ip_routes,
                                                       &command_mpi_env, NULL};
static const struct command *const help[] = {&command_help, NULL};

const struct command_group commands[] = {
    {"files", files},
    {"collective operations", collective_operations},
    {"what the torus does", what_the_torus_does},
    {"what is wrong", what_is_wrong},
    {"measuring", measuring},
    {"schedules, without a daemon", schedules},
    {"setting up", setting_up},
    {"other programs", other_programs},
    {"help", help},
    {0},
};
