/* A ring of three nodes, whole cores in the simulator: two are honest, and the third has the cluster key and
 * lies. Messages of its own core are altered field by field, repeated or dropped; it also replays messages of
 * others with altered fields, and sends plain bytes. Input: a byte for the ring, then operations: a byte with the
 * kind, and its arguments.
 *
 * Invariants: the simulator's checks after every event hold; every exchange ends; and after an honest node has
 * replaced the liar, the ring is whole, exchanges succeed and no memory stays reserved. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/sim/internal.h"
#include "tests/sim/lies.h"

#define LIAR 2u
#define FIELDS_MOST 400u
#define LIES_MOST 16u
#define REQUESTS_MOST 8u
#define RARE 192u /* from here on, bytes of START stand for rare requests */
#define CUTS 20u  /* from here on, RESTART cuts a link instead */

enum action { TIME, START, LIE, TIMES, SAY, REPEAT, BYTES, CANCEL, RESTART, ACTIONS };

struct planned_lie {
    const struct lie_field *field;
    unsigned value;
};

struct ring {
    struct sim *sim;
    struct planned_lie lie[LIES_MOST]; /* about the next frames of their kinds */
    unsigned lies;
    uint8_t times[SIM_KINDS]; /* how often the next frame of a kind leaves, + 1; 0: once */
    uint8_t *said[SIM_KINDS]; /* the last one of any node */
    size_t said_length[SIM_KINDS];
    struct sim_request *request[REQUESTS_MOST];
    unsigned requests;
};

static struct lie_field fields[FIELDS_MOST];
static size_t field_count;

static void violated(const struct sim *sim, const char *invariant, const char *text)
{
    (void)fprintf(stderr, "at %.6f s: %s: %s\n", (double)sim_now(sim) / 1e9, invariant, text);
    abort();
}

static bool tell_lies(struct ring *r, Peer__Head *head)
{
    bool told = false;

    for (unsigned i = 0; i < r->lies;) {
        if (r->lie[i].field->kind != head->kind_case) {
            i++;
            continue;
        }
        told = lie_tell(head, r->lie[i].field, r->lie[i].value) || told;
        r->lie[i] = r->lie[--r->lies];
    }
    return told;
}

static void keep(struct ring *r, unsigned kind, const uint8_t *bytes, size_t length)
{
    free(r->said[kind]);
    r->said[kind] = malloc(length);
    REQUIRE(r->said[kind] != NULL);
    memcpy(r->said[kind], bytes, length);
    r->said_length[kind] = length;
}

static unsigned on_bytes(struct sim *sim, uint32_t rank, unsigned port, uint8_t **bytes,
                         size_t *length)
{
    struct ring *r = sim_context(sim);
    size_t body = 0;
    Peer__Head *head = lie_read(*bytes, *length, &body);
    unsigned times = 1;

    REQUIRE(head != NULL); /* messages of honest cores can be unpacked */
    unsigned kind = (unsigned)head->kind_case;
    REQUIRE(kind < SIM_KINDS);
    keep(r, kind, *bytes, *length);
    if (rank == LIAR) {
        if (tell_lies(r, head)) {
            uint8_t *lie = lie_frame(head, *bytes + body, *length - body, length);
            free(*bytes);
            *bytes = lie;
        }
        if (r->times[kind] > 0)
            times = r->times[kind] - 1u;
        r->times[kind] = 0;
    }
    peer__head__free_unpacked(head, NULL);
    return times;
}

static void start(struct ring *r, uint8_t which)
{
    static const struct spec specs[] = {
        {.algorithm = "direct", .block_bytes = 1000, .from = "", .to = ""},
        {.algorithm = "stream", .block_bytes = 1000, .from = "", .to = ""},
        {.algorithm = "direct", .from = "/random/2000", .to = "/a"},
        {.algorithm = "stream", .from = "/random/2000", .to = "/a"},
        {.algorithm = "direct", .block_bytes = 100000, .from = "", .to = ""},
        {.algorithm = "stream", .block_bytes = 100, .from = "", .to = "", .repeat = 3},
        {.algorithm = "auto", .from = "/same/500", .to = "/a"},
        {.algorithm = "auto", .block_bytes = 500, .from = "", .to = ""},
    };
    /* From RARE on: one so large that a retry keeps received blocks; a schedule from a file; a barrier. */
    static const struct spec rare[] = {
        {.algorithm = "auto", .block_bytes = 1000000, .from = "", .to = ""},
        {.algorithm = "direct", .block_bytes = 500, .from = "", .to = ""},
        {.algorithm = SPEC_AUTO, .operation = OPERATION_BARRIER, .barrier = "b"},
    };
    bool is_rare = which >= RARE;
    size_t kind = is_rare ? which / 3 % (sizeof rare / sizeof *rare)
                          : which / 3 % (sizeof specs / sizeof *specs);
    struct spec spec = is_rare ? rare[kind] : specs[kind];
    uint32_t root = which % 3;

    if (r->requests == REQUESTS_MOST || !sim_alive(r->sim, root))
        return;
    spec.timeout_ns = 5 * SECONDS;
    r->request[r->requests++] = is_rare && kind == 1 ? sim_exchange_imported(r->sim, root, &spec)
                                                     : sim_exchange(r->sim, root, &spec);
}

/* Sends an earlier message of any node again. */
static void say_again(struct ring *r, struct input *in, bool alter)
{
    uint8_t which = input_byte(in);
    unsigned kind = which % SIM_KINDS, port = which / SIM_KINDS % 2;
    size_t field = input_word16(in), length, body = 0;
    unsigned value = input_byte(in);
    Peer__Head *head;

    if (alter && field_count > 0)
        kind = (unsigned)fields[field % field_count].kind;
    if (r->said[kind] == NULL || !sim_alive(r->sim, LIAR))
        return;
    head = lie_read(r->said[kind], r->said_length[kind], &body);
    if (head == NULL)
        return;
    if (alter) {
        const struct lie_field *f = &fields[field % field_count];
        (void)lie_tell(head, f, value % lie_count(f));
    }
    uint8_t *bytes = lie_frame(head, r->said[kind] + body, r->said_length[kind] - body, &length);
    for (unsigned times = alter ? 1 : 1 + value % 50; times > 0; times--)
        (void)sim_say(r->sim, LIAR, port, bytes, length);
    free(bytes);
    peer__head__free_unpacked(head, NULL);
}

static void plan_lie(struct ring *r, struct input *in)
{
    const struct lie_field *f = &fields[input_word16(in) % field_count];
    unsigned value = input_byte(in) % lie_count(f);

    if (r->lies < LIES_MOST)
        r->lie[r->lies++] = (struct planned_lie){f, value};
}

static void run_operation(struct ring *r, struct input *in)
{
    uint8_t kind = input_byte(in);
    size_t length;

    switch ((enum action)(kind % ACTIONS)) {
    case TIME: { /* about the time of a hop, or of a heartbeat */
        uint64_t time = input_byte(in);
        sim_pass(r->sim, time * time * (kind / ACTIONS % 2 == 0 ? 2 : 100) * MICROSECONDS);
        break;
    }
    case START:
        start(r, input_byte(in));
        break;
    case LIE:
        plan_lie(r, in);
        break;
    case TIMES: {
        uint8_t which = input_byte(in);
        r->times[which % SIM_KINDS] = (uint8_t)(1 + which / SIM_KINDS);
        break;
    }
    case SAY:
        say_again(r, in, true);
        break;
    case REPEAT:
        say_again(r, in, false);
        break;
    case BYTES: {
        length = input_byte(in);
        const uint8_t *bytes = input_bytes(in, &length);
        if (sim_alive(r->sim, LIAR))
            (void)sim_say(r->sim, LIAR, kind / ACTIONS % 2, bytes, length);
        break;
    }
    case CANCEL:
        if (r->requests > 0)
            sim_cancel(r->request[input_byte(in) % r->requests]);
        break;
    case RESTART:
        if (kind / ACTIONS >= CUTS) { /* the link between the honest nodes is lost for a moment */
            sim_set_wire(r->sim, 0, 0, SIM_WIRE_CUT);
            sim_pass(r->sim, 1 * MILLISECONDS);
            sim_set_wire(r->sim, 0, 0, SIM_WIRE_UP);
            break;
        }
        sim_kill(r->sim, LIAR, kind / ACTIONS % 2 == 0 ? SIM_CRASH : SIM_STOP);
        sim_restart(r->sim, LIAR);
        break;
    case ACTIONS:
        break;
    }
}

static bool all_ended(struct sim *sim, void *context)
{
    const struct ring *r = context;

    for (unsigned i = 0; i < r->requests; i++)
        if (!r->request[i]->ended && r->request[i]->exchange != NULL)
            return false;
    return true;
}

static void check_whole_again(struct ring *r)
{
    const struct spec spec = {.algorithm = "direct",
                              .block_bytes = 100,
                              .from = "",
                              .to = "",
                              .timeout_ns = 20 * SECONDS};

    r->lies = 0;
    memset(r->times, 0, sizeof r->times);
    sim_set_lying(r->sim, LIAR, false);
    sim_kill(r->sim, LIAR, SIM_CRASH);
    sim_restart(r->sim, LIAR);
    sim_run_until_whole(r->sim);
    REQUIRE(sim_run(r->sim, 300 * SECONDS, all_ended, r));
    REQUIRE(sim_run(r->sim, 300 * SECONDS, sim_is_quiet, NULL));
    for (uint32_t root = 0; root < 3; root++) {
        struct sim_request *next = sim_exchange(r->sim, root, &spec);
        REQUIRE(sim_run_until_ended(next, 60 * SECONDS));
        REQUIRE(next->error.code == ERROR_NONE);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const dims[] = {"3", "3m"};
    struct input in = {data, size};
    struct ring r = {0};
    uint8_t first = input_byte(&in);
    const struct sim_setup setup = {.dims = dims[first % 2],
                                    .seed = 1 + first / 4,
                                    .latency = 100 * MICROSECONDS,
                                    .rate = 125000000,
                                    .memory = 256 * 1024,
                                    .chop = (first & 2) != 0,
                                    .violated = violated,
                                    .on_bytes = on_bytes,
                                    .context = &r};

    if (field_count == 0)
        field_count = lie_fields(fields, FIELDS_MOST);
    REQUIRE(field_count <= FIELDS_MOST);
    r.sim = sim_new(&setup);
    sim_run_until_whole(r.sim);
    sim_set_lying(r.sim, LIAR, true);
    for (int i = 0; i < 60 && in.size > 0; i++)
        run_operation(&r, &in);
    check_whole_again(&r);
    sim_free(r.sim);
    for (unsigned kind = 0; kind < SIM_KINDS; kind++)
        free(r.said[kind]);
    return 0;
}
