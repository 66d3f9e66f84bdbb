/* Planted faults in simulated time, and what 'torusctl report' says about their traces.
 *
 *     test_report            a few cases, each of which must be named first; healthy runs accuse nothing
 *     test_report SEEDS      all faults in all kinds of runs, with that many seeds each; prints the confusion matrix that
 *                            client/doc/seeing.md has: what the first sentence names, by what was planted. It fails
 *                            if a first sentence is wrong, or a link or disk is accused falsely */
#include <unistd.h>

#include "client/cli/reporting/findings.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/sim/copy_fixture.h"
#include "tests/sim/events.h"
#include "tests/sim/programs.h"
#include "tests/sim/trace_save.h"
#include "tests/support/cmocka.h"

#define RATE 6250000u /* bytes a second: 50 Mbit/s */
#define SLOW_DISK (120 * MILLISECONDS)
#define LATE (40 * MILLISECONDS)
#define STOPPED (60 * MILLISECONDS)

enum scene { EXCHANGE, FILES, COPY, GATHER, GROUP, SCENES };
static const char *const scene_names[] = {"exchange", "exchange of files", "copy", "gather",
                                          "group"};

enum fault { NONE, LINK, DIRECTION, DISK, SOURCE, PROGRAM, PROCESSOR, ALGORITHM, FAULTS };
static const char *const fault_names[] = {"nothing", "link",    "direction", "disk",
                                          "source",  "program", "processor", "algorithm"};
static const enum finding_kind kinds[] = {FINDING_NOTHING,   FINDING_LINK,     FINDING_LINK,
                                          FINDING_DISK,      FINDING_SOURCE,   FINDING_PROGRAM,
                                          FINDING_PROCESSOR, FINDING_ALGORITHM};

/* One run: the faults that are planted in it, and where. */
struct run {
    enum scene scene;
    bool fault[FAULTS];
    uint64_t seed;
    const char *dims, *algorithm; /* algorithm: of exchanges */
    struct sim *sim;
    uint32_t node; /* of all faults but the link's */
    uint32_t from; /* the slow link */
    unsigned port;
    bool over; /* no more faults are planted */
    struct sim_programs *programs;
    json_t *about; /* what is known about the run, as in a trace file */
    struct finding found[FINDINGS_MOST];
    unsigned count;
};

static uint32_t nodes_of(const struct run *r)
{
    return sim_torus(r->sim)->nodes;
}

static bool can_have(enum scene scene, enum fault fault)
{
    switch (fault) {
    case DISK:
        return scene == FILES || scene == COPY || scene == GATHER;
    case SOURCE: /* a node of an exchange reads and writes: its slow disk is both */
        return scene == COPY || scene == GATHER;
    case PROGRAM:
        return scene == GROUP;
    case ALGORITHM:
        return scene == EXCHANGE;
    default:
        return true;
    }
}

/* --- planting --- */

static void begin(struct run *r)
{
    r->sim = SIM_WHOLE(.dims = r->dims, .seed = r->seed,
                       .latency = (r->seed % 3 == 2 ? 1000 : 50) * MICROSECONDS, .rate = RATE);
    sim_pass(r->sim, SIM_CLOCKS_KNOWN);
}

/* Node 0 sends the copy, and gathers; its neighbours relay. */
static void choose_places(struct run *r)
{
    r->node = 1 + (uint32_t)(r->seed * 5 % (nodes_of(r) - 1));
    r->from = (uint32_t)(r->seed * 7 % nodes_of(r));
    r->port = (unsigned)(r->seed % 4);
    if (r->scene == COPY)
        r->from = 0;
    if (r->scene == GATHER)
        r->from =
            torus_neighbour(sim_torus(r->sim), 0, torus_port_opposite(sim_torus(r->sim), r->port));
    if ((r->scene == COPY && r->fault[SOURCE]) || (r->scene == GATHER && r->fault[DISK]))
        r->node = 0;
}

/* The program makes no call for a while, again and again. */
static void stop_program(struct sim *sim, void *context);

static void let_program_go_on(struct sim *sim, void *context)
{
    struct run *r = context;

    if (r->over)
        return;
    sim_program_go_on(r->programs, r->node);
    sim_at(sim, sim_now(sim) + MILLISECONDS, stop_program, r);
}

static void stop_program(struct sim *sim, void *context)
{
    struct run *r = context;

    if (r->over)
        return;
    sim_program_stop(r->programs, r->node);
    sim_at(sim, sim_now(sim) + LATE, let_program_go_on, r);
}

static void freeze(struct sim *sim, void *context)
{
    struct run *r = context;

    if (r->over)
        return;
    sim_freeze(sim, r->node, STOPPED);
    sim_at(sim, sim_now(sim) + STOPPED + 10 * MILLISECONDS, freeze, r);
}

static void plant(struct run *r)
{
    if (r->fault[LINK])
        sim_set_rate(r->sim, r->from, r->port, RATE / 4);
    if (r->fault[DIRECTION])
        sim_set_rate_from(r->sim, r->from, r->port, RATE / 4);
    if (r->fault[DISK] || r->fault[SOURCE])
        sim_disk_slow(r->sim, r->node, SLOW_DISK);
    if (r->fault[PROCESSOR])
        freeze(r->sim, r);
    if (r->fault[PROGRAM])
        stop_program(r->sim, r);
}

/* --- runs --- */

static void exchange(struct run *r)
{
    const bool files = r->scene == FILES;
    const struct algorithm *a = algorithm_find(r->fault[ALGORITHM] ? "tree" : r->algorithm);
    const struct spec spec = {.algorithm = (char *)(uintptr_t)a->name,
                              .block_bytes = files ? 0 : 100000,
                              .trace = true,
                              .timeout_ns = 600 * SECONDS,
                              .from = files ? "/same/100000" : "",
                              .to = files ? "/out" : ""};
    struct sim_request *x = sim_exchange(r->sim, nodes_of(r) / 2, &spec);
    plant(r);
    assert_true(sim_run_until_ended(x, 600 * SECONDS));
    if (x->error.code != ERROR_NONE)
        fail_msg("%s", x->error.text);
    if (!files)
        r->about = json_pack("{s:s, s:s, s:f, s:f}", "operation", "exchange", "algorithm", a->name,
                             "seconds", sim_median_seconds(x), "bound_seconds",
                             algorithm_bound(a, sim_torus(r->sim)) * 100000 / RATE);
}

static void copy(struct run *r)
{
    struct copy_request request = copy_default(0);

    request.kind = r->scene == GATHER ? COPY_GATHER : COPY_TO_ALL;
    request.trace = true;
    if (r->scene == GATHER)
        request.target = "/to/%r";
    for (uint32_t rank = r->scene == GATHER ? 1 : 0; rank < (r->scene == GATHER ? nodes_of(r) : 1);
         rank++)
        copy_tree(r->sim, rank, "/from", r->scene == GATHER ? 400000 : 3000000);
    struct sim_copy *c = sim_copy_start(r->sim, 0, &request);
    plant(r);
    sim_copy_run(c, 600 * SECONDS);
    sim_copy_must_succeed(c);
    r->about = json_pack("{s:s}", "operation", r->scene == GATHER ? "gather" : "copy");
}

static void call(struct run *r)
{
    struct sim_call calls[12];
    const uint32_t count = sizeof calls / sizeof calls[0];

    for (uint32_t i = 0; i < count; i++)
        calls[i] = (struct sim_call){.operation = GROUP_ALLTOALL, .size = 40000};
    const struct sim_programs_setup setup = {
        .name = "g", .call = calls, .calls = count, .seed = r->seed, .depth = 1, .trace = true};
    r->programs = sim_programs_new(r->sim, &setup);
    plant(r);
    assert_true(sim_programs_run(r->programs, 600 * SECONDS));
    assert_int_equal(sim_programs_done(r->programs), nodes_of(r));
}

/* Writes the traces to a file, and finds what stands out in it. */
static void judge(struct run *r)
{
    const char *path = file_of("", 0);
    struct trace_data d;
    struct error e;

    if (sim_trace_save(r->sim, path, r->about, &e) != 0 || trace_data_read(&d, path, &e) != 0)
        fail_msg("%s", e.text);
    r->count = findings_make(&d, r->found);
    trace_data_free(&d);
}

static void carry_out(struct run *r)
{
    begin(r);
    choose_places(r);
    if (r->scene == GROUP)
        call(r);
    else if (r->scene == COPY || r->scene == GATHER)
        copy(r);
    else
        exchange(r);
    r->over = true;
    sim_heal(r->sim);
    judge(r);
    json_decref(r->about);
    if (r->programs != NULL)
        sim_programs_free(r->programs);
    sim_free(r->sim);
}

/* --- verdicts --- */

/* Whether a finding names the planted fault at its place. */
static bool is_right(const struct run *r, enum fault fault, const struct finding *f)
{
    struct torus t;

    assert_int_equal(torus_parse(&t, r->dims, NULL), 0);
    if (r->scene == FILES && fault == DISK && f->kind == FINDING_SOURCE)
        return f->node == r->node;
    if (fault == NONE &&
        f->kind == FINDING_ALGORITHM) /* of the algorithms that healthy runs have */
        return strcmp(r->algorithm, "pair") == 0 || strcmp(r->algorithm, "direct") == 0;
    if (f->kind != kinds[fault])
        return false;
    if (fault == NONE || fault == ALGORITHM)
        return true;
    if (fault != LINK && fault != DIRECTION)
        return f->node == r->node;
    if (f->node == r->from && f->port == r->port)
        return true;
    return fault == LINK && f->node == torus_neighbour(&t, r->from, r->port) &&
           f->port == torus_port_opposite(&t, r->port);
}

/* Whether a finding accuses a link or a disk in which no fault was planted. */
static bool is_false(const struct run *r, const struct finding *f)
{
    if (f->kind == FINDING_LINK || f->kind == FINDING_RESENDING || f->kind == FINDING_DOWN)
        return !(r->fault[LINK] && is_right(r, LINK, f)) &&
               !(r->fault[DIRECTION] && is_right(r, DIRECTION, f));
    return f->kind == FINDING_DISK && !(r->fault[DISK] && is_right(r, DISK, f));
}

static bool names(const struct run *r, enum fault fault)
{
    for (unsigned i = 0; i < r->count; i++)
        if (is_right(r, fault, &r->found[i]))
            return true;
    return false;
}

static unsigned falsely_accused(const struct run *r)
{
    unsigned count = 0;

    for (unsigned i = 0; i < r->count; i++)
        count += is_false(r, &r->found[i]);
    return count;
}

static void say(const struct run *r)
{
    for (unsigned i = 0; i < r->count; i++)
        (void)fprintf(stderr, "    %s, seed %u: %s\n", scene_names[r->scene], (unsigned)r->seed,
                      r->found[i].text);
}

static struct run plan(enum scene scene, enum fault fault, enum fault other, uint64_t seed)
{
    static const char *const algorithms[] = {"stream", "at2", "pair", "a3", "direct"};
    struct run r = {.scene = scene, .seed = seed, .dims = "3x3", .algorithm = "stream"};

    r.fault[fault] = r.fault[other] = true;
    if (fault == NONE && seed % 2 == 0) {
        r.dims = "4x4";
        r.algorithm = algorithms[seed / 2 % (sizeof algorithms / sizeof algorithms[0])];
    }
    return r;
}

/* --- a few cases --- */

static void check(enum scene scene, enum fault fault)
{
    struct run r = plan(scene, fault, fault, 4);

    carry_out(&r);
    if (!is_right(&r, fault, &r.found[0]) || falsely_accused(&r) > 0) {
        say(&r);
        fail_msg("%s, %s", scene_names[scene], fault_names[fault]);
    }
}

TEST(a_healthy_gather)
{
    check(GATHER, NONE);
}

TEST(one_direction_of_a_cable)
{
    check(EXCHANGE, DIRECTION);
}

TEST(disks_of_copies)
{
    check(COPY, DISK);
    check(FILES, DISK);
}

TEST(a_slow_algorithm)
{
    check(EXCHANGE, ALGORITHM);
}

/* --- the matrix --- */

static unsigned column_of(const struct run *r)
{
    const enum finding_kind kind = r->found[0].kind;

    for (unsigned fault = 0; fault < FAULTS; fault++)
        if (kinds[fault] == kind)
            return fault == LINK && strstr(r->found[0].text, "both directions") == NULL ? DIRECTION
                                                                                        : fault;
    return FAULTS;
}

/* A row: what the first sentence names, in how many runs at the right place, and false accusations of links and disks.
 * Returns whether the first sentence was always right, and no accusation false. */
static bool print_row(enum scene scene, enum fault fault, enum fault other, uint64_t seeds)
{
    unsigned column[FAULTS + 1] = {0}, right = 0, both = 0, wrong = 0;

    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct run r = plan(scene, fault, other, seed);
        carry_out(&r);
        const bool first = is_right(&r, fault, &r.found[0]) || is_right(&r, other, &r.found[0]);
        column[column_of(&r)]++;
        right += first;
        both += names(&r, fault) && names(&r, other);
        wrong += falsely_accused(&r) > 0;
        if (!first || falsely_accused(&r) > 0)
            say(&r);
    }
    (void)printf("| %s | %s%s%s |", scene_names[scene], fault_names[fault],
                 other != fault ? ", " : "", other != fault ? fault_names[other] : "");
    for (unsigned i = 0; i <= FAULTS; i++)
        (void)(column[i] > 0 ? printf(" %u |", column[i]) : printf(" |"));
    (void)printf(" %u | %u | %u |\n", right, both, wrong);
    (void)fflush(stdout);
    return right == seeds && wrong == 0;
}

/* Returns whether all rows were right. */
static bool print_matrix(uint64_t seeds)
{
    static const struct {
        enum scene scene;
        enum fault one, other;
    } pairs[] = {{EXCHANGE, LINK, ALGORITHM}, {EXCHANGE, LINK, PROCESSOR}, {FILES, LINK, DISK},
                 {COPY, LINK, DISK},          {GATHER, LINK, SOURCE},      {GROUP, LINK, PROGRAM}};

    bool good = true;

    (void)printf("| run | planted |");
    for (unsigned fault = 0; fault < FAULTS; fault++)
        (void)printf(" %s |", fault_names[fault]);
    (void)printf(" other | right place | all named | links or disks falsely accused |\n|---|---|");
    for (unsigned i = 0; i < FAULTS + 4; i++)
        (void)printf("---|");
    (void)printf("\n");
    for (unsigned scene = 0; scene < SCENES; scene++)
        for (unsigned fault = 0; fault < FAULTS; fault++)
            if (can_have(scene, fault))
                good &= print_row(scene, fault, fault, fault == NONE ? 4 * seeds : seeds);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        good &= print_row(pairs[i].scene, pairs[i].one, pairs[i].other, seeds);
    return good;
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return print_matrix(strtoull(argv[1], NULL, 10)) ? 0 : 1;
    return tests_main(argc, argv);
}
