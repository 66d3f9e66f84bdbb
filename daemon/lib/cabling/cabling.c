#include "daemon/lib/cabling/cabling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/cabling/grid.h"
#include "daemon/lib/cabling/moves.h"
#include "daemon/lib/cabling/nearest.h"

/* A copy of the input in the order of names, so that the answer depends neither on the host that asks nor on the order
 * in which hosts and interfaces were found. In the copy, a smaller place means a smaller name. */

struct sorted {
    struct cabling_input input; /* the copy; names belong to the original */
    uint32_t *host;             /* by host of the copy: its place in the original */
    uint32_t *first; /* by host of the copy, and one more: the number of its first interface */
    uint32_t
        *interface; /* by that number: the place of the interface at its host in the original */
};

/* A name and its place in the original. */
struct named {
    const char *name;
    uint32_t place;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strverscmp(x->name, y->name);

    if (order != 0)
        return order;
    return x->place < y->place ? -1 : x->place > y->place;
}

static int check_interface(const struct cabling_input *in, const struct cabling_host *h,
                           const struct cabling_interface *i, struct error *e)
{
    if (i->name == NULL || i->name[0] == '\0')
        return error_set(e, ERROR_USAGE, "host %s: an interface has no name", h->name);
    if (i->heard_count > CABLING_HEARD_MOST)
        return error_set(e, ERROR_USAGE, "host %s, %s: more than %u interfaces are heard", h->name,
                         i->name, CABLING_HEARD_MOST);
    for (uint32_t k = 0; k < i->heard_count; k++)
        if (i->heard[k].host >= in->hosts ||
            i->heard[k].interface >= in->host[i->heard[k].host].interfaces)
            return error_set(e, ERROR_USAGE,
                             "host %s, %s: an interface that does not exist is heard", h->name,
                             i->name);
    if (in->wanted != NULL && h->rank != CABLING_NONE && i->port != -1 &&
        (i->port < 0 || (unsigned)i->port >= torus_ports(in->wanted) ||
         torus_neighbour(in->wanted, h->rank, (unsigned)i->port) == TORUS_NO_NODE))
        return error_set(e, ERROR_USAGE, "host %s, %s: no such port at rank %u", h->name, i->name,
                         h->rank);
    return 0;
}

static int check_host(const struct cabling_input *in, const struct cabling_host *h, struct error *e)
{
    uint64_t ports = 0;

    if (h->name == NULL || h->name[0] == '\0')
        return error_set(e, ERROR_USAGE, "a host has no name");
    if (h->interfaces > CABLING_INTERFACES_MOST)
        return error_set(e, ERROR_USAGE, "host %s has more than %u interfaces", h->name,
                         CABLING_INTERFACES_MOST);
    if (in->wanted != NULL && h->rank != CABLING_NONE && h->rank >= in->wanted->nodes)
        return error_set(e, ERROR_USAGE, "host %s: there is no rank %u among %u nodes", h->name,
                         h->rank, in->wanted->nodes);
    for (uint32_t i = 0; i < h->interfaces; i++) {
        if (check_interface(in, h, &h->interface[i], e) != 0)
            return -1;
        if (in->wanted == NULL || h->rank == CABLING_NONE || h->interface[i].port < 0)
            continue;
        if ((ports >> h->interface[i].port & 1) != 0)
            return error_set(e, ERROR_USAGE, "host %s: two interfaces have the port of %s", h->name,
                             h->interface[i].name);
        ports |= UINT64_C(1) << h->interface[i].port;
    }
    return 0;
}

static int check_ranks(const struct cabling_input *in, struct error *e)
{
    uint32_t *host;
    int result = 0;

    if (in->wanted == NULL)
        return 0;
    if (in->wanted->nodes > CABLING_HOSTS_MOST)
        return error_set(e, ERROR_USAGE, "%u nodes are wanted, more than %u", in->wanted->nodes,
                         CABLING_HOSTS_MOST);
    host = calloc(in->wanted->nodes, sizeof *host);
    if (host == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for %u ranks", in->wanted->nodes);
    for (uint32_t i = 0; i < in->hosts && result == 0; i++) {
        uint32_t rank = in->host[i].rank;
        if (rank == CABLING_NONE)
            continue;
        if (host[rank] != 0)
            result = error_set(e, ERROR_USAGE, "hosts %s and %s both have rank %u",
                               in->host[host[rank] - 1].name, in->host[i].name, rank);
        host[rank] = i + 1;
    }
    free(host);
    return result;
}

static int check(const struct cabling_input *in, struct error *e)
{
    if (in->hosts > CABLING_HOSTS_MOST)
        return error_set(e, ERROR_USAGE, "%u hosts are more than %u", in->hosts,
                         CABLING_HOSTS_MOST);
    for (uint32_t i = 0; i < in->hosts; i++)
        if (check_host(in, &in->host[i], e) != 0)
            return -1;
    return check_ranks(in, e);
}

/* The places of the copy by the places of the original. */
struct places {
    uint32_t *host;      /* by host */
    uint32_t *first;     /* by host: the number of its first interface */
    uint32_t *interface; /* by that number */
};

/* Copies the interfaces of all hosts, and then what is heard there. */
static int copy_interfaces(struct sorted *s, const struct cabling_input *in, const struct places *p,
                           struct error *e)
{
    struct cabling_interface *interface = (struct cabling_interface *)s->input.host[0].interface;
    struct cabling_end *heard = (struct cabling_end *)interface[0].heard;
    struct named named[CABLING_INTERFACES_MOST];

    for (uint32_t h = 0; h < in->hosts; h++) {
        const struct cabling_host *from = &in->host[s->host[h]];
        for (uint32_t i = 0; i < from->interfaces; i++)
            named[i] = (struct named){from->interface[i].name, i};
        qsort(named, from->interfaces, sizeof named[0], by_name);
        for (uint32_t i = 0; i < from->interfaces; i++) {
            if (i > 0 && strcmp(named[i].name, named[i - 1].name) == 0)
                return error_set(e, ERROR_USAGE, "host %s has two interfaces %s", from->name,
                                 named[i].name);
            s->interface[s->first[h] + i] = named[i].place;
            p->interface[p->first[s->host[h]] + named[i].place] = i;
        }
    }
    for (uint32_t h = 0; h < in->hosts; h++)
        for (uint32_t n = s->first[h]; n < s->first[h + 1]; n++) {
            interface[n] = in->host[s->host[h]].interface[s->interface[n]];
            for (uint32_t k = 0; k < interface[n].heard_count; k++) {
                struct cabling_end end = interface[n].heard[k];
                heard[k] = (struct cabling_end){p->host[end.host],
                                                p->interface[p->first[end.host] + end.interface]};
            }
            interface[n].heard = heard;
            heard += interface[n].heard_count;
        }
    return 0;
}

static int copy_hosts(struct sorted *s, const struct cabling_input *in, struct places *p,
                      struct named *named, struct error *e)
{
    struct cabling_host *host = (struct cabling_host *)s->input.host;
    struct cabling_interface *interface = (struct cabling_interface *)host[0].interface;
    uint32_t number = 0;

    for (uint32_t h = 0; h < in->hosts; h++)
        named[h] = (struct named){in->host[h].name, h};
    qsort(named, in->hosts, sizeof named[0], by_name);
    for (uint32_t h = 0; h < in->hosts; h++) {
        if (h > 0 && strcmp(named[h].name, named[h - 1].name) == 0)
            return error_set(e, ERROR_USAGE, "two hosts have the name %s", named[h].name);
        s->host[h] = named[h].place;
        p->host[named[h].place] = h;
        host[h] = in->host[named[h].place];
        host[h].interface = interface + number;
        s->first[h] = number;
        p->first[named[h].place] = number;
        number += host[h].interfaces;
        s->first[h + 1] = number;
    }
    return copy_interfaces(s, in, p, e);
}

static void sorted_free(struct sorted *s)
{
    if (s->input.host != NULL) {
        if (s->input.host[0].interface != NULL)
            free((void *)s->input.host[0].interface[0].heard);
        free((void *)s->input.host[0].interface);
    }
    free((void *)s->input.host);
    free(s->host);
    free(s->first);
    free(s->interface);
}

/* Checks the input, and copies it. Returns 0, or -1 with *e and nothing to free. */
static int sorted_make(struct sorted *s, const struct cabling_input *in, struct error *e)
{
    size_t interfaces = 1, heard = 1, hosts = (size_t)in->hosts + 1;
    struct places p;
    struct named *named;
    struct cabling_host *host;
    struct cabling_interface *interface;
    int result = -1;

    *s = (struct sorted){.input = *in};
    if (check(in, e) != 0)
        return -1;
    for (uint32_t h = 0; h < in->hosts; h++) {
        interfaces += in->host[h].interfaces;
        for (uint32_t i = 0; i < in->host[h].interfaces; i++)
            heard += in->host[h].interface[i].heard_count;
    }
    p = (struct places){calloc(hosts, sizeof(uint32_t)), calloc(hosts, sizeof(uint32_t)),
                        calloc(interfaces, sizeof(uint32_t))};
    named = calloc(hosts, sizeof *named);
    s->host = calloc(hosts, sizeof *s->host);
    s->first = calloc(hosts, sizeof *s->first);
    s->interface = calloc(interfaces, sizeof *s->interface);
    s->input.host = host = calloc(hosts, sizeof *host);
    interface = calloc(interfaces, sizeof *interface);
    if (host != NULL && interface != NULL) {
        host[0].interface = interface;
        interface[0].heard = calloc(heard, sizeof *interface[0].heard);
    }
    if (p.host == NULL || p.first == NULL || p.interface == NULL || named == NULL ||
        s->host == NULL || s->first == NULL || s->interface == NULL || host == NULL ||
        interface == NULL || interface[0].heard == NULL)
        (void)error_set(e, ERROR_MEMORY, "no memory for %zu interfaces", interfaces);
    else
        result = copy_hosts(s, in, &p, named, e);
    free(p.host);
    free(p.first);
    free(p.interface);
    free(named);
    if (host == NULL)
        free(interface);
    if (result != 0)
        sorted_free(s);
    return result;
}

/* Changes places of the copy to places of the original. CABLING_NONE stays. */
static uint32_t sorted_original_host(const struct sorted *s, uint32_t host)
{
    return host < s->input.hosts ? s->host[host] : CABLING_NONE;
}

static struct cabling_end sorted_original(const struct sorted *s, struct cabling_end end)
{
    struct cabling_end none = {CABLING_NONE, CABLING_NONE};

    if (end.host >= s->input.hosts)
        return none;
    if (end.interface >= s->input.host[end.host].interfaces)
        return (struct cabling_end){s->host[end.host], CABLING_NONE};
    return (struct cabling_end){s->host[end.host],
                                s->interface[s->first[end.host] + end.interface]};
}

struct finding {
    struct cabling_result *result;
    struct sorted sorted;
    struct wiring wiring;
    struct network seen;
};

static int start_result(struct cabling_result *r, const struct finding *f, struct error *e)
{
    size_t hosts = (size_t)f->sorted.input.hosts + 1, interfaces = (size_t)f->wiring.interfaces + 1;

    r->finding = CABLING_UNCLEAR;
    r->rank_of_host = calloc(hosts, sizeof *r->rank_of_host);
    r->cable = calloc(interfaces, sizeof *r->cable);
    r->shared = calloc(interfaces, sizeof *r->shared);
    r->twin = calloc(interfaces, sizeof *r->twin);
    if (r->rank_of_host == NULL || r->cable == NULL || r->shared == NULL || r->twin == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for %zu interfaces", interfaces);
    for (size_t i = 0; i < hosts; i++)
        r->rank_of_host[i] = CABLING_NONE;
    for (uint32_t i = 0; i < f->wiring.cables; i++) {
        r->cable[i] = f->wiring.cable[i];
        for (unsigned end = 0; end < 2; end++)
            r->cable[i].end[end] = sorted_original(&f->sorted, r->cable[i].end[end]);
    }
    r->cables = f->wiring.cables;
    for (uint32_t n = 0; n < f->wiring.interfaces; n++) {
        const struct cabling_end end = sorted_original(&f->sorted, f->wiring.end[n]);
        const uint32_t taken = f->wiring.instead[n];
        if (f->wiring.shared[n])
            r->shared[r->shared_count++] = end;
        if (taken != CABLING_NONE)
            r->twin[r->twins++] = (struct cabling_twin){
                end, sorted_original(&f->sorted, f->wiring.end[taken]).interface};
    }
    return 0;
}

/* Copies what is found to the result, with places of the original input. */
static int fill(struct finding *f, const struct links *l, const struct replug *p,
                const uint32_t *host_at, struct error *e)
{
    struct cabling_result *r = f->result;
    unsigned ports = torus_ports(&r->torus);
    size_t ends = (size_t)r->torus.nodes * ports;

    r->host_of_rank = calloc((size_t)r->torus.nodes + 1, sizeof *r->host_of_rank);
    r->interface_at = calloc(ends + 1, sizeof *r->interface_at);
    if (r->host_of_rank == NULL || r->interface_at == NULL)
        return error_set(e, ERROR_MEMORY, "no memory for %u ranks", r->torus.nodes);
    for (uint32_t rank = 0; rank < r->torus.nodes; rank++) {
        r->host_of_rank[rank] = sorted_original_host(&f->sorted, host_at[rank]);
        if (r->host_of_rank[rank] != CABLING_NONE)
            r->rank_of_host[r->host_of_rank[rank]] = rank;
    }
    for (size_t i = 0; i < ends; i++)
        r->interface_at[i] = CABLING_NONE;
    for (uint32_t i = 0; i < l->links; i++)
        for (unsigned end = 0; end < 2; end++)
            r->interface_at[(size_t)l->link[i].rank[end] * ports + l->link[i].port[end]] =
                sorted_original(&f->sorted, l->link[i].end[end]).interface;
    for (uint32_t i = 0; i < l->extras; i++)
        r->cable[l->extra[i]].state = CABLING_CABLE_WRONG;
    for (uint32_t i = 0; i < p->moves; i++) {
        struct cabling_move *m = &p->move[i];
        m->from = sorted_original(&f->sorted, m->from);
        m->to = sorted_original(&f->sorted, m->to);
        m->stays = sorted_original(&f->sorted, m->stays);
    }
    r->move = p->move;
    r->moves = p->moves;
    return 0;
}

/* Finds moves for the numbering in result->torus and host_at, and completes the result. */
static int complete(struct finding *f, const uint32_t *host_at, struct error *e)
{
    struct links l;
    struct changes c;
    struct replug p;
    int result = -1;

    if (links_make(&l, &f->wiring, &f->result->torus, host_at, e) != 0)
        return -1;
    if (changes_find(&c, &l, 2 * CHANGES_MOST) == UINT32_MAX) {
        (void)error_set(e, ERROR_REFUSED, "too many cables are wrong");
    } else if (replug_make(&p, &l, &c, e) == 0) {
        result = fill(f, &l, &p, host_at, e);
        if (result != 0)
            free(p.move);
        f->result->finding = c.count + l.missing_hosts > 0 ? CABLING_NEAR : CABLING_FITS;
    }
    links_free(&l);
    return result;
}

/* Looks for a network that the cables make as they are. Returns 1 if there is one, 0 if not, -1 with *e. */
static int find_exact(struct finding *f, bool other, struct error *e)
{
    struct grid g;
    uint32_t *host_at;
    struct error why;
    int found = f->seen.links > 0 && network_connected(&f->seen)
                    ? factoring_find(&g, &f->seen, other, e)
                    : 0;

    if (found != 1)
        return found;
    host_at = calloc((size_t)g.nodes + 1, sizeof *host_at);
    if (host_at == NULL)
        found = error_set(e, ERROR_MEMORY, "no memory for %u ranks", g.nodes);
    else if (numbering_join_lines(&g, e) != 0)
        found = -1;
    else if (numbering_choose(&g, NULL, &f->result->torus, host_at, &why) != 0)
        found = why.code == ERROR_REFUSED ? 0 : error_set(e, why.code, "%s", why.text);
    else if (complete(f, host_at, e) != 0)
        found = -1;
    free(host_at);
    free(g.host);
    return found;
}

static bool any_rank(const struct cabling_input *in)
{
    for (uint32_t i = 0; i < in->hosts && in->wanted != NULL; i++)
        if (in->host[i].rank != CABLING_NONE)
            return true;
    return false;
}

static void grid_of_torus(struct grid *g, const struct torus *t, uint32_t *host_at)
{
    *g = (struct grid){.factors = t->dims, .nodes = t->nodes, .host = host_at};
    for (unsigned i = 0; i < t->dims; i++)
        g->factor[i] = (struct grid_factor){t->size[i], t->wrap[i], t->graph[i]};
}

/* Looks for the nearest network. Returns 1 if there is one, 0 if not, -1 with *e. */
static int find_nearest(struct finding *f, struct error *e)
{
    const struct cabling_input *in = &f->sorted.input;
    struct nearest n;
    struct grid g;
    uint32_t *host_at;
    int found;

    if (nearest_find(&n, &f->wiring, e) != 0)
        return -1;
    if (!n.found) {
        nearest_free(&n);
        return 0;
    }
    found = -1;
    host_at = calloc((size_t)n.torus.nodes + 1, sizeof *host_at);
    f->result->torus = n.torus;
    grid_of_torus(&g, &n.torus, n.host_at);
    if (host_at == NULL)
        (void)error_set(e, ERROR_MEMORY, "no memory for %u ranks", n.torus.nodes);
    else if (any_rank(in))
        found = complete(f, n.host_at, e) == 0 ? 1 : -1;
    else if (numbering_choose(&g, in->wanted, &f->result->torus, host_at, e) == 0)
        found = complete(f, host_at, e) == 0 ? 1 : -1;
    free(host_at);
    nearest_free(&n);
    return found;
}

/* "a torus", "a ring", ... */
static const char *kind_of(const struct torus *t)
{
    unsigned rings = 0, lines = 0;

    for (unsigned i = 0; i < t->dims; i++) {
        rings += t->wrap[i] && t->size[i] > 1;
        lines += t->graph[i] == NULL && !t->wrap[i] && t->size[i] > 1;
    }
    if (t->graphs > 0)
        return "the network";
    if (lines == 0)
        return rings == 1 ? "the ring" : "the torus";
    return rings + lines == 1 ? "the line" : "the mesh";
}

/* Adds what may be a cable of the network that leads nowhere. */
static void say_loose(const struct finding *f)
{
    const struct wiring *w = &f->wiring;
    uint32_t loose = 0, last = 0;
    size_t used = strlen(f->result->text);

    for (uint32_t n = w->interfaces; n-- > 0;)
        if (wiring_usable(w, n) && w->cable_at[n] == CABLING_NONE &&
            wiring_interface(w, n)->carrier) {
            loose++;
            last = n;
        }
    if (loose > 0)
        (void)snprintf(f->result->text + used, sizeof f->result->text - used,
                       "; %s's %s%s a carrier, but no host is heard there",
                       w->input->host[w->end[last].host].name, wiring_interface(w, last)->name,
                       loose > 1 ? " and others have" : " has");
}

static void say(struct finding *f)
{
    struct cabling_result *r = f->result;
    const char *wanted = f->sorted.input.wanted != NULL ? " that is wanted" : "";
    char dims[TORUS_TEXT_SIZE];
    size_t size = sizeof r->text;

    if (r->finding != CABLING_UNCLEAR)
        (void)torus_format(&r->torus, dims);
    if (r->finding == CABLING_FITS)
        (void)snprintf(
            r->text, size, "the cables make %s %s of %u hosts%s%s", kind_of(&r->torus), dims,
            r->torus.nodes, r->moves > 0 ? ", but some of them work in one direction only" : "",
            r->torus.nodes < f->sorted.input.hosts ? "; other hosts are not cabled" : "");
    else if (r->finding == CABLING_NEAR)
        (void)snprintf(r->text, size, "the cables make %s %s of %u hosts after %u %s",
                       kind_of(&r->torus), dims, r->torus.nodes, r->moves,
                       r->moves == 1 ? "change" : "changes");
    else if (r->finding == CABLING_GRAPH)
        (void)snprintf(r->text, size,
                       "the cables make no torus, mesh or ring, and more than %u would have to be "
                       "moved; as they are, they make the network %s",
                       CABLING_MOVES_MOST, dims);
    else if (f->wiring.cables == 0)
        (void)snprintf(r->text, size, "%s, so that there is no cable",
                       r->shared_count > 0 ? "every interface that hears another host hears "
                                             "several, as at a switch"
                                           : "no interface hears another host");
    else if (f->seen.links > 0 && !network_connected(&f->seen))
        (void)snprintf(r->text, size,
                       "the cables leave the hosts in parts that are not connected%s, and more "
                       "than %u changes are needed",
                       wanted, CABLING_MOVES_MOST);
    else
        (void)snprintf(
            r->text, size,
            "cannot tell what is wrong: the cables do not make a network%s, and more than %u "
            "changes are needed",
            wanted, CABLING_MOVES_MOST);
}

static int find(struct finding *f, struct error *e)
{
    bool wanted = f->sorted.input.wanted != NULL;
    int found = wanted ? 0 : find_exact(f, false, e);

    if (found == 0 && (wanted || f->wiring.cables > 0))
        found = find_nearest(f, e);
    if (found == 0 && !wanted) {
        found = find_exact(f, true, e);
        if (found == 1)
            f->result->finding = CABLING_GRAPH;
    }
    if (found < 0)
        return -1;
    say(f);
    if (f->result->finding == CABLING_FITS)
        say_loose(f);
    return 0;
}

int cabling_find(struct cabling_result *result, const struct cabling_input *input, struct error *e)
{
    struct finding f = {.result = result};
    int failed;

    *result = (struct cabling_result){.finding = CABLING_UNCLEAR};
    if (sorted_make(&f.sorted, input, e) != 0)
        return -1;
    if (wiring_make(&f.wiring, &f.sorted.input, e) != 0) {
        sorted_free(&f.sorted);
        return -1;
    }
    failed = network_of_cables(&f.seen, &f.wiring, 0, e);
    if (failed == 0) {
        failed = start_result(result, &f, e);
        if (failed == 0)
            failed = find(&f, e);
        network_free(&f.seen);
    }
    wiring_free(&f.wiring);
    sorted_free(&f.sorted);
    if (failed != 0)
        cabling_free(result);
    return failed;
}

void cabling_free(struct cabling_result *r)
{
    free(r->host_of_rank);
    free(r->rank_of_host);
    free(r->interface_at);
    free(r->cable);
    free(r->move);
    free(r->shared);
    free(r->twin);
    *r = (struct cabling_result){.finding = CABLING_UNCLEAR};
}

struct end_text {
    char text[160];
};

/* "gamma's eth2" */
static struct end_text name(const struct cabling_input *in, struct cabling_end end)
{
    struct end_text t;

    if (end.host == CABLING_NONE)
        (void)snprintf(t.text, sizeof t.text, "the missing host");
    else if (end.interface == CABLING_NONE)
        (void)snprintf(t.text, sizeof t.text, "a new interface of %s (none is free)",
                       in->host[end.host].name);
    else
        (void)snprintf(t.text, sizeof t.text, "%s's %s", in->host[end.host].name,
                       in->host[end.host].interface[end.interface].name);
    return t;
}

/* "epsilon (rank 4) is missing: start it, or cable it with gamma's eth1, delta's eth0" */
static int missing_text(const struct cabling_result *r, const struct cabling_input *in,
                        uint32_t rank, char *text, size_t size)
{
    const struct torus *t = &r->torus;
    const char *expected = in->expected != NULL ? in->expected[rank] : NULL;
    int used = expected != NULL ? snprintf(text, size, "%s (rank %u)", expected, rank)
                                : snprintf(text, size, "the host of rank %u", rank);
    unsigned ports = torus_ports(t), named = 0;
    size_t begun = (size_t)used < size ? (size_t)used : size;

    used += snprintf(text + begun, size - begun, " is missing: start it, or cable it with");
    for (unsigned port = 0; port < ports; port++) {
        uint32_t there = torus_neighbour(t, rank, port);
        if (there == TORUS_NO_NODE || r->host_of_rank[there] == CABLING_NONE)
            continue;
        struct cabling_end end = {
            r->host_of_rank[there],
            r->interface_at[(size_t)there * ports + torus_port_opposite(t, port)]};
        size_t at = (size_t)used < size ? (size_t)used : size;
        used += snprintf(text + at, size - at, "%s %s", named++ > 0 ? "," : "", name(in, end).text);
    }
    return used;
}

int cabling_move_text(const struct cabling_result *r, const struct cabling_input *in, uint32_t move,
                      char *text, size_t size)
{
    const struct cabling_move *m = &r->move[move];
    struct end_text from = name(in, m->from), to = name(in, m->to), stays = name(in, m->stays);

    switch (m->kind) {
    case CABLING_MOVE_END:
        return snprintf(text, size, "move the cable in %s to %s (its other end stays in %s)",
                        from.text, to.text, stays.text);
    case CABLING_SWAP:
        return snprintf(text, size, "swap the cables in %s and %s", from.text, to.text);
    case CABLING_ADD:
        return snprintf(text, size, "add a cable between %s and %s, or replace it if there is one",
                        from.text, to.text);
    case CABLING_PLUG:
        return snprintf(text, size,
                        "plug the other end of the cable in %s, which leads to no known host, "
                        "into %s",
                        from.text, to.text);
    case CABLING_CHECK:
        return snprintf(text, size,
                        "connect %s and %s directly: both have a carrier, but hear nobody",
                        from.text, to.text);
    case CABLING_REMOVE:
        return snprintf(text, size, "remove the cable between %s and %s", from.text, to.text);
    case CABLING_REPLACE:
        return snprintf(text, size,
                        "replace the cable between %s and %s: only %s hears the other end",
                        from.text, to.text, to.text);
    case CABLING_START_HOST:
        return missing_text(r, in, m->rank, text, size);
    }
    return snprintf(text, size, "?");
}

int cabling_dims(const struct torus *t, const char *graph_file, char *text, size_t size)
{
    char all[TORUS_TEXT_SIZE];
    int used = 0;

    if (t->graphs == 0 || graph_file == NULL)
        return snprintf(text, size, "%s", torus_format(t, all));
    for (unsigned i = 0; i < t->dims; i++) {
        size_t at = (size_t)used < size ? (size_t)used : size;
        const char *times = i > 0 ? " x " : "";
        if (t->graph[i] == NULL)
            used +=
                snprintf(text + at, size - at, "%s%u%s", times, t->size[i], t->wrap[i] ? "" : "m");
        else if (t->graph[i]->kind == GRAPH_KIND_EDGES)
            used += snprintf(text + at, size - at, "%sgraph:%s", times, graph_file);
        else
            used += snprintf(text + at, size - at, "%s%s", times, t->graph[i]->text);
    }
    return used;
}
