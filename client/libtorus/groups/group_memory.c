#include <stdlib.h>

#include "client/libtorus/common/fail.h"
#include "client/libtorus/groups/group_memory.h"
#include "client/libtorus/link/calls.h"

const struct shared_memory *group_memory_of(const struct group_session *session, const void *at)
{
    const uint8_t *byte = at;

    for (const struct group_memory *m = session->memories; m != NULL; m = m->next)
        if (byte >= m->shared.data && byte < m->shared.data + m->shared.size)
            return &m->shared;
    return NULL;
}

void *torus_memory_new(struct torus_group *group, size_t bytes, struct torus_error *error)
{
    struct group_session *session = group->session;
    struct group_memory *memory;

    if (bytes == 0) {
        (void)fail(error, TORUS_ERROR_USAGE, "memory of 0 bytes cannot be allocated");
        return NULL;
    }
    if (link_check_group(&session->link, error) != 0)
        return NULL;
    memory = calloc(1, sizeof *memory);
    if (memory == NULL) {
        (void)fail_memory(error);
        return NULL;
    }
    if (link_memory_new(&session->link, bytes, &memory->shared, error) != 0) {
        free(memory);
        return NULL;
    }
    memory->next = session->memories;
    session->memories = memory;
    return memory->shared.data;
}

static void unlink_memory(struct group_session *session, struct group_memory **at)
{
    struct group_memory *memory = *at;

    *at = memory->next;
    link_memory_free(&session->link, &memory->shared);
    free(memory);
}

void torus_memory_free(struct torus_group *group, void *memory)
{
    for (struct group_memory **at = &group->session->memories; *at != NULL; at = &(*at)->next)
        if ((*at)->shared.data == memory) {
            unlink_memory(group->session, at);
            return;
        }
}

void group_memory_free(struct group_session *session)
{
    while (session->memories != NULL)
        unlink_memory(session, &session->memories);
}
