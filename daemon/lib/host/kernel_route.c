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

#include "daemon/lib/host/facts.h"
#include "daemon/lib/host/netlink.h"
#include "proto/routes.h"

#define RULES_MOST 4096u

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

static int take_attribute(const struct nlattr *a, void *context)
{
    struct kernel_rule *rule = context;

    switch (mnl_attr_get_type(a)) {
    case FRA_PRIORITY:
        rule->priority = netlink_u32(a);
        break;
    case FRA_TABLE:
        rule->table = netlink_u32(a);
        break;
    case FRA_FWMARK:
        rule->mark = netlink_u32(a);
        break;
    case FRA_FWMASK:
        rule->mask = netlink_u32(a);
        break;
    case FRA_DST:
        netlink_take(rule->to, sizeof rule->to, a);
        break;
    case FRA_SRC:
        netlink_take(rule->from, sizeof rule->from, a);
        break;
    case FRA_IIFNAME: /* packets of the host itself come by lo */
        rule->elsewhere |= strncmp(mnl_attr_get_str(a), "lo", mnl_attr_get_payload_len(a)) != 0;
        break;
    case FRA_OIFNAME:
    case FRA_L3MDEV:
        rule->elsewhere = true;
        break;
    default:
        break;
    }
    return MNL_CB_OK;
}

static int on_rule(const struct nlmsghdr *m, void *context)
{
    const struct fib_rule_hdr *head = mnl_nlmsg_get_payload(m);
    struct kernel_routes *k = context;
    struct kernel_rule *more;
    const unsigned list = which(head->family);

    if ((head->family != AF_INET && head->family != AF_INET6) || k->rules[list] == RULES_MOST)
        return MNL_CB_OK;
    more = reallocarray(k->rule[list], k->rules[list] + 1, sizeof *more);
    if (more == NULL)
        return MNL_CB_OK;
    k->rule[list] = more;
    more += k->rules[list]++;
    *more = (struct kernel_rule){.table = head->table,
                                 .action = head->action,
                                 .family = head->family,
                                 .to_length = head->dst_len,
                                 .from_length = head->src_len,
                                 .mask = UINT32_MAX,
                                 .inverted = (head->flags & FIB_RULE_INVERT) != 0};
    (void)mnl_attr_parse(m, (unsigned)sizeof *head, take_attribute, more);
    return MNL_CB_OK;
}

int kernel_routes_open(struct kernel_routes *k)
{
    const size_t head = sizeof(struct fib_rule_hdr);

    *k = (struct kernel_routes){.netlink.socket = NULL};
    if (netlink_list(RTM_GETRULE, AF_INET, head, on_rule, k) != 0)
        return -1;
    (void)netlink_list(RTM_GETRULE, AF_INET6, head, on_rule, k);
    return netlink_open(&k->netlink, NETLINK_ROUTE);
}

void kernel_routes_close(struct kernel_routes *k)
{
    netlink_close(&k->netlink);
    free(k->rule[0]);
    free(k->rule[1]);
    *k = (struct kernel_routes){.netlink.socket = NULL};
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
    int family;
    const void *to, *from; /* from NULL: the kernel's choice */
    unsigned bound;        /* the index of an interface that packets leave by; 0: any */
    unsigned flags;
};

struct found {
    bool any;
    int error;
    uint32_t table, metric, interface;
    uint8_t protocol, type;
};

static int on_found(const struct nlmsghdr *m, void *context)
{
    const struct rtmsg *route = mnl_nlmsg_get_payload(m);
    const struct nlattr *table = netlink_attribute(m, sizeof *route, RTA_TABLE);
    struct found *f = context;

    *f = (struct found){
        .any = m->nlmsg_type == RTM_NEWROUTE,
        .table = table != NULL ? netlink_u32(table) : route->rtm_table,
        .metric = netlink_u32(netlink_attribute(m, sizeof *route, RTA_PRIORITY)),
        .interface = netlink_u32(netlink_attribute(m, sizeof *route, RTA_OIF)),
        .protocol = route->rtm_protocol,
        .type = route->rtm_type,
    };
    return MNL_CB_OK;
}

/* Asks for the route of a packet. Returns 0 with *f, which may be the kernel's refusal, or -1 with errno if the kernel does
 * not answer. */
static int ask(struct netlink *nl, const struct question *q, struct found *f)
{
    const size_t size = bytes_of(q->family);
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_GETROUTE, 0);
    struct rtmsg *route = mnl_nlmsg_put_extra_header(request, sizeof *route);

    *f = (struct found){.any = false};
    route->rtm_family = (unsigned char)q->family;
    route->rtm_dst_len = (unsigned char)(8 * size);
    route->rtm_flags = q->flags;
    mnl_attr_put(request, RTA_DST, size, q->to);
    if (q->from != NULL) {
        route->rtm_src_len = route->rtm_dst_len;
        mnl_attr_put(request, RTA_SRC, size, q->from);
    }
    if (q->bound != 0)
        mnl_attr_put_u32(request, RTA_OIF, q->bound);
    if (netlink_ask(nl, request, sizeof *route, on_found, f) == 0 && f->any)
        return 0;
    if (!nl->refused)
        return -1;
    *f = (struct found){.error = errno};
    return 0;
}

/* --- which interface packets take --- */

/* Returns the bytes of an address; for an IPv4 address that is mapped into IPv6, those of the IPv4 address. */
static const void *address_bytes(const struct sockaddr *address, int *family)
{
    const struct in6_addr *in6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

    *family = AF_INET;
    if (address->sa_family == AF_INET)
        return &((const struct sockaddr_in *)address)->sin_addr;
    if (IN6_IS_ADDR_V4MAPPED(in6))
        return &in6->s6_addr[12];
    *family = AF_INET6;
    return in6;
}

unsigned route_interface(const struct sockaddr *peer, const struct sockaddr *local, unsigned bound)
{
    static const uint8_t any[16];
    struct question q = {.bound = bound};
    struct netlink nl;
    struct found f;
    int family, error = EAFNOSUPPORT;

    if (peer->sa_family == AF_INET || peer->sa_family == AF_INET6) {
        q.to = address_bytes(peer, &q.family);
        if (local != NULL && (local->sa_family == AF_INET || local->sa_family == AF_INET6)) {
            q.from = address_bytes(local, &family);
            if (family != q.family || memcmp(q.from, any, bytes_of(family)) == 0)
                q.from = NULL;
        }
        if (bound == 0 && q.family == AF_INET6)
            q.bound = ((const struct sockaddr_in6 *)peer)->sin6_scope_id;
        if (netlink_open(&nl, NETLINK_ROUTE) != 0 || ask(&nl, &q, &f) != 0)
            error = errno;
        else if (f.error != 0)
            error = f.error;
        else
            error = f.type == RTN_UNICAST || f.type == RTN_LOCAL ? 0 : ENETUNREACH;
        netlink_close(&nl);
    }
    errno = error != 0 ? error : ENETUNREACH;
    return error == 0 ? f.interface : 0;
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
    const struct question q = {
        .family = family, .to = to, .from = from, .flags = RTM_F_LOOKUP_TABLE | RTM_F_FIB_MATCH};
    struct found f;

    *answer = (struct kernel_answer){.ours = false};
    if (ask(&k->netlink, &q, &f) != 0)
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

/* The routes that torus-routed or `torusctl ip-routes` has set: they have a protocol number and an interface of their
 * own. Any user may ask the kernel for them. */

#define INTERFACE "torus0" /* daemon/lib/cluster/hosts_file.h */

#define ADDRESSES_MOST 4096u /* whose routes the kernel is asked for */

struct routes {
    unsigned
        next_hops; /* to other hosts; not those that drop packets because no link leads there */
    bool any, routed;
    struct in_addr *to; /* of `next_hops`, as far as there is room */
    unsigned room, listed;
};

static int count_route(const struct nlmsghdr *m, void *context)
{
    const struct rtmsg *route = mnl_nlmsg_get_payload(m);
    struct routes *found = context;
    const struct nlattr *to = netlink_attribute(m, sizeof *route, RTA_DST);

    if (route->rtm_protocol != ROUTE_PROTOCOL || (route->rtm_flags & RTM_F_CLONED) != 0)
        return MNL_CB_OK;
    found->next_hops += route->rtm_type == RTN_UNICAST;
    if (route->rtm_type == RTN_UNICAST && route->rtm_dst_len == 32 && to != NULL &&
        found->listed < found->room)
        netlink_take(&found->to[found->listed++], sizeof *found->to, to);
    found->any = true;
    found->routed |= netlink_u32(netlink_attribute(m, sizeof *route, RTA_PRIORITY)) == ROUTE_METRIC;
    return MNL_CB_OK;
}

struct own_address {
    unsigned index;
    char text[INET_ADDRSTRLEN];
};

static int find_address(const struct nlmsghdr *m, void *context)
{
    struct own_address *own = context;
    const struct ifaddrmsg *a = mnl_nlmsg_get_payload(m);
    const struct nlattr *local = netlink_attribute(m, sizeof *a, IFA_LOCAL);
    struct in_addr address;

    if (a->ifa_index != own->index || local == NULL)
        return MNL_CB_OK;
    netlink_take(&address, sizeof address, local);
    (void)inet_ntop(AF_INET, &address, own->text, sizeof own->text);
    return MNL_CB_OK;
}

/* Returns to how many hosts the kernel takes another route, from this address; *first: the first of them. */
static unsigned count_diverted(struct kernel_routes *k, const struct routes *routes,
                               const struct in_addr *from, struct kernel_answer *first)
{
    struct kernel_network network = {.family = 0};
    struct kernel_answer answer;
    char text[INET6_ADDRSTRLEN + 4];
    unsigned count = 0;

    for (unsigned i = 0; i < routes->listed; i++)
        kernel_network_add(&network, AF_INET, &routes->to[i]);
    kernel_network_write(&network, text, sizeof text);
    for (unsigned i = 0; i < routes->listed; i++)
        if (kernel_route_ask(k, AF_INET, &routes->to[i], from, text, &answer) == 0 &&
            !answer.ours && count++ == 0)
            *first = answer;
    return count;
}

static void ask_kernel(struct facts *f, const struct routes *routes, const struct in_addr *from)
{
    struct kernel_routes k;
    struct kernel_answer first;
    unsigned count;

    if (kernel_routes_open(&k) == 0) {
        count = count_diverted(&k, routes, from, &first);
        facts_add(f, "ip_routes.diverted", "%u", count);
        if (count > 0)
            facts_add(f, "ip_routes.diverted_by", "%s", first.text);
        if (count > 0 && first.mend[0] != '\0')
            facts_add(f, "ip_routes.mend", "%s", first.mend);
    } else {
        facts_add(f, "unseen.ip_routes.diverted", "the kernel did not say which routes it takes");
    }
    kernel_routes_close(&k);
}

void gather_ip_routes(struct facts *f)
{
    struct own_address own = {.index = if_nametoindex(INTERFACE)};
    struct routes routes = {.to = calloc(ADDRESSES_MOST, sizeof(struct in_addr))};
    struct in_addr from;

    routes.room = routes.to != NULL ? ADDRESSES_MOST : 0;

    if (netlink_list(RTM_GETROUTE, AF_INET, sizeof(struct rtmsg), count_route, &routes) == 0)
        facts_add(f, "ip_routes.count", "%u", routes.next_hops);
    else
        facts_add(f, "unseen.ip_routes.count", "the kernel did not list its routes");
    if (routes.any)
        facts_add(f, "ip_routes.by", "%s", routes.routed ? "torus-routed" : "ip-routes");
    facts_add(f, "ip_routes.interface", "%s", own.index != 0 ? INTERFACE : "none");
    if (own.index != 0 &&
        netlink_list(RTM_GETADDR, AF_INET, sizeof(struct ifaddrmsg), find_address, &own) == 0 &&
        own.text[0] != '\0')
        facts_add(f, "ip_routes.address", "%s", own.text);
    if (routes.listed > 0)
        ask_kernel(f, &routes, inet_pton(AF_INET, own.text, &from) == 1 ? &from : NULL);
    free(routes.to);
}

/* Takes "port.+0 10.0.0.1:7411". Returns false if it is another line, or has no IPv4 address. */
static bool read_port(const char *line, char name[16], struct in_addr *address)
{
    char text[INET_ADDRSTRLEN];

    return sscanf(line, "port.%15[^ ] %15[0-9.]:", name, text) == 2 &&
           inet_pton(AF_INET, text, address) == 1;
}

static void ask_for_cable(struct facts *f, struct kernel_routes *k, const char *port,
                          const struct in_addr *address)
{
    struct kernel_network network = {.family = 0};
    char text[INET6_ADDRSTRLEN + 4], key[64];
    struct kernel_answer answer;

    kernel_network_add(&network, AF_INET, address);
    kernel_network_write(&network, text, sizeof text);
    if (kernel_route_ask(k, AF_INET, address, NULL, text, &answer) != 0 || answer.usual)
        return;
    (void)snprintf(key, sizeof key, "port.%s.diverted", port);
    facts_add(f, key, "%s", answer.text);
    if (answer.mend[0] == '\0')
        return;
    (void)snprintf(key, sizeof key, "port.%s.mend", port);
    facts_add(f, key, "%s", answer.mend);
}

void gather_diverted_cables(struct facts *f, const char *settings)
{
    struct kernel_routes k;
    struct in_addr address;
    char port[16];

    if (kernel_routes_open(&k) != 0)
        facts_add(f, "unseen.diverted", "the kernel did not say which routes it takes");
    else
        for (const char *line = settings; *line != '\0';
             line += strcspn(line, "\n"), line += *line != '\0')
            if (read_port(line, port, &address))
                ask_for_cable(f, &k, port, &address);
    kernel_routes_close(&k);
}
