#include "daemon/group/calls/call_match.h"

bool signatures_differ(const struct part *p, uint32_t our_signature, uint32_t their_signature,
                       unsigned port, struct error *e)
{
    uint32_t other = members_at(&p->members, torus_neighbour(p->torus, p->rank, port));
    uint32_t own = our_signature & 15, theirs = their_signature & 15;

    if (our_signature == their_signature)
        return false;
    if (own == GROUP_LEAVE || theirs == GROUP_LEAVE)
        (void)error_set(e, ERROR_USAGE, "member %u has left the group, member %u calls %s",
                        own == GROUP_LEAVE ? p->members.own : other,
                        own == GROUP_LEAVE ? other : p->members.own,
                        group_operation_name(own == GROUP_LEAVE ? theirs : own));
    else if (own != theirs)
        (void)error_set(e, ERROR_USAGE, "member %u calls %s, member %u %s", p->members.own,
                        group_operation_name(own), other, group_operation_name(theirs));
    else
        (void)error_set(e, ERROR_USAGE,
                        "members %u and %u call %s with different sizes, root, type or operator",
                        p->members.own < other ? p->members.own : other,
                        p->members.own < other ? other : p->members.own, group_operation_name(own));
    return true;
}

bool call_differs(const struct call *c, const struct peer_group_call *mark, unsigned port,
                  struct error *e)
{
    return signatures_differ(c->part, c->signature, mark->signature, port, e);
}

uint64_t calls_first(const struct part *p)
{
    return p->calls != NULL ? p->calls->number : p->next_number;
}

int calls_find(const struct part *p, const struct peer_group_call *mark, struct call **call,
               struct error *e)
{
    uint64_t first = calls_first(p);
    uint64_t ahead = (mark->number / STAGES_A_CALL - first) & CALL_MASK;

    *call = NULL;
    if (mark->number / STAGES_A_CALL > CALL_MASK || mark->number % STAGES_A_CALL >= STAGES)
        return error_set(e, ERROR_PROTOCOL, "group \"%s\": data of an impossible call (number %u)",
                         p->session->name, mark->number);
    if (ahead >= GROUP_WINDOW) {
        (void)error_set(e, ERROR_USAGE,
                        "members call differently: one member calls %s, but member %u has made "
                        "another call in its place",
                        group_operation_name(mark->signature & 15), p->members.own);
        return 1;
    }
    for (struct call *c = p->calls; c != NULL; c = c->next)
        if (c->number == first + ahead)
            *call = c;
    return 0;
}
