#include "daemon/torusd/planning/spec.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/family.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/torusd/planning/schedule_store.h"
#include "proto/control_fields.h"
#include "proto/text.h"

#define MILLISECOND UINT64_C(1000000)

static const char *const modes[] = {
    [MODE_OF_ALGORITHM] = "", [MODE_STEPPED] = "stepped", [MODE_STREAMING] = "streaming"};

int mode_parse(const char *name, enum mode *mode)
{
    for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(name, modes[i]) == 0) {
            *mode = (enum mode)i;
            return 0;
        }
    }
    return -1;
}

const char *mode_name(enum mode mode)
{
    return modes[mode];
}

void spec_free(struct spec *s)
{
#define FREE(type, number, text) free((char *)(uintptr_t)s->text);
    SPEC_TEXTS(FREE)
#undef FREE
    *s = (struct spec){0};
}

static char *copy_text(const char *text, bool *good)
{
    char *copy = strdup(text != NULL ? text : "");

    *good = *good && copy != NULL;
    return copy;
}

int spec_copy(struct spec *to, const struct spec *from, struct error *e)
{
    bool good = true;

    *to = *from;
#define COPY(type, number, text) to->text = copy_text(from->text, &good);
    SPEC_TEXTS(COPY)
#undef COPY
    if (to->repeat == 0)
        to->repeat = 1;
    if (good)
        return 0;
    spec_free(to);
    return error_set(e, ERROR_MEMORY, "out of memory");
}

int spec_unpack(struct spec *s, const Torus__Spec *message, struct error *e)
{
#define READ(type, number, field) .field = message->field,
    struct spec borrowed = {.unchecked = message->unchecked,
                            .timeout_ns = message->timeout_ms > SPEC_LONGEST_TIMEOUT / MILLISECOND
                                              ? SPEC_LONGEST_TIMEOUT
                                              : message->timeout_ms * MILLISECOND,
                            SPEC_TEXTS(READ) SPEC_NUMBERS(READ)};
#undef READ

    if (mode_parse(message->mode, &borrowed.mode) != 0)
        return error_set(e, ERROR_USAGE, "mode \"%.20s\" is neither stepped nor streaming",
                         message->mode);
    if (spec_copy(s, &borrowed, e) != 0)
        return -1;
    text_clean((char *)(uintptr_t)s->schedule); /* the texts are our copies */
    text_clean((char *)(uintptr_t)s->algorithm);
    text_clean((char *)(uintptr_t)s->barrier);
    return 0;
}

void spec_pack(const struct spec *s, Torus__Spec *message)
{
    torus__spec__init(message);
#define WRITE_TEXT(type, number, field) message->field = (char *)(uintptr_t)s->field;
#define WRITE_NUMBER(type, number, field) message->field = s->field;
    SPEC_TEXTS(WRITE_TEXT)
    SPEC_NUMBERS(WRITE_NUMBER)
#undef WRITE_TEXT
#undef WRITE_NUMBER
    message->mode = (char *)(uintptr_t)mode_name(s->mode);
    message->unchecked = s->unchecked;
    message->timeout_ms = s->timeout_ns / MILLISECOND;
}

/* Checks the text that names the algorithm. */
static int check_name(const struct spec *s, const struct torus *t, struct error *e)
{
    char names[ALGORITHM_NAMES_SIZE];

    if (spec_has_schedule(s)) {
        if (!schedules_is_digest(s->schedule))
            return error_set(e, ERROR_USAGE, "\"%.20s\" is not the digest of a schedule",
                             s->schedule);
        if (s->algorithm[0] != '\0')
            return error_set(
                e, ERROR_USAGE,
                "the request names a schedule and an algorithm: give one or the other");
        return 0;
    }
    if (family_check(s->algorithm, t, e) != 0)
        return -1;
    if (spec_leaves_choice(s) || algorithm_find(s->algorithm) != NULL)
        return 0;
    return error_set(e, ERROR_USAGE,
                     "unknown algorithm \"%.40s\" for operation %s; known are: %s, %s",
                     s->algorithm, schedule_operation_name(s->operation), SPEC_AUTO,
                     algorithm_names_for(s->operation, names));
}

int spec_check(const struct spec *s, const struct torus *t, struct error *e)
{
    bool barrier = spec_is_entered(s);

    if (s->operation >= OPERATIONS)
        return error_set(e, ERROR_USAGE, "operation %u does not exist", (unsigned)s->operation);
    if (strlen(s->from) >= SPEC_PATH_SIZE || strlen(s->to) >= SPEC_PATH_SIZE)
        return error_set(e, ERROR_USAGE, "a path is longer than %u bytes", SPEC_PATH_SIZE - 1);
    if (strlen(s->barrier) >= SPEC_BARRIER_SIZE)
        return error_set(e, ERROR_USAGE, "the name of a %s is longer than %u bytes",
                         schedule_operation_name(s->operation), SPEC_BARRIER_SIZE - 1);
    if (s->block_bytes > SPEC_BLOCK_MOST)
        return error_set(e, ERROR_USAGE, "blocks are larger than 64 TiB");
    if (barrier && (s->block_bytes > 0 || spec_has_folders(s)))
        return error_set(e, ERROR_USAGE, "a %s has no blocks",
                         schedule_operation_name(s->operation));
    if (s->operation == OPERATION_BROADCAST && s->sender >= t->nodes)
        return error_set(e, ERROR_USAGE, "node %u is not in this torus, which has %u %s", s->sender,
                         t->nodes, text_plural(t->nodes, "node", "nodes"));
    if ((s->from[0] == '\0') != (s->to[0] == '\0'))
        return error_set(
            e, ERROR_USAGE,
            "only one of the source folder and the target folder is given: give both or neither");
    if (s->replace && !spec_has_folders(s))
        return error_set(e, ERROR_USAGE,
                         "there is no target folder to replace: give a source and a target folder");
    if (s->repeat > SPEC_REPEAT_MOST)
        return error_set(e, ERROR_USAGE, "%u repetitions are too many: at most %u are possible",
                         s->repeat, SPEC_REPEAT_MOST);
    if (s->repeat > 1 && (spec_has_folders(s) || barrier))
        return error_set(
            e, ERROR_USAGE,
            "only exchanges of generated blocks can be repeated, not exchanges of folders");
    if (s->shrink && s->operation != OPERATION_GROUP &&
        (s->operation != OPERATION_EXCHANGE || spec_has_schedule(s)))
        return error_set(e, ERROR_USAGE,
                         "only exchanges with algorithm auto can leave out nodes that are down");
    if (s->shrink && s->wait)
        return error_set(e, ERROR_USAGE,
                         "nodes that are down can be left out or waited for, not both: choose one");
    if (barrier && spec_has_schedule(s))
        return error_set(e, ERROR_USAGE, "a %s has no schedule",
                         schedule_operation_name(s->operation));
    return check_name(s, t, e);
}

int spec_check_algorithm(const struct spec *s, const struct torus *t, const struct algorithm *a,
                         enum mode *mode, struct error *e)
{
    if (a->operation != schedule_operation_of_algorithms(s->operation))
        return error_set(e, ERROR_USAGE, "%s is not an algorithm for operation %s, but for %s",
                         a->name, schedule_operation_name(s->operation),
                         schedule_operation_name(a->operation));
    if (algorithm_accepts(a, t, e) != 0)
        return -1;
    if (*mode == MODE_OF_ALGORITHM)
        *mode = a->streaming ? MODE_STREAMING : MODE_STEPPED;
    if (*mode == MODE_STREAMING && (a->port_model != PORT_MODEL_ALL || a->ports > 0))
        return error_set(e, ERROR_USAGE,
                         "mode streaming is for all-port algorithms; %s is %s: use --mode stepped",
                         a->name, algorithm_ports_name(a));
    return 0;
}

bool spec_leaves_choice(const struct spec *s)
{
    return strcmp(s->algorithm, SPEC_AUTO) == 0 || family_of_best(s->algorithm) != NULL;
}

bool spec_chooses_late(const struct spec *s)
{
    return s->operation == OPERATION_EXCHANGE && spec_has_folders(s) && spec_leaves_choice(s);
}
