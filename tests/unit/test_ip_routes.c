/* Routes over the cables of a torus: followed hop by hop, and compared with distances that the test computes in
 * another way. */
#include <arpa/inet.h>

#include "daemon/lib/cluster/hosts_file.h"
#include "daemon/lib/cluster/ip_routes.h"
#include "daemon/lib/cluster/route_planner.h"
#include "daemon/lib/cluster/route_weights.h"
#include "tests/support/cmocka.h"

#define FAR 1000000u
#define MOST 128u  /* nodes of a torus here */
#define LIST 16384 /* characters of a list of cables */

struct cable {
    uint32_t a, b;
    unsigned a_port, b_port;
};

struct network {
    struct torus torus;
    struct cable cables[MOST * TORUS_MAX_DIMS];
    size_t count;
    bool works[MOST * TORUS_MAX_DIMS];
    uint32_t hops[MOST][MOST];
};

/* Each cable leads from a + port to the - port of the next node: coordinate by coordinate. */
static void wire(struct network *n, const char *dims)
{
    struct error e;

    assert_int_equal(torus_parse(&n->torus, dims, &e), 0);
    assert_true(n->torus.nodes <= MOST);
    n->count = 0;
    for (uint32_t a = 0; a < n->torus.nodes; a++) {
        uint32_t stride = n->torus.nodes;
        for (unsigned d = 0; d < n->torus.dims; d++) {
            uint32_t size = n->torus.size[d];
            stride /= size;
            uint32_t at = a / stride % size;
            if (size == 1 || (at + 1 == size && !n->torus.wrap[d]))
                continue;
            uint32_t b = at + 1 == size ? a - at * stride : a + stride;
            n->works[n->count] = true;
            n->cables[n->count++] = (struct cable){a, b, 2 * d, 2 * d + 1};
        }
    }
}

/* Floyd and Warshall. */
static void measure(struct network *n)
{
    uint32_t nodes = n->torus.nodes;

    for (uint32_t i = 0; i < nodes; i++)
        for (uint32_t j = 0; j < nodes; j++)
            n->hops[i][j] = i == j ? 0 : FAR;
    for (size_t c = 0; c < n->count; c++)
        if (n->works[c])
            n->hops[n->cables[c].a][n->cables[c].b] = n->hops[n->cables[c].b][n->cables[c].a] = 1;
    for (uint32_t k = 0; k < nodes; k++)
        for (uint32_t i = 0; i < nodes; i++)
            for (uint32_t j = 0; j < nodes; j++)
                if (n->hops[i][k] + n->hops[k][j] < n->hops[i][j])
                    n->hops[i][j] = n->hops[i][k] + n->hops[k][j];
}

/* The node at the other end of the cable at a port, which must work. */
static uint32_t cross(const struct network *n, uint32_t rank, unsigned port)
{
    for (size_t c = 0; c < n->count; c++) {
        const struct cable *cable = &n->cables[c];
        if (!n->works[c])
            continue;
        if (cable->a == rank && cable->a_port == port)
            return cable->b;
        if (cable->b == rank && cable->b_port == port)
            return cable->a;
    }
    fail_msg("node %u has no working cable at port %u", rank, port);
    return 0;
}

/* Every route crosses as many cables as the distance. */
static void check(const struct network *n, const struct ip_routes *r)
{
    for (uint32_t from = 0; from < n->torus.nodes; from++)
        for (uint32_t to = 0; to < n->torus.nodes; to++) {
            uint32_t at = from, crossed = 0;
            if (n->hops[from][to] >= FAR || from == to) {
                assert_int_equal(ip_routes_port(r, from, to), IP_ROUTES_NO_PORT);
                continue;
            }
            for (; at != to; crossed++) {
                assert_true(crossed < n->hops[from][to]);
                at = cross(n, at, ip_routes_port(r, at, to));
            }
            assert_int_equal(crossed, n->hops[from][to]);
        }
}

/* Adds a cable to the list. */
static void break_cable(struct network *n, char *list, size_t c)
{
    char name[TORUS_PORT_NAME_SIZE];
    const struct cable *cable = &n->cables[c];
    bool other = rand() % 2 != 0; /* either end names it */
    size_t length = strlen(list);

    (void)snprintf(list + length, LIST - length, "%s%u:%s", length > 0 ? "," : "",
                   other ? cable->b : cable->a,
                   torus_port_name(&n->torus, other ? cable->b : cable->a,
                                   other ? cable->b_port : cable->a_port, name));
    n->works[c] = false;
}

static const char *const shapes[] = {
    "1",      "1m",    "2",   "2m",  "3",    "1x4",    "7",       "8m",          "2x2",
    "2mx2",   "2x3",   "3x3", "4x4", "4x4m", "5x6",    "3mx4m",   "4x2",         "2x2x2",
    "3x2mx4", "4x5x3", "8x8", "6x1", "1x1",  "2x8mx3", "3x3x3x3", "2x2x2x2x2x2", "1x2x1x3x1x2x1x2",
    "11x11m",
};

TEST(as_short_as_possible)
{
    struct network *n = calloc(1, sizeof *n);

    assert_non_null(n);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct ip_routes r;
        struct error e;
        wire(n, shapes[i]);
        measure(n);
        assert_int_equal(ip_routes_init(&r, &n->torus, NULL, &e), 0);
        assert_int_equal(ip_routes_find(&r, &e), 0);
        check(n, &r);
        ip_routes_free(&r);
    }
    free(n);
}

TEST(broken_cables_are_avoided)
{
    struct network *n = calloc(1, sizeof *n);

    assert_non_null(n);
    srand(1);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char list[LIST] = "";
        wire(n, shapes[i]);
        /* Breaks one cable, then more and more, until the torus is in parts. */
        for (size_t share = n->count; share > 0; share /= 2) {
            struct ip_routes r;
            struct error e;
            for (size_t k = 0; k < n->count / share; k++)
                break_cable(n, list, (size_t)rand() % n->count);
            measure(n);
            assert_int_equal(ip_routes_init(&r, &n->torus, list, &e), 0);
            assert_int_equal(ip_routes_find(&r, &e), 0);
            check(n, &r);
            ip_routes_free(&r);
        }
    }
    free(n);
}

/* Without broken cables, routes first go along the first dimension in which the nodes differ. */
TEST(dimensions_in_order)
{
    struct torus t;
    struct ip_routes r;
    struct error e;

    assert_int_equal(torus_parse(&t, "4x3mx5", &e), 0);
    assert_int_equal(ip_routes_init(&r, &t, NULL, &e), 0);
    assert_int_equal(ip_routes_find(&r, &e), 0);
    for (uint32_t a = 0; a < t.nodes; a++)
        for (uint32_t b = 0; b < t.nodes; b++) {
            const uint32_t at[] = {a / 15, a / 5 % 3, a % 5}, to[] = {b / 15, b / 5 % 3, b % 5};
            unsigned dim = 0;
            while (dim < 3 && at[dim] == to[dim])
                dim++;
            if (dim < 3)
                assert_int_equal(ip_routes_port(&r, a, b) / 2, dim);
        }
    ip_routes_free(&r);
}

/* In a ring of 4 each node is opposite to one other: two of the ways lead up, two down, so that all
 * channels carry the same. */
TEST(opposite_nodes_both_ways)
{
    struct torus t;
    struct ip_routes r;
    struct error e;
    unsigned loads[16][4] = {{0}};

    assert_int_equal(torus_parse(&t, "4x4", &e), 0);
    assert_int_equal(ip_routes_init(&r, &t, NULL, &e), 0);
    assert_int_equal(ip_routes_find(&r, &e), 0);
    for (uint32_t a = 0; a < 16; a++)
        for (uint32_t b = 0; b < 16; b++)
            for (uint32_t at = a; at != b;) {
                unsigned port = ip_routes_port(&r, at, b);
                loads[at][port]++;
                at = torus_neighbour(&t, at, port);
            }
    for (uint32_t a = 0; a < 16; a++)
        for (unsigned port = 0; port < 4; port++)
            assert_int_equal(loads[a][port], 8);
    ip_routes_free(&r);
}

TEST(whole_nodes)
{
    struct torus t;
    struct ip_routes r;
    struct error e;

    assert_int_equal(torus_parse(&t, "3x3", &e), 0);
    assert_int_equal(ip_routes_init(&r, &t, "4,0:-1", &e), 0);
    assert_int_equal(ip_routes_find(&r, &e), 0);
    for (uint32_t a = 0; a < 9; a++)
        for (uint32_t b = 0; b < 9; b++)
            assert_true((ip_routes_port(&r, a, b) == IP_ROUTES_NO_PORT) ==
                        (a == b || a == 4 || b == 4));
    ip_routes_free(&r);
}

TEST(refused)
{
    static const char *const lists[] = {"",      "9",     "-1",  "0:",   "0:+2", "0:0",
                                        "0:+1,", ",0:+1", "0;1", "2:+1", "0:-1", "0:+0:+1"};
    struct torus t;
    struct ip_routes r;
    struct error e;

    assert_int_equal(torus_parse(&t, "3x3m", &e), 0);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        assert_fails(ip_routes_init(&r, &t, lists[i], &e), e, ERROR_USAGE, "");
    }
    assert_int_equal(torus_parse(&t, "65x64", &e), 0);
    assert_fails(ip_routes_init(&r, &t, NULL, &e), e, ERROR_USAGE, "");
}

/* --- links of different rates --- */

struct rated {
    struct torus torus;
    uint32_t up[MOST];
    bool forwards[MOST];
    uint16_t rate[MOST * TORUS_MAX_PORTS];
    struct route_links links;
};

/* Cuts one link in `dead` and makes one direction in `slow` slow; 0: none. */
static void make_rated(struct rated *n, const char *dims, int dead, int slow)
{
    static const uint16_t some[] = {1, 20, 100, 250, 500, 700, 950};
    struct error e;

    memset(n, 0, sizeof *n);
    assert_int_equal(torus_parse(&n->torus, dims, &e), 0);
    assert_true(n->torus.nodes <= MOST);
    for (uint32_t rank = 0; rank < n->torus.nodes; rank++) {
        n->forwards[rank] = dead == 0 || rand() % (2 * dead) != 0;
        for (unsigned port = 0; port < torus_ports(&n->torus); port++) {
            n->rate[rank * torus_ports(&n->torus) + port] =
                slow == 0 || rand() % slow != 0 ? DAMAGE_FULL_RATE : some[rand() % 7];
            if (torus_neighbour(&n->torus, rank, port) != TORUS_NO_NODE)
                n->up[rank] |= UINT32_C(1) << port;
        }
    }
    for (uint32_t rank = 0; dead > 0 && rank < n->torus.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&n->torus); port++)
            if ((n->up[rank] & UINT32_C(1) << port) != 0 && rand() % dead == 0) {
                n->up[rank] &= ~(UINT32_C(1) << port);
                n->up[torus_neighbour(&n->torus, rank, port)] &=
                    ~(UINT32_C(1) << torus_port_opposite(&n->torus, port));
            }
    n->links = (struct route_links){&n->torus, n->up, n->forwards, n->rate};
}

static const char *const rated_shapes[] = {"2", "5m", "7", "3x4", "4x4", "3x3m", "2x2x2", "3x3x3"};

/* If all links have the same rate, packets may take all shortest paths and no others. */
TEST(equal_rates_lead_by_shortest_paths)
{
    struct rated n;
    uint32_t hops[MOST], queue[MOST];
    struct route_paths p;

    srand(1);
    for (unsigned round = 0; round < 64; round++) {
        make_rated(&n, rated_shapes[round % 8], round % 3 == 0 ? 0 : 12, 0);
        assert_int_equal(route_paths_init(&p, &n.torus), 0);
        for (uint32_t to = 0; to < n.torus.nodes; to++) {
            route_paths_find(&p, &n.links, to);
            for (uint32_t at = 0; at < n.torus.nodes; at++) {
                uint32_t nearer = 0, best;
                route_planner_measure(&n.torus, n.up, n.forwards, at, hops, queue);
                best = hops[to];
                assert_int_equal(p.cost[at], best == PLANNER_FAR ? ROUTE_FAR : best * ROUTE_COST);
                assert_int_equal(p.hops[at], best == PLANNER_FAR ? 0 : best);
                for (unsigned port = 0; port < torus_ports(&n.torus); port++) {
                    const uint32_t next = torus_neighbour(&n.torus, at, port);
                    if ((n.up[at] & UINT32_C(1) << port) == 0 || (next != to && !n.forwards[next]))
                        continue;
                    route_planner_measure(&n.torus, n.up, n.forwards, next, hops, queue);
                    nearer |= hops[to] < best ? UINT32_C(1) << port : 0;
                }
                assert_int_equal(p.nearer[at], nearer);
            }
        }
        route_paths_free(&p);
    }
}

/* Follows all ports that have a weight. */
static void assert_arrives(const struct rated *n, const uint8_t *weight, uint32_t at, uint32_t to,
                           uint32_t hops)
{
    const unsigned ports = torus_ports(&n->torus);
    unsigned sum = 0;

    assert_true(hops <= n->torus.nodes);
    for (unsigned port = 0; at != to && port < ports; port++) {
        const uint32_t next = torus_neighbour(&n->torus, at, port);
        const unsigned one = weight[((size_t)at * n->torus.nodes + to) * ports + port];
        sum += one;
        if (one == 0)
            continue;
        assert_true((n->up[at] & UINT32_C(1) << port) != 0 && (next == to || n->forwards[next]));
        assert_arrives(n, weight, next, to, hops + 1);
    }
    assert_true(at == to || (sum > 0 && sum <= ROUTE_WEIGHT_SUM + ports));
}

/* Whatever the rates are, and however much time there is for weights. Nodes compute the weights of their own routes as
 * those that compute all. */
TEST(weights_lead_to_every_node_without_loops)
{
    static uint8_t all[MOST * MOST * 8], own[MOST * 8];
    static struct rated n;
    struct route_paths p;

    srand(2);
    for (unsigned round = 0; round < 120; round++) {
        const uint64_t effort = round % 4 == 0 ? 0 : ROUTE_EFFORT;
        make_rated(&n, rated_shapes[round % 8], round % 3 == 0 ? 0 : 12, 1 + (int)(round % 5));
        const size_t row = (size_t)n.torus.nodes * torus_ports(&n.torus);
        assert_int_equal(route_weights_find(&n.links, ROUTE_ALL_NODES, effort, all), 0);
        assert_int_equal(route_paths_init(&p, &n.torus), 0);
        for (uint32_t to = 0; to < n.torus.nodes; to++) {
            route_paths_find(&p, &n.links, to);
            for (uint32_t at = 0; at < n.torus.nodes; at++)
                if (p.cost[at] != ROUTE_FAR)
                    assert_arrives(&n, all, at, to, 0);
        }
        route_paths_free(&p);
        for (uint32_t at = 0; at < n.torus.nodes; at++) {
            assert_int_equal(route_weights_find(&n.links, at, effort, own), 0);
            assert_memory_equal(own, &all[at * row], row);
        }
    }
}

/* The bits of the ports that lead nearer. */
static uint32_t nearer(const struct torus *t, uint32_t from, uint32_t to)
{
    uint32_t ports = 0;

    for (unsigned port = 0; port < torus_ports(t); port++) {
        const uint32_t next = torus_neighbour(t, from, port);
        if (next != TORUS_NO_NODE && torus_distance(t, next, to) < torus_distance(t, from, to))
            ports |= UINT32_C(1) << port;
    }
    return ports;
}

/* Each node sends to the one that is opposite in all rings: no two pairs share a channel. */
TEST(chosen_ways_of_opposite_nodes_share_no_channel)
{
    static const char *const tori[] = {"2", "4", "2x2", "4x4", "2x2x2", "4x4x4"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        unsigned carried[64 * 6] = {0};
        struct torus t;
        struct error e;
        assert_int_equal(torus_parse(&t, tori[i], &e), 0);
        for (uint32_t from = 0; from < t.nodes; from++) {
            uint32_t at[TORUS_MAX_DIMS], to, here = from;
            torus_coordinates(&t, from, at);
            for (unsigned dim = 0; dim < t.dims; dim++)
                at[dim] = (at[dim] + t.size[dim] / 2) % t.size[dim];
            to = torus_rank(&t, at);
            while (here != to) {
                const unsigned port = ip_routes_choose(&t, here, to, nearer(&t, here, to));
                carried[here * torus_ports(&t) + port]++;
                here = torus_neighbour(&t, here, port);
            }
        }
        for (size_t channel = 0; channel < sizeof carried / sizeof carried[0]; channel++)
            assert_true(carried[channel] <= 1);
    }
}

/* Any set of ports has one that is chosen; among those of a graph, pairs take different ones. */
TEST(one_of_the_ports_is_chosen)
{
    struct torus t;
    struct error e;
    uint32_t seen = 0;

    assert_int_equal(torus_parse(&t, "4x3m", &e), 0);
    for (uint32_t ports = 1; ports < UINT32_C(1) << torus_ports(&t); ports++)
        for (uint32_t to = 1; to < t.nodes; to++)
            assert_true((ports & UINT32_C(1) << ip_routes_choose(&t, 0, to, ports)) != 0);
    assert_int_equal(torus_parse(&t, "complete:4", &e), 0);
    for (uint32_t to = 1; to < t.nodes; to++)
        seen |= UINT32_C(1) << ip_routes_choose(&t, 0, to, 6);
    assert_int_equal(seen, 6);
}

/* Files of hosts: large files, endless files, and files that are not text. */

#define PAIR "[a]\nrank = 0\n+0 = e0\n-0 = e1\n[b]\nrank = 1\n+0 = e0\n-0 = e1\n"

static const char *path;

static FILE *begin(void)
{
    FILE *out = fopen(path = file_of("", 0), "wb");

    assert_non_null(out);
    return out;
}

static int read_hosts(const char *from, const char *dims, struct host *hosts, struct error *e)
{
    struct in_addr first = {htonl(0x0a800001)};
    struct ip_routes r;
    struct torus t;

    assert_int_equal(torus_parse(&t, dims, e), 0);
    assert_int_equal(ip_routes_init(&r, &t, NULL, e), 0);
    int rc = hosts_file_read(hosts, &r, from, first, e);
    ip_routes_free(&r);
    return rc;
}

/* Fails the test unless the file is hosts_refused with an error that contains both texts; `line` 0: no line number. */
static void hosts_refused(const char *from, int line, const char *part)
{
    struct host hosts[2];
    char place[64];
    struct error e;

    assert_int_equal(read_hosts(from, "2", hosts, &e), -1);
    (void)snprintf(place, sizeof place, "%s:%d: ", from, line);
    if (strncmp(e.text, place, strlen(place)) != 0 || strstr(e.text, part) == NULL)
        fail_msg("\"%s\" or \"%s\" is not in \"%s\"", place, part, e.text);
}

static void refused_text(const char *text, size_t length, int line, const char *part)
{
    FILE *out = begin();

    assert_int_equal(fwrite(text, 1, length, out), length);
    assert_int_equal(fclose(out), 0);
    hosts_refused(path, line, part);
}

TEST(lines_may_be_of_any_length)
{
    struct host hosts[2];
    char text[4096];
    struct error e;

    int length = snprintf(text, sizeof text, PAIR ";%0*d\n+1 = e2\n", 3000, 0);
    refused_text(text, (size_t)length, 10, "the torus has no port");
    FILE *out = begin();
    (void)fprintf(out, PAIR ";%0*d\n;%0*d", 3000, 0, 3000, 0);
    assert_int_equal(fclose(out), 0);
    assert_success(read_hosts(path, "2", hosts, &e), e);
    assert_string_equal(hosts[1].name, "b");
}

/* Without a line number, because the file is not parsed. */
static void refused_as_a_whole(const char *from, const char *part)
{
    struct host hosts[2];
    struct error e;

    assert_int_equal(read_hosts(from, "2", hosts, &e), -1);
    if (strncmp(e.text, from, strlen(from)) != 0 || strstr(e.text, part) == NULL)
        fail_msg("\"%s\" and \"%s\" are not in \"%s\"", from, part, e.text);
}

TEST(files_that_are_not_text_are_refused)
{
    static const char zero[] = PAIR "+0 = e\0\nrank = 3\n";
    FILE *out = begin();

    assert_int_equal(fwrite(zero, 1, sizeof zero - 1, out), sizeof zero - 1);
    assert_int_equal(fclose(out), 0);
    refused_as_a_whole(path, "line 9 has a NUL byte");
    refused_as_a_whole("/dev/zero", "line 1 has a NUL byte");
    refused_as_a_whole("/dev/full", "line 1 has a NUL byte");
}

TEST(a_file_has_so_many_bytes_at_most)
{
    FILE *out = begin();

    (void)fputs(PAIR, out);
    for (int i = 0; i < 8 << 20; i++)
        (void)fputs(";\n", out);
    assert_int_equal(fclose(out), 0);
    refused_as_a_whole(path, "longer than the 16 MiB that a file of hosts can have");
}

/* Nothing is read after the first mistake: the file may be endless. */
TEST(the_first_mistake_ends_the_reading)
{
    static const char text[] = PAIR "color = red\ncolor = blue\n";

    refused_text(text, sizeof text - 1, 9, "unknown setting \"color\"");
}

static void check_large(int length)
{
    struct host *hosts = calloc(4096, sizeof *hosts);
    char name[512];
    struct error e;

    assert_non_null(hosts);
    assert_success(read_hosts(path, "64x64", hosts, &e), e);
    for (unsigned i = 0; i < 4096; i++) {
        (void)snprintf(name, sizeof name, "h%0*u", length, i);
        assert_string_equal(hosts[i].name, name);
        /* 10.1.0.0 and 10.1.255.0 are addresses like others: no prefix is given. */
        assert_int_equal(ntohl(hosts[i].address.s_addr), 0x0a010000 + i);
    }
    free(hosts);
}

/* In an order of their own, with short names and with long ones that are nearly the same. */
TEST(many_sections_in_any_order)
{
    for (int length = 4; length <= 250; length += 246) {
        FILE *out = begin();
        (void)fputs("[*]\n+0 = eth0\n-0 = eth1\n+1 = eth2\n-1 = eth3\n", out);
        for (unsigned i = 0; i < 4096; i++) {
            unsigned rank = i * 5 % 4096;
            (void)fprintf(out, "[h%0*u]\nrank = %u\naddress = 10.1.%u.%u\n", length, rank, rank,
                          rank / 256, rank % 256);
        }
        assert_int_equal(fclose(out), 0);
        check_large(length);
    }
}
