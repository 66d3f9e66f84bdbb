#include "daemon/torusd/metrics/view.h"

#include <stdio.h>
#include <string.h>

#include "daemon/torusd/router/router.h"

#define FAULTS_SHOWN 16u

static void count_down(struct torus_view *view, const struct topology *topology)
{
    const struct torus *t = topology->torus;

    view->nodes_down = view->links_down = 0;
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        view->nodes_down += topology_node_down(topology, rank);
        for (unsigned port = 0; port < torus_ports(t); port++)
            view->links_down +=
                torus_port_dials(t, rank, port) && !topology_link_up(topology, rank, port);
    }
}

static void list_faults(struct torus_view *view, const struct topology *topology)
{
    size_t used = 0;
    struct error fault;

    view->faults[0] = '\0';
    for (unsigned i = 0; i < FAULTS_SHOWN && topology_fault(topology, i, &fault); i++) {
        const size_t left = sizeof view->faults - used, length = strlen(fault.text);
        if (length + 2 > left)
            break;
        (void)snprintf(view->faults + used, left, "%s\n", fault.text);
        used += length + 1;
    }
}

const struct torus_view *view_torus(struct metrics_view *v)
{
    const struct topology *topology = router_topology(v->router);
    struct torus_view *view = &v->torus;

    if (view->known && view->changes == topology->changes)
        return view;
    count_down(view, topology);
    list_faults(view, topology);
    view->known = true;
    view->changes = topology->changes;
    return view;
}
