/* Writes the result of an exchange as a reply. */
#include <stdlib.h>

#include "daemon/torusd/control/internal.h"

_Static_assert((int)CHECK_NOTHING == (int)CONTROL__CHECK__NOTHING, "checks");
_Static_assert((int)CHECK_DIGEST == (int)CONTROL__CHECK__DIGESTS, "checks");
_Static_assert((int)CHECK_CONTENTS == (int)CONTROL__CHECK__BYTES, "checks");

/* The elements that the message points to: one for each node, and one for each port of each
 * node. */
struct figures {
    Control__ExchangeResult__Node **node;
    Control__ExchangeResult__Port **port;
    Control__ExchangeResult__Arrival **arrival;
    uint32_t *missing;
    char (*name)[TORUS_PORT_NAME_SIZE]; /* by port of each node, as `port` */
    char dims[TORUS_TEXT_SIZE];
    Control__LinkRates link_rates;
};

static void figures_free(struct figures *f)
{
    free((void *)f->node);
    free((void *)f->port);
    free((void *)f->arrival);
    free(f->missing);
    free(f->name);
}

static int figures_alloc(struct figures *f, const struct torus *t)
{
    const size_t ports = (size_t)t->nodes * torus_ports(t);

    f->node = control_list(t->nodes, sizeof **f->node);
    f->port = control_list(ports, sizeof **f->port);
    f->arrival = control_list(t->nodes, sizeof **f->arrival);
    f->missing = calloc(t->nodes, sizeof *f->missing);
    f->name = calloc(ports + 1, sizeof *f->name); /* a torus of one node has none */
    if (f->node != NULL && f->port != NULL && f->arrival != NULL && f->missing != NULL &&
        f->name != NULL)
        return 0;
    figures_free(f);
    return -1;
}

/* Fills in the port p of a node, at this place of f->port. */
static void fill_port(struct figures *f, const struct torus *t, size_t at, unsigned p,
                      const struct exchange_node_report *from)
{
    Control__ExchangeResult__Port *to = f->port[at];

    control__exchange_result__port__init(to);
    CONTROL_RESULT_PORT(CONTROL_FILL)
}

/* Fills in node i, and its ports that have a neighbour. */
static void fill_node(struct figures *f, const struct torus *t, uint32_t i,
                      const struct exchange_node_report *from)
{
    const size_t ports = torus_ports(t), first = i * ports;
    Control__ExchangeResult__Node *to = f->node[i];

    control__exchange_result__node__init(to);
    CONTROL_RESULT_NODE(CONTROL_FILL)
    to->port = &f->port[first];
    for (unsigned p = 0; p < ports; p++)
        if (torus_neighbour(t, from->rank, p) != TORUS_NO_NODE)
            fill_port(f, t, first + to->n_port++, p, from);
}

static void fill_arrivals(Control__ExchangeResult *message, struct figures *f,
                          const struct exchange_result *result)
{
    message->n_arrival = result->arrivals;
    message->arrival = f->arrival;
    for (uint32_t i = 0; i < result->arrivals; i++) {
        const struct exchange_arrival *from = &result->arrival[i];
        Control__ExchangeResult__Arrival *to = f->arrival[i];
        control__exchange_result__arrival__init(to);
        CONTROL_RESULT_ARRIVAL(CONTROL_FILL)
    }
}

Control__LinkRates *control_link_rates(Control__LinkRates *to, const struct link_rates *from)
{
    if (from->rates[0] == '\0')
        return NULL;
    control__link_rates__init(to);
    CONTROL_LINK_RATES(CONTROL_FILL)
    return to;
}

static void fill_result(Control__ExchangeResult *to, struct figures *f, const struct torus *t,
                        double link_mbit, const struct exchange_result *from)
{
    CONTROL_RESULT(CONTROL_FILL)
    to->operation = (char *)(uintptr_t)schedule_operation_name(from->operation);
    to->check = (Control__Check)from->check;
    to->n_each_nanoseconds = from->each != NULL ? from->repeat : 0;
    to->each_nanoseconds = (uint64_t *)(uintptr_t)from->each;
    to->missing = f->missing;
    for (uint32_t rank = 0; rank < t->nodes; rank++)
        if (from->gone != NULL && from->gone[rank])
            f->missing[to->n_missing++] = rank;
    to->n_node = from->node != NULL ? from->nodes : 0;
    to->node = f->node;
    for (uint32_t i = 0; i < to->n_node; i++)
        fill_node(f, t, i, &from->node[i]);
    fill_arrivals(to, f, from);
    to->link_rates = control_link_rates(&f->link_rates, &from->links);
}

void control_reply_result(struct control_client *client, const struct exchange_result *result)
{
    const struct error no_memory = {
        .code = ERROR_MEMORY,
        .text = "the exchange has succeeded, but torusd is out of memory for its report"};
    const struct control_setup *set = &client->server->set;
    const struct torus *t = router_torus(set->router);
    Control__ExchangeResult message = CONTROL__EXCHANGE_RESULT__INIT;
    struct figures figures;

    if (figures_alloc(&figures, t) != 0) {
        control_reply_error(client, &no_memory, result->id);
        return;
    }
    fill_result(&message, &figures, t, set->link_mbit, result);
    control_reply(client, CONTROL_REPLY(EXCHANGE, exchange, &message));
    figures_free(&figures);
}
