#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <uv.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/discovery/discovery.h"
#include "daemon/lib/discovery/interfaces.h"
#include "daemon/lib/net/carrier.h"
#include "daemon/lib/service/service.h"
#include "daemon/torusd-discover/datagrams.h"
#include "daemon/torusd-discover/options.h"
#include "daemon/torusd-discover/server.h"
#include "daemon/torusd-discover/setup_link.h"
#include "proto/descriptors.h"
#include "proto/elapsed.h"
#include "proto/text.h"

/* A discovery process: discovery on the interfaces of this host, the discovery socket, and the connection to
 * torusd-setup, on one loop. */

#define LOOK_MS 5000 /* between two looks at the interfaces, if the kernel reports nothing */
#define REPORT_MS 20 /* reports of the kernel come in bursts */

struct discovery_process {
    const struct discover_options *options;
    uv_loop_t *loop;
    struct setup_link *setups;   /* NULL: this host accepts none */
    struct discovery *discovery; /* NULL until torusd-setup has told the identity of this host */
    struct datagrams datagrams;
    struct discovery_server *server;
    struct carrier *carrier; /* NULL: the kernel reports nothing */
    uv_prepare_t before_sleep;
    uv_timer_t wake_up, look;
    struct signals signals;
    bool failed;
    uint64_t picture; /* the last one logged */
    unsigned interfaces;
    struct interface_state interface[DISCOVERY_INTERFACES_MOST];
};

/* --- what discovery calls --- */

static uint64_t io_now(void *context)
{
    (void)context;
    return uv_hrtime();
}

static void io_random(void *context, void *bytes, size_t size)
{
    (void)context;
    randombytes_buf(bytes, size);
}

static void io_send(void *context, unsigned interface, const struct discovery_address *to,
                    const uint8_t *bytes, size_t size)
{
    struct discovery_process *p = context;

    datagrams_send(&p->datagrams, interface, to, bytes, size);
}

static void io_apply(void *context, const uint8_t id[SETUP_ID_SIZE], const struct host_id *from,
                     const uint8_t *sealed, size_t size)
{
    struct discovery_process *p = context;

    setup_link_hand_over(p->setups, id, from, sealed, size);
}

/* --- interfaces --- */

static const struct interface_state *find_before(const struct discovery_process *p,
                                                 const struct interface_state *now)
{
    for (unsigned i = 0; i < p->interfaces; i++)
        if (p->interface[i].index == now->index)
            return &p->interface[i];
    return NULL;
}

/* Says what to do with an interface; `before` (may be NULL) is what has been logged. torusd-setup sets one up that has
 * just appeared, while this host is new. */
static void check_interface(struct discovery_process *p, const struct interface_state *now,
                            const struct interface_state *before)
{
    const bool first = before == NULL;

    if (!now->up && first && p->setups != NULL)
        setup_link_say_appeared(p->setups, now->name);
    if (!now->up && (first || before->up))
        log_warning("interface %s is down: run ip link set %s up", now->name, now->name);
    else if (now->up && now->carrier && !now->ipv6 && interface_lacks_ipv6(now->name) &&
             (first || !before->carrier || before->ipv6))
        log_warning("IPv6 is disabled on interface %s, which therefore finds no neighbours: run "
                    "sysctl net.ipv6.conf.%s.disable_ipv6=0",
                    now->name, now->name);
    else if (now->up && !now->carrier && (first || before->carrier || !before->up))
        log_info("interface %s has no carrier", now->name);
    else if (!first && now->carrier && !before->carrier)
        log_info("interface %s has a carrier", now->name);
}

static void look_at_interfaces(struct discovery_process *p)
{
    struct interface_state list[DISCOVERY_INTERFACES_MOST];
    unsigned count = interfaces_read(p->options->interfaces, list);

    for (unsigned i = 0; i < count; i++)
        check_interface(p, &list[i], find_before(p, &list[i]));
    memcpy(p->interface, list, count * sizeof list[0]);
    p->interfaces = count;
    discovery_set_interfaces(p->discovery, list, count);
}

static void on_look(uv_timer_t *timer)
{
    struct discovery_process *p = timer->data;

    look_at_interfaces(p);
    (void)uv_timer_start(&p->look, on_look, LOOK_MS, 0);
}

static void on_reported(void *context)
{
    struct discovery_process *p = context;

    if (uv_timer_get_due_in(&p->look) > REPORT_MS)
        (void)uv_timer_start(&p->look, on_look, REPORT_MS, 0);
}

static void on_carrier_changed(void *context, unsigned port, const char *fault)
{
    (void)context, (void)port, (void)fault; /* no link is watched */
}

/* --- events --- */

static void on_received(void *context, unsigned interface, const struct discovery_address *from,
                        const uint8_t *bytes, size_t size)
{
    struct discovery_process *p = context;

    discovery_receive(p->discovery, interface, from, bytes, size);
}

static void log_picture(struct discovery_process *p)
{
    const struct database *d = discovery_database(p->discovery);
    unsigned reachable = 0;

    if (d->picture == p->picture)
        return;
    p->picture = d->picture;
    for (uint32_t i = 0; i < d->hosts; i++)
        reachable += d->host[i]->reachable;
    log_debug("%u %s reachable over the cables", reachable,
              text_plural(reachable, "host is", "hosts are"));
}

static void on_wake_up(uv_timer_t *timer)
{
    (void)timer; /* before_sleep() does the work */
}

/* Runs when all input of this iteration of the loop has been handled. */
static void before_sleep(uv_prepare_t *prepare)
{
    struct discovery_process *p = prepare->data;
    uint64_t now = uv_hrtime(), at = discovery_deadline(p->discovery);

    if (at <= now) {
        discovery_tick(p->discovery);
        log_picture(p);
        now = uv_hrtime();
        at = discovery_deadline(p->discovery);
    }
    uv_update_time(p->loop);
    (void)uv_timer_start(&p->wake_up, on_wake_up,
                         (elapsed(now, at) + MILLISECONDS - 1) / MILLISECONDS, 0);
}

/* --- start and end --- */

/* Writes this host's name: the given one, or that of the system, with "-" for what no name has. */
static void find_name(const char *given, char name[REPORT_NAME_SIZE])
{
    struct utsname system;

    (void)snprintf(name, REPORT_NAME_SIZE, "%s", given != NULL ? given : "");
    if (given == NULL && uname(&system) == 0)
        (void)snprintf(name, REPORT_NAME_SIZE, "%.64s", system.nodename);
    for (char *c = name; *c != '\0'; c++) {
        char one[2] = {*c, '\0'};
        if (!host_name_is_valid(one) && (c == name || (*c != '.' && *c != '-')))
            *c = c == name ? 'x' : '-';
    }
    if (name[0] == '\0')
        (void)strcpy(name, "unnamed");
}

/* The number of the first report: those of a previous process of this host are lower, unless the clock has gone back. */
static uint64_t first_sequence(void)
{
    uv_timeval64_t now;

    return uv_gettimeofday(&now) == 0 && now.tv_sec > 0
               ? (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000
               : 0;
}

static int start_discovery(struct discovery_process *p, const struct identity *identity,
                           struct error *e)
{
    const struct discover_options *o = p->options;
    char name[REPORT_NAME_SIZE], id[HOST_ID_TEXT_SIZE];
    const struct discovery_setup setup = {
        .io = {io_now, io_random, io_send, p->setups != NULL ? io_apply : NULL, p},
        .name = name,
        .release = TORUSD_VERSION,
        .identity = identity,
        .sequence = first_sequence(),
    };

    find_name(o->name, name);
    p->discovery = discovery_new(&setup);
    if (p->discovery == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for discovery");
    log_info("discovery of host %s, id %s, on the interfaces %s, discovery socket %s", name,
             host_id_text(discovery_id(p->discovery), id), o->interfaces, o->socket);
    return 0;
}

static void on_closed(void *context)
{
    (void)context; /* the parts of a process end with the loop */
}

static void start_handles(struct discovery_process *p)
{
    const struct carrier_user user = {
        .changed = on_carrier_changed, .reported = on_reported, .closed = on_closed, .context = p};

    (void)uv_prepare_init(p->loop, &p->before_sleep);
    (void)uv_timer_init(p->loop, &p->wake_up);
    (void)uv_timer_init(p->loop, &p->look);
    p->before_sleep.data = p->wake_up.data = p->look.data = p;
    (void)uv_prepare_start(&p->before_sleep, before_sleep);
    p->carrier = carrier_open(p->loop, &user, 0);
    look_at_interfaces(p);
    (void)uv_timer_start(&p->look, on_look, LOOK_MS, 0);
}

/* Starts discovery with this identity. Returns 0, or -1 with *e. */
static int begin(struct discovery_process *p, const struct identity *identity, struct error *e)
{
    if (start_discovery(p, identity, e) != 0)
        return -1;
    p->datagrams = (struct datagrams){.received = on_received, .closed = on_closed, .context = p};
    if (datagrams_open(&p->datagrams, p->loop, e) != 0) {
        p->datagrams.closed = NULL;
        return -1;
    }
    p->server =
        discovery_server_open(p->loop, p->options->socket, p->options->setups, p->discovery, e);
    if (p->server == NULL)
        return -1;
    start_handles(p);
    return 0;
}

static void stop(struct discovery_process *p)
{
    signals_close(&p->signals);
    if (p->server != NULL)
        discovery_server_close(p->server);
    if (p->discovery != NULL)
        discovery_free(p->discovery); /* its last packets need the socket */
    p->discovery = NULL;
    if (p->setups != NULL)
        setup_link_close(p->setups);
    if (p->datagrams.closed != NULL)
        datagrams_close(&p->datagrams);
    if (p->carrier != NULL)
        carrier_close(p->carrier);
    if (p->before_sleep.data != NULL) {
        uv_close((uv_handle_t *)&p->before_sleep, NULL);
        uv_close((uv_handle_t *)&p->wake_up, NULL);
        uv_close((uv_handle_t *)&p->look, NULL);
    }
}

/* --- what torusd-setup says --- */

static void fail(struct discovery_process *p, const char *why)
{
    log_error("discovery cannot go on: %s", why);
    p->failed = true;
    stop(p);
}

static bool is_new_identity(struct discovery_process *p, const struct identity *identity)
{
    return !host_id_is(discovery_id(p->discovery), &identity->id);
}

static void on_told_facts(void *context, const struct host_facts *facts)
{
    struct discovery_process *p = context;
    char id[KEY_ID_TEXT_SIZE];
    struct error e;

    if (p->discovery == NULL && begin(p, &facts->identity, &e) != 0) {
        fail(p, e.text);
        return;
    }
    if (is_new_identity(p, &facts->identity)) {
        fail(p, "torusd-setup has made a new identity for this host: start torusd-discover again");
        return;
    }
    discovery_set_secrets(p->discovery, &facts->secrets);
    discovery_set_setups(p->discovery, facts->accepts_setups, facts->nonce);
    discovery_set_node(p->discovery, facts->dims, facts->have_rank, facts->rank);
    if (facts->secrets.count > 0)
        log_info("cluster key %s: discovery shows which hosts have proved it",
                 key_id_text(facts->secrets.key[0].id, id));
    else
        log_info("no cluster key: this host accepts %s",
                 facts->accepts_setups ? "setups from every machine that its cables reach"
                                       : "no setups");
}

static void on_setup_ended(void *context, const struct setup_end *end)
{
    struct discovery_process *p = context;

    if (p->discovery != NULL)
        discovery_setup_ended(p->discovery, end);
}

/* Reads the key of --key-file. Returns 0 with *secrets, or -1 with *e. */
static int read_key(const char *path, struct secrets *secrets, struct error *e)
{
    struct key key;

    if (path == NULL)
        return 0;
    if (key_read_as_root(path, &key, e) != 0)
        return -1;
    discovery_key_make(&secrets->key[0], &key);
    secrets->count = 1;
    key_forget(&key);
    return 0;
}

/* Makes an identity for this process only. */
static int begin_alone(struct discovery_process *p, struct error *e)
{
    struct secrets secrets = {0};
    struct identity identity;
    uint8_t seed[SEED_SIZE];
    int rc;

    if (read_key(p->options->key, &secrets, e) != 0)
        return -1;
    randombytes_buf(seed, sizeof seed);
    identity_make(&identity, seed, NULL);
    rc = begin(p, &identity, e);
    if (rc == 0)
        discovery_set_secrets(p->discovery, &secrets);
    sodium_memzero(&secrets, sizeof secrets);
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(&identity, sizeof identity);
    return rc;
}

static int begin_with_setups(struct discovery_process *p, struct error *e)
{
    const struct setup_link_user user = {on_told_facts, on_setup_ended, on_closed, p};

    p->setups = setup_link_open(p->loop, p->options->setups, &user);
    if (p->setups == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    return 0;
}

#define ID_MS 3000 /* how long --id waits for torusd-setup */

static int print_failure(const char *what, const char *why)
{
    log_error("%s: %s", what, why);
    return EXIT_FAILURE;
}

/* --- discovery --- */

static void on_signal(void *context, const char *name)
{
    log_info("discovery stops: it received %s", name);
    stop(context);
}

static void on_hangup(void *context)
{
    (void)context; /* torusd-setup tells what has changed */
}

/* Runs discovery; with torusd-setup, as soon as that answers. */
static int run(const struct discover_options *o)
{
    uv_loop_t loop;
    struct discovery_process p = {.options = o, .loop = &loop};
    struct error e;
    int result = uv_loop_init(&loop);

    if (result != 0)
        return print_failure("discovery cannot start", uv_strerror(result));
    p.signals = (struct signals){.stop = on_signal, .reload = on_hangup, .context = &p};
    signals_open(&p.signals, &loop);
    result = o->setups != NULL ? begin_with_setups(&p, &e) : begin_alone(&p, &e);
    if (result != 0)
        stop(&p);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop) != 0)
        log_error("some handles were not closed: this is a bug");
    if (result != 0)
        return print_failure("discovery cannot start", e.text);
    log_info("ended");
    return p.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* --- the id --- */

struct id_query {
    uv_loop_t loop;
    char id[HOST_ID_TEXT_SIZE]; /* "": not told */
};

static void on_told(void *context, const struct host_facts *facts)
{
    struct id_query *a = context;

    (void)host_id_text(&facts->identity.id, a->id);
    uv_stop(&a->loop);
}

static void on_late(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static int show_id(const struct discover_options *o)
{
    struct id_query a = {.id = ""};
    const struct setup_link_user user = {.told = on_told, .closed = on_closed, .context = &a};
    struct setup_link *link;
    uv_timer_t deadline;

    if (uv_loop_init(&a.loop) != 0)
        return print_failure("no id", "out of memory");
    link = setup_link_open(&a.loop, o->setups, &user);
    if (link != NULL) {
        (void)uv_timer_init(&a.loop, &deadline);
        (void)uv_timer_start(&deadline, on_late, ID_MS, 0);
        (void)uv_run(&a.loop, UV_RUN_DEFAULT);
        uv_close((uv_handle_t *)&deadline, NULL);
        setup_link_close(link);
        (void)uv_run(&a.loop, UV_RUN_DEFAULT);
    }
    (void)uv_loop_close(&a.loop);
    if (a.id[0] == '\0')
        return print_failure("no id",
                             "torusd-setup does not answer: run this as root, after systemctl "
                             "start torusd-setup");
    (void)printf("%s\n", a.id);
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct discover_options options;
    int exit_code;

    signals_hold();
    descriptors_fill_standard();
    if (discover_options_read(argc, argv, &options, &exit_code) != 0)
        return exit_code;
    (void)signal(SIGPIPE, SIG_IGN);
    log_begin();
    if (sodium_init() < 0)
        exit_code =
            print_failure("discovery cannot start", "libsodium cannot be used on this system");
    else
        exit_code = options.show_id ? show_id(&options) : run(&options);
    log_end();
    return exit_code;
}
