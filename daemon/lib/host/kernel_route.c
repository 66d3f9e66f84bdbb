#include "daemon/lib/host/kernel_route.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "daemon/lib/host/netlink.h"
#include "proto/routes.h"

#define RULES_MOST 4096u
#define ANSWERS_MOST 16u

struct kernel_rule {
    uint32_t priority, table, mark, mask;
    uint8_t action, family, to_length, from_length;
    uint8_t to[16], from[16];
    bool inverted,
        elsewhere; /* elsewhere: for packets that come by an interface, or leave by a chosen one */
};

static unsigned which(int family)
{
    return family == AF_INET ? 0 : 1;
}

static size_t bytes_of(int family)
{
    return family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
}

/* --- the rules --- */

static void take(void *to, size_t size, const struct rtattr *a)
{
    memcpy(to, RTA_DATA(a), RTA_PAYLOAD(a) < size ? RTA_PAYLOAD(a) : size);
}

static void take_attribute(struct kernel_rule *rule, const struct rtattr *a)
{
    switch (a->rta_type) {
    case FRA_PRIORITY:
        take(&rule->priority, sizeof rule->priority, a);
        break;
    case FRA_TABLE:
        take(&rule->table, sizeof rule->table, a);
        break;
    case FRA_FWMARK:
        take(&rule->mark, sizeof rule->mark, a);
        break;
    case FRA_FWMASK:
        take(&rule->mask, sizeof rule->mask, a);
        break;
    case FRA_DST:
        take(rule->to, sizeof rule->to, a);
        break;
    case FRA_SRC:
        take(rule->from, sizeof rule->from, a);
        break;
    case FRA_IIFNAME: /* packets of the host itself come by lo */
        rule->elsewhere |= strncmp(RTA_DATA(a), "lo", RTA_PAYLOAD(a)) != 0;
        break;
    case FRA_OIFNAME:
    case FRA_L3MDEV:
        rule->elsewhere = true;
        break;
    default:
        break;
    }
}

static void on_rule(const struct nlmsghdr *m, void *context)
{
    const struct fib_rule_hdr *head = NLMSG_DATA(m);
    struct kernel_routes *k = context;
    struct kernel_rule *more;
    unsigned left, list;

    if (m->nlmsg_type != RTM_NEWRULE || m->nlmsg_len < NLMSG_LENGTH(sizeof *head) ||
        (head->family != AF_INET && head->family != AF_INET6))
        return;
    list = which(head->family);
    if (k->rules[list] == RULES_MOST)
        return;
    more = reallocarray(k->rule[list], k->rules[list] + 1, sizeof *more);
    if (more == NULL)
        return;
    k->rule[list] = more;
    more += k->rules[list]++;
    *more = (struct kernel_rule){.table = head->table,
                                 .action = head->action,
                                 .family = head->family,
                                 .to_length = head->dst_len,
                                 .from_length = head->src_len,
                                 .mask = UINT32_MAX,
                                 .inverted = (head->flags & FIB_RULE_INVERT) != 0};
    left = m->nlmsg_len - (unsigned)NLMSG_LENGTH(sizeof *head);
    for (const struct rtattr *a = (const void *)((const char *)head + NLMSG_ALIGN(sizeof *head));
         RTA_OK(a, left); a = RTA_NEXT(a, left))
        take_attribute(more, a);
}

int kernel_routes_open(struct kernel_routes *k)
{
    const struct timeval patience = {.tv_sec = 1};

    *k = (struct kernel_routes){.fd = -1};
    if (host_netlink_list(RTM_GETRULE, AF_INET, on_rule, k) != 0)
        return -1;
    (void)host_netlink_list(RTM_GETRULE, AF_INET6, on_rule, k);
    k->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (k->fd < 0)
        return -1;
    return setsockopt(k->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

void kernel_routes_close(struct kernel_routes *k)
{
    if (k->fd >= 0)
        (void)close(k->fd);
    free(k->rule[0]);
    free(k->rule[1]);
    *k = (struct kernel_routes){.fd = -1};
}

static bool begins_alike(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    const unsigned whole = bits / 8, rest = bits % 8;

    return memcmp(a, b, whole) == 0 &&
           (rest == 0 || ((a[whole] ^ b[whole]) & (0xff << (8 - rest)) & 0xff) == 0);
}

/* Whether a rule is about packets of this host without a mark. */
static bool matches(const struct kernel_rule *rule, const void *to, const void *from)
{
    static const uint8_t any[16];
    const bool all = begins_alike(rule->to, to, rule->to_length) &&
                     begins_alike(rule->from, from != NULL ? from : any, rule->from_length) &&
                     (rule->mark & rule->mask) == 0 && !rule->elsewhere;

    return all != rule->inverted;
}

/* Returns the first rule that leads to a table, or that refuses packets with this error; NULL: it is not known. */
static const struct kernel_rule *find_rule(const struct kernel_routes *k, int family,
                                           const void *to, const void *from, uint32_t table,
                                           int error)
{
    const struct kernel_rule *rule = k->rule[which(family)];

    for (unsigned i = 0; i < k->rules[which(family)]; i++) {
        const int refusal = rule[i].action == FR_ACT_BLACKHOLE     ? EINVAL
                            : rule[i].action == FR_ACT_UNREACHABLE ? ENETUNREACH
                            : rule[i].action == FR_ACT_PROHIBIT    ? EACCES
                                                                   : 0;
        if (matches(&rule[i], to, from) &&
            (error != 0 ? refusal == error
                        : rule[i].action == FR_ACT_TO_TBL && rule[i].table == table))
            return &rule[i];
    }
    return NULL;
}

/* --- the question --- */

struct question {
    struct nlmsghdr head;
    struct rtmsg route;
    uint8_t attributes[64];
};

static void put(struct question *q, unsigned short type, const void *value, size_t size)
{
    struct rtattr *a = (struct rtattr *)(void *)((uint8_t *)q + NLMSG_ALIGN(q->head.nlmsg_len));

    a->rta_type = type;
    a->rta_len = (unsigned short)RTA_LENGTH(size);
    memcpy(RTA_DATA(a), value, size);
    q->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(q->head.nlmsg_len) + RTA_ALIGN(a->rta_len));
}

struct found {
    int error;
    uint32_t table, metric, interface;
    uint8_t protocol, type;
};

static void take_found(struct found *f, const struct nlmsghdr *m)
{
    const struct rtmsg *route = NLMSG_DATA(m);
    unsigned left = m->nlmsg_len - (unsigned)NLMSG_LENGTH(sizeof *route);

    *f = (struct found){
        .table = route->rtm_table, .protocol = route->rtm_protocol, .type = route->rtm_type};
    for (const struct rtattr *a = RTM_RTA(route); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        if (a->rta_type == RTA_TABLE)
            take(&f->table, sizeof f->table, a);
        else if (a->rta_type == RTA_PRIORITY)
            take(&f->metric, sizeof f->metric, a);
        else if (a->rta_type == RTA_OIF)
            take(&f->interface, sizeof f->interface, a);
    }
}

/* Returns 0, or -1 if the kernel does not answer. */
static int hear(const struct kernel_routes *k, struct found *f)
{
    union {
        struct nlmsghdr head;
        char bytes[8192];
    } answer;

    for (unsigned i = 0; i < ANSWERS_MOST; i++) {
        const ssize_t length = recv(k->fd, &answer, sizeof answer, 0);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0 || !NLMSG_OK(&answer.head, (size_t)length))
            return -1;
        if (answer.head.nlmsg_seq != k->sequence)
            continue; /* an answer that came too late */
        if (answer.head.nlmsg_type == NLMSG_ERROR) {
            *f = (struct found){.error =
                                    -((const struct nlmsgerr *)NLMSG_DATA(&answer.head))->error};
            return 0;
        }
        if (answer.head.nlmsg_type != RTM_NEWROUTE ||
            answer.head.nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)))
            return -1;
        take_found(f, &answer.head);
        return 0;
    }
    return -1;
}

static int ask(struct kernel_routes *k, int family, const void *to, const void *from,
               struct found *f)
{
    const size_t size = bytes_of(family);
    struct question q = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof q.route),
                                  .nlmsg_type = RTM_GETROUTE,
                                  .nlmsg_flags = NLM_F_REQUEST,
                                  .nlmsg_seq = ++k->sequence},
                         .route = {.rtm_family = (unsigned char)family,
                                   .rtm_dst_len = (unsigned char)(8 * size),
                                   .rtm_flags = RTM_F_LOOKUP_TABLE | RTM_F_FIB_MATCH}};

    put(&q, RTA_DST, to, size);
    if (from != NULL) {
        q.route.rtm_src_len = q.route.rtm_dst_len;
        put(&q, RTA_SRC, from, size);
    }
    if (send(k->fd, &q, q.head.nlmsg_len, 0) < 0)
        return -1;
    return hear(k, f);
}

/* --- the answer --- */

/* Writes which rule it is, as "policy rule 5270"; "a policy rule" if that is not known. */
static const char *name_rule(const struct kernel_rule *rule, char text[64])
{
    if (rule != NULL)
        (void)snprintf(text, 64, "policy rule %u", rule->priority);
    else
        (void)strcpy(text, "a policy rule (ip rule)");
    return text;
}

/* A rule before the one that takes the packets leads them to the main table. */
static void mend_rule(const struct kernel_rule *rule, int family, const char *network,
                      char mend[KERNEL_ROUTE_TEXT])
{
    if (rule != NULL)
        (void)snprintf(mend, KERNEL_ROUTE_TEXT, "sudo ip%s rule add pref %u to %s lookup main",
                       family == AF_INET6 ? " -6" : "", rule->priority > 0 ? rule->priority - 1 : 0,
                       network);
}

static void describe_main(const struct found *f, int family, const char *to, const char *interface,
                          struct kernel_answer *answer)
{
    static const char *const names[] = {[RTN_BLACKHOLE] = "blackhole ",
                                        [RTN_UNREACHABLE] = "unreachable ",
                                        [RTN_PROHIBIT] = "prohibit "};
    const char *type =
        f->type < sizeof names / sizeof *names && names[f->type] != NULL ? names[f->type] : "";

    (void)snprintf(answer->text, sizeof answer->text,
                   "another route of the main table takes them, with the metric %u%s%s", f->metric,
                   interface[0] != '\0' ? ", by " : "", interface);
    (void)snprintf(answer->mend, sizeof answer->mend, "sudo ip%s route del %s%s%s%s metric %u",
                   family == AF_INET6 ? " -6" : "", type, to, interface[0] != '\0' ? " dev " : "",
                   interface, f->metric);
}

static void describe(const struct kernel_routes *k, const struct found *f, int family,
                     const void *to, const void *from, const char *network,
                     struct kernel_answer *answer)
{
    const struct kernel_rule *rule = find_rule(k, family, to, from, f->table, f->error);
    char interface[IFNAMSIZ] = "", address[INET6_ADDRSTRLEN], name[64];

    (void)inet_ntop(family, to, address, sizeof address);
    if (f->interface != 0 && if_indextoname(f->interface, interface) == NULL)
        interface[0] = '\0';
    if (f->error != 0 && rule == NULL) {
        (void)snprintf(answer->text, sizeof answer->text, "the kernel finds no route: %s",
                       strerror(f->error));
    } else if (f->error != 0) {
        (void)snprintf(answer->text, sizeof answer->text, "%s refuses them: %s",
                       name_rule(rule, name), strerror(f->error));
        mend_rule(rule, family, network, answer->mend);
    } else if (f->type == RTN_LOCAL) {
        (void)snprintf(answer->text, sizeof answer->text,
                       "the address belongs to this host, too (%s)", interface);
        (void)snprintf(answer->mend, sizeof answer->mend, "sudo ip addr del %s/%zu dev %s", address,
                       8 * bytes_of(family), interface);
    } else if (f->table == RT_TABLE_MAIN) {
        describe_main(f, family, address, interface, answer);
    } else {
        (void)snprintf(answer->text, sizeof answer->text, "%s takes them to table %u%s%s",
                       name_rule(rule, name), f->table, interface[0] != '\0' ? ", by " : "",
                       interface);
        mend_rule(rule, family, network, answer->mend);
    }
}

int kernel_route_ask(struct kernel_routes *k, int family, const void *to, const void *from,
                     const char *network, struct kernel_answer *answer)
{
    struct found f;

    *answer = (struct kernel_answer){.ours = false};
    if (ask(k, family, to, from, &f) != 0)
        return -1;
    answer->ours = f.error == 0 && f.table == RT_TABLE_MAIN && f.protocol == ROUTE_PROTOCOL;
    answer->usual = f.error == 0 &&
                    (f.type == RTN_LOCAL || (f.type == RTN_UNICAST && f.table == RT_TABLE_MAIN));
    if (!answer->ours)
        describe(k, &f, family, to, from, network, answer);
    return 0;
}

/* --- networks --- */

void kernel_network_add(struct kernel_network *n, int family, const void *address)
{
    if (n->family == 0) {
        *n = (struct kernel_network){.family = family, .length = 8 * (unsigned)bytes_of(family)};
        memcpy(n->address, address, bytes_of(family));
        return;
    }
    while (n->length > 0 && !begins_alike(n->address, address, n->length))
        n->length--;
}

void kernel_network_write(const struct kernel_network *n, char *text, unsigned size)
{
    char address[INET6_ADDRSTRLEN] = "";
    uint8_t first[16] = {0};

    for (unsigned bit = 0; bit < n->length; bit++)
        first[bit / 8] |= (uint8_t)(n->address[bit / 8] & 0x80 >> bit % 8);
    (void)inet_ntop(n->family, first, address, sizeof address);
    (void)snprintf(text, size, "%s/%u", address, n->length);
}
