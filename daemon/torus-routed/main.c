#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/host/facts.h"
#include "daemon/lib/schedule/damage.h"
#include "daemon/lib/service/service.h"
#include "daemon/torus-routed/holdings.h"
#include "daemon/torus-routed/installer.h"
#include "daemon/torus-routed/kernel/kernel.h"
#include "daemon/torus-routed/options.h"
#include "daemon/torus-routed/report.h"
#include "daemon/torus-routed/spreading.h"
#include "proto/descriptors.h"
#include "proto/elapsed.h"
#include "proto/error.h"

/* torus-routed put together: link states in, routes of the kernel out. */

struct routed;

#define CHECK_MS 2000   /* between two looks at the kernel's routes and interfaces */
#define RARE_CHECKS 15u /* checks between two calls of look_at_others() */

struct routed {
    uv_loop_t *loop;
    const struct routed_options *options;
    struct holdings holdings;
    struct mnl_socket *reports; /* of changes of interfaces */
    struct host_addresses hosts;
    struct states states;
    struct report_server server;
    char *socket_path;
    uv_timer_t planned, check, look;
    uv_poll_t changes;
    bool has_changes;
    unsigned checks;
    const char *firewall;                               /* firewall_look() */
    char problem[sizeof(((struct error *)NULL)->text)]; /* as it was last logged; "": none */
    bool faulty; /* `problem` is about this host, not about routes */
    bool stopping, stop_failed;

    /* From the first link states on: */
    bool placed;
    struct torus torus;
    struct route_planner planner;
    struct damage without;
    struct installer installer;
    struct spreading spreading;
    bool was_converged; /* the routes have been whole since this place was taken, */
    bool cables_ready;  /* and the kernel forwards what comes over the cables */
    uint32_t *up;       /* states.up without the links to be avoided */
    bool unsure;        /* the kernel has refused a route since all were put there */
    bool *diverted;     /* by node: the kernel took another route when it was asked last */
};

/* Notes what keeps routes from being set, and logs it once; "": nothing. It is tried again at the next check. */
static void note_problem(struct routed *r, const char *text)
{
    if (strcmp(r->problem, text) == 0)
        return;
    (void)snprintf(r->problem, sizeof r->problem, "%s", text);
    if (text[0] != '\0')
        log_error("%s", text);
    else
        log_info("the routes can be set again");
}

/* --- routes --- */

static void wake_up(struct routed *r);

static void complain(struct routed *r)
{
    struct error e;

    if (r->installer.failures == 0 || r->faulty)
        return;
    (void)error_set(&e, ERROR_IO, "%.280s (%u routes)", r->installer.failure.text,
                    r->installer.failures);
    note_problem(r, e.text);
}

/* Puts the routes that are new, or all, into the kernel. */
static void install(struct routed *r, bool all)
{
    for (uint32_t to = 0; to < r->torus.nodes; to++)
        if (all || r->planner.route[to].is_new) {
            r->planner.route[to].is_new = false;
            installer_put(&r->installer, to);
        }
    r->unsure = r->installer.failures > 0 || (r->unsure && !all);
    complain(r);
    if (all && !r->unsure && !r->faulty)
        note_problem(r, "");
    r->installer.failures = 0;
}

/* Whether packets of others may pass through this host. */
static bool forwards(const struct routed *r)
{
    return r->placed && r->was_converged && r->cables_ready && !r->faulty && !r->stopping;
}

/* Tells all nodes with which link states the routes in the kernel agree, and whether this host forwards; counts what
 * they have said. `again`: also if nothing has changed. */
static void confirm(struct routed *r, bool again)
{
    const uint64_t digest = r->unsure ? 0 : route_planner_statement(&r->planner);

    r->was_converged |= r->planner.converged;
    states_confirm(&r->states, digest, forwards(r), again);
    for (uint32_t node = 0; node < r->torus.nodes; node++)
        route_planner_confirm(&r->planner, node,
                              node == r->planner.self ? digest : r->states.confirmed[node]);
    route_planner_tick(&r->planner, uv_now(r->loop));
    install(r, false);
    r->was_converged |= r->planner.converged;
    states_confirm(&r->states, digest, forwards(r), false);
}

static void on_planned(uv_timer_t *timer)
{
    struct routed *r = timer->data;

    route_planner_tick(&r->planner, uv_now(r->loop));
    install(r, false);
    confirm(r, false);
    wake_up(r);
}

static void wake_up(struct routed *r)
{
    uint64_t at = route_planner_deadline(&r->planner), now = uv_now(r->loop);

    if (at == PLANNER_NEVER)
        (void)uv_timer_stop(&r->planned);
    else
        (void)uv_timer_start(&r->planned, on_planned, elapsed(now, at), 0);
}

/* --- the host --- */

/* Returns the interfaces of the cables. */
static unsigned interfaces(const struct routed *r, char list[TORUS_MAX_PORTS][IFNAMSIZ])
{
    unsigned count = 0;

    for (unsigned port = 0; port < torus_ports(&r->torus); port++)
        if (r->installer.cable[port].interface.index != 0)
            (void)strcpy(list[count++], r->installer.cable[port].name);
    return count;
}

static void prepare_interfaces(struct routed *r)
{
    char list[TORUS_MAX_PORTS][IFNAMSIZ];
    unsigned count = interfaces(r, list);
    struct error e;

    for (unsigned i = 0; i < count; i++)
        if (settings_prepare_interface(&r->holdings.settings, list[i], r->hosts.v6, &e) != 0)
            log_warning("%s", e.text);
    r->cables_ready = true;
    for (unsigned i = 0; i < count; i++)
        r->cables_ready &= settings_forwards(&r->holdings.settings, list[i], r->hosts.v6);
}

/* Looks at the interfaces of the cables. Settings follow one that has a new name. Returns whether anything has
 * changed. */
static bool look_at_cables(struct routed *r)
{
    struct cable before[TORUS_MAX_PORTS];
    struct error e;
    bool changed;

    memcpy(before, r->installer.cable, sizeof before);
    changed = installer_look_at_cables(&r->installer, r->states.interface);
    for (unsigned port = 0; port < torus_ports(&r->torus); port++) {
        const struct cable *now = &r->installer.cable[port];
        if (now->interface.index == 0 || now->interface.index != before[port].interface.index ||
            strcmp(now->name, before[port].name) == 0)
            continue;
        changed = true;
        if (settings_rename(&r->holdings.settings, before[port].name, now->name, &e) != 0)
            log_warning("%s", e.text);
    }
    return changed;
}

static int prepare_host(struct routed *r, struct error *e)
{
    const uint32_t rank = r->states.rank;

    return holdings_prepare(&r->holdings, &r->hosts.host[rank], rank, &r->hosts.v6, e);
}

/* What others than torus-routed decide: firewalls, and routes that come before those of torus-routed. */
static void look_at_others(struct routed *r)
{
    char list[TORUS_MAX_PORTS][IFNAMSIZ];
    struct kernel_answer answer;
    struct kernel_query query;

    firewall_pass(list, interfaces(r, list));
    r->firewall = firewall_look(true);
    kernel_query_begin(&query, &r->installer);
    for (uint32_t to = 0; to < r->torus.nodes; to++)
        r->diverted[to] = to != r->planner.self && kernel_query_diverted(&query, to, &answer);
    kernel_query_end(&query);
}

static void on_count(void *context, Control__RouteCounts *counts, uint32_t *hosts)
{
    const struct routed *r = context;

    counts->problem = r->problem[0] != '\0';
    if (!r->placed)
        return;
    for (uint32_t to = 0; to < r->torus.nodes; to++)
        if (to != r->planner.self)
            hosts[installer_state(&r->installer, to, r->diverted[to])]++;
    counts->ways_lost = r->planner.lost;
    counts->ways_gained = r->planner.gained;
    counts->unchanged_ms = elapsed(r->planner.changed, uv_now(r->loop));
}

static void take_place(struct routed *r);

/* Compares all that was set with what it should be. Without a place, tries to take one. */
static void check(struct routed *r)
{
    struct error e;

    if (!r->placed) {
        if (r->states.up != NULL && r->states.connected)
            take_place(r);
        if (!r->placed)
            states_confirm(&r->states, 0, false, true);
        return;
    }
    (void)look_at_cables(r);
    r->faulty = prepare_host(r, &e) != 0;
    if (r->faulty)
        note_problem(r, e.text);
    prepare_interfaces(r);
    installer_look(&r->installer, NULL, NULL);
    install(r, true);
    confirm(r, true);
    wake_up(r);
    if (r->planner.converged && r->checks++ % RARE_CHECKS == 0)
        look_at_others(r);
}

static void on_check(uv_timer_t *timer)
{
    check(timer->data);
}

/* An interface has changed, or reports were lost; what exactly does not matter. libuv stops to watch a socket that has
 * lost reports. */
static void on_change(uv_poll_t *poll, int status, int events)
{
    struct routed *r = poll->data;
    char report[8192];

    (void)events;
    while (recv(mnl_socket_get_fd(r->reports), report, sizeof report, MSG_DONTWAIT) >= 0 ||
           errno == EINTR || errno == ENOBUFS)
        continue;
    if (status < 0 && (errno != EAGAIN || uv_poll_start(poll, UV_READABLE, on_change) != 0))
        log_warning("interfaces are only looked at every %d s: %s", CHECK_MS / 1000,
                    uv_strerror(status));
    if (!r->placed)
        return;
    if (look_at_cables(r))
        check(r);
    else
        install(r, true); /* a carrier decides about cables to hosts whose torusd does not run */
}

/* Whether there are several paths to any host. */
static bool has_choice(const struct routed *r)
{
    for (uint32_t to = 0; to < r->torus.nodes; to++)
        if ((r->planner.route[to].ports & (r->planner.route[to].ports - 1)) != 0)
            return true;
    return false;
}

static void on_look(uv_timer_t *timer)
{
    struct routed *r = timer->data;
    uint64_t sent[TORUS_MAX_PORTS];
    bool known;

    if (!r->placed || !has_choice(r))
        return;
    known = installer_sent(&r->installer, sent) == 0;
    if (spreading_look(&r->spreading, &r->hosts, known ? sent : NULL))
        install(r, true);
}

/* --- link states --- */

static void forget_place(struct routed *r)
{
    installer_free(&r->installer);
    route_planner_free(&r->planner);
    damage_free(&r->without);
    spreading_free(&r->spreading);
    free(r->up);
    free(r->diverted);
    r->up = NULL;
    r->diverted = NULL;
    (void)uv_timer_stop(&r->planned);
    r->placed = r->was_converged = r->cables_ready = false;
}

static void on_adopted(void *context, uint32_t to, uint32_t ports)
{
    struct routed *r = context;

    route_planner_adopt(&r->planner, to, ports);
}

static int read_without(struct routed *r, struct error *e)
{
    const char *list = r->options->without;

    if (list == NULL)
        return damage_init(&r->without, &r->torus, e);
    return damage_parse(&r->without, &r->torus, list, e) == 0 ? 0 : error_wrap(e, "--without");
}

static int check_count(const struct host_addresses *h, const struct routed *r, struct error *e)
{
    if (h->count == r->states.torus.nodes)
        return 0;
    return error_set(e, ERROR_USAGE, "%s has %u hosts, but the torus has %u nodes",
                     r->options->addresses, h->count, r->states.torus.nodes);
}

/* The file of addresses may have changed with the torus. */
static int match_addresses(struct routed *r, struct error *e)
{
    struct host_addresses fresh;
    struct error more;

    if (check_count(&r->hosts, r, e) == 0)
        return 0;
    if (host_addresses_read(&fresh, r->options->addresses, &more) != 0)
        return -1;
    host_addresses_free(&r->hosts);
    r->hosts = fresh;
    return check_count(&r->hosts, r, e);
}

/* Returns 0, or -1 with *e. */
static int place(struct routed *r, struct error *e)
{
    if (match_addresses(r, e) != 0)
        return -1;
    r->torus = r->states.torus;
    if (read_without(r, e) != 0 || prepare_host(r, e) != 0)
        return -1;
    r->up = calloc(r->torus.nodes, sizeof *r->up);
    r->diverted = calloc(r->torus.nodes, sizeof *r->diverted);
    if (r->up == NULL || r->diverted == NULL ||
        spreading_init(&r->spreading, r->torus.nodes) != 0 ||
        route_planner_init(&r->planner, &r->torus, r->states.rank,
                           route_planner_convergence_ms(&r->torus)) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory for the routes");
    r->installer = (struct installer){.netlink = &r->holdings.netlink,
                                      .hosts = &r->hosts,
                                      .planner = &r->planner,
                                      .spread = r->spreading.spread,
                                      .congestion = r->options->congestion};
    if (installer_init(&r->installer) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory for the routes");
    (void)installer_look_at_cables(&r->installer, r->states.interface);
    prepare_interfaces(r);
    installer_look(&r->installer, on_adopted, r);
    r->placed = true;
    r->faulty = false;
    return 0;
}

static bool has_moved(const struct routed *r)
{
    return !torus_equal(&r->torus, &r->states.torus) || r->planner.self != r->states.rank;
}

/* Gives the planner the link states, and the kernel the routes. */
static void use_states(struct routed *r, bool fresh)
{
    for (uint32_t rank = 0; rank < r->torus.nodes; rank++)
        r->up[rank] = r->states.up[rank] & ~r->without.dead[rank];
    uv_update_time(r->loop);
    route_planner_heard(&r->planner, r->up, r->states.forwards, r->states.kbit, uv_now(r->loop));
    installer_prove_cables(&r->installer, r->up[r->states.rank]);
    install(r, fresh);
    route_planner_weigh(&r->planner);
    confirm(r, false);
    wake_up(r);
}

/* Takes a place in the torus, and sets all routes. If that fails, former routes are removed: they would no longer
 * follow the links. */
static void take_place(struct routed *r)
{
    struct error e;

    if (place(r, &e) == 0) {
        use_states(r, true);
        return;
    }
    forget_place(r);
    states_confirm(&r->states, 0, false, false);
    (void)error_wrap(&e, "no routes");
    note_problem(r, e.text);
    if (holdings_any(&r->holdings))
        (void)netlink_remove_routes(&r->holdings.netlink);
}

/* Reads the file of addresses again, and keeps the routes that are still right. If the file is wrong, or has not as
 * many hosts as the torus, everything stays as it is. */
static void routed_reload(struct routed *r)
{
    struct host_addresses fresh;
    struct error e;
    int rc = host_addresses_read(&fresh, r->options->addresses, &e);

    if (rc == 0 && r->placed && (rc = check_count(&fresh, r, &e)) != 0)
        host_addresses_free(&fresh);
    if (rc != 0) {
        log_error("the addresses stay as they are: %s", e.text);
        return;
    }
    log_info("the addresses have been read again");
    host_addresses_free(&r->hosts);
    r->hosts = fresh;
    forget_place(r);
    if (r->states.up != NULL)
        take_place(r);
}

static void on_heard(void *context, bool all)
{
    struct routed *r = context;

    if (r->placed && all && has_moved(r))
        forget_place(r);
    if (!r->placed) {
        take_place(r);
        return;
    }
    if (r->states.renamed && look_at_cables(r))
        prepare_interfaces(r);
    use_states(r, false);
}

static const char *describe_firewall(const struct routed *r)
{
    if (r->firewall == NULL)
        return "was not looked at yet";
    if (strcmp(r->firewall, "drop") == 0)
        return "drops packets that this host should forward (a policy 'drop'); to mend it, for "
               "each "
               "pair of cables: sudo iptables -I FORWARD -i IN -o OUT -j ACCEPT";
    if (strcmp(r->firewall, "accept") == 0)
        return "no policy drops what is forwarded; single rules cannot be judged";
    return "cannot be seen: neither nft nor iptables-save shows its rules";
}

static json_t *on_report(void *context)
{
    const struct routed *r = context;
    const struct report_of of = {.hosts = &r->hosts,
                                 .states = &r->states,
                                 .planner = r->placed ? &r->planner : NULL,
                                 .installer = &r->installer,
                                 .firewall = describe_firewall(r),
                                 .problem = r->problem,
                                 .now = uv_now(r->loop)};

    return report_make(&of);
}

/* --- start and end --- */

static int watch_interfaces(struct routed *r, struct error *e)
{
    r->reports = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (r->reports == NULL || mnl_socket_bind(r->reports, RTMGRP_LINK, MNL_SOCKET_AUTOPID) < 0 ||
        uv_poll_init(r->loop, &r->changes, mnl_socket_get_fd(r->reports)) != 0)
        return error_set(e, ERROR_IO, "cannot watch the interfaces: %s", strerror(errno));
    r->has_changes = true;
    r->changes.data = r;
    (void)uv_poll_start(&r->changes, UV_READABLE, on_change);
    return 0;
}

static int start(struct routed *r, struct error *e)
{
    if (host_addresses_read(&r->hosts, r->options->addresses, e) != 0 ||
        holdings_may_use_interface(&r->holdings, e) != 0)
        return -1;
    if (asprintf(&r->socket_path, "%s/routes.sock", r->options->state) < 0) {
        r->socket_path = NULL;
        return error_set(e, ERROR_MEMORY, "out of memory");
    }
    r->server = (struct report_server){
        .loop = r->loop, .path = r->socket_path, .make = on_report, .context = r};
    if (watch_interfaces(r, e) != 0)
        return -1;
    return report_serve(&r->server, e);
}

static void routed_free(struct routed *r)
{
    forget_place(r);
    states_free(&r->states);
    holdings_close(&r->holdings);
    host_addresses_free(&r->hosts);
    if (r->reports != NULL)
        (void)mnl_socket_close(r->reports);
    free(r->socket_path);
    free(r);
}

/* Removes what a previous process has left: nobody will make its routes follow the links. */
static void give_up(struct routed *r)
{
    struct error more;

    if (r->has_changes)
        uv_close((uv_handle_t *)&r->changes, NULL);
    report_stop(&r->server);
    (void)uv_run(r->loop, UV_RUN_DEFAULT);
    if (holdings_remove(&r->holdings, false, &more) != 0)
        log_error("%s", more.text);
    routed_free(r);
}

/* Starts. Takes over what a previous process has left. Returns NULL with *e. */
static struct routed *routed_start(uv_loop_t *loop, const struct routed_options *options,
                                   struct error *e)
{
    struct routed *r = calloc(1, sizeof *r);

    if (r == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    r->loop = loop;
    r->options = options;
    if (holdings_open(&r->holdings, options->state, options->interface, e) != 0) {
        routed_free(r);
        return NULL;
    }
    if (start(r, e) != 0) {
        give_up(r);
        return NULL;
    }
    (void)uv_timer_init(loop, &r->planned);
    (void)uv_timer_init(loop, &r->check);
    (void)uv_timer_init(loop, &r->look);
    r->planned.data = r->check.data = r->look.data = r;
    (void)uv_timer_start(&r->check, on_check, CHECK_MS, CHECK_MS);
    (void)uv_timer_start(&r->look, on_look, SPREADING_MS, SPREADING_MS);
    r->states.loop = loop;
    r->states.path = options->socket;
    r->states.heard = on_heard;
    r->states.count = on_count;
    r->states.context = r;
    states_start(&r->states);
    return r;
}

static void end(struct routed *r)
{
    struct error e;

    states_stop(&r->states);
    uv_close((uv_handle_t *)&r->planned, NULL);
    uv_close((uv_handle_t *)&r->check, NULL);
    uv_close((uv_handle_t *)&r->look, NULL);
    uv_close((uv_handle_t *)&r->changes, NULL);
    report_stop(&r->server);
    if (holdings_remove(&r->holdings, false, &e) == 0)
        return;
    log_error("%s", e.text);
    r->stop_failed = true;
}

static void on_avoided(uv_timer_t *timer)
{
    end(timer->data);
}

/* Tells all nodes that this host forwards no more, waits until they avoid it, removes everything that was set, and
 * closes all handles. After the loop has ended, the caller calls routed_stopped_well() and routed_free(). */
static void routed_stop(struct routed *r)
{
    const bool forwarded = forwards(r) && r->states.connected;

    if (r->stopping)
        return;
    r->stopping = true;
    if (!forwarded) {
        end(r);
        return;
    }
    states_confirm(&r->states, 0, false, false);
    (void)uv_timer_start(&r->check, on_avoided, r->planner.convergence_time, 0);
}

/* Whether everything was removed. */
static bool routed_stopped_well(const struct routed *r)
{
    return !r->stop_failed;
}

/* Removes everything that a previous process has left. Returns 0, or -1 with *e. */
static int routed_clean_up(const struct routed_options *options, struct error *e)
{
    struct holdings h;
    int rc = holdings_open(&h, options->state, options->interface, e);

    if (rc == 0)
        rc = holdings_remove(&h, true, e);
    holdings_close(&h);
    return rc;
}

/* Writes one line about the state. */
static void routed_describe(const struct routed *r, char *text, size_t size)
{
    uint32_t reached = 0;

    for (uint32_t to = 0; r->placed && to < r->torus.nodes; to++)
        reached += to != r->planner.self && r->planner.route[to].ports != 0;
    if (r->placed)
        (void)snprintf(text, size, "routes to %u of %u hosts%s", reached, r->torus.nodes - 1,
                       r->states.connected ? "" : "; torusd does not answer");
    else
        (void)snprintf(text, size, "waits for torusd");
}

struct program {
    struct signals signals;
    struct routed *routed;
    struct service service;
    int exit_code;
};

static void on_signal(void *context, const char *name)
{
    struct program *p = context;

    log_info("torus-routed stops: it received %s", name);
    signals_close(&p->signals);
    service_stopping(&p->service);
    routed_stop(p->routed);
}

static void on_hangup(void *context)
{
    const struct program *p = context;

    routed_reload(p->routed);
}

static void on_status(void *context, char out[SERVICE_STATUS_SIZE])
{
    const struct program *p = context;

    routed_describe(p->routed, out, SERVICE_STATUS_SIZE);
}

static int run(const struct routed_options *options)
{
    struct program p = {.exit_code = EXIT_SUCCESS};
    struct error e;
    uv_loop_t loop;

    if (uv_loop_init(&loop) != 0) {
        log_error("torus-routed cannot start: out of descriptors or memory");
        return EXIT_FAILURE;
    }
    p.routed = routed_start(&loop, options, &e);
    if (p.routed == NULL) {
        log_error("torus-routed cannot start: %s", e.text);
        (void)uv_loop_close(&loop);
        return EXIT_FAILURE;
    }
    p.signals = (struct signals){.stop = on_signal, .reload = on_hangup, .context = &p};
    signals_open(&p.signals, &loop);
    service_open(&p.service, &loop, on_status, &p);
    service_ready(&p.service);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    service_close(&p.service);
    if (!routed_stopped_well(p.routed))
        p.exit_code = EXIT_FAILURE;
    routed_free(p.routed);
    if (uv_loop_close(&loop) != 0)
        log_error("some handles were not closed: this is a bug");
    log_info("ended");
    return p.exit_code;
}

static int clean_up(const struct routed_options *options)
{
    struct error e;

    if (routed_clean_up(options, &e) == 0)
        return EXIT_SUCCESS;
    log_error("torus-routed --down: %s", e.text);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct routed_options options;
    int exit_code;

    signals_hold(); /* a process that signals end would leave behind what it was about to take over */
    descriptors_fill_standard();
    if (routed_options_read(argc, argv, &options, &exit_code) != 0)
        return exit_code;
    (void)signal(SIGPIPE, SIG_IGN);
    log_begin();
    exit_code = options.down ? clean_up(&options) : run(&options);
    log_end();
    return exit_code;
}
