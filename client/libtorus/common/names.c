#include "client/libtorus/common/names.h"

#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static const char *const states[] = {
    [TORUS_STATE_UNKNOWN] = "unknown",     [TORUS_STATE_WAITING] = "waiting",
    [TORUS_STATE_ENTERED] = "entered",     [TORUS_STATE_OPENING] = "opening",
    [TORUS_STATE_OPENED] = "opened",       [TORUS_STATE_PREPARING] = "preparing",
    [TORUS_STATE_READY] = "ready",         [TORUS_STATE_RUNNING] = "running",
    [TORUS_STATE_PAUSED] = "paused",       [TORUS_STATE_DONE] = "done",
    [TORUS_STATE_DECIDING] = "deciding",   [TORUS_STATE_COMMITTING] = "committing",
    [TORUS_STATE_FAILING] = "failing",     [TORUS_STATE_FINISHED] = "finished",
    [TORUS_STATE_COMMITTED] = "committed", [TORUS_STATE_FAILED] = "failed",
    [TORUS_STATE_IN_DOUBT] = "in doubt",
};
static const char *const link_states[] = {
    [TORUS_LINK_UNKNOWN] = "unknown", [TORUS_LINK_DIALLING] = "dialling",
    [TORUS_LINK_WAITING] = "waiting", [TORUS_LINK_HELLO] = "hello",
    [TORUS_LINK_UP] = "up",           [TORUS_LINK_HELD] = "held",
    [TORUS_LINK_PROBING] = "probing",
};
static const char *const operations[] = {
    [TORUS_EXCHANGE] = "exchange",
    [TORUS_ALLGATHER] = "allgather",
    [TORUS_BROADCAST] = "broadcast",
    [TORUS_BARRIER] = "barrier",
};
static const char *const modes[] = {
    [TORUS_MODE_ANY] = "any",
    [TORUS_MODE_STEPPED] = "stepped",
    [TORUS_MODE_STREAMING] = "streaming",
};
static const char *const checks[] = {
    [TORUS_CHECK_NOTHING] = "nothing",
    [TORUS_CHECK_DIGESTS] = "digests",
    [TORUS_CHECK_BYTES] = "every byte",
};

static const char *name_of(const char *const *names, size_t count, unsigned value)
{
    return value < count ? names[value] : "unknown";
}

/* Returns the index of the name in the list, or `count`. */
static size_t place_of(const char *const *names, size_t count, const char *name)
{
    size_t i = 0;
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    return i;
}

const char *torus_state_name(enum torus_state state)
{
    return name_of(states, COUNT(states), (unsigned)state);
}

const char *torus_link_state_name(enum torus_link_state state)
{
    return name_of(link_states, COUNT(link_states), (unsigned)state);
}

const char *torus_operation_name(enum torus_operation operation)
{
    return name_of(operations, COUNT(operations), (unsigned)operation);
}

const char *torus_mode_name(enum torus_mode mode)
{
    return name_of(modes, COUNT(modes), (unsigned)mode);
}

const char *torus_check_name(enum torus_check check)
{
    return name_of(checks, COUNT(checks), (unsigned)check);
}

enum torus_state state_named(const char *name)
{
    size_t i = place_of(states, COUNT(states), name);
    return i < COUNT(states) ? (enum torus_state)i : TORUS_STATE_UNKNOWN;
}

enum torus_link_state link_state_named(const char *name)
{
    size_t i = place_of(link_states, COUNT(link_states), name);
    return i < COUNT(link_states) ? (enum torus_link_state)i : TORUS_LINK_UNKNOWN;
}

enum torus_mode mode_named(const char *name)
{
    size_t i = place_of(modes, COUNT(modes), name);
    return i < COUNT(modes) ? (enum torus_mode)i : TORUS_MODE_ANY;
}

int operation_named(const char *name, enum torus_operation *operation)
{
    size_t i = place_of(operations, COUNT(operations), name);
    if (i == COUNT(operations))
        return -1;
    *operation = (enum torus_operation)i;
    return 0;
}
