#include "daemon/torusd/net/tcp/host_changes.h"

#include "daemon/torusd/router/link.h"
#include "daemon/torusd/router/port.h"

#define RECHECK_SOON_MS 50 /* after reports of changes, because many arrive together */

static void on_recheck(uv_timer_t *timer)
{
    struct tcp *tcp = timer->data;

    for (unsigned port = 0; port < tcp->ports && tcp->router != NULL; port++)
        if (tcp->connector[port].endpoint != NULL && connector_recheck(&tcp->connector[port]))
            router_dial_again(tcp->router, port);
}

void host_changes_recheck_in(struct tcp *tcp, uint64_t milliseconds)
{
    if (!uv_is_active((uv_handle_t *)&tcp->recheck) ||
        uv_timer_get_due_in(&tcp->recheck) > milliseconds)
        (void)uv_timer_start(&tcp->recheck, on_recheck, milliseconds, 0);
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
        host_changes_recheck_in(tcp, RECHECK_SOON_MS);
}

struct carrier_user host_changes_user(struct tcp *tcp, void (*closed)(void *context))
{
    return (struct carrier_user){on_carrier_changed, on_carrier_reported, closed, tcp};
}
