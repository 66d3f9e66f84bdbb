/* See lie_scenes.h. */
#include "tests/sim/lie_scenes.h"

#include <malloc.h>
#include <unistd.h>

#include "tests/sim/checks.h"
#include "tests/sim/internal.h"
#include "tests/sim/programs.h"
#include "tests/support/cmocka.h"

#define ENDED_BY (120 * SECONDS)

const struct lie_scene lie_scenes[LIE_SCENES] = {
    {"folders below",
     LIE_SCENE_EXCHANGE,
     0,
     {.algorithm = "direct", .from = "/random/3000", .to = "/a"}},
    {"folders above",
     LIE_SCENE_EXCHANGE,
     LIAR,
     {.algorithm = "stream", .from = "/random/3000", .to = "/a"}},
    {"auto, folders",
     LIE_SCENE_EXCHANGE,
     LIAR,
     {.algorithm = "auto", .from = "/random/3000", .to = "/a"}},
    {"steps below", LIE_SCENE_EXCHANGE, 0, GENERATED(.algorithm = "direct", .block_bytes = 200000)},
    {"steps above", LIE_SCENE_EXCHANGE, LIAR,
     GENERATED(.algorithm = "direct", .block_bytes = 200000)},
    {"stream below", LIE_SCENE_EXCHANGE, 0,
     GENERATED(.algorithm = "stream", .block_bytes = 200000)},
    {"repeated below", LIE_SCENE_EXCHANGE, 0,
     GENERATED(.algorithm = "stream", .block_bytes = 500, .repeat = 3)},
    {"repeated above", LIE_SCENE_EXCHANGE, LIAR,
     GENERATED(.algorithm = "stream", .block_bytes = 500, .repeat = 3)},
    {"leaf", LIE_SCENE_EXCHANGE, 3, {.algorithm = "direct", .from = "/same/500", .to = "/a"}},
    {"one port", LIE_SCENE_EXCHANGE, 0, GENERATED(.algorithm = "ar1", .block_bytes = 500)},
    {"file below", LIE_SCENE_IMPORTED, 0, GENERATED(.algorithm = "direct", .block_bytes = 500)},
    {"file above", LIE_SCENE_IMPORTED, LIAR, GENERATED(.algorithm = "direct", .block_bytes = 500)},
    {"refused", LIE_SCENE_REFUSED, 0, {.algorithm = "direct", .from = "/same/500", .to = "/a"}},
    {"cancelled", LIE_SCENE_CANCELLED, LIAR,
     GENERATED(.algorithm = "direct", .block_bytes = 3000000)},
    {"group", LIE_SCENE_GROUP, 0, {0}},
    {"late", LIE_SCENE_LATE, 0, {0}},
    {"restart", LIE_SCENE_RESTART, 0, GENERATED(.algorithm = "direct", .block_bytes = 500)},
    {"resumed", LIE_SCENE_RESUMED, 0, GENERATED(.algorithm = "auto", .block_bytes = 2000000)},
    {"repair", LIE_SCENE_REPAIR, 0, {.algorithm = "direct", .from = "/same/3000", .to = "/a"}},
    {"survey", LIE_SCENE_SURVEY, 0, {0}},
    {"copy", LIE_SCENE_COPY, 0, {0}},
    {"messages", LIE_SCENE_MESSAGES, 0, {0}},
};

static const struct sim_call calls[] = {
    {.operation = GROUP_ALLTOALL, .size = 100}, {.operation = GROUP_ALLTOALLV, .size = 100},
    {.operation = GROUP_ALLREDUCE, .size = 10, .type = REDUCTION_INT32, .operator= REDUCTION_SUM },
     {.operation = GROUP_BARRIER},
     {
         .operation = GROUP_REDUCE,
         .root = 3,
         .size = 10,
         .type = REDUCTION_INT32,
         .operator= REDUCTION_SUM },
    };
/* To both neighbours, and past the liar to the node behind it; of the last ones, no data arrives before it is granted. */
static const struct sim_call messages[] = {
    {.operation = SIM_MESSAGES, .size = 100, .timeout = 3 * SECONDS},
    {.operation = SIM_MESSAGES, .size = 100000, .root = 1, .timeout = 3 * SECONDS},
    {.operation = SIM_MESSAGES, .size = 70000, .root = 2, .timeout = 3 * SECONDS},
    {.operation = SIM_GATHERED, .size = 100, .root = 0, .timeout = 3 * SECONDS},
    {.operation = SIM_GATHERED, .size = 70000, .root = LIAR, .timeout = 3 * SECONDS},
};
static const struct sim_call late_calls[] = {{.operation = GROUP_BARRIER, .timeout = 1 * SECONDS}};

const char *const lie_result_names[LIE_RESULTS] = {"nothing", "fails", "link"};
const char *const lie_named_names[LIE_NAMINGS] = {"", ", way", ", nobody"};

static bool is_group(const struct lie_scene *scene)
{
    return scene->what == LIE_SCENE_GROUP || scene->what == LIE_SCENE_MESSAGES ||
           scene->what == LIE_SCENE_LATE;
}

/* Whether a text names this node: "node 1", "link 1:+0", "nodes 0, 1". */
static bool names(const char *text, uint32_t rank)
{
    static const char *const words[] = {"node ", "nodes ", "link ", "member "};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (const char *at = strstr(text, words[i]); at != NULL; at = strstr(at + 1, words[i])) {
            const char *number = at + strlen(words[i]);
            char *end;
            while (*number >= '0' && *number <= '9') {
                if (strtoul(number, &end, 10) == rank)
                    return true;
                number = strncmp(end, ", ", 2) == 0      ? end + 2
                         : strncmp(end, " and ", 5) == 0 ? end + 5
                                                         : "";
            }
        }
    return false;
}

/* Whether a node hears of an exchange through another node. */
static bool is_below(const struct torus *t, uint32_t root, uint32_t rank, uint32_t other)
{
    while (rank != root && rank != other) {
        struct tree_node at;
        tree_node(t, root, rank, &at);
        rank = torus_neighbour(t, rank, (unsigned)at.parent);
    }
    return rank == other;
}

enum lie_named lie_play_named(const struct lie_play *s)
{
    const struct torus *t = sim_torus(s->sim);

    if (s->failure[0] == '\0' || s->root == LIAR || names(s->failure, LIAR))
        return LIE_NAMES_LIAR;
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        if (rank != s->root && names(s->failure, rank) &&
            (is_below(t, s->root, rank, LIAR) || is_below(t, s->root, LIAR, rank)))
            return LIE_NAMES_ITS_WAY;
    return LIE_NAMES_NOBODY;
}

static unsigned on_bytes(struct sim *sim, uint32_t rank, unsigned port, uint8_t **bytes,
                         size_t *length)
{
    struct lie_play *s = sim_context(sim);
    size_t body = 0;
    Peer__Head *head = lie_read(*bytes, *length, &body);
    unsigned times = 1;

    assert_non_null(head);
    if ((unsigned)head->kind_case < SIM_KINDS) {
        free(s->said[head->kind_case]);
        s->said[head->kind_case] = sim_alloc(*length);
        memcpy(s->said[head->kind_case], *bytes, *length);
        s->said_length[head->kind_case] = *length;
    }
    if (rank == LIAR && s->field != NULL && head->kind_case == s->field->kind &&
        (s->times > 1 || lie_tell(head, s->field, s->value))) {
        uint8_t *lie = lie_frame(head, *bytes + body, *length - body, length);
        free(*bytes);
        *bytes = lie;
        times = s->times;
        s->told++;
    }
    if (s->flips > 0 && rank == 0 && head->kind_case == PEER__HEAD__KIND_STEPPED_DATA &&
        head->stepped_data->left == 1 && *length > body) {
        s->flips--;
        (*bytes)[body + (*length - body) / 2] ^= 0x10;
    }
    peer__head__free_unpacked(head, NULL);
    return times;
}

/* main() makes sure that the whole heap lies below sbrk(0). Only if that has moved so far that too much may be in
 * use, the bytes are counted, which walks through all free memory. */
static bool watch_heap(struct sim *sim, void *context)
{
    const struct lie_play *s = context;

    if ((const char *)sbrk(0) <= s->top_most)
        return false;
    size_t used = mallinfo2().uordblks;
    if (used > s->heap + LIE_HEAP_MOST)
        sim_violated(sim, "memory", "%zu MiB more than before the lie", (used - s->heap) >> 20);
    return false;
}

void lie_play_watch_heap(struct lie_play *s)
{
    const struct mallinfo2 now = mallinfo2();

    s->heap = now.uordblks;
    s->top_most = (const char *)sbrk(0) + (ptrdiff_t)LIE_HEAP_MOST - (ptrdiff_t)now.fordblks;
    sim_watch(s->sim, watch_heap, s);
}

/* Little memory, so that there are several rounds; groups take more. */
void lie_play_open(struct lie_play *s, const struct lie_scene *scene, uint64_t seed)
{
    bool group = is_group(scene) || scene->what == LIE_SCENE_COPY;
    const struct sim_setup setup = {.dims = "4",
                                    .seed = seed,
                                    .latency = 100 * MICROSECONDS,
                                    .rate = 125000000,
                                    .memory = group ? 0 : 256 * 1024,
                                    .on_bytes = on_bytes,
                                    .context = s};
    const struct predict_costs costs = {20e-6, 8e-6, 6e6, 0, 0};
    struct error e;

    *s = (struct lie_play){.times = 1};
    s->sim = sim_new(&setup);
    sim_run_until_whole(s->sim);
    assert_int_equal(exchanges_calibrate(sim_exchanges(s->sim, 0), &costs, 1000, &e), 0);
    sim_settle(&s->sim->node[0]);
    sim_pass(s->sim, 100 * MILLISECONDS);
}

void lie_play_close(struct lie_play *s)
{
    sim_free(s->sim);
    for (unsigned kind = 0; kind < SIM_KINDS; kind++)
        free(s->said[kind]);
}

/* --- scenes, with or without lies --- */

static unsigned ports_of_liar(uint32_t rank)
{
    return rank == LIAR - 1 ? 0 : 1; /* a neighbour's port to the liar */
}

/* Whether a neighbour has lost its link to the liar, even for a moment, since the counters were read. */
static uint32_t connects(struct sim *sim)
{
    uint32_t sum = 0;

    for (uint32_t rank = LIAR - 1; rank <= LIAR + 1; rank += 2) {
        struct port_info info;
        router_port_info(sim_router(sim, rank), ports_of_liar(rank), &info);
        sum += info.state == PORT_UP ? info.connects : 1000;
    }
    return sum;
}

static enum lie_result run_exchange(struct lie_play *s, const struct lie_scene *scene)
{
    static unsigned count;
    struct spec spec = scene->spec;
    struct sim_request *r;
    char to[20];

    spec.timeout_ns = 2 * SECONDS;
    if (spec.to[0] != '\0') { /* there may be a result of an earlier exchange */
        (void)snprintf(to, sizeof to, "%s%u", spec.to, count++);
        spec.to = to;
    }
    if (scene->what == LIE_SCENE_REPAIR) {
        sim_alter(s->sim);
        s->flips = 1;
    }
    if (scene->what == LIE_SCENE_REFUSED)
        sim_disk_fail(s->sim, LIAR, SIM_DISK_OPEN);
    r = scene->what == LIE_SCENE_IMPORTED ? sim_exchange_imported(s->sim, scene->root, &spec)
                                          : sim_exchange(s->sim, scene->root, &spec);
    (void)snprintf(s->id, sizeof s->id, "%s", r->id);
    if (scene->what == LIE_SCENE_CANCELLED) {
        sim_pass(s->sim, 10 * MILLISECONDS);
        sim_cancel(r);
    }
    if (scene->what ==
        LIE_SCENE_RESUMED) { /* it is retried without a link that is not the liar's */
        sim_pass(s->sim, 5 * MILLISECONDS);
        sim_set_wire(s->sim, LIAR + 1, 0, SIM_WIRE_CUT);
    }
    if (!sim_run_until_ended(r, ENDED_BY))
        sim_violated(s->sim, "ends", "%s does not end", r->id);
    (void)snprintf(s->failure, sizeof s->failure, "%s",
                   r->error.code != ERROR_NONE ? r->error.text : "");
    s->flips = 0;
    if (scene->what == LIE_SCENE_RESUMED)
        sim_set_wire(s->sim, LIAR + 1, 0, SIM_WIRE_UP);
    return r->error.code == ERROR_NONE ? LIE_NOTHING : LIE_FAILS;
}

static enum lie_result run_group(struct lie_play *s, const struct lie_scene *scene)
{
    const struct sim_programs_setup setup = {.name = "g",
                                             .call = scene->what == LIE_SCENE_LATE ? late_calls
                                                     : scene->what == LIE_SCENE_MESSAGES ? messages
                                                                                         : calls,
                                             .calls = scene->what == LIE_SCENE_LATE       ? 1
                                                      : scene->what == LIE_SCENE_MESSAGES ? 5
                                                                                          : 4,
                                             .seed = 1,
                                             .depth = 2,
                                             .timeout = 10 * SECONDS};
    struct sim_programs *p = sim_programs_new(s->sim, &setup);
    uint32_t failed;

    if (scene->what == LIE_SCENE_LATE)
        sim_program_stop(p, 3);
    if (!sim_programs_run(p, ENDED_BY)) { /* a call without a timeout may wait for ever */
        for (uint32_t rank = 0; rank < 4; rank++)
            sim_program_die(p, rank);
        if (!sim_programs_run(p, ENDED_BY))
            sim_violated(s->sim, "ends", "the group does not end");
    }
    failed = sim_programs_failed(p);
    for (uint32_t rank = 0; rank < 4; rank++)
        if (rank != LIAR && s->failure[0] == '\0' && sim_program_error(p, rank)->code != ERROR_NONE)
            (void)snprintf(s->failure, sizeof s->failure, "%s", sim_program_error(p, rank)->text);
    sim_programs_free(p);
    return failed > 0 ? LIE_FAILS : LIE_NOTHING;
}

static void on_survey(void *context, const struct survey_node *nodes, uint64_t took)
{
    *(bool *)context = true;
}

static bool is_set(struct sim *sim, void *flag)
{
    return *(bool *)flag;
}

/* A survey ends in time, whatever the liar says; the liar makes one, too. */
static enum lie_result run_survey(struct lie_play *s)
{
    for (uint32_t rank = 0; rank <= LIAR; rank++) {
        bool done = false;
        struct survey_request request = {.context = &done, .done = on_survey};
        struct error e;
        assert_int_equal(
            survey_start(sim_survey(s->sim, rank), SURVEY_HOST, 2 * SECONDS, &request, &e), 0);
        sim_settle(&s->sim->node[rank]);
        if (!sim_run(s->sim, 3 * SECONDS, is_set, &done) && sim_alive(s->sim, rank))
            sim_violated(s->sim, "ends", "the survey of node %u does not end", rank);
    }
    return LIE_NOTHING;
}

struct copy_seen {
    struct lie_play *play;
    bool ended, failed;
};

static void on_copied(void *context, const struct copy_result *result, const struct error *e)
{
    struct copy_seen *seen = context;

    seen->ended = true;
    seen->failed = e != NULL;
    if (e != NULL)
        (void)snprintf(seen->play->failure, sizeof seen->play->failure, "%s", e->text);
}

static bool is_copied(struct sim *sim, void *context)
{
    return ((struct copy_seen *)context)->ended;
}

/* A copy ends in its time, whatever the liar says, although no node has trees here. */
static enum lie_result run_copy(struct lie_play *s)
{
    static char *source[] = {(char *)(uintptr_t) "/from"};
    const struct copy_request request = {.kind = COPY_TO_ALL,
                                         .source = source,
                                         .sources = 1,
                                         .target = (char *)(uintptr_t) "/to",
                                         .timeout_ns = 2 * SECONDS};
    struct copy_seen seen = {.play = s};
    const struct copy_client client = {&seen, on_copied};
    struct error e;

    if (copy_start(core_copies(s->sim->node[0].core), &request, &client, &e) == NULL)
        sim_violated(s->sim, "copy", "%s", e.text);
    sim_settle(&s->sim->node[0]);
    if (!sim_run(s->sim, 10 * SECONDS, is_copied, &seen))
        sim_violated(s->sim, "ends", "the copy does not end");
    return seen.failed ? LIE_FAILS : LIE_NOTHING;
}

static enum lie_result run_restart(struct lie_play *s, const struct lie_scene *scene)
{
    sim_kill(s->sim, LIAR, SIM_CRASH);
    sim_pass(s->sim, 100 * MILLISECONDS);
    sim_restart(s->sim, LIAR);
    sim_pass(s->sim, 3 * SECONDS);
    return run_exchange(s, scene);
}

enum lie_result lie_play_run(struct lie_play *s, const struct lie_scene *scene)
{
    uint32_t before = connects(s->sim);
    enum lie_result result;

    s->failure[0] = '\0';
    s->root = scene->root;
    if (scene->what == LIE_SCENE_RESTART) {
        result = run_restart(s, scene);
        before += 2; /* once each */
    } else if (scene->what == LIE_SCENE_SURVEY) {
        result = run_survey(s);
    } else if (scene->what == LIE_SCENE_COPY) {
        result = run_copy(s);
    } else {
        result = is_group(scene) ? run_group(s, scene) : run_exchange(s, scene);
    }
    if (connects(s->sim) == before)
        return result;
    return LIE_LINK;
}

bool lie_scene_fails_anyway(const struct lie_scene *scene)
{
    return scene->what == LIE_SCENE_REFUSED || scene->what == LIE_SCENE_CANCELLED ||
           scene->what == LIE_SCENE_LATE;
}

/* The node is up and honest, and nothing is left of its lies. */
void lie_play_replace_liar(struct lie_play *s)
{
    s->field = NULL;
    s->times = 1;
    sim_set_lying(s->sim, LIAR, false);
    sim_kill(s->sim, LIAR, SIM_CRASH);
    sim_restart(s->sim, LIAR);
    check_next_exchange(s->sim, 0);
    check_next_exchange(s->sim, 2);
    if (!sim_run(s->sim, ENDED_BY, sim_is_quiet, NULL))
        sim_violated(s->sim, "quiet", "something is left of a lie");
}
