#include "client/cli/ip_routes/route_script.h"

#include <arpa/inet.h>

#include "client/cli/ip_routes/ip_routes_sh.h"

/* The routing protocol number of the routes, by which `down` finds them. */
#define PROTOCOL 84

static const char *text_of(struct in_addr address, char *text)
{
    return inet_ntop(AF_INET, &address, text, INET_ADDRSTRLEN);
}

static void print_head(FILE *out, const struct route_script *s, uint32_t rank)
{
    const struct host *h = &s->hosts[rank];
    char dims[TORUS_TEXT_SIZE], address[INET_ADDRSTRLEN];
    const char *space = "";

    (void)fprintf(
        out,
        "#!/bin/sh\n"
        "# Routes over the cables of a torus (%s) for %s, which is node %u with address "
        "%s.\n"
        "# Written by 'torusctl ip-routes'. On %s, as root:\n"
        "#   sh %s.sh check    checks whether the routes can be set and, after 'up', "
        "whether they are all there; "
        "changes nothing\n"
        "#   sh %s.sh up       sets the address and the routes, or renews them\n"
        "#   sh %s.sh down     restores the previous settings\n"
        "set -u\n"
        "host=%s address=%s device=" OWN_INTERFACE " protocol=%d state='%s' spread='%s'\n",
        torus_format(&s->routes->torus, dims), h->name, rank, text_of(h->address, address), h->name,
        h->name, h->name, h->name, h->name, address, PROTOCOL, s->state,
        s->routes->weight != NULL ? "fib_multipath_hash_policy" : "");
    (void)fputs("interfaces='", out);
    for (unsigned port = 0; port < torus_ports(&s->routes->torus); port++)
        if (damage_has_link(&s->routes->damage, rank, port)) {
            (void)fprintf(out, "%s%s", space, h->port[port].interface);
            space = " ";
        }
    (void)fputs(
        "'\n"
        "# Settings to be 0 at the cables: the two directions between nodes may take different\n"
        "# ways (rp_filter); there are no better routes to announce (send_redirects); neighbours\n"
        "# ask for the addresses of nodes at the cables (arp_*).\n"
        "lowered='rp_filter send_redirects arp_ignore arp_filter'\n\n",
        out);
}

static void print_next_hop(FILE *out, const struct route_script *s, uint32_t rank, unsigned port)
{
    const struct torus *t = &s->routes->torus;
    const struct host *next = &s->hosts[torus_neighbour(t, rank, port)];
    const struct in_addr cable = next->port[torus_port_opposite(t, port)].address;
    char gateway[INET_ADDRSTRLEN];

    (void)fprintf(out, " via %s dev %s",
                  text_of(cable.s_addr != 0 ? cable : next->address, gateway),
                  s->hosts[rank].port[port].interface);
}

/* Prints the next hops of a route that has several. */
static void print_next_hops(FILE *out, const struct route_script *s, uint32_t rank, uint32_t to)
{
    for (unsigned port = 0; port < torus_ports(&s->routes->torus); port++) {
        const unsigned weight = ip_routes_weight(s->routes, rank, to, port);
        if (weight == 0)
            continue;
        (void)fputs(" nexthop", out);
        print_next_hop(out, s, rank, port);
        (void)fprintf(out, " weight %u onlink", weight);
    }
}

static unsigned count_ports(const struct ip_routes *r, uint32_t rank, uint32_t to)
{
    unsigned count = 0;

    for (unsigned port = 0; port < torus_ports(&r->torus); port++)
        count += ip_routes_weight(r, rank, to, port) > 0;
    return count;
}

static void print_route(FILE *out, const struct route_script *s, uint32_t rank, uint32_t to)
{
    const unsigned count = count_ports(s->routes, rank, to);
    char address[INET_ADDRSTRLEN], source[INET_ADDRSTRLEN];

    if (count == 0)
        return;
    (void)fprintf(out, "route add %s/32", text_of(s->hosts[to].address, address));
    if (count == 1) {
        print_next_hop(out, s, rank, ip_routes_port(s->routes, rank, to));
        (void)fputs(" onlink", out);
    }
    (void)fprintf(out, " src %s proto %d%s%s", text_of(s->hosts[rank].address, source), PROTOCOL,
                  s->congestion != NULL ? " congctl " : "",
                  s->congestion != NULL ? s->congestion : "");
    if (count > 1)
        print_next_hops(out, s, rank, to);
    (void)fputc('\n', out);
}

void route_script_print(FILE *out, const struct route_script *s, uint32_t rank)
{
    char address[INET_ADDRSTRLEN];

    print_head(out, s, rank);
    (void)fputs("# The addresses of all nodes.\nnodes() {\n    cat <<'END'\n", out);
    for (uint32_t to = 0; to < s->routes->torus.nodes; to++)
        (void)fprintf(out, "%s\n", text_of(s->hosts[to].address, address));
    (void)fputs("END\n}\n\n# The routes to the other nodes.\nroutes() {\n    cat <<'END'\n", out);
    for (uint32_t to = 0; to < s->routes->torus.nodes; to++)
        print_route(out, s, rank, to);
    (void)fputs("END\n}\n\n", out);
    (void)fputs(ip_routes_sh, out);
}
