#include "daemon/torusd/planning/spec.h"

#include <stdio.h>
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
                            .grows = message->grows,
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
    text_clean((char *)(uintptr_t)s->members);
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
    message->grows = s->grows;
    message->timeout_ms = s->timeout_ns / MILLISECOND;
}

/* --- members --- */

int spec_members_write(const bool *is_member, uint32_t nodes, char *text, size_t size,
                       struct error *e)
{
    size_t used = 0;
    uint32_t count = 0;

    text[0] = '\0';
    for (uint32_t first = 0; first < nodes; first++) {
        uint32_t last = first;
        if (!is_member[first])
            continue;
        while (last + 1 < nodes && is_member[last + 1])
            last++;
        if (size - used < 32)
            return error_set(e, ERROR_REFUSED, "the list of the members is too long");
        used += (size_t)snprintf(text + used, size - used, "%s%u", used > 0 ? "," : "", first);
        if (last > first)
            used += (size_t)snprintf(text + used, size - used, "-%u", last);
        count += last - first + 1;
        first = last;
    }
    if (count == 0)
        return error_set(e, ERROR_USAGE, "a group needs at least one member");
    if (count == nodes)
        text[0] = '\0';
    return 0;
}

/* Reads a rank, without leading zeros. Returns 0 with *text behind it, or -1. */
static int read_rank(const char **text, uint32_t *rank)
{
    const char *at = *text;
    uint64_t number = 0;

    if (*at < '0' || *at > '9' || (*at == '0' && at[1] >= '0' && at[1] <= '9'))
        return -1;
    for (; *at >= '0' && *at <= '9' && number <= UINT32_MAX; at++)
        number = 10 * number + (uint64_t)(*at - '0');
    *text = at;
    *rank = (uint32_t)number;
    return number < UINT32_MAX ? 0 : -1;
}

/* Reads a rank or a range of ranks, and the comma behind it. Returns 0, or -1. */
static int read_range(const char **text, uint32_t *first, uint32_t *last)
{
    if (read_rank(text, first) != 0)
        return -1;
    *last = *first;
    if (**text == '-') {
        (*text)++;
        if (read_rank(text, last) != 0 || *last <= *first)
            return -1;
    }
    if (**text == ',')
        return *++*text != '\0' ? 0 : -1;
    return **text == '\0' ? 0 : -1;
}

int spec_members_read(const char *text, uint32_t nodes, bool *is_member, struct error *e)
{
    const char *at = text;
    uint32_t first, last, next = 0, count = 0;

    for (uint32_t node = 0; is_member != NULL && node < nodes; node++)
        is_member[node] = false;
    while (*at != '\0') {
        /* Ranges that touch would be one range. */
        if (read_range(&at, &first, &last) != 0 || last >= nodes || (next > 0 && first <= next))
            return error_set(e, ERROR_USAGE,
                             "\"%.40s\" is not a list of members of a torus with %u %s", text,
                             nodes, text_plural(nodes, "node", "nodes"));
        for (uint32_t node = first; is_member != NULL && node <= last; node++)
            is_member[node] = true;
        count += last - first + 1;
        next = last + 1;
    }
    if (count == 0 || count == nodes)
        return error_set(e, ERROR_USAGE, "a list of members names some nodes, not %s",
                         count == 0 ? "none" : "all");
    return 0;
}

bool spec_is_member(const struct spec *s, uint32_t rank)
{
    const char *at = s->members;
    uint32_t first, last;

    if (!spec_has_members(s))
        return true;
    while (*at != '\0' && read_range(&at, &first, &last) == 0)
        if (rank >= first && rank <= last)
            return true;
    return false;
}

uint32_t spec_first_member(const char *members)
{
    uint32_t first;

    return read_rank(&members, &first) == 0 ? first : 0;
}

static int check_members(const struct spec *s, const struct torus *t, struct error *e)
{
    if (!spec_has_members(s))
        return 0;
    if (s->operation != OPERATION_GROUP)
        return error_set(e, ERROR_USAGE, "only groups can have some nodes as members");
    if (s->shrink)
        return error_set(e, ERROR_USAGE, "a group of some nodes cannot leave out nodes");
    if (strlen(s->members) >= SPEC_MEMBERS_SIZE)
        return error_set(e, ERROR_USAGE, "the list of the members is too long");
    return spec_members_read(s->members, t->nodes, NULL, e);
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
    if (check_members(s, t, e) != 0)
        return -1;
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
