#include "client/libtorus/groups/group.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/libtorus/common.h"
#include "proto/dims.h"
#include "proto/group_call.h"

/* Opening and closing groups and parts, and their properties. */

#define DEFAULT_NAME "default"
#define RETRY_MS 100 /* interval between attempts to reach a daemon that is being restarted */

/* ---- The torus ------------------------------------------------------------------------------- */

/* Reads the sizes of the dimensions from a text like "4x8m", and sets the coordinates of this node. Returns 0, or -1
 * if the text or the rank is invalid. */
static int read_dims(struct group_session *s, const char *text, uint32_t rank)
{
    uint32_t nodes = 1;

    s->dims = dims_sizes(text, s->size, GROUP_DIMS);
    for (unsigned d = 0; d < s->dims; d++)
        nodes *= s->size[d];
    if (s->dims == 0 || rank >= nodes)
        return -1;
    for (unsigned d = s->dims; d-- > 0; rank /= s->size[d])
        s->coordinate[d] = rank % s->size[d];
    return 0;
}

/* Copies the text of these dimensions from `dims` to `out`. */
static void part_text(char *out, const char *dims, uint32_t dimensions)
{
    const char *times = strchr(dims, ' ') != NULL ? " x " : "x";
    size_t length = 0;

    for (unsigned d = 0;; d++) {
        size_t n = strcspn(dims, " x");
        if ((dimensions >> d & 1) != 0) {
            if (length > 0)
                length += (size_t)sprintf(out + length, "%s", times);
            memcpy(out + length, dims, n);
            length += n;
        }
        dims += n;
        if (*dims == '\0')
            break;
        dims += strspn(dims, " x");
    }
    out[length] = '\0';
}

static bool is_whole(const struct torus_group *g)
{
    return g->dimensions == (1u << g->session->dims) - 1;
}

/* Sets the number of members and the rank of this member. */
static void number_members(struct torus_group *g)
{
    const struct group_session *s = g->session;
    uint32_t here = 0;

    if (is_whole(g) && s->node != NULL) {
        for (unsigned d = 0; d < s->dims; d++)
            here = here * s->size[d] + s->coordinate[d];
        g->size = s->members;
        for (g->rank = 0; g->rank < g->size && s->node[g->rank] != here;)
            g->rank++;
        return;
    }
    g->size = 1;
    g->rank = 0;
    for (unsigned d = 0; d < s->dims; d++)
        if ((g->dimensions >> d & 1) != 0) {
            g->size *= s->size[d];
            g->rank = g->rank * s->size[d] + s->coordinate[d];
        }
}

uint32_t torus_group_node(const struct torus_group *group, uint32_t member)
{
    const struct group_session *s = group->session;
    uint32_t node = 0, factor = 1;

    if (member >= group->size)
        return TORUS_RANK_NONE;
    if (is_whole(group) && s->node != NULL)
        return s->node[member];
    for (unsigned d = s->dims; d-- > 0; factor *= s->size[d])
        if ((group->dimensions >> d & 1) != 0) {
            node += member % s->size[d] * factor;
            member /= s->size[d];
        } else {
            node += s->coordinate[d] * factor;
        }
    return node;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

/* Sets s->node to the nodes that are not missing; leaves it NULL if none is missing. */
static int find_members(struct group_session *s, const struct link_opened *o, struct torus_error *e)
{
    uint32_t nodes = 1;
    size_t next = 0;

    for (unsigned d = 0; d < s->dims; d++)
        nodes *= s->size[d];
    if (o->missing_count == 0)
        return 0;
    s->node = calloc(nodes, sizeof *s->node);
    if (s->node == NULL)
        return fail_memory(e);
    for (uint32_t node = 0; node < nodes; node++)
        if (next < o->missing_count && o->missing[next] == node)
            next++;
        else
            s->node[s->members++] = node;
    return 0;
}

static int open_link(struct torus_group *g, const struct link_options *options,
                     struct torus_error *e)
{
    struct group_session *s = g->session;
    struct link_opened opened;
    int result = link_open(&s->link, options, &opened, e);

    if (result == 0 && read_dims(s, opened.dims, opened.rank) != 0)
        result = fail(e, TORUS_ERROR_PROTOCOL, "the daemon's torus is invalid: rank %u of %s",
                      opened.rank, opened.dims);
    if (result == 0)
        result = find_members(s, &opened, e);
    free(opened.missing);
    if (result != 0)
        return -1;
    copy_text(g->text, sizeof g->text, opened.dims);
    copy_text(s->name, sizeof s->name, options->name);
    s->unchecked = options->unchecked;
    s->listed = options->member_count > 0;
    g->timeout_ms = options->timeout_ms;
    g->dimensions = (1u << s->dims) - 1;
    number_members(g);
    return 0;
}

static int new_group(const struct link_options *options, struct torus_group **group,
                     struct torus_error *e)
{
    struct torus_group *g = calloc(1, sizeof *g);

    if (g == NULL)
        return fail_memory(e);
    g->session = calloc(1, sizeof *g->session);
    if (g->session == NULL) {
        free(g);
        return fail_memory(e);
    }
    g->session->link = (struct program_link){.fd = -1, .doorbell = -1, .notices = -1};
    if (open_link(g, options, e) != 0) {
        torus_group_close(g);
        return -1;
    }
    *group = g;
    return 0;
}

/* Returns whether this user lacks the permission to connect, which waiting would not change. */
static bool is_denied(const struct link_options *options)
{
    char *path = socket_path(options->socket, PROGRAM_SOCKET_SUFFIX);
    bool denied = path != NULL && access(path, W_OK) != 0 && errno == EACCES;

    free(path);
    return denied;
}

/* Opens a group, and retries while no daemon answers. Retrying is safe: no call has been made in a group that is not
 * open. */
static int new_group_in_time(const struct link_options *options, struct torus_group **group,
                             struct torus_error *error)
{
    const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000};
    const int64_t until = clock_ms() + options->timeout_ms;
    struct link_options attempt = *options;
    struct torus_error e;

    while (new_group(&attempt, group, &e) != 0) {
        int64_t now = clock_ms();
        bool away =
            e.code == TORUS_ERROR_LOST || (e.code == TORUS_ERROR_NO_DAEMON && !is_denied(options));
        if (!away || (options->timeout_ms > 0 && now >= until)) {
            if (error != NULL)
                *error = e;
            return -1;
        }
        (void)nanosleep(&pause, NULL);
        if (options->timeout_ms > 0)
            attempt.timeout_ms = now + RETRY_MS < until ? (uint32_t)(until - now - RETRY_MS) : 1;
    }
    (*group)->timeout_ms = options->timeout_ms;
    return 0;
}

int torus_group_open(const struct torus_group_options *options, struct torus_group **group,
                     struct torus_error *error)
{
    struct torus_group_options o;

    *group = NULL;
    torus_group_options_init(&o);
    if (options != NULL && group_options_read(options, &o, error) != 0)
        return -1;
    const struct link_options link = {
        .socket = o.socket != NULL ? o.socket : torus_default_socket(),
        .name = o.name != NULL ? o.name : DEFAULT_NAME,
        .timeout_ms = o.timeout_ms,
        .memory_timeout_ms = o.memory_timeout_ms,
        .unchecked = o.unchecked,
        .leaves_out = o.shrink,
        .waits = o.wait,
        .members = o.members,
        .member_count = o.members != NULL ? o.member_count : 0,
    };

    if (o.members != NULL && o.member_count == 0)
        return fail(error, TORUS_ERROR_USAGE, "a group needs at least one member");
    if (o.shrink && o.members != NULL)
        return fail(error, TORUS_ERROR_USAGE,
                    "shrink and members exclude each other: a group of some nodes leaves out none");
    if (o.shrink && o.wait)
        return fail(
            error, TORUS_ERROR_USAGE,
            "shrink and wait exclude each other: nodes that are down are left out or waited for");
    if (link.name[0] == '\0' || strlen(link.name) >= GROUP_NAME_SIZE)
        return fail(error, TORUS_ERROR_USAGE,
                    "the name of a group must have 1 to %u bytes, not %zu", GROUP_NAME_SIZE - 1,
                    strlen(link.name));
    return o.wait ? new_group_in_time(&link, group, error) : new_group(&link, group, error);
}

int torus_group_shrink(struct torus_group *group, struct torus_group **shrunk,
                       struct torus_error *error)
{
    struct group_session *s = group->session;
    const struct link_options link = {
        .name = s->name,
        .timeout_ms = group->timeout_ms,
        .unchecked = s->unchecked,
        .shrinks = s->link.path,
    };

    *shrunk = NULL;
    if (group->is_part)
        return fail(error, TORUS_ERROR_USAGE, "a part cannot be shrunk: shrink the whole group");
    if (s->listed)
        return fail(
            error, TORUS_ERROR_USAGE,
            "a group of some nodes cannot be shrunk: open a group of the remaining members");
    /* The group may have failed on other nodes only. */
    if (link_check_group(&s->link, NULL) == 0)
        link_abandon(&s->link, "this program has left the group to shrink it");
    return new_group(&link, shrunk, error);
}

/* Frees the calls of a group or part that is being closed. Returns whether one was under way. */
static bool give_up_calls(struct torus_group *g)
{
    bool under_way = false;

    for (struct torus_call *c = g->session->calls; c != NULL; c = c->next)
        if (c->used && c->group == g) {
            struct torus_error ignored;
            under_way |= !c->ended && !link_has_ended(&g->session->link, c->number, &ignored);
            group_call_free(c);
        }
    return under_way;
}

static void close_part(struct torus_group *part)
{
    struct torus_group **at = &part->session->parts;

    while (*at != part)
        at = &(*at)->next;
    *at = part->next;
    if (give_up_calls(part))
        link_abandon(&part->session->link, "a part was closed while a call was under way");
    free(part);
}

static void close_session(struct group_session *s)
{
    link_close(&s->link);
    group_memory_free(s);
    staging_free(&s->staging, &s->link);
    free(s->node);
    while (s->calls != NULL) {
        struct torus_call *call = s->calls;
        s->calls = call->next;
        free(call);
    }
    while (s->parts != NULL) {
        struct torus_group *part = s->parts;
        s->parts = part->next;
        free(part);
    }
    free(s);
}

void torus_group_close(struct torus_group *group)
{
    if (group == NULL)
        return;
    if (group->is_part) {
        close_part(group);
    } else {
        close_session(group->session);
        free(group);
    }
}

static int check_part(const struct torus_group *g, uint32_t dimensions, struct torus_error *e)
{
    if (g->is_part)
        return fail(e, TORUS_ERROR_USAGE,
                    "a part of a part is not possible: open it from the whole group");
    if (dimensions == 0 || dimensions >> g->session->dims != 0)
        return fail(e, TORUS_ERROR_USAGE,
                    "there is no part with dimensions 0x%x: the torus %s has %u dimensions",
                    (unsigned)dimensions, g->text, g->session->dims);
    for (const struct torus_group *p = g->session->parts; p != NULL; p = p->next)
        if (p->dimensions == dimensions)
            return fail(e, TORUS_ERROR_REFUSED, "the part with dimensions 0x%x is open already",
                        (unsigned)dimensions);
    return 0;
}

int torus_group_part(struct torus_group *group, uint32_t dimensions, struct torus_group **part,
                     struct torus_error *error)
{
    struct call_setup operation = {.request.operation = GROUP_PART};
    struct torus_group *p;
    struct torus_call *call;

    *part = NULL;
    if (check_part(group, dimensions, error) != 0)
        return -1;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return fail_memory(error);
    p->is_part = true;
    p->session = group->session;
    p->dimensions = dimensions;
    p->timeout_ms = group->timeout_ms;
    p->late_ms = group->late_ms;
    number_members(p);
    part_text(p->text, group->text, dimensions);
    /* The daemon must be told of a part, but not of a part with all dimensions, which is the group itself. */
    if (dimensions != group->dimensions &&
        (group_start(p, &operation, &call, error) != 0 || torus_call_wait(call, error) != 0)) {
        free(p);
        return -1;
    }
    p->next = group->session->parts;
    group->session->parts = p;
    *part = p;
    return 0;
}

/* ---- Properties ------------------------------------------------------------------------------ */

uint32_t torus_group_rank(const struct torus_group *group)
{
    return group->rank;
}

uint32_t torus_group_size(const struct torus_group *group)
{
    return group->size;
}

const char *torus_group_dims(const struct torus_group *group)
{
    return group->text;
}

int torus_group_changes(const struct torus_group *group, uint32_t *changes, struct torus_error *e)
{
    if (link_check_group(&group->session->link, e) != 0)
        return -1;
    *changes = link_changes(&group->session->link);
    return 0;
}

void torus_group_describe(struct torus_group *group, const char *type, const size_t *shape,
                          uint32_t dimensions)
{
    data_kind_set(&group->next_data, type, shape, dimensions);
}

void torus_group_set_timeout(struct torus_group *group, uint32_t milliseconds)
{
    group->timeout_ms = milliseconds;
}

void torus_group_set_late(struct torus_group *group, uint32_t milliseconds)
{
    group->late_ms = milliseconds;
}

int torus_group_fd(const struct torus_group *group)
{
    return link_notices(&group->session->link);
}
