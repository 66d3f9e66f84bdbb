/* Bits that flip in transit, as from a peer that breaks the protocol. An exchange may fail, and links may be closed;
 * but nothing hangs, no wrong data are delivered, and the torus works again. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/torusd/engine/generated_blocks.h"
#include "daemon/torusd/exchange/attempt.h"
#include "daemon/torusd/exchange/id.h"
#include "daemon/torusd/exchange/job.h"
#include "tests/sim/checks.h"
#include "tests/sim/events.h"
#include "tests/sim/lies.h"
#include "tests/sim/programs.h"
#include "tests/support/cmocka.h"

SEEDS(150 / SIM_SHARE);

/* A flipped bit in a length makes a decoder swallow the next frames: such a link is up, but useless until it is
 * closed. */
static void set_all_wires(struct sim *sim, enum sim_wire state)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(sim_torus(sim)); port += 2)
            sim_set_wire(sim, rank, port, state);
}

static void close_all_links(struct sim *sim)
{
    set_all_wires(sim, SIM_WIRE_CUT);
    sim_pass(sim, 1 * MILLISECONDS); /* no carrier, for long enough to be noticed */
    set_all_wires(sim, SIM_WIRE_UP);
    sim_pass(sim, 1 * SECONDS);
}

static void damage(uint64_t seed)
{
    const struct sim_setup setup = {.dims = seed % 2 == 0 ? "3x4" : "2x2",
                                    .seed = seed,
                                    .latency = 100 * MICROSECONDS,
                                    .rate = 125000000,
                                    .memory = seed % 3 == 0 ? 64 * 1024 : 0,
                                    .chop = true};
    struct sim *sim = sim_new(&setup);
    struct chance *chance = sim_chance(sim);
    static const char *const algorithms[] = {"at2", "direct", "stream"};
    const struct spec spec =
        GENERATED(.algorithm = algorithms[chance_below(chance, 3)],
                  .block_bytes = chance_below(chance, 3000), .timeout_ns = 20 * SECONDS);

    sim_run_until_whole(sim);
    struct sim_request *r =
        sim_exchange(sim, (uint32_t)chance_below(chance, sim_torus(sim)->nodes), &spec);
    sim_pass(sim, chance_below(chance, 3 * MILLISECONDS));
    sim_damage(sim, 1 + (unsigned)chance_below(chance, 5));
    if (!sim_run_until_ended(r, 60 * SECONDS))
        fail_msg("seed %llu: does not end", (unsigned long long)seed);
    sim_damage(sim, 0);
    sim_pass(sim, 100 * MILLISECONDS);
    if (!sim_run(sim, 60 * SECONDS, sim_is_quiet, NULL))
        fail_msg("seed %llu: does not end everywhere", (unsigned long long)seed);
    close_all_links(sim);
    check_next_exchange(sim, r->root);
    sim_free(sim);
}

TEST(flipped_bits_cost_an_exchange_at_most)
{
    with_seeds(seeds, damage);
}

static uint32_t flipped, mended, resumed; /* in all seeds together */

/* Flips one bit when most bytes in transit belong to blocks. */
static void damage_blocks(uint64_t seed)
{
    static const struct spec specs[] = {
        GENERATED(.algorithm = "auto", .block_bytes = 200000),
        GENERATED(.algorithm = "at2", .block_bytes = 20000),
        GENERATED(.algorithm = "stream", .block_bytes = 20000, .repeat = 3),
        {.algorithm = "auto", .from = "/random/100000", .to = "/a"},
        GENERATED(.operation = OPERATION_ALLGATHER, .algorithm = "auto", .block_bytes = 50000),
    };
    struct spec spec = specs[seed % (sizeof specs / sizeof specs[0])];
    struct sim *sim = SIM_WHOLE(.dims = seed % 2 == 0 ? "3x4" : "2x3", .seed = seed,
                                .latency = 100 * MICROSECONDS, .rate = 12500000, .chop = true);

    spec.timeout_ns = 20 * SECONDS; /* for bits of a length, see above */

    struct sim_request *r =
        sim_exchange(sim, (uint32_t)chance_below(sim_chance(sim), sim_torus(sim)->nodes), &spec);
    sim_pass(sim, 2 * MILLISECONDS + chance_below(sim_chance(sim), 8 * MILLISECONDS));
    sim_damage(sim, 1);
    if (!sim_run_until_ended(r, 60 * SECONDS))
        fail_msg("seed %llu: does not end", (unsigned long long)seed);
    flipped++;
    if (r->error.code == ERROR_NONE) {
        if (strcmp(spec.algorithm, "auto") == 0)
            spec.algorithm = r->result.algorithm;
        check_success(r, &spec);
        assert_true(check_agreement(r, &spec));
        mended += r->result.damages == 1;
        resumed += r->result.kept_bytes > 0;
    }
    sim_damage(sim, 0);
    sim_free(sim);
}

TEST(damaged_pieces_are_sent_again)
{
    flipped = mended = resumed = 0;
    with_seeds(seeds, damage_blocks);
    if (mended < flipped * 2 / 3 || resumed < flipped / 20)
        fail_msg("of %u: %u sent again, %u of them in part", flipped, mended, resumed);
}

/* Flips a bit in the middle of a large call of programs, which check what they receive. By then, all members may have finished
 * rounds of it, and the damage may be in one of these. */
static void damage_large_call(uint64_t seed)
{
    const struct sim_call call = {.operation = GROUP_ALLTOALL, .size = 400000};
    const struct sim_programs_setup setup = {
        .name = "g", .call = &call, .calls = 1, .seed = seed, .depth = 1, .timeout = 5 * SECONDS};
    struct sim *sim =
        SIM_WHOLE(.dims = seed % 2 == 0 ? "2x3" : "3x3", .seed = seed,
                  .latency = 100 * MICROSECONDS, .rate = 12500000, .memory = UINT64_C(1) << 23);
    struct sim_programs *p = sim_programs_new(sim, &setup);

    sim_pass(sim, 50 * MILLISECONDS + chance_below(sim_chance(sim), 60 * MILLISECONDS));
    if (seed % 3 == 0) { /* without this link, only what not all members have is sent again */
        sim_set_wire(sim, 0, 0, SIM_WIRE_CUT);
        sim_pass(sim, 20 * MILLISECONDS + chance_below(sim_chance(sim), 60 * MILLISECONDS));
    }
    sim_damage(sim, 1);
    if (!sim_programs_run(p, 60 * SECONDS) || sim_programs_failed(p) > 0)
        fail_msg("seed %llu: %s", (unsigned long long)seed, sim_program_error(p, 0)->text);
    for (const struct job *j = sim_exchanges(sim, 0)->jobs; j != NULL; j = j->next)
        mended += j->damages == 1;
    sim_damage(sim, 0);
    sim_programs_free(p);
    sim_free(sim);
}

TEST(damaged_rounds_of_calls_are_sent_again)
{
    mended = 0;
    with_seeds(8 + 32 / SIM_SHARE, damage_large_call);
    if (mended == 0)
        fail_msg("no damage was found in a call");
}

static bool is_taken_back(struct sim *sim, void *context)
{
    const struct sim_request *r = context;
    struct exchange_progress progress;

    if (r->ended)
        return true;
    exchange_progress(r->exchange, &progress);
    return progress.state == EXCHANGE_WAITING;
}

/* A node dies, and a block is damaged before the root knows of the death. Returns whether the damage came first. */
static bool damage_and_death(uint64_t seed)
{
    const struct spec spec =
        GENERATED(.algorithm = "auto", .block_bytes = 200000, .timeout_ns = 20 * SECONDS);
    struct sim *sim = SIM_WHOLE(.dims = "3x3", .seed = seed, .latency = 100 * MICROSECONDS,
                                .rate = 12500000, .chop = true);
    char first[EXCHANGE_ID_SIZE];

    struct sim_request *r = sim_exchange(sim, 0, &spec);
    sim_pass(sim, 10 * MILLISECONDS);
    (void)strcpy(first, exchange_id(r->exchange));
    sim_kill(sim, 8, SIM_CRASH);
    sim_pass(sim, 35 * MILLISECONDS); /* of the 50 for which its links have to stay down */
    sim_damage(sim, 1);
    assert_true(sim_run(sim, 60 * SECONDS, is_taken_back, r));
    bool taken_back = !r->ended;
    assert_true(sim_run_until_ended(r, 60 * SECONDS));
    sim_damage(sim, 0);
    assert_int_not_equal(r->error.code, ERROR_NONE);
    sim_pass(sim, 1 * SECONDS);
    for (uint32_t rank = 0; taken_back && rank < 8; rank++) {
        struct exchange_info info;
        if (!sim_info(sim, rank, first, &info))
            fail_msg("seed %llu: node %u has not heard why there is no retry",
                     (unsigned long long)seed, rank);
        assert_int_equal(info.state, EXCHANGE_FAILED);
        assert_string_equal(info.reason, r->error.text);
    }
    sim_free(sim);
    return taken_back;
}

TEST(a_node_that_heard_of_a_retry_hears_why_there_is_none)
{
    unsigned taken_back = 0, runs = 20;

    for (uint64_t seed = first_seed; seed < first_seed + runs; seed++)
        taken_back += damage_and_death(seed);
    assert_in_range(taken_back, runs / 2, runs);
}

SEED_TEST(seeds, flipped_bits_do_not_keep_the_torus_from_coming_up)
{
    const struct sim_setup setup = {
        .dims = "3x4", .seed = seed, .latency = 100 * MICROSECONDS, .chop = true};
    struct sim *sim = sim_new(&setup);
    sim_damage(sim, 40);
    sim_pass(sim, 1 * SECONDS);
    sim_damage(sim, 0);
    close_all_links(sim);
    check_next_exchange(sim, 0);
    sim_free(sim);
}

/* Bits that flip in the memory of a relay, where no link's check notices: the piece is found and repaired, or the
 * exchange fails and names the piece. No wrong data are delivered. */

#define WINDOW 16u /* bytes that identify an offset in a block */

struct relay {
    const struct spec *spec;
    const struct sim_request *request;
    uint32_t rank;                /* the relay */
    unsigned skip;                /* number of frames before the one with the flipped bit */
    bool always;                  /* also flip a bit of each later frame, and of repairs */
    bool unreadable;              /* the source cannot be read any more when the damage is found */
    char first[EXCHANGE_ID_SIZE]; /* the attempt in which the bit was flipped; "" before */
    uint32_t source, destination; /* of the block, */
    uint64_t offset;              /* and of the byte in it */
    struct error why;             /* the first attempt was withdrawn, */
    struct engine_damaged found;  /* or the error that an engine has found, */
    uint32_t at;                  /* at this node */
};

static uint64_t size_of(const struct spec *spec, uint32_t source, uint32_t destination)
{
    return spec->from[0] == '\0' ? spec->block_bytes
                                 : sim_block_size(spec->from, source, destination);
}

/* Finds the block and offset of the first of these bytes by their contents. */
static bool find_place(const struct relay *f, const struct torus *t, const uint8_t *bytes)
{
    struct relay *found = (struct relay *)(uintptr_t)f;
    struct exchange_id first;
    (void)exchange_id_parse(&first, f->first);
    uint64_t seed = f->spec->from[0] == '\0' ? exchange_id_hash(&first) : SIM_CONTENTS_SEED;
    bool gather = f->spec->operation != OPERATION_EXCHANGE;
    static uint8_t block[20000];

    for (uint32_t s = 0; s < t->nodes; s++)
        for (uint32_t d = 0; d < t->nodes; d++) {
            uint64_t size = size_of(f->spec, s, d);
            const uint8_t *at;
            if (gather && s != d)
                continue;
            assert_in_range(size, 0, sizeof block);
            pattern_fill(block, (uint32_t)size, seed, s, d, 0);
            at = memmem(block, size, bytes, WINDOW);
            if (at == NULL)
                continue;
            found->source = s;
            found->destination = d;
            found->offset = (uint64_t)(at - block);
            return s != f->rank && (gather || d != f->rank);
        }
    return false;
}

static void flip_one(struct sim *sim, uint8_t *bytes, size_t length)
{
    uint64_t bit = chance_below(sim_chance(sim), length * 8);

    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static unsigned on_bytes(struct sim *sim, uint32_t rank, unsigned port, uint8_t **bytes,
                         size_t *length)
{
    struct relay *f = sim_context(sim);
    struct peer_message message;
    struct engine_data data;
    size_t body = 0;

    if (f->request == NULL || f->request->exchange == NULL || rank != f->rank ||
        (f->first[0] != '\0' && !f->always))
        return 1;
    Peer__Head *head = lie_read(*bytes, *length, &body);
    bool is_data = peer_message_read(head, &message, NULL) == 0 && engine_data(&message, &data) &&
                   *length >= body + WINDOW;
    peer_message_free(&message);
    bool comes_again =
        head->kind_case == PEER__HEAD__KIND_REPAIR_PART && head->repair_part->part.len > 0;
    if (comes_again && f->always) {
        flip_one(sim, head->repair_part->part.data, head->repair_part->part.len);
        free(*bytes);
        *bytes = lie_frame(head, NULL, 0, length);
    }
    peer__head__free_unpacked(head, NULL);
    if (!is_data || (f->skip > 0 && f->skip--))
        return 1;
    if (f->first[0] != '\0') {
        flip_one(sim, *bytes + body, *length - body);
        return 1;
    }
    uint64_t at = body + chance_below(sim_chance(sim), *length - body - WINDOW + 1);
    (void)strcpy(f->first, exchange_id(f->request->exchange));
    if (find_place(f, sim_torus(sim), *bytes + at))
        flip_one(sim, *bytes + at, 1);
    else
        f->first[0] = '\0';
    return 1;
}

/* The piece that a byte of a block belongs to: all blocks are cut into segments of the largest block. */
static void find_piece(const struct relay *f, const struct torus *t, const char *algorithm,
                       uint64_t *first, uint64_t *last)
{
    uint32_t segments = algorithm_find(algorithm)->segments;
    uint64_t largest = 0, size = size_of(f->spec, f->source, f->destination), stride;

    for (uint32_t s = 0; s < t->nodes; s++)
        for (uint32_t d = 0; d < t->nodes; d++)
            if (size_of(f->spec, s, d) > largest)
                largest = size_of(f->spec, s, d);
    stride = (largest + segments - 1) / segments;
    *first = f->offset / stride * stride;
    *last = *first + stride < size ? *first + stride - 1 : size - 1;
}

/* Notes that the root withdraws the first attempt, or that a node asks for a piece. */
static bool note_damage(struct sim *sim, void *context)
{
    struct relay *f = context;

    if (f->request == NULL || f->request->exchange == NULL || f->first[0] == '\0')
        return false;
    if (f->request->exchange->state == JOB_WAITING) {
        f->why = f->request->exchange->failure;
        return true;
    }
    for (f->at = 0; f->at < sim_torus(sim)->nodes; f->at++) {
        const struct attempt *x = attempt_find_text(sim_exchanges(sim, f->at), f->first);
        if (x == NULL || x->local.engine == NULL || x->local.engine->damaged_count == 0)
            continue;
        f->found = x->local.engine->damaged[0];
        if (f->unreadable)
            sim_disk_fail(sim, f->found.piece.source, SIM_DISK_READ);
        return true;
    }
    return false;
}

/* For a file: checks which piece its node asks for. */
static void check_found(struct sim *sim, const struct relay *f)
{
    uint64_t first, last;

    find_piece(f, sim_torus(sim), f->spec->algorithm, &first, &last);
    assert_int_equal(f->found.piece.source, f->source);
    if (f->spec->operation == OPERATION_EXCHANGE)
        assert_int_equal(f->at, f->destination);
    assert_int_equal(f->found.piece.begin, first);
    assert_int_equal(f->found.piece.begin + f->found.piece.length - 1, last);
}

static void check_named(struct sim *sim, const struct relay *f, const char *text)
{
    char wanted[100], of[60];
    uint64_t first, last;

    find_piece(f, sim_torus(sim), f->spec->algorithm, &first, &last);
    if (f->spec->operation == OPERATION_EXCHANGE)
        (void)snprintf(wanted, sizeof wanted, "node %u: block from node %u to node %u is damaged",
                       f->destination, f->source, f->destination);
    else
        (void)snprintf(wanted, sizeof wanted, "block from node %u to node ", f->source);
    (void)snprintf(of, sizeof of, "bytes %llu to %llu", (unsigned long long)first,
                   (unsigned long long)last);
    if (strstr(text, wanted) == NULL || strstr(text, of) == NULL)
        fail_msg("\"%s\" and \"%s\", byte %llu, are not named in \"%s\"", wanted, of,
                 (unsigned long long)f->offset, text);
}

enum { PIECES, SMALL_PIECES, ALWAYS, UNREADABLE };

static uint32_t relayed, failed;

/* A block for all nodes arrives damaged at all nodes behind the relay. */
static uint32_t most_finders(struct sim *sim, const struct spec *spec)
{
    return spec->operation == OPERATION_EXCHANGE ? 1 : sim_torus(sim)->nodes - 2;
}

static void damage_in_relay(uint64_t seed, const struct spec *spec, int what)
{
    struct chance chance = {seed};
    struct relay f = {.spec = spec, .always = what == ALWAYS, .unreadable = what == UNREADABLE};
    const struct sim_setup setup = {.dims = seed % 2 == 0 ? "3x4" : "3x3",
                                    .seed = seed,
                                    .latency = 100 * MICROSECONDS,
                                    .rate = 12500000,
                                    .chop = seed % 3 != 0,
                                    .on_bytes = on_bytes,
                                    .context = &f};
    struct sim *sim = sim_new(&setup);

    f.rank = (uint32_t)chance_below(&chance, sim_torus(sim)->nodes);
    f.skip = (unsigned)chance_below(&chance, 12);
    sim_alter(sim);
    sim_run_until_whole(sim);
    struct sim_request *r =
        sim_exchange(sim, (uint32_t)chance_below(&chance, sim_torus(sim)->nodes), spec);
    f.request = r;
    sim_watch(sim, note_damage, &f);
    if (!sim_run_until_ended(r, 60 * SECONDS))
        fail_msg("seed %llu: does not end", (unsigned long long)seed);
    if (f.first[0] == '\0') { /* this node relays nothing */
        assert_int_equal(r->error.code, ERROR_NONE);
        sim_free(sim);
        return;
    }
    if (what == UNREADABLE && r->error.code == ERROR_IO) { /* it was still being sent */
        sim_free(sim);
        return;
    }
    relayed++;
    if (r->error.code != ERROR_NONE) {
        if (what != ALWAYS)
            fail_msg("seed %llu: %s", (unsigned long long)seed, r->error.text);
        assert_int_equal(r->error.code, ERROR_DAMAGED);
        assert_string_not_equal(r->id, f.first); /* also in another attempt */
        assert_contains(r->error.text, "bytes ");
        assert_false(check_agreement(r, spec));
        failed++;
    } else {
        check_success(r, spec);
        assert_true(check_agreement(r, spec));
        assert_in_range(r->result.damages, 1, what == ALWAYS ? 1000 : most_finders(sim, spec));
        assert_int_equal(r->result.rounds, 1);
    }
    if (what == SMALL_PIECES) {
        assert_contains(f.why.text, "the digests over all nodes differ");
        assert_string_not_equal(r->id, f.first);
    } else if (what == PIECES && spec->to[0] == '\0') {
        check_named(sim, &f, f.why.text);
    } else if (what == UNREADABLE) {
        assert_string_not_equal(r->id, f.first);
    } else if (what == PIECES) {
        check_found(sim, &f);
        assert_string_equal(r->id, f.first); /* all other bytes arrived once */
    }
    sim_free(sim);
}

static void relay_all(int what, const struct spec *specs, size_t count)
{
    relayed = failed = 0;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++) {
        struct spec spec = specs[seed % count];
        spec.timeout_ns = 20 * SECONDS;
        damage_in_relay(seed, &spec, what);
    }
    if (relayed < seeds / 2)
        fail_msg("only %u of %llu relays had something to pass on", relayed,
                 (unsigned long long)seeds);
}

static const struct spec of_pieces[] = {
    {.algorithm = "at2", .from = "/random/15000", .to = "/a"},
    {.algorithm = "direct", .from = "/same/256", .to = "/a"},
    {.algorithm = "stream", .from = "/random/20000", .to = "/a"},
    {.algorithm = "stream", .from = "/same/2000", .to = "/a"},
    {.operation = OPERATION_ALLGATHER, .algorithm = "balanced", .from = "/same/9000", .to = "/a"},
    {.operation = OPERATION_ALLGATHER,
     .algorithm = "balanced",
     .mode = MODE_STEPPED,
     .from = "/same/9000",
     .to = "/a"},
    GENERATED(.algorithm = "at2", .block_bytes = 15000),
    GENERATED(.algorithm = "stream", .block_bytes = 20000),
    GENERATED(.algorithm = "stream", .block_bytes = 2000),
};

TEST(a_bit_that_flips_in_a_relay_is_named_and_repaired)
{
    relay_all(PIECES, of_pieces, sizeof of_pieces / sizeof *of_pieces);
}

TEST(a_relay_that_flips_one_in_all_is_named)
{
    relay_all(ALWAYS, of_pieces, sizeof of_pieces / sizeof *of_pieces);
    if (failed < relayed / 3)
        fail_msg("only %u of %u have failed", failed, relayed);
}

/* The piece cannot be sent again: the exchange is retried. */
TEST(a_block_that_cannot_be_read_again_is_retried)
{
    static const struct spec specs[] = {
        {.algorithm = "at2", .from = "/same/5000", .to = "/a"},
        {.algorithm = "stream", .from = "/same/2000", .to = "/a"},
    };

    relay_all(UNREADABLE, specs, sizeof specs / sizeof *specs);
}

/* Files in pieces of less than 256 bytes, so that one digest covers several. */
TEST(small_pieces_are_found_by_the_sum)
{
    static const struct spec specs[] = {
        {.algorithm = "direct", .from = "/same/255", .to = "/a"},
        {.algorithm = "at2", .from = "/same/40", .to = "/a"},
        {.algorithm = "stream", .from = "/same/200", .to = "/a"},
    };

    relay_all(SMALL_PIECES, specs, sizeof specs / sizeof *specs);
}
