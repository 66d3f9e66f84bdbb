/* Metrics of the process, by the names that monitoring expects of any program, and of the requests for metrics. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/torusd/metrics/metrics.h"

#define NANOSECOND 1e-9

static const struct metric started = {"process_start_time_seconds", "seconds", METRIC_GAUGE,
                                      "When the daemon has started, in seconds since 1970"};
static const struct metric processor = {
    "process_cpu_seconds", "seconds", METRIC_COUNTER,
    "Processor time of all threads of the daemon, of user and system"};
static const struct metric resident = {"process_resident_memory_bytes", "bytes", METRIC_GAUGE,
                                       "Memory of the daemon that is in RAM"};
static const struct metric descriptors = {"process_max_fds", "", METRIC_GAUGE,
                                          "How many files and connections the daemon may open"};
static const struct metric loop_used = {"torus_loop_cpu_seconds", "seconds", METRIC_COUNTER,
                                        "Processor time of the thread that moves all data"};
static const struct metric loop_delayed = {
    "torus_loop_delayed_seconds", "seconds", METRIC_COUNTER,
    "Time for which that thread could have run, and no processor was free"};
static const struct metric scrapes = {"torus_metrics_requests", "", METRIC_COUNTER,
                                      "Requests for these metrics"};
static const struct metric dropped = {
    "torus_metrics_dropped_connections", "", METRIC_COUNTER,
    "Connections of monitoring that were closed because they took too long, or were too many"};

static double seconds_of(const struct timeval *t)
{
    return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

/* Returns -1 if that is not known. */
static double resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long long size, pages;
    const bool known = file != NULL && fscanf(file, "%llu %llu", &size, &pages) == 2;

    if (file != NULL)
        (void)fclose(file);
    return known ? (double)pages * (double)sysconf(_SC_PAGESIZE) : -1;
}

static void write_loop(struct exposition *x, const struct metrics_view *v)
{
    uint64_t used, delayed;

    v->processor(v->processor_context, &used, &delayed);
    exposition_single(x, &loop_used, (double)used * NANOSECOND);
    exposition_single(x, &loop_delayed, (double)delayed * NANOSECOND);
}

void metrics_of_process(struct exposition *x, struct metrics_view *v)
{
    const double bytes = resident_bytes();
    struct rusage usage;
    struct rlimit limit;

    exposition_single(x, &started, v->started);
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        exposition_single(x, &processor, seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime));
    if (bytes >= 0)
        exposition_single(x, &resident, bytes);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        exposition_single(x, &descriptors, (double)limit.rlim_cur);
    write_loop(x, v);
    exposition_single(x, &scrapes, (double)v->scrapes);
    exposition_single(x, &dropped, (double)v->dropped);
}
