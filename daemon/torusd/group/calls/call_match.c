#include "daemon/torusd/group/calls/call_match.h"

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

/* What one member knows of the data of a call. */
struct told {
    struct data_kind data;
    uint32_t member;
};

/* Returns the name of the type for an error. */
static const char *type_text(uint32_t type)
{
    const char *name = reduction_type_name(type);

    return name != NULL ? name : "another type";
}

/* Whether what two members have told of their data differs, and if so, sets *e to say so. */
static bool data_differs(const struct told *a, const struct told *b, const char *operation,
                         struct error *e)
{
    if (a->member > b->member)
        return data_differs(b, a, operation, e);
    if (a->data.type != b->data.type && a->data.type != 0 && b->data.type != 0) {
        (void)error_set(e, ERROR_USAGE,
                        "member %u calls %s with elements of type %s, member %u with %s", a->member,
                        operation, type_text(a->data.type), b->member, type_text(b->data.type));
        return true;
    }
    if (a->data.shape != b->data.shape && a->data.shape != 0 && b->data.shape != 0) {
        (void)error_set(e, ERROR_USAGE, "members %u and %u call %s with arrays of different shapes",
                        a->member, b->member, operation);
        return true;
    }
    return false;
}

/* Compares what the mark says of the data. A call whose own data is unknown takes it over, so that it reaches all
 * members that the data of this one reaches. */
static bool mark_differs(struct call *c, const struct peer_group_call *mark, unsigned port,
                         struct error *e)
{
    const struct part *p = c->part;
    const struct told ours = {c->data, c->data_member};
    struct told theirs = {{mark->data_type, mark->data_shape}, mark->data_member - 1};

    if (!c->compares_data || !data_kind_is_known(&theirs.data))
        return false;
    if (mark->data_member == 0 || theirs.member >= p->members.count)
        theirs.member = members_at(&p->members, torus_neighbour(p->torus, p->rank, port));
    if (data_kind_is_known(&ours.data))
        return data_differs(&ours, &theirs, group_operation_name(c->what.call.operation), e);
    call_set_data(c, &theirs.data, theirs.member);
    return false;
}

bool call_differs(struct call *c, const struct peer_group_call *mark, unsigned port,
                  struct error *e)
{
    const bool same_operation = ((c->signature ^ mark->signature) & 15) == 0;

    /* First what says more: the signature only tells that something differs. */
    return (same_operation && mark_differs(c, mark, port, e)) ||
           signatures_differ(c->part, c->signature, mark->signature, port, e);
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
