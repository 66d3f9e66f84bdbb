/* A node that has the cluster key and lies in each field of each message (proto/peer-trust.md): in messages that it
 * must send, and in messages that only others may send. Whatever it sends: exchanges and groups with it end, links
 * between the others stay up (sim_set_lying()), memory is taken only for a moment, and after an honest node has
 * replaced it the torus is whole and exchanges succeed.
 *
 *     test_sim_lies lies [NAME]     only fields whose names begin with NAME; prints the consequence of each lie */
#include <malloc.h>

#include "tests/sim/internal.h"
#include "tests/sim/lie_scenes.h"
#include "tests/support/cmocka.h"

#define LIE_FIELDS_MOST 400u

/* A line of proto/peer-trust.md. */
struct lie_line {
    char name[LIE_NAME_SIZE];
    enum lie_result result; /* the worst consequence according to the line */
    enum lie_named named;
    bool seen;
};

/* The observed consequences of lies in a field, for both ways of lying. */
struct lie_found {
    enum lie_result worst;
    enum lie_named least_named;
    char failure[sizeof((struct error *)0)->text]; /* a failure that names so little */
};

struct lie_list {
    struct lie_line line[LIE_FIELDS_MOST];
    size_t lines;
    struct lie_field field[LIE_FIELDS_MOST];
    struct lie_found found[LIE_FIELDS_MOST]; /* by field */
    size_t fields;
};

/* "| `Hello.version` | what is said at worst | what comes of it | link |" */
static void lie_list_read(struct lie_list *list, const char *path)
{
    FILE *f = fopen(path, "r");
    char text[1000];

    if (f == NULL)
        fail_msg("%s cannot be read", path);
    while (fgets(text, sizeof text, f) != NULL) {
        struct lie_line *line = &list->line[list->lines];
        if (sscanf(text, "| `%79[A-Za-z0-9_.]` |", line->name) != 1 ||
            strchr(line->name, '.') == NULL)
            continue;
        char *end = strrchr(text, '|'), *word = end;
        while (word > text && word[-1] != '|')
            word--;
        line->result = LIE_RESULTS;
        for (enum lie_result r = LIE_NOTHING; r < LIE_RESULTS; r++)
            if (strncmp(word + 1, lie_result_names[r], strlen(lie_result_names[r])) == 0)
                line->result = r;
        if (line->result == LIE_RESULTS)
            fail_msg("%s: its line does not end with the worst consequence", line->name);
        for (enum lie_named n = LIE_NAMES_ITS_WAY; n < LIE_NAMINGS; n++)
            if (strstr(word, lie_named_names[n]) != NULL)
                line->named = n;
        assert_true(++list->lines < LIE_FIELDS_MOST);
    }
    (void)fclose(f);
    list->fields = lie_fields(list->field, LIE_FIELDS_MOST);
    assert_true(list->fields < LIE_FIELDS_MOST);
}

/* The line of a field; NULL if there is none */
static struct lie_line *lie_list_line(struct lie_list *list, const char *name)
{
    for (size_t i = 0; i < list->lines; i++)
        if (strcmp(list->line[i].name, name) == 0)
            return &list->line[i];
    return NULL;
}

/* Notes the consequence of a lie in a field; `failure` is copied. */
static void lie_list_note(struct lie_list *list, const struct lie_field *field,
                          enum lie_result result, enum lie_named named, const char *failure)
{
    struct lie_found *found = &list->found[field - list->field];

    if (result > found->worst)
        found->worst = result;
    if (named <= found->least_named)
        return;
    found->least_named = named;
    (void)snprintf(found->failure, sizeof found->failure, "%s", failure);
}

#define SCENES_A_FIELD 3u
#define MESSAGE_LENGTH_MOST 128u

static const char *only = "";
static struct lie_list list;

/* A seed for a field that does not change when other fields are added. */
static unsigned number_of(const struct lie_field *field)
{
    uint32_t sum = 2166136261u ^ (uint32_t)field->kind;

    for (unsigned i = 0; i < field->depth; i++)
        sum = (sum ^ field->way[i]->id) * 16777619u;
    return (sum * 2654435761u) >> 8;
}

static void lie(struct lie_play *s, const struct lie_scene *scene, const struct lie_field *field,
                unsigned value, unsigned times)
{
    enum lie_result result;

    s->field = field;
    s->value = value;
    s->times = times;
    s->told = 0;
    lie_play_watch_heap(s);
    sim_set_lying(s->sim, LIAR, true);
    result = lie_play_run(s, scene);
    if (*only != '\0')
        (void)printf("    %s %u in %s: told %u times, %s%s %s\n", field->name, value, scene->name,
                     s->told, lie_result_names[result], lie_named_names[lie_play_named(s)],
                     s->failure);
    if (s->told == 0 || (result == LIE_FAILS && lie_scene_fails_anyway(scene)))
        result = LIE_NOTHING; /* of consequences without lies */
    lie_list_note(&list, field, result,
                  s->told == 0 || lie_scene_fails_anyway(scene) ? LIE_NAMES_LIAR
                                                                : lie_play_named(s),
                  s->failure);
    lie_play_replace_liar(s);
}

/* --- the list --- */

static int read_list(void **state)
{
    lie_list_read(&list, PEER_TRUST);
    return 0;
}

/* A message of its own, inside the data that the first member of a group sends. */
static void each_field_of(const ProtobufCMessageDescriptor *m)
{
    for (unsigned i = 0; i < m->n_fields; i++) {
        char name[LIE_NAME_SIZE];
        (void)snprintf(name, sizeof name, "%s.%s", strchr(m->name, '.') + 1, m->fields[i].name);
        struct lie_line *line = lie_list_line(&list, name);
        if (line == NULL)
            fail_msg("%s has no line in proto/peer-trust.md", name);
        line->seen = true;
    }
}

static void every_field_has_a_line_and_every_line_a_field(void **state)
{
    for (size_t i = 0; i < list.fields; i++) {
        struct lie_line *line = lie_list_line(&list, list.field[i].name);
        if (line == NULL)
            fail_msg("%s has no line in proto/peer-trust.md", list.field[i].name);
        line->seen = true;
    }
    each_field_of(&peer__group_table__descriptor);
    each_field_of(&peer__group_table__choice__descriptor);
    for (size_t i = 0; i < list.lines; i++)
        if (!list.line[i].seen)
            fail_msg("%s has a line in proto/peer-trust.md, and does not exist", list.line[i].name);
}

/* The test would not lie in a message that no head contains. */
static void every_message_is_reached(void **state)
{
    FILE *f = fopen(PEER_PROTO, "r");
    char text[1000], name[MESSAGE_LENGTH_MOST], prefix[MESSAGE_LENGTH_MOST + 1];

    assert_non_null(f);
    while (fgets(text, sizeof text, f) != NULL) {
        bool reached = false;
        if (sscanf(text, " message %127[A-Za-z] {", name) != 1 || strcmp(name, "Head") == 0)
            continue;
        (void)snprintf(prefix, sizeof prefix, "%s.", name);
        for (size_t i = 0; i < list.lines; i++)
            reached = reached || strstr(list.line[i].name, prefix) != NULL;
        if (!reached)
            fail_msg("message %s has no line in proto/peer-trust.md", name);
    }
    (void)fclose(f);
}

/* --- lies in messages that the node must send --- */

static uint64_t told_in[LIE_SCENES]; /* kinds (bits) that an honest node sends there */

static void learn_scenes(void)
{
    struct lie_play s;

    memset(told_in, 0, sizeof told_in);
    for (size_t i = 0; i < LIE_SCENES; i++) {
        lie_play_open(&s, &lie_scenes[i], 1);
        sim_forget_frames(s.sim);
        sim_set_lying(s.sim, LIAR, true);
        enum lie_result result = lie_play_run(&s, &lie_scenes[i]);
        if (result != (lie_scene_fails_anyway(&lie_scenes[i]) ? LIE_FAILS : LIE_NOTHING))
            fail_msg("without a lie, %s: %s", lie_scenes[i].name, lie_result_names[result]);
        for (unsigned kind = 0; kind < SIM_KINDS; kind++)
            if (sim_frames_sent(s.sim, LIAR, (Peer__Head__KindCase)kind) > 0)
                told_in[i] |= UINT64_C(1) << kind;
        lie_play_replace_liar(&s);
        lie_play_close(&s);
    }
}

/* The scenes in which the kind is sent; for messages that are always sent, only one scene. The group of a copy is one
 * like others. */
static bool is_told(const struct lie_scene *scene, Peer__Head__KindCase kind)
{
    bool always = kind == PEER__HEAD__KIND_HEARTBEAT || kind == PEER__HEAD__KIND_LINK_STATE;

    if (scene->what == LIE_SCENE_MESSAGES && kind != PEER__HEAD__KIND_GROUP_MESSAGE)
        return false;
    if (scene->what == LIE_SCENE_COPY && kind != PEER__HEAD__KIND_COPY_CALL)
        return false;
    return (told_in[scene - lie_scenes] & UINT64_C(1) << kind) != 0 &&
           (!always || scene->what == LIE_SCENE_RESTART);
}

/* A few of the scenes in which a kind is sent, others for each field. */
static bool is_chosen(const struct lie_scene *scene, const struct lie_field *field)
{
    unsigned count = 0, before = 0;

    if (!is_told(scene, field->kind))
        return false;
    for (size_t k = 0; k < LIE_SCENES; k++)
        count += is_told(&lie_scenes[k], field->kind);
    for (const struct lie_scene *other = lie_scenes; other < scene; other++)
        before += is_told(other, field->kind);
    unsigned every = (count + SCENES_A_FIELD - 1) / SCENES_A_FIELD;
    return before % every == number_of(field) % every;
}

static bool has_turn(size_t field)
{
    return *only != '\0' ? strncmp(list.field[field].name, only, strlen(only)) == 0
                         : field % (SIM_SHARE > 1 ? 3 * SIM_SHARE : 1) == 0;
}

static void lies_in_what_it_has_to_say(void **state)
{
    learn_scenes();
    for (size_t i = 0; i < list.fields; i++) {
        if (!has_turn(i))
            continue;
        for (size_t k = 0; k < LIE_SCENES; k++) {
            struct lie_play s;
            if (!is_chosen(&lie_scenes[k], &list.field[i]))
                continue;
            lie_play_open(&s, &lie_scenes[k], number_of(&list.field[i]));
            for (unsigned value = 0; value < lie_count(&list.field[i]); value++)
                lie(&s, &lie_scenes[k], &list.field[i], value, 1);
            lie_play_close(&s);
        }
    }
}

/* Sends each message twice, and hundreds of times. */
static void endless_repetitions(void **state)
{
    learn_scenes();
    for (size_t i = 0; i < list.fields; i++) {
        if ((i > 0 && list.field[i].kind == list.field[i - 1].kind) ||
            strncmp(list.field[i].name, only, strlen(only)) != 0)
            continue; /* once a kind */
        for (size_t k = 0; k < LIE_SCENES; k++) {
            struct lie_play s;
            if (!is_told(&lie_scenes[k], list.field[i].kind))
                continue;
            lie_play_open(&s, &lie_scenes[k], number_of(&list.field[i]));
            lie(&s, &lie_scenes[k], &list.field[i], 0, 2);
            lie(&s, &lie_scenes[k], &list.field[i], 0, 300);
            lie_play_close(&s);
        }
    }
}

/* --- messages that only others may send --- */

/* A message that no node has sent, with plausible fields; an id is that of the exchange that was prepared last. */
static void make_up(Peer__Head *head, Peer__Head__KindCase kind, const struct lie_play *s)
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
    struct lie_play *play;
    const struct lie_field *field;
    unsigned value; /* after all lies: the truth, or a plausible message */
    uint32_t initiator;
};

/* Sends a message on all links of the liar. */
static void butt_in(struct sim *sim, void *context)
{
    const struct butting *b = context;
    struct lie_play *s = b->play;
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
        head->outcome->initiator = b->initiator;
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
    /* In a place below the root with a child, and as a leaf. */
    static const unsigned where[] = {0, 8, 14};

    for (size_t i = 0; i < list.fields; i++) {
        if (!has_turn(i))
            continue;
        for (size_t k = number_of(&list.field[i]) % 3; k < sizeof where / sizeof *where; k += 3) {
            struct lie_play s;
            lie_play_open(&s, &lie_scenes[where[k]], number_of(&list.field[i]) + 1);
            for (unsigned value = 0; value <= lie_count(&list.field[i]); value++) {
                struct butting b = {&s, &list.field[i], value, value % 4};
                lie_play_watch_heap(&s);
                sim_set_lying(s.sim, LIAR, true);
                for (size_t t = 0; t < sizeof at / sizeof *at; t++)
                    sim_at(s.sim, sim_now(s.sim) + at[t] * MICROSECONDS, butt_in, &b);
                enum lie_result result = lie_play_run(&s, &lie_scenes[where[k]]);
                sim_pass(s.sim, 20 * MILLISECONDS); /* after its end, too */
                if (*only != '\0')
                    (void)printf("    %s %u, butting in, in %s: %s%s %s\n", list.field[i].name,
                                 value, lie_scenes[where[k]].name, lie_result_names[result],
                                 lie_named_names[lie_play_named(&s)], s.failure);
                lie_list_note(&list, &list.field[i], result, lie_play_named(&s), s.failure);
                lie_play_replace_liar(&s);
            }
            lie_play_close(&s);
        }
    }
}

/* --- the consequences according to the list --- */

static void the_list_says_what_comes_of_it(void **state)
{
    unsigned wrong = 0;

    for (size_t l = 0; l < list.lines; l++) {
        enum lie_result seen = LIE_NOTHING;
        enum lie_named named = LIE_NAMES_LIAR;
        const char *failure = "";
        bool lied = false;
        for (size_t i = 0; i < list.fields; i++)
            if (strcmp(list.field[i].name, list.line[l].name) == 0 && has_turn(i)) {
                lied = true;
                seen = list.found[i].worst > seen ? list.found[i].worst : seen;
                if (list.found[i].least_named > named) {
                    named = list.found[i].least_named;
                    failure = list.found[i].failure;
                }
            }
        if (!lied || (seen == list.line[l].result && named == list.line[l].named))
            continue;
        print_error("%s: %s%s, the list says %s%s  %s\n", list.line[l].name, lie_result_names[seen],
                    lie_named_names[named], lie_result_names[list.line[l].result],
                    lie_named_names[list.line[l].named], failure);
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

    /* For watch_heap(). Memory that is trimmed all the time would have to be allocated again all the time. */
    (void)mallopt(M_MMAP_MAX, 0);
    (void)mallopt(M_TRIM_THRESHOLD, LIE_HEAP_MOST / 4);
    if (argc > 2)
        only = argv[2];
    if (argc > 1 && strcmp(argv[1], "repetitions") == 0)
        return cmocka_run_group_tests(repetitions, read_list, NULL);
    return cmocka_run_group_tests(tests, read_list, NULL);
}
