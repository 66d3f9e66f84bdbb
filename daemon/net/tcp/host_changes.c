#include "daemon/net/tcp/host_changes.h"

#include "daemon/router/links/carrier.h"
#include "daemon/router/ports/port.h"

#define LOOK_SOON_MS 50 /* after reports of changes, because many arrive together */

static void on_look(uv_timer_t *timer)
{
    struct tcp *tcp = timer->data;

    for (unsigned port = 0; port < TORUS_MAX_PORTS && tcp->router != NULL; port++)
        if (tcp->door[port].endpoint != NULL && door_look(&tcp->door[port]))
            router_dial_again(tcp->router, port);
}

void host_changes_look_in(struct tcp *tcp, uint64_t milliseconds)
{
    if (!uv_is_active((uv_handle_t *)&tcp->look) || uv_timer_get_due_in(&tcp->look) > milliseconds)
        (void)uv_timer_start(&tcp->look, on_look, milliseconds, 0);
}

static void on_carrier_changed(void *context, unsigned port, const char *fault)
{
    struct tcp *tcp = context;

    if (tcp->router != NULL)
        router_carrier(tcp->router, port, fault);
}

static void on_carrier_reported(void *context)
{
    struct tcp *tcp = context;

    if (!tcp->closing)
        host_changes_look_in(tcp, LOOK_SOON_MS);
}

struct carrier_user host_changes_user(struct tcp *tcp, void (*closed)(void *context))
{
    return (struct carrier_user){on_carrier_changed, on_carrier_reported, closed, tcp};
}
