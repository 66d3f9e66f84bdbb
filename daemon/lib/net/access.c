#include "daemon/lib/net/access.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GROUPS_USUAL 32u
#define NOBODY 65534u

static const struct {
    const char *setting, *allows;
} accesses[ACCESSES] = {
    [ACCESS_NONE] = {"", ""},
    [ACCESS_READ] = {"read_group", "ask this daemon for its state"},
    [ACCESS_EXCHANGE] = {"exchange_group", "start exchanges or open groups at this daemon"},
    [ACCESS_ADMIN] = {"admin_group", "change settings of this daemon"},
};

int access_resolve(struct access_rules *rules, const char *const name[ACCESSES], struct error *e)
{
    *rules = (struct access_rules){0};
    for (enum access a = ACCESS_READ; a < ACCESSES; a++) {
        bool own = name[a][0] == '\0';
        errno = 0;
        const struct group *group = own ? getgrgid(getegid()) : getgrnam(name[a]);
        if (!own && group == NULL)
            return error_set(e, ERROR_USAGE, "%s: there is no group \"%.60s\" on this system%s%s",
                             accesses[a].setting, name[a], errno != 0 ? ": " : "",
                             errno != 0 ? strerror(errno) : "");
        rules->checked |= !own;
        rules->group[a].id = own ? getegid() : group->gr_gid;
        if (group != NULL)
            (void)snprintf(rules->group[a].name, ACCESS_NAME_SIZE, "%s", group->gr_name);
        else
            (void)snprintf(rules->group[a].name, ACCESS_NAME_SIZE, "%u", (unsigned)getegid());
    }
    return 0;
}

/* Returns the highest access that membership in these groups gives. */
static enum access access_of_members(const struct access_rules *rules, const gid_t *groups,
                                     size_t count)
{
    for (enum access a = ACCESS_ADMIN; a > ACCESS_NONE; a--)
        for (size_t i = 0; i < count; i++)
            if (groups[i] == rules->group[a].id)
                return a;
    return ACCESS_NONE;
}

/* Returns the access that the supplementary groups of the process give. */
static enum access access_of_groups(const struct access_rules *rules, int fd)
{
    gid_t usual[GROUPS_USUAL], *groups = usual;
    socklen_t length = sizeof usual;
    enum access result = ACCESS_NONE;
    int failed = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &length);

    if (failed != 0 && errno == ERANGE) {
        groups = malloc(length);
        failed = groups == NULL ? -1 : getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &length);
    }
    if (failed == 0)
        result = access_of_members(rules, groups, length / sizeof *groups);
    if (groups != usual)
        free(groups);
    return result;
}

enum access access_of_peer(const struct access_rules *rules, int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;
    enum access first, other;

    if (!rules->checked)
        return ACCESS_ADMIN;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0)
        return ACCESS_NONE;
    if (peer.uid == 0 || peer.uid == geteuid())
        return ACCESS_ADMIN;
    first = access_of_members(rules, &peer.gid, 1);
    other = access_of_groups(rules, fd);
    return first > other ? first : other;
}

uint32_t access_user(int fd)
{
    struct ucred peer;
    socklen_t length = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.uid : NOBODY;
}

int access_check(const struct access_rules *rules, enum access has, enum access needed,
                 struct error *e)
{
    if (has >= needed)
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "permission denied: only members of the group %s (%s) may %s; a user who was "
                     "added to the group must log in again",
                     rules->group[needed].name, accesses[needed].setting, accesses[needed].allows);
}
