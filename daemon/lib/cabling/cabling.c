#include "daemon/lib/cabling/cabling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/cabling/factoring.h"
#include "daemon/lib/cabling/nearest.h"
#include "daemon/lib/cabling/numbering.h"
#include "daemon/lib/cabling/replug.h"
#include "daemon/lib/cabling/sorted.h"

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

int cabling_port(const struct cabling_result *r, struct cabling_end end)
{
    uint32_t rank = r->rank_of_host[end.host];
    unsigned ports = torus_ports(&r->torus);

    if (rank == CABLING_NONE)
        return -1;
    for (unsigned port = 0; port < ports; port++)
        if (r->interface_at[(size_t)rank * ports + port] == end.interface)
            return (int)port;
    return -1;
}
