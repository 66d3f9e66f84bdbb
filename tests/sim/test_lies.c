/* A node that has the cluster key and lies, in each field of each message (proto/peer-trust.md): in what
 * it has to say, and in what it has no say in. Whatever it says: what it takes part in ends, the links
 * between the others stay (sim_set_lying()), no memory is taken but for a moment, and when it has been
 * replaced by an honest one the torus is whole and exchanges succeed.
 *
 *     test_sim_lies lies [NAME]     only fields whose name begins so, and what comes of each lie */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/sim/checks.h"
#include "tests/sim/internal.h"
#include "tests/sim/lies.h"
#include "tests/sim/programs.h"

#define LIAR 1u
#define FIELDS_MOST 400u
#define ENDED_BY (120 * SECONDS)
#define HEAP_MOST (64u << 20) /* beyond what it was, whatever is said */
#define MESSAGE_LENGTH_MOST 128u

static const char *only = "";

/* --- what is under way while it lies --- */

enum what { EXCHANGE, IMPORTED, REFUSED, CANCELLED, GROUP, LATE, RESTART, RESUMED, MENDED };

static const struct scene {
    const char *name;
    enum what what;
    uint32_t root;
    struct spec spec;
} scenes[] = {
    {"folders below", EXCHANGE, 0, {.algorithm = "direct", .from = "/random/3000", .to = "/a"}},
    {"folders above", EXCHANGE, LIAR, {.algorithm = "stream", .from = "/random/3000", .to = "/a"}},
    {"auto, folders", EXCHANGE, LIAR, {.algorithm = "auto", .from = "/random/3000", .to = "/a"}},
    {"steps below",
     EXCHANGE,
     0,
     {.algorithm = "direct", .block_bytes = 200000, .from = "", .to = ""}},
    {"steps above",
     EXCHANGE,
     LIAR,
     {.algorithm = "direct", .block_bytes = 200000, .from = "", .to = ""}},
    {"stream below",
     EXCHANGE,
     0,
     {.algorithm = "stream", .block_bytes = 200000, .from = "", .to = ""}},
    {"repeated below",
     EXCHANGE,
     0,
     {.algorithm = "stream", .block_bytes = 500, .from = "", .to = "", .repeat = 3}},
    {"repeated above",
     EXCHANGE,
     LIAR,
     {.algorithm = "stream", .block_bytes = 500, .from = "", .to = "", .repeat = 3}},
    {"leaf", EXCHANGE, 3, {.algorithm = "direct", .from = "/same/500", .to = "/a"}},
    {"one port", EXCHANGE, 0, {.algorithm = "ar1", .block_bytes = 500, .from = "", .to = ""}},
    {"file below", IMPORTED, 0, {.algorithm = "direct", .block_bytes = 500, .from = "", .to = ""}},
    {"file above",
     IMPORTED,
     LIAR,
     {.algorithm = "direct", .block_bytes = 500, .from = "", .to = ""}},
    {"refused", REFUSED, 0, {.algorithm = "direct", .from = "/same/500", .to = "/a"}},
    {"cancelled",
     CANCELLED,
     LIAR,
     {.algorithm = "direct", .block_bytes = 3000000, .from = "", .to = ""}},
    {"group", GROUP, 0, {0}},
    {"late", LATE, 0, {0}},
    {"restart", RESTART, 0, {.algorithm = "direct", .block_bytes = 500, .from = "", .to = ""}},
    {"resumed", RESUMED, 0, {.algorithm = "auto", .block_bytes = 2000000, .from = "", .to = ""}},
    {"mended", MENDED, 0, {.algorithm = "direct", .from = "/same/3000", .to = "/a"}},
};
#define SCENES_A_FIELD 3u
#define SCENES (sizeof scenes / sizeof *scenes)

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
static const struct sim_call late_calls[] = {{.operation = GROUP_BARRIER, .timeout = 1 * SECONDS}};

/* What comes of a lie: each contains those before it. */
enum result { NOTHING, FAILS, LINK, RESULTS };
static const char *const result_names[RESULTS] = {"nothing", "fails", "link"};

/* Whom the failure of an exchange names: the liar, or its link; only a node before or behind it on the way from
 * the root; or neither. What its own exchanges fail by is named by their ids, which begin with its rank. */
enum named { LIAR_ITSELF, ON_ITS_WAY, NOBODY, NAMINGS };
static const char *const named_names[NAMINGS] = {"", ", way", ", nobody"};

struct play {
    struct sim *sim;
    const struct lie_field *field; /* NULL: the truth */
    unsigned value, told, times;
    uint8_t *said[SIM_KINDS]; /* last, by anybody */
    size_t said_length[SIM_KINDS];
    size_t heap;
    const char *top_most; /* where the heap may end, whatever is free in it */
    char id[EXCHANGE_ID_SIZE], failure[sizeof((struct error *)0)->text];
    uint32_t root;
    unsigned flips; /* of bits in blocks that node 0 sends further than to its neighbours */
};

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

/* Whether a node hears of an exchange by way of another one. */
static bool is_below(const struct torus *t, uint32_t root, uint32_t rank, uint32_t other)
{
    while (rank != root && rank != other) {
        struct tree_node at;
        tree_node(t, root, rank, &at);
        rank = torus_neighbour(t, rank, (unsigned)at.parent);
    }
    return rank == other;
}

static enum named whom_it_names(const struct play *s)
{
    const struct torus *t = sim_torus(s->sim);

    if (s->failure[0] == '\0' || s->root == LIAR || names(s->failure, LIAR))
        return LIAR_ITSELF;
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        if (rank != s->root && names(s->failure, rank) &&
            (is_below(t, s->root, rank, LIAR) || is_below(t, s->root, LIAR, rank)))
            return ON_ITS_WAY;
    return NOBODY;
}

static unsigned on_bytes(struct sim *sim, uint32_t rank, unsigned port, uint8_t **bytes,
                         size_t *length)
{
    struct play *s = sim_context(sim);
    size_t body = 0;
    Peer__Head *head = lie_read(*bytes, *length, &body);
    unsigned times = 1;

    (void)port;
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

/* All of the heap lies below sbrk(0): main() sees to that. Only if that has moved so far that too much may be
 * in use, it is counted, which is a walk through all that is free. */
static bool watch_heap(struct sim *sim, void *context)
{
    const struct play *s = context;

    if ((const char *)sbrk(0) <= s->top_most)
        return false;
    size_t used = mallinfo2().uordblks;
    if (used > s->heap + HEAP_MOST)
        sim_violated(sim, "memory", "%zu MiB more than before the lie", (used - s->heap) >> 20);
    return false;
}

static void begin_watching_heap(struct play *s)
{
    const struct mallinfo2 now = mallinfo2();

    s->heap = now.uordblks;
    s->top_most = (const char *)sbrk(0) + (ptrdiff_t)HEAP_MOST - (ptrdiff_t)now.fordblks;
    sim_watch(s->sim, watch_heap, s);
}

/* Little memory, so that there are several rounds; groups take more. */
static void open_play(struct play *s, const struct scene *scene, uint64_t seed)
{
    bool group = scene->what == GROUP || scene->what == LATE;
    const struct sim_setup setup = {.dims = "4",
                                    .seed = seed,
                                    .latency = 100 * MICROSECONDS,
                                    .rate = 125000000,
                                    .memory = group ? 0 : 256 * 1024,
                                    .on_bytes = on_bytes,
                                    .context = s};
    const struct predict_costs costs = {20e-6, 8e-6, 6e6, 0, 0};
    struct error e;

    *s = (struct play){.times = 1};
    s->sim = sim_new(&setup);
    sim_run_until_whole(s->sim);
    assert_int_equal(exchanges_calibrate(sim_exchanges(s->sim, 0), &costs, 1000, &e), 0);
    sim_settle(&s->sim->node[0]);
    sim_pass(s->sim, 100 * MILLISECONDS);
}

static void close_play(struct play *s)
{
    sim_free(s->sim);
    for (unsigned kind = 0; kind < SIM_KINDS; kind++)
        free(s->said[kind]);
}

/* --- a scene, with lies or without --- */

static unsigned ports_of_liar(uint32_t rank)
{
    return rank == LIAR - 1 ? 0 : 1; /* of a neighbour: the port to the liar */
}

/* Whether a neighbour has lost its link to the liar, or had, since these were counted. */
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

static enum result run_exchange(struct play *s, const struct scene *scene)
{
    static unsigned count;
    struct spec spec = scene->spec;
    struct sim_request *r;
    char to[20];

    spec.timeout_ns = 2 * SECONDS;
    if (spec.to[0] != '\0') { /* of an exchange before this one there may be a result */
        (void)snprintf(to, sizeof to, "%s%u", spec.to, count++);
        spec.to = to;
    }
    if (scene->what == MENDED) {
        sim_alter(s->sim);
        s->flips = 1;
    }
    if (scene->what == REFUSED)
        sim_disk_fail(s->sim, LIAR, SIM_DISK_OPEN);
    r = scene->what == IMPORTED ? sim_exchange_imported(s->sim, scene->root, &spec)
                                : sim_exchange(s->sim, scene->root, &spec);
    (void)snprintf(s->id, sizeof s->id, "%s", r->id);
    if (scene->what == CANCELLED) {
        sim_pass(s->sim, 10 * MILLISECONDS);
        sim_cancel(r);
    }
    if (scene->what == RESUMED) { /* it begins anew without a link that is not the liar's */
        sim_pass(s->sim, 5 * MILLISECONDS);
        sim_set_wire(s->sim, LIAR + 1, 0, SIM_WIRE_CUT);
    }
    if (!sim_run_until_ended(r, ENDED_BY))
        sim_violated(s->sim, "ends", "%s does not end", r->id);
    (void)snprintf(s->failure, sizeof s->failure, "%s",
                   r->error.code != ERROR_NONE ? r->error.text : "");
    s->flips = 0;
    if (scene->what == RESUMED)
        sim_set_wire(s->sim, LIAR + 1, 0, SIM_WIRE_UP);
    return r->error.code == ERROR_NONE ? NOTHING : FAILS;
}

static enum result run_group(struct play *s, const struct scene *scene)
{
    const struct sim_programs_setup setup = {.name = "g",
                                             .call = scene->what == LATE ? late_calls : calls,
                                             .calls = scene->what == LATE ? 1 : 4,
                                             .seed = 1,
                                             .depth = 2,
                                             .timeout = 10 * SECONDS};
    struct sim_programs *p = sim_programs_new(s->sim, &setup);
    uint32_t failed;

    if (scene->what == LATE)
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
    return failed > 0 ? FAILS : NOTHING;
}

static enum result run_restart(struct play *s, const struct scene *scene)
{
    sim_kill(s->sim, LIAR, SIM_CRASH);
    sim_pass(s->sim, 100 * MILLISECONDS);
    sim_restart(s->sim, LIAR);
    sim_pass(s->sim, 3 * SECONDS);
    return run_exchange(s, scene);
}

static enum result run_scene(struct play *s, const struct scene *scene)
{
    uint32_t before = connects(s->sim);
    enum result result;

    s->failure[0] = '\0';
    s->root = scene->root;
    if (scene->what == RESTART) {
        result = run_restart(s, scene);
        before += 2; /* once each */
    } else {
        result = scene->what == GROUP || scene->what == LATE ? run_group(s, scene)
                                                             : run_exchange(s, scene);
    }
    if (connects(s->sim) == before)
        return result;
    return LINK;
}

static bool fails_anyway(const struct scene *scene)
{
    return scene->what == REFUSED || scene->what == CANCELLED || scene->what == LATE;
}

static void note(const struct lie_field *field, enum result result, enum named named,
                 const char *failure);

/* It is there, an honest one, and nothing is left of what it said before. */
static void replace_liar(struct play *s)
{
    s->field = NULL;
    s->times = 1;
    sim_set_lying(s->sim, LIAR, false);
    sim_kill(s->sim, LIAR, SIM_CRASH);
    sim_restart(s->sim, LIAR);
    check_next_exchange(s->sim, 0);
    check_next_exchange(s->sim, 2);
    if (!sim_run(s->sim, ENDED_BY, sim_is_quiet, NULL))
        sim_violated(s->sim, "quiet", "something is left of what was a lie");
}

/* Nothing else of a list changes what is done for a field when another one is added. */
static unsigned number_of(const struct lie_field *field)
{
    uint32_t sum = 2166136261u;

    for (const char *c = field->name; *c != '\0'; c++)
        sum = (sum ^ (uint8_t)*c) * 16777619u;
    return sum >> 8;
}

static void lie(struct play *s, const struct scene *scene, const struct lie_field *field,
                unsigned value, unsigned times)
{
    enum result result;

    s->field = field;
    s->value = value;
    s->times = times;
    s->told = 0;
    begin_watching_heap(s);
    sim_set_lying(s->sim, LIAR, true);
    result = run_scene(s, scene);
    if (*only != '\0')
        (void)printf("    %s %u in %s: told %u times, %s%s %s\n", field->name, value, scene->name,
                     s->told, result_names[result], named_names[whom_it_names(s)], s->failure);
    if (s->told == 0 || (result == FAILS && fails_anyway(scene)))
        result = NOTHING; /* of what comes without lies */
    note(field, result, s->told == 0 || fails_anyway(scene) ? LIAR_ITSELF : whom_it_names(s),
         s->failure);
    replace_liar(s);
}

/* --- the list --- */

struct line {
    char name[LIE_NAME_SIZE];
    enum result result; /* at worst, as it says */
    enum named named;
    bool seen;
};

static struct line lines[FIELDS_MOST];
static size_t line_count;
static struct lie_field fields[FIELDS_MOST];
static size_t field_count;

/* "| `Hello.version` | what is said at worst | what comes of it | link |" */
static int read_list(void **state)
{
    FILE *f = fopen(PEER_TRUST, "r");
    char text[1000];

    (void)state;
    if (f == NULL)
        fail_msg("%s cannot be read", PEER_TRUST);
    while (fgets(text, sizeof text, f) != NULL) {
        struct line *line = &lines[line_count];
        if (sscanf(text, "| `%79[A-Za-z0-9_.]` |", line->name) != 1 ||
            strchr(line->name, '.') == NULL)
            continue;
        char *end = strrchr(text, '|'), *word = end;
        while (word > text && word[-1] != '|')
            word--;
        line->result = RESULTS;
        for (enum result r = NOTHING; r < RESULTS; r++)
            if (strncmp(word + 1, result_names[r], strlen(result_names[r])) == 0)
                line->result = r;
        if (line->result == RESULTS)
            fail_msg("%s: what comes of it at worst is not said at the end of its line",
                     line->name);
        for (enum named n = ON_ITS_WAY; n < NAMINGS; n++)
            if (strstr(word, named_names[n]) != NULL)
                line->named = n;
        assert_true(++line_count < FIELDS_MOST);
    }
    (void)fclose(f);
    field_count = lie_fields(fields, FIELDS_MOST);
    assert_true(field_count < FIELDS_MOST);
    return 0;
}

static struct line *find_line(const char *name)
{
    for (size_t i = 0; i < line_count; i++)
        if (strcmp(lines[i].name, name) == 0)
            return &lines[i];
    return NULL;
}

/* A message of its own, inside data: what the first member of a group sends. */
static void each_field_of(const ProtobufCMessageDescriptor *m)
{
    for (unsigned i = 0; i < m->n_fields; i++) {
        char name[LIE_NAME_SIZE];
        (void)snprintf(name, sizeof name, "%s.%s", strchr(m->name, '.') + 1, m->fields[i].name);
        struct line *line = find_line(name);
        if (line == NULL)
            fail_msg("%s has no line in proto/peer-trust.md", name);
        line->seen = true;
    }
}

static void every_field_has_a_line_and_every_line_a_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < field_count; i++) {
        struct line *line = find_line(fields[i].name);
        if (line == NULL)
            fail_msg("%s has no line in proto/peer-trust.md", fields[i].name);
        line->seen = true;
    }
    each_field_of(&peer__group_table__descriptor);
    each_field_of(&peer__group_table__choice__descriptor);
    for (size_t i = 0; i < line_count; i++)
        if (!lines[i].seen)
            fail_msg("%s has a line in proto/peer-trust.md, and does not exist", lines[i].name);
}

/* A message that no head leads to would not be lied in. */
static void every_message_is_reached(void **state)
{
    FILE *f = fopen(PEER_PROTO, "r");
    char text[1000], name[MESSAGE_LENGTH_MOST], prefix[MESSAGE_LENGTH_MOST + 1];

    (void)state;
    assert_non_null(f);
    while (fgets(text, sizeof text, f) != NULL) {
        bool reached = false;
        if (sscanf(text, " message %127[A-Za-z] {", name) != 1 || strcmp(name, "Head") == 0)
            continue;
        (void)snprintf(prefix, sizeof prefix, "%s.", name);
        for (size_t i = 0; i < line_count; i++)
            reached = reached || strstr(lines[i].name, prefix) != NULL;
        if (!reached)
            fail_msg("message %s has no line in proto/peer-trust.md", name);
    }
    (void)fclose(f);
}

/* --- lies in what it has to say --- */

static uint64_t told_in[SCENES]; /* kinds (bits) that the liar says there, honestly */

static void learn_scenes(void)
{
    struct play s;

    memset(told_in, 0, sizeof told_in);
    for (size_t i = 0; i < SCENES; i++) {
        open_play(&s, &scenes[i], 1);
        sim_forget_frames(s.sim);
        sim_set_lying(s.sim, LIAR, true);
        enum result result = run_scene(&s, &scenes[i]);
        if (result != (fails_anyway(&scenes[i]) ? FAILS : NOTHING))
            fail_msg("without a lie, %s: %s", scenes[i].name, result_names[result]);
        for (unsigned kind = 0; kind < SIM_KINDS; kind++)
            if (sim_frames_sent(s.sim, LIAR, (Peer__Head__KindCase)kind) > 0)
                told_in[i] |= UINT64_C(1) << kind;
        replace_liar(&s);
        close_play(&s);
    }
}

/* Where the kind is said; what is said all the time is lied about once. */
static bool is_told(const struct scene *scene, Peer__Head__KindCase kind)
{
    bool always = kind == PEER__HEAD__KIND_HEARTBEAT || kind == PEER__HEAD__KIND_LINK_STATE;

    return (told_in[scene - scenes] & UINT64_C(1) << kind) != 0 &&
           (!always || scene->what == RESTART);
}

/* Of the scenes where a kind is said a few, others for each field. */
static bool is_chosen(const struct scene *scene, const struct lie_field *field)
{
    unsigned count = 0, before = 0;

    if (!is_told(scene, field->kind))
        return false;
    for (size_t k = 0; k < SCENES; k++)
        count += is_told(&scenes[k], field->kind);
    for (const struct scene *other = scenes; other < scene; other++)
        before += is_told(other, field->kind);
    unsigned every = (count + SCENES_A_FIELD - 1) / SCENES_A_FIELD;
    return before % every == number_of(field) % every;
}

/* By field: what its lies have come to, in both ways to tell them. */
static enum result worst[FIELDS_MOST];
static struct {
    enum named named;
    char failure[sizeof((struct error *)0)->text];
} least_named[FIELDS_MOST];

static void note(const struct lie_field *field, enum result result, enum named named,
                 const char *failure)
{
    size_t i = (size_t)(field - fields);

    if (result > worst[i])
        worst[i] = result;
    if (named <= least_named[i].named)
        return;
    least_named[i].named = named;
    (void)snprintf(least_named[i].failure, sizeof least_named[i].failure, "%s", failure);
}

static bool has_turn(size_t field)
{
    return *only != '\0' ? strncmp(fields[field].name, only, strlen(only)) == 0
                         : field % SIM_SHARE == 0;
}

static void lies_in_what_it_has_to_say(void **state)
{
    (void)state;
    learn_scenes();
    for (size_t i = 0; i < field_count; i++) {
        if (!has_turn(i))
            continue;
        for (size_t k = 0; k < SCENES; k++) {
            struct play s;
            if (!is_chosen(&scenes[k], &fields[i]))
                continue;
            open_play(&s, &scenes[k], number_of(&fields[i]));
            for (unsigned value = 0; value < lie_count(&fields[i]); value++)
                lie(&s, &scenes[k], &fields[i], value, 1);
            close_play(&s);
        }
    }
}

/* Each message two times, and hundreds of times. */
static void endless_repetitions(void **state)
{
    (void)state;
    learn_scenes();
    for (size_t i = 0; i < field_count; i++) {
        if ((i > 0 && fields[i].kind == fields[i - 1].kind) ||
            strncmp(fields[i].name, only, strlen(only)) != 0)
            continue; /* once a kind */
        for (size_t k = 0; k < SCENES; k++) {
            struct play s;
            if (!is_told(&scenes[k], fields[i].kind))
                continue;
            open_play(&s, &scenes[k], number_of(&fields[i]));
            lie(&s, &scenes[k], &fields[i], 0, 2);
            lie(&s, &scenes[k], &fields[i], 0, 300);
            close_play(&s);
        }
    }
}

/* --- what it has no say in --- */

/* Of what nobody has said: something that could be; what has an id is about the exchange that was prepared
 * last. */
static void make_up(Peer__Head *head, Peer__Head__KindCase kind, const struct play *s)
{
    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field(&peer__head__descriptor, (unsigned)kind);
    const ProtobufCMessageDescriptor *m = f->descriptor;
    ProtobufCMessage *message = sim_alloc(m->sizeof_message);
    const uint8_t *said = s->said[PEER__HEAD__KIND_PREPARE];
    size_t body;
    Peer__Head *prepared =
        said != NULL ? lie_read(said, s->said_length[PEER__HEAD__KIND_PREPARE], &body) : NULL;

    bool has_id = protobuf_c_message_descriptor_get_field_by_name(m, "id") != NULL;

    protobuf_c_message_init(m, message);
    for (unsigned i = 0; i < m->n_fields; i++) {
        void *at = (uint8_t *)message + m->fields[i].offset;
        const char *id = prepared != NULL ? prepared->prepare->id : s->id;
        if (strcmp(m->fields[i].name, "id") == 0 && m->fields[i].type == PROTOBUF_C_TYPE_STRING) {
            char *copy = sim_alloc(strlen(id) + 1);
            (void)strcpy(copy, id);
            *(char **)at = copy;
        } else if (strcmp(m->fields[i].name, "exchange") == 0 && has_id && prepared != NULL) {
            *(uint32_t *)at = prepared->prepare->exchange;
        } else if (strcmp(m->fields[i].name, "root") == 0 && has_id && prepared != NULL) {
            *(uint32_t *)at = prepared->prepare->root;
        }
    }
    if (prepared != NULL)
        peer__head__free_unpacked(prepared, NULL);
    head->kind_case = kind;
    head->hello = (Peer__Hello *)message;
}

struct butting {
    struct play *play;
    const struct lie_field *field;
    unsigned value; /* as many as there are lies: the truth, or what could be it */
    uint32_t asker;
};

/* Says it on all its links. */
static void butt_in(struct sim *sim, void *context)
{
    const struct butting *b = context;
    struct play *s = b->play;
    size_t body = 0, length;
    Peer__Head *head = NULL;

    if (!sim_alive(sim, LIAR))
        return;
    if (s->said[b->field->kind] != NULL)
        head = lie_read(s->said[b->field->kind], s->said_length[b->field->kind], &body);
    if (head == NULL) {
        head = sim_alloc(sizeof *head);
        peer__head__init(head);
        make_up(head, b->field->kind, s);
    }
    if (head->kind_case == PEER__HEAD__KIND_OUTCOME)
        head->outcome->asker = b->asker;
    if (b->value < lie_count(b->field))
        (void)lie_tell(head, b->field, b->value);
    uint8_t *bytes = lie_frame(head, NULL, 0, &length);
    for (unsigned port = 0; port < 2; port++)
        (void)sim_say(sim, LIAR, port, bytes, length);
    free(bytes);
    peer__head__free_unpacked(head, NULL);
}

static void lies_without_a_say(void **state)
{
    static const uint64_t at[] = {200, 600, 1200, 3000, 6000, 15000}; /* microseconds */
    /* Where it is below the root and has a child, and where it is a leaf. */
    static const unsigned where[] = {0, 8, 14};

    (void)state;
    for (size_t i = 0; i < field_count; i++) {
        if (!has_turn(i))
            continue;
        for (size_t k = number_of(&fields[i]) % 3; k < sizeof where / sizeof *where; k += 3) {
            struct play s;
            open_play(&s, &scenes[where[k]], number_of(&fields[i]) + 1);
            for (unsigned value = 0; value <= lie_count(&fields[i]); value++) {
                struct butting b = {&s, &fields[i], value, value % 4};
                begin_watching_heap(&s);
                sim_set_lying(s.sim, LIAR, true);
                for (size_t t = 0; t < sizeof at / sizeof *at; t++)
                    sim_at(s.sim, sim_now(s.sim) + at[t] * MICROSECONDS, butt_in, &b);
                enum result result = run_scene(&s, &scenes[where[k]]);
                sim_pass(s.sim, 20 * MILLISECONDS); /* after its end, too */
                if (*only != '\0')
                    (void)printf("    %s %u, butting in, in %s: %s%s %s\n", fields[i].name, value,
                                 scenes[where[k]].name, result_names[result],
                                 named_names[whom_it_names(&s)], s.failure);
                note(&fields[i], result, whom_it_names(&s), s.failure);
                replace_liar(&s);
            }
            close_play(&s);
        }
    }
}

/* --- what the list says comes of it --- */

static void the_list_says_what_comes_of_it(void **state)
{
    unsigned wrong = 0;

    (void)state;
    for (size_t l = 0; l < line_count; l++) {
        enum result seen = NOTHING;
        enum named named = LIAR_ITSELF;
        const char *failure = "";
        bool lied = false;
        for (size_t i = 0; i < field_count; i++)
            if (strcmp(fields[i].name, lines[l].name) == 0 && has_turn(i)) {
                lied = true;
                seen = worst[i] > seen ? worst[i] : seen;
                if (least_named[i].named > named) {
                    named = least_named[i].named;
                    failure = least_named[i].failure;
                }
            }
        if (!lied || (seen == lines[l].result && named == lines[l].named))
            continue;
        print_error("%s: %s%s, the list says %s%s  %s\n", lines[l].name, result_names[seen],
                    named_names[named], result_names[lines[l].result], named_names[lines[l].named],
                    failure);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest repetitions[] = {
        cmocka_unit_test(endless_repetitions),
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_has_a_line_and_every_line_a_field),
        cmocka_unit_test(every_message_is_reached),
        cmocka_unit_test(lies_in_what_it_has_to_say),
        cmocka_unit_test(lies_without_a_say),
        cmocka_unit_test(the_list_says_what_comes_of_it),
    };

    /* For watch_heap(). What is trimmed all the time would have to be taken anew all the time. */
    (void)mallopt(M_MMAP_MAX, 0);
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_MOST / 4);
    if (argc > 2)
        only = argv[2];
    if (argc > 1 && strcmp(argv[1], "repetitions") == 0)
        return cmocka_run_group_tests(repetitions, read_list, NULL);
    return cmocka_run_group_tests(tests, read_list, NULL);
}
