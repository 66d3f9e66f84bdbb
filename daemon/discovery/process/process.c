#include "daemon/discovery/process/process.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#include "daemon/base/log.h"
#include "daemon/discovery/process/command.h"
#include "daemon/discovery/process/datagrams.h"
#include "daemon/discovery/process/interfaces.h"
#include "daemon/discovery/process/server.h"
#include "daemon/discovery/times.h"
#include "daemon/net/carrier/carrier.h"
#include "proto/text.h"

#define LOOK_MS 5000 /* between two looks at the interfaces, if the kernel reports nothing */
#define REPORT_MS 20 /* reports of the kernel come in bursts */

struct discovery_process {
    const struct discover_options *options;
    struct host_state *state;
    uv_loop_t *loop;
    struct discovery *discovery;
    struct datagrams datagrams;
    struct discovery_server *server;
    struct carrier *carrier; /* NULL: the kernel reports nothing */
    struct command command;
    uv_prepare_t before_sleep;
    uv_timer_t wake_up, look;
    unsigned handles; /* to be closed before *p can be freed */
    bool applies;     /* the command may replace the key */
    bool open;        /* this host is new */
    bool failed;      /* settings or keys could not be read */
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

static int io_run(void *context, bool apply, const uint8_t *bytes, size_t size, struct error *e)
{
    struct discovery_process *p = context;

    p->applies = apply;
    return command_start(&p->command, apply, bytes, size, e);
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

/* Sets an interface up that has just appeared, while this host is new: later it is down because somebody wants that.
 * Otherwise says what to do. `before` (may be NULL) is what has been logged. */
static void check_interface(struct discovery_process *p, struct interface_state *now,
                            const struct interface_state *before)
{
    const bool first = before == NULL;
    const bool sets_up =
        first && p->open && (p->options->set_up_links || p->options->command != NULL);

    if (!now->up && sets_up && interface_set_up(now->name) == 0) {
        log_info("interface %s was down, and is set up", now->name);
        return; /* the kernel reports the change */
    }
    if (!now->up && (first || before->up))
        log_warning("interface %s is down%s: run ip link set %s up", now->name,
                    sets_up ? ", and cannot be set up" : "", now->name);
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

/* What could not be read may be there now: a disk was mounted. */
static void retry_settings(struct discovery_process *p)
{
    struct process_settings settings;

    if (!p->failed)
        return;
    settings_read(&settings, p->options, p->state, false);
    if (!settings.failed)
        discovery_process_read_settings(p);
    sodium_memzero(&settings, sizeof settings);
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

    retry_settings(p);
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

void discovery_process_read_settings(struct discovery_process *p)
{
    struct process_settings settings;

    settings_read(&settings, p->options, p->state, true);
    p->open = settings.open;
    p->failed = settings.failed;
    discovery_set_secrets(p->discovery, &settings.secrets, settings.open);
    discovery_set_node(p->discovery, settings.dims, settings.have_rank, settings.rank);
    sodium_memzero(&settings, sizeof settings);
}

static void on_command_ended(void *context, const struct setup_answer *answer)
{
    struct discovery_process *p = context;

    if (answer->e.code != ERROR_NONE)
        log_warning("the setup failed: %s", answer->e.text);
    else
        log_info("the setup's command ended with status %u", answer->status);
    discovery_command_ended(p->discovery, answer);
    if (p->applies)
        discovery_process_read_settings(p);
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
                         at > now ? (at - now + MILLISECONDS - 1) / MILLISECONDS : 0, 0);
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

/* The number of the first report: those of a former process of this host are lower, unless the clock has gone back. */
static uint64_t first_sequence(void)
{
    uv_timeval64_t now;

    return uv_gettimeofday(&now) == 0 && now.tv_sec > 0
               ? (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000
               : 0;
}

static int start_discovery(struct discovery_process *p, struct error *e)
{
    const struct discover_options *o = p->options;
    char name[REPORT_NAME_SIZE], id[HOST_ID_TEXT_SIZE];
    const struct secrets none = {0};
    struct discovery_setup setup = {
        .io = {io_now, io_random, io_send, o->command != NULL ? io_run : NULL, p},
        .name = name,
        .release = TORUSD_VERSION,
        .sequence = first_sequence(),
        .secrets = &none,
    };

    if (o->command != NULL && command_parse(&p->command, o->command, e) != 0)
        return -1;
    find_name(o->name, name);
    memcpy(setup.seed, p->state->seed, sizeof setup.seed);
    p->discovery = discovery_new(&setup);
    sodium_memzero(setup.seed, sizeof setup.seed);
    if (p->discovery == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for discovery");
    discovery_process_read_settings(p);
    log_info("discovery of host %s, id %s, on the interfaces %s, discovery socket %s", name,
             host_id_text(discovery_id(p->discovery), id), o->interfaces, o->socket);
    return 0;
}

static void release(struct discovery_process *p)
{
    if (--p->handles == 0)
        free(p);
}

static void on_part_closed(void *context)
{
    release(context);
}

static void on_handle_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void start_handles(struct discovery_process *p)
{
    const struct carrier_user user = {.changed = on_carrier_changed,
                                      .reported = on_reported,
                                      .closed = on_part_closed,
                                      .context = p};

    (void)uv_prepare_init(p->loop, &p->before_sleep);
    (void)uv_timer_init(p->loop, &p->wake_up);
    (void)uv_timer_init(p->loop, &p->look);
    p->before_sleep.data = p->wake_up.data = p->look.data = p;
    (void)uv_prepare_start(&p->before_sleep, before_sleep);
    p->handles += 3;
    p->carrier = carrier_open(p->loop, &user, 0);
    p->handles += p->carrier != NULL;
    look_at_interfaces(p);
    (void)uv_timer_start(&p->look, on_look, LOOK_MS, 0);
}

/* Opens what can fail. Returns 0, or -1 with *e. */
static int open_parts(struct discovery_process *p, struct error *e)
{
    if (start_discovery(p, e) != 0)
        return -1;
    p->datagrams =
        (struct datagrams){.received = on_received, .closed = on_part_closed, .context = p};
    if (datagrams_open(&p->datagrams, p->loop, e) != 0) {
        p->datagrams.closed = NULL;
        return -1;
    }
    p->handles++;
    p->server = discovery_server_open(p->loop, p->options->socket, p->discovery, e);
    return p->server != NULL ? 0 : -1;
}

struct discovery_process *discovery_process_start(uv_loop_t *loop,
                                                  const struct discover_options *options,
                                                  struct host_state *state, struct error *e)
{
    struct discovery_process *p = calloc(1, sizeof *p);

    if (p == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    p->options = options;
    p->state = state;
    p->loop = loop;
    p->handles = 1;
    p->command.loop = loop;
    p->command.ended = on_command_ended;
    p->command.context = p;
    if (open_parts(p, e) != 0) {
        discovery_process_stop(p);
        (void)uv_run(loop, UV_RUN_DEFAULT);
        return NULL;
    }
    start_handles(p);
    return p;
}

void discovery_process_stop(struct discovery_process *p)
{
    if (p->server != NULL)
        discovery_server_close(p->server);
    command_abandon(&p->command);
    if (p->discovery != NULL)
        discovery_free(p->discovery); /* its last packets need the socket */
    if (p->datagrams.closed != NULL)
        datagrams_close(&p->datagrams);
    if (p->carrier != NULL)
        carrier_close(p->carrier);
    if (p->before_sleep.data != NULL) {
        uv_close((uv_handle_t *)&p->before_sleep, on_handle_closed);
        uv_close((uv_handle_t *)&p->wake_up, on_handle_closed);
        uv_close((uv_handle_t *)&p->look, on_handle_closed);
    }
    release(p);
}
