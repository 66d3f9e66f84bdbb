/* Pages with the details of a node, a link or a run, and the page of keys. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/survey/all_nodes_report.h"
#include "client/cli/top/draw.h"
#include "proto/text.h"

#define ADDRESS_COLUMN 0u
#define TO_COLUMN 8u
#define STATE_COLUMN 30u
#define SENT_COLUMN 39u
#define RECEIVED_COLUMN 53u
#define QUEUE_COLUMN 67u
#define HERE_COLUMN 21u
#define THERE_COLUMN 51u
#define PHASE_COLUMN 22u
#define DONE_COLUMN 38u

/* A page that is filled line by line. */
struct page {
    struct top_window *w;
    const struct top_model *m;
    unsigned row;
};

static void title(struct page *p, const char *text)
{
    if (p->row > 0)
        p->row++;
    p->row +=
        top_put_lines(p->w, p->row, 0, TOP_MOST_COLUMNS, TOP_ALL_LINES, TOP_TITLE, false, text);
}

/* Adds a text, in as many lines as it needs. */
static void add_text(struct page *p, unsigned column, enum top_look look, const char *text)
{
    p->row +=
        top_put_lines(p->w, p->row, column, TOP_MOST_COLUMNS, TOP_ALL_LINES, look, false, text);
}

static void __attribute__((format(printf, 2, 3))) add_line(struct page *p, const char *format, ...)
{
    char text[2 * TOP_TEXT_SIZE];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    add_text(p, 0, TOP_PLAIN, text);
}

/* Puts a text into a column of a table, up to the next column. */
static void put_cell(struct page *p, unsigned column, unsigned next, enum top_look look,
                     const char *text)
{
    (void)top_put_lines(p->w, p->row, column, next - column - 1, 1, look, false, text);
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

static void node_link(struct page *p, uint32_t rank, unsigned port)
{
    const struct observed_link l = observed_link(&p->m->seen, rank, port);
    const struct torus_link *here = l.here != NULL ? l.here->link : NULL;
    char text[TOP_TEXT_SIZE], name[TORUS_PORT_NAME_SIZE];

    if (l.state == LINK_NONE)
        return;
    const enum top_look look = l.state == LINK_DOWN ? TOP_BROKEN : TOP_PLAIN;
    put_cell(p, ADDRESS_COLUMN, TO_COLUMN, look,
             torus_port_name(&p->m->seen.now.torus, rank, port, name));
    put_cell(p, TO_COLUMN, STATE_COLUMN, look, top_text_end(text, p->m, l.neighbour, l.port_there));
    put_cell(p, STATE_COLUMN, SENT_COLUMN, look,
             here != NULL ? torus_link_state_name(here->state) : "?");
    if (here != NULL && here->state != TORUS_LINK_UP) {
        add_text(p, SENT_COLUMN, look, here->reason);
        return;
    }
    put_cell(p, SENT_COLUMN, RECEIVED_COLUMN, look, top_text_rate(text, l.here->sent));
    put_cell(p, RECEIVED_COLUMN, QUEUE_COLUMN, look, top_text_rate(text, l.here->received));
    if (here != NULL)
        put_cell(p, QUEUE_COLUMN, QUEUE_COLUMN + 14, look, top_text_bytes(text, here->queue_bytes));
    p->row++;
}

static void node_runs(struct page *p, const struct torus_status *s)
{
    char done[TOP_TEXT_SIZE], total[TOP_TEXT_SIZE];

    if (s->exchange_count + s->group_count + s->copy_count > 0)
        title(p, "runs here");
    for (size_t i = 0; i < s->exchange_count; i++) {
        const struct torus_activity *x = s->exchanges[i];
        add_line(p, "exchange %s  %s  %s  %llu of %llu rounds  %.20s of %.20s  %s", x->id,
                 x->algorithm, torus_state_name(x->state), (unsigned long long)x->round,
                 (unsigned long long)x->rounds, top_text_bytes(done, x->done_bytes),
                 x->total_bytes > 0 ? top_text_bytes(total, x->total_bytes) : "?", x->reason);
    }
    for (size_t i = 0; i < s->group_count; i++) {
        const struct torus_group_info *g = s->groups[i];
        add_line(p, "group %s  %s  process %llu  %llu of %llu calls done  sent %s", g->name,
                 g->open ? "open" : "being opened", (unsigned long long)g->pid,
                 (unsigned long long)g->calls_done, (unsigned long long)g->calls,
                 top_text_bytes(done, g->bytes_sent));
    }
    for (size_t i = 0; i < s->copy_count; i++) {
        const struct torus_copy_activity *x = s->copies[i];
        add_line(p, "copy %s  %s  %s  %.20s of %.20s  %s", x->id, x->target,
                 torus_copy_phase_name(x->phase), top_text_bytes(done, x->bytes),
                 x->bytes_of > 0 ? top_text_bytes(total, x->bytes_of) : "?", x->waits_for);
    }
}

static void node_page(struct page *p, uint32_t rank)
{
    char text[TOP_TEXT_SIZE], used[TOP_TEXT_SIZE], budget[TOP_TEXT_SIZE];

    title(p, top_text_node(text, p->m, rank));
    if (!all_nodes_answered(&p->m->seen.now, rank)) {
        add_text(p, 0, TOP_BROKEN, all_nodes_missing(&p->m->seen.now, rank));
    } else {
        const struct torus_status *s = p->m->seen.now.state->nodes[rank]->status;
        add_line(p, "torusd %s, process %llu, up for %s; memory in use %s of %s", s->version,
                 (unsigned long long)s->pid, top_text_seconds(text, (double)s->uptime_ms / 1000),
                 top_text_bytes(used, s->memory_used), top_text_bytes(budget, s->memory_budget));
    }
    p->row++;
    (void)top_put(p->w, p->row, ADDRESS_COLUMN, TOP_FAINT, false, "port");
    (void)top_put(p->w, p->row, TO_COLUMN, TOP_FAINT, false, "to");
    (void)top_put(p->w, p->row, STATE_COLUMN, TOP_FAINT, false, "state");
    (void)top_put(p->w, p->row, SENT_COLUMN, TOP_FAINT, false, "sends");
    (void)top_put(p->w, p->row, RECEIVED_COLUMN, TOP_FAINT, false, "receives");
    (void)top_put(p->w, p->row++, QUEUE_COLUMN, TOP_FAINT, false, "waiting");
    for (unsigned port = 0; port < torus_ports(&p->m->seen.now.torus); port++)
        node_link(p, rank, port);
    if (all_nodes_answered(&p->m->seen.now, rank))
        node_runs(p, p->m->seen.now.state->nodes[rank]->status);
}

/* ---- Links ----------------------------------------------------------------------------------- */

enum link_row {
    ROW_STATE,
    ROW_REASON,
    ROW_SENDS,
    ROW_LOAD,
    ROW_WAITS,
    ROW_UNACKED,
    ROW_RESENT,
    ROW_ROUND_TRIP,
    ROW_MTU,
    ROW_INTERFACE,
    ROW_ADDRESS,
    ROW_UP_FOR,
    ROW_CONNECTS,
    ROW_SECURITY,
    LINK_ROWS
};

static const char *const link_labels[LINK_ROWS] = {
    [ROW_STATE] = "state",
    [ROW_REASON] = "reason",
    [ROW_SENDS] = "sends",
    [ROW_LOAD] = "load of this way",
    [ROW_WAITS] = "waits in the daemon",
    [ROW_UNACKED] = "not acknowledged",
    [ROW_RESENT] = "sent again",
    [ROW_ROUND_TRIP] = "round trip",
    [ROW_MTU] = "MTU",
    [ROW_INTERFACE] = "interface",
    [ROW_ADDRESS] = "address",
    [ROW_UP_FOR] = "up for",
    [ROW_CONNECTS] = "came up",
    [ROW_SECURITY] = "security",
};

/* What one end of a link says about a row; "" if nothing. */
static const char *link_cell(char out[TOP_TEXT_SIZE], enum link_row row, const struct link_end *e,
                             double load)
{
    const struct torus_link *l = e->link;

    out[0] = '\0';
    switch (row) {
    case ROW_STATE:
        return torus_link_state_name(l->state);
    case ROW_REASON:
        return l->reason;
    case ROW_SENDS:
        return top_text_rate(out, e->sent);
    case ROW_LOAD:
        return top_text_load(out, load);
    case ROW_WAITS:
        return top_text_bytes(out, l->queue_bytes);
    case ROW_UNACKED:
        return top_text_bytes(out, l->unacked_bytes);
    case ROW_RESENT:
        (void)snprintf(out, TOP_TEXT_SIZE, "%u packets, %.0f/s", l->retransmits,
                       e->resent > 0 ? e->resent : 0);
        return out;
    case ROW_ROUND_TRIP:
        return l->rtt_us > 0 ? top_text_seconds(out, l->rtt_us / 1e6) : "-";
    case ROW_MTU:
        (void)snprintf(out, TOP_TEXT_SIZE, l->mtu > 0 ? "%u" : "-", l->mtu);
        return out;
    case ROW_INTERFACE:
        return l->interface;
    case ROW_ADDRESS:
        return l->address;
    case ROW_UP_FOR:
        return l->state == TORUS_LINK_UP ? top_text_seconds(out, (double)l->up_ms / 1000) : "-";
    case ROW_CONNECTS:
        (void)snprintf(out, TOP_TEXT_SIZE, "%u %s", l->connects,
                       text_plural(l->connects, "time", "times"));
        return out;
    case ROW_SECURITY:
        return link_security(l) != NULL ? link_security(l) : "-";
    case LINK_ROWS:
        break;
    }
    return out;
}

static void link_page(struct page *p, uint32_t rank, unsigned port)
{
    const struct observed_link l = observed_link(&p->m->seen, rank, port);
    char a[TOP_TEXT_SIZE], b[TOP_TEXT_SIZE];

    if (l.state == LINK_NONE)
        return;
    (void)snprintf(a, sizeof a, "link %u:%s", rank,
                   torus_port_name(&p->m->seen.now.torus, rank, port, b));
    title(p, a);
    put_cell(p, HERE_COLUMN, THERE_COLUMN, TOP_FAINT, top_text_end(a, p->m, rank, port));
    put_cell(p, THERE_COLUMN, TOP_MOST_COLUMNS, TOP_FAINT,
             top_text_end(b, p->m, l.neighbour, l.port_there));
    p->row++;
    for (enum link_row row = ROW_STATE; row < LINK_ROWS; row++) {
        const char *here = l.here->link != NULL ? link_cell(a, row, l.here, l.away) : "?";
        const char *there = l.there->link != NULL ? link_cell(b, row, l.there, l.towards) : "?";
        const enum top_look look =
            row <= ROW_REASON && l.state == LINK_DOWN ? TOP_BROKEN : TOP_PLAIN;
        if (row == ROW_REASON && l.state != LINK_DOWN)
            continue;
        (void)top_put(p->w, p->row, 0, TOP_FAINT, false, link_labels[row]);
        if (row == ROW_REASON) { /* long: a line for each end */
            add_text(p, HERE_COLUMN, look, here);
            add_text(p, HERE_COLUMN, look, there);
            continue;
        }
        put_cell(p, HERE_COLUMN, THERE_COLUMN, look, here);
        put_cell(p, THERE_COLUMN, TOP_MOST_COLUMNS, look, there);
        p->row++;
    }
}

/* ---- Runs ------------------------------------------------------------------------------------ */

/* A node in a run; `key` orders nodes, the furthest behind first. */
struct behind {
    double key;
    uint32_t rank;
};

static int compare(const void *a, const void *b)
{
    const struct behind *x = a, *y = b;

    if (x->key < y->key || x->key > y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Ends a line about a node with what it has done. */
static void __attribute__((format(printf, 2, 3))) add_done(struct page *p, const char *format, ...)
{
    char text[TOP_TEXT_SIZE];
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    add_text(p, DONE_COLUMN, TOP_PLAIN, text);
}

/* What a node says about a run: one of these, or none. */
struct part_here {
    const struct torus_activity *exchange;
    const struct torus_group_info *group;
    const struct torus_copy_activity *copy;
};

static struct part_here part_at(const struct page *p, const struct run *r, uint32_t rank)
{
    const struct all_nodes *c = &p->m->seen.now;

    return (struct part_here){run_exchange_at(r, c, rank), run_group_at(r, c, rank),
                              run_copy_at(r, c, rank)};
}

static double key_of(const struct part_here *here)
{
    const struct torus_activity *x = here->exchange;

    if (here->group != NULL)
        return (double)here->group->calls_done;
    if (here->copy != NULL)
        return (double)here->copy->bytes;
    if (x->state >= TORUS_STATE_DONE && x->state != TORUS_STATE_FAILING)
        return 2;
    if (x->total_bytes > 0)
        return (double)x->done_bytes / (double)x->total_bytes;
    return x->rounds > 0 ? (double)x->round / (double)x->rounds : 0;
}

static void run_node(struct page *p, const struct run *r, uint32_t rank)
{
    const struct part_here here = part_at(p, r, rank);
    const struct torus_activity *x = here.exchange;
    const struct torus_group_info *g = here.group;
    const struct torus_copy_activity *copy = here.copy;
    char text[TOP_TEXT_SIZE], total[TOP_TEXT_SIZE];

    (void)top_print(p->w, p->row, 0, TOP_PLAIN, "%6u", rank);
    put_cell(p, TO_COLUMN, PHASE_COLUMN, TOP_PLAIN, top_model_host(p->m, rank));
    if (g != NULL) {
        (void)top_put(p->w, p->row, PHASE_COLUMN, TOP_PLAIN, false,
                      g->open ? "open" : "being opened");
        add_done(p, "%llu of %llu calls done, %s received", (unsigned long long)g->calls_done,
                 (unsigned long long)g->calls, top_text_bytes(text, g->bytes_received));
        return;
    }
    if (copy != NULL) {
        (void)top_put(p->w, p->row, PHASE_COLUMN, TOP_PLAIN, false,
                      torus_copy_phase_name(copy->phase));
        add_done(p, "%.20s of %.20s, %llu files", top_text_bytes(text, copy->bytes),
                 copy->bytes_of > 0 ? top_text_bytes(total, copy->bytes_of) : "?",
                 (unsigned long long)copy->files);
        return;
    }
    (void)top_put(p->w, p->row, PHASE_COLUMN, TOP_PLAIN, false, torus_state_name(x->state));
    add_done(p, "%.20s of %.20s, %llu of %llu rounds", top_text_bytes(text, x->done_bytes),
             x->total_bytes > 0 ? top_text_bytes(total, x->total_bytes) : "?",
             (unsigned long long)x->round, (unsigned long long)x->rounds);
}

static void run_nodes(struct page *p, const struct run *r)
{
    const uint32_t nodes = p->m->seen.now.torus.nodes;
    struct behind *list = calloc(nodes, sizeof *list);
    size_t n = 0;

    for (uint32_t rank = 0; list != NULL && rank < nodes; rank++) {
        const struct part_here here = part_at(p, r, rank);
        if (here.exchange != NULL || here.group != NULL || here.copy != NULL)
            list[n++] = (struct behind){key_of(&here), rank};
    }
    if (n > 0)
        qsort(list, n, sizeof *list, compare);
    (void)top_put(p->w, p->row, 2, TOP_FAINT, false, "node");
    (void)top_put(p->w, p->row, TO_COLUMN, TOP_FAINT, false, "host");
    (void)top_put(p->w, p->row, PHASE_COLUMN, TOP_FAINT, false, "phase");
    (void)top_put(p->w, p->row++, DONE_COLUMN, TOP_FAINT, false, "done (furthest behind first)");
    for (size_t i = 0; i < n; i++)
        run_node(p, r, list[i].rank);
    free(list);
}

static void run_page(struct page *p, const struct run *r)
{
    char text[TOP_TEXT_SIZE], total[TOP_TEXT_SIZE];

    if (r == NULL) {
        title(p, "nothing runs");
        return;
    }
    title(p, top_text_run(text, r, p->w->columns));
    if (r->kind == RUN_EXCHANGE && r->root < p->m->seen.now.torus.nodes)
        add_line(p, "began %s ago at %s", top_text_seconds(total, (double)(r->age_ms / 1000)),
                 top_text_node(text, p->m, r->root));
    if (r->kind == RUN_COPY && r->root < p->m->seen.now.torus.nodes)
        add_line(p, "asked for at %s", top_text_node(text, p->m, r->root));
    if (r->kind != RUN_GROUP)
        add_line(p, "%.20s of %.20s %s", top_text_bytes(text, r->done),
                 r->total > 0 ? top_text_bytes(total, r->total) : "?",
                 r->kind == RUN_COPY ? "moved" : "delivered at all nodes");
    if (run_reason(r, text, sizeof text)[0] != '\0')
        add_text(p, 0, r->reason[0] != '\0' ? TOP_BROKEN : TOP_PLAIN, text);
    p->row++;
    run_nodes(p, r);
}

unsigned top_draw_details(struct top_window *w, const struct top_model *m, const struct top_view *v)
{
    struct page p = {w, m, 0};

    if (v->focus == TOP_FOCUS_NODE)
        node_page(&p, v->node);
    else if (v->focus == TOP_FOCUS_LINK)
        link_page(&p, v->node, v->port);
    else
        run_page(&p, top_view_run(v, m));
    return p.row;
}

unsigned top_draw_help(struct top_window *w)
{
    static const char *const lines[] = {
        "arrows, h j k l   choose a node; after tab: a link of the node, or what runs",
        "tab               go on from the nodes to the links, to what runs, and back",
        "enter             show details of what is chosen, or the torus again",
        "escape            show the torus again",
        "page up, down     scroll details",
        "space             pause: keep this view, until space is pressed again",
        "?                 show this help, or the torus again",
        "q                 leave details or this help; quit",
        "",
        "A node is shown by its rank; ! means that it has not answered.",
        "A link is drawn at its + end: to the right, or downwards. The last link of a row",
        "or column leads back to its beginning. / below a node shows the busiest of the",
        "links that leave the plane. A number is the load of the busier direction in per",
        "cent (in tenths where there is little room); an arrow shows that this direction",
        "has more than twice the load of the other one. 100 % is link_mbit or, if that is",
        "not set, the fastest rate seen so far.",
        "Where there is room, the rates of the last surveys are shown, and the links on which",
        "packets are sent again, then those with the highest loads.",
    };
    const unsigned count = sizeof lines / sizeof lines[0];

    unsigned row = 0;
    for (unsigned i = 0; i < count; i++)
        row +=
            top_put_lines(w, row, 0, TOP_MOST_COLUMNS, TOP_ALL_LINES, TOP_PLAIN, false, lines[i]);
    return row;
}
