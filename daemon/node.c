#include "daemon/node.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/control/server.h"
#include "daemon/exchange/exchange.h"
#include "daemon/files/folders.h"
#include "daemon/net/tcp.h"

#define FREE_SLABS_KEPT (16u * 1024u * 1024u)

struct node {
    const struct config *config;
    struct slab_pool pool;
    struct tcp *tcp;
    struct router *router;
    struct exchanges *exchanges;
    struct folders folders;
    struct storage storage;
    struct control_server *control;
    uv_prepare_t before_sleep;
    uv_idle_t no_sleep;
    uv_timer_t wake_up;
    uint64_t wakes_at; /* by that timer; ROUTER_NEVER: it is not set */
    bool running;
};

static int on_frame(void *context, unsigned port, const Peer__Head *head,
                    const struct extents *body, uint32_t body_length, struct error *e)
{
    return exchanges_frame(((struct node *)context)->exchanges, port, head, body, body_length, e);
}

static struct outgoing *on_next(void *context, unsigned port)
{
    return exchanges_next(((struct node *)context)->exchanges, port);
}

static void on_topology(void *context)
{
    exchanges_topology(((struct node *)context)->exchanges);
}

static void on_wake_up(uv_timer_t *timer)
{
    struct node *node = timer->data;

    node->wakes_at = ROUTER_NEVER; /* the loop is awake: before_sleep() does the rest */
}

static void on_no_sleep(uv_idle_t *idle)
{
    (void)idle;
}

static uint64_t deadline(const struct node *node)
{
    uint64_t router = router_deadline(node->router);
    uint64_t exchanges = exchanges_deadline(node->exchanges);

    return router < exchanges ? router : exchanges;
}

static void let_time_pass(struct node *node, uint64_t now)
{
    if (now >= router_deadline(node->router))
        router_tick(node->router);
    if (now >= exchanges_deadline(node->exchanges))
        exchanges_tick(node->exchanges);
}

/* Deadlines move away with every frame: the timer is left alone if it fires in time, and then too
 * early as a rule. */
static void wake_up_at(struct node *node, uint64_t at)
{
    uint64_t now;

    if (at >= node->wakes_at)
        return;
    now = uv_hrtime();
    uv_update_time(node->wake_up.loop);
    if (uv_timer_start(&node->wake_up, on_wake_up,
                       at > now ? (at - now + MILLISECONDS - 1) / MILLISECONDS : 0, 0) == 0)
        node->wakes_at = at;
}

/* All that has come in during this turn of the loop has been dealt with: send what there is to
 * send, let time pass, and see when to wake up. */
static void before_sleep(uv_prepare_t *prepare)
{
    struct node *node = prepare->data;
    bool more = tcp_flush(node->tcp);
    uint64_t now = uv_hrtime(), at = deadline(node);

    if (now >= at) {
        let_time_pass(node, now);
        more = tcp_flush(node->tcp);
        at = deadline(node);
    }
    if (more)
        (void)uv_idle_start(&node->no_sleep, on_no_sleep);
    else
        (void)uv_idle_stop(&node->no_sleep);
    wake_up_at(node, at);
}

struct node *node_start(uv_loop_t *loop, const struct config *config, struct error *e)
{
    struct node *node = calloc(1, sizeof *node);
    struct router_io io;

    if (node == NULL) {
        (void)error_set(e, ERROR_MEMORY, "no memory");
        return NULL;
    }
    const struct router_handler handler = {node, on_frame, on_next, on_topology};
    const struct tcp_setup tcp_setup = {loop, &config->torus, config->address, config->congestion,
                                        config->link_mbit};

    node->config = config;
    slab_pool_init(&node->pool, FREE_SLABS_KEPT);
    node->folders = (struct folders){loop, &node->pool, &config->roots, config->state_folder};
    if (folders_init(&node->folders, &node->storage, e) != 0)
        goto fail;
    node->tcp = tcp_new(&tcp_setup, config->rank, &io, e);
    if (node->tcp == NULL)
        goto fail;
    node->router = router_new(&config->torus, config->rank, &io, &handler, &node->pool);
    if (node->router == NULL)
        goto no_memory;
    tcp_attach(node->tcp, node->router);
    const struct exchanges_setup exchanges_setup = {node->router, &node->storage, config->memory,
                                                    config->link_mbit,
                                                    config->daemons_per_processor};
    node->exchanges = exchanges_new(&exchanges_setup);
    if (node->exchanges == NULL)
        goto no_memory;
    const struct control_setup control_setup = {
        .loop = loop,
        .path = config->control,
        .router = node->router,
        .exchanges = node->exchanges,
        .roots = &config->roots,
        .address = config->address,
        .link_mbit = config->link_mbit,
        .memory_budget = config->memory,
    };
    node->control = control_open(&control_setup, e);
    if (node->control == NULL)
        goto fail;
    (void)uv_prepare_init(loop, &node->before_sleep);
    (void)uv_idle_init(loop, &node->no_sleep);
    (void)uv_timer_init(loop, &node->wake_up);
    node->before_sleep.data = node->wake_up.data = node;
    node->wakes_at = ROUTER_NEVER;
    (void)uv_prepare_start(&node->before_sleep, before_sleep);
    node->running = true;
    router_start(node->router);
    return node;
no_memory:
    (void)error_set(e, ERROR_MEMORY, "no memory");
fail:
    node_stop(node);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    (void)node_free(node);
    return NULL;
}

void node_stop(struct node *node)
{
    if (node->running) {
        uv_close((uv_handle_t *)&node->before_sleep, NULL);
        uv_close((uv_handle_t *)&node->no_sleep, NULL);
        uv_close((uv_handle_t *)&node->wake_up, NULL);
    }
    node->running = false;
    if (node->control != NULL)
        control_close(node->control);
    if (node->exchanges != NULL)
        exchanges_free(node->exchanges);
    if (node->router != NULL)
        router_free(node->router);
    if (node->tcp != NULL)
        tcp_close(node->tcp);
}

size_t node_free(struct node *node)
{
    size_t leaked = slab_pool_close(&node->pool);

    free(node);
    return leaked;
}
