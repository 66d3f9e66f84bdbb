/* torusctl bounds: shows the distances in a product of rings, arrays and other graphs, and the lower bounds for
 * exchanges, broadcasts and reductions that follow from the distances and cuts. */
#include <stddef.h>

#include "client/cli/algorithms/link_arguments.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/command.h"
#include "client/cli/terminal/json.h"
#include "client/theory/broadcast_bound.h"
#include "client/theory/least_cut.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/product.h"

struct bounds_arguments {
    const char *network;
    const char *dims;
    const char *node;
    struct link_arguments links;
};

static const struct option options[] = {
    {"--network", "NETWORK", offsetof(struct bounds_arguments, network),
     "dimensions of the network, such as 'ring:8 x array:4 x complete:3'"},
    {"--dims", "DIMS", offsetof(struct bounds_arguments, dims),
     "dimensions of a torus, instead of a network: 8x8, 6, 3x4x5; 4x8m if the\n"
     "8 does not wrap; star:5 x 4 and other networks as in 'torusctl plan'"},
    {"--node", "RANK", offsetof(struct bounds_arguments, node),
     "also show this node's status and average distance"},
    RATE_OPTIONS(bounds_arguments, links),
    {0},
};

static const struct section sections[] = {
    RECORD(NULL, FIELD("network"), FIELD("nodes", "node_count"), FIELD("diameter"),
           FIELD("average distance", "average_distance")),
    RECORD("status", FIELD("smallest status", "least"), FIELD("average status", "average"),
           FIELD("largest status", "most")),
    RECORD("node", FIELD("node", "rank"), FIELD("its status", "status"),
           FIELD("its average distance", "average_distance")),
    RECORD("bounds", FIELD("bound, all-port", "all_port"), FIELD("bound, one-port", "one_port"),
           FIELD("bound, one-port, single hops", "one_port_single_hops")),
    RECORD("rated", FIELD("rates"), FIELD("bound, all-port, at these rates", "all_port"),
           FIELD("bound, allgather, at these rates", "allgather"),
           FIELD("bound, broadcast, at these rates", "broadcast")),
    RECORD("broadcasts", FIELD("bound, one-to-all broadcast", "one_to_all"),
           FIELD("bound, all-to-all broadcast", "all_to_all"),
           FIELD("disjoint trees", "disjoint_trees"),
           FIELD("bound, broadcast in parts", "in_parts")),
    RECORD("reductions", FIELD("bound, reduce", "reduce"),
           FIELD("bound, reduce-scatter", "reduce_scatter"), FIELD("bound, allreduce", "allreduce"),
           FIELD("allreduce in two phases", "two_phases")),
    RECORD("a2", FIELD("a2, startups", "startups"), FIELD("a2, transmission", "transmission")),
    RECORD("a1", FIELD("a1, startups", "startups"), FIELD("a1, transmission", "transmission")),
    TABLE("dimensions", FIELD("dimension"), FIELD("graph"), FIELD("nodes", "node_count"),
          FIELD("diameter"), FIELD("average status", "average_status"), FIELD("cut")),
};

static json_t *network_value(const struct product *p)
{
    char text[PRODUCT_TEXT_SIZE];
    return json_pack("{s:s, s:i, s:i, s:o}", "network", product_format(p, text), "node_count",
                     (int)p->nodes, "diameter", (int)product_diameter(p), "average_distance",
                     json_number(product_average_distance(p)));
}

static json_t *status_value(const struct product *p)
{
    return json_pack("{s:o, s:o, s:o}", "least", json_count(product_least_status(p)), "average",
                     json_number(product_average_status(p)), "most",
                     json_count(product_most_status(p)));
}

static json_t *node_value(const struct product *p, uint32_t rank)
{
    uint64_t status = product_status(p, rank);
    double distance = p->nodes > 1 ? (double)status / (p->nodes - 1) : 0;
    return json_pack("{s:i, s:o, s:o}", "rank", (int)rank, "status", json_count(status),
                     "average_distance", json_number(distance));
}

static json_t *bounds_value(const struct product *p)
{
    return json_pack("{s:o, s:o, s:o}", "all_port", json_number(product_bound_all_port(p)),
                     "one_port", json_number(product_bound_one_port(p)), "one_port_single_hops",
                     json_number(product_bound_single_hops(p)));
}

static json_t *broadcasts_value(const struct product *p, uint32_t trees)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "one_to_all",
                     json_count(broadcast_bound_one_to_all(p)), "all_to_all",
                     json_count(broadcast_bound_all_to_all(p)), "disjoint_trees", json_count(trees),
                     "in_parts", json_number(trees > 0 ? 1.0 / trees : 0));
}

static json_t *reductions_value(const struct product *p)
{
    double phase = product_bound_reduce_scatter(p);
    return json_pack("{s:o, s:o, s:o, s:o}", "reduce", json_number(product_bound_reduce(p)),
                     "reduce_scatter", json_number(phase), "allreduce",
                     json_number(product_bound_allreduce(p)), "two_phases", json_number(2 * phase));
}

static json_t *exchange_value(const struct product *p, enum product_algorithm a)
{
    return json_pack("{s:o, s:o}", "startups", json_count(product_steps(p, a)), "transmission",
                     json_count(product_blocks(p, a)));
}

static json_t *dimensions_value(const struct product *p)
{
    json_t *list = json_array();
    int r = 0;
    for (unsigned i = 0; i < p->dims; i++) {
        const struct factor *f = &p->factor[i];
        json_t *o = json_pack("{s:i, s:s, s:i, s:i, s:o, s:o}", "dimension", (int)i, "graph",
                              f->kind == FACTOR_GRAPH ? f->graph->text : factor_kind_name(f->kind),
                              "node_count", (int)f->nodes, "diameter", (int)factor_diameter(f),
                              "average_status", json_number(factor_average_status(f)), "cut",
                              json_number(factor_cut(f)));
        r |= json_array_append_new(list, o);
    }
    return json_checked(list, r);
}

static json_t *value_of(const struct product *p, const uint32_t *rank, uint32_t trees)
{
    json_t *o = network_value(p);
    int r = json_object_set_new(o, "status", status_value(p));

    if (rank != NULL)
        r |= json_object_set_new(o, "node", node_value(p, *rank));
    r |= json_object_set_new(o, "bounds", bounds_value(p));
    r |= json_object_set_new(o, "broadcasts", broadcasts_value(p, trees));
    r |= json_object_set_new(o, "reductions", reductions_value(p));
    if (product_has_exchange(p)) {
        r |= json_object_set_new(o, "a2", exchange_value(p, PRODUCT_A2));
        r |= json_object_set_new(o, "a1", exchange_value(p, PRODUCT_A1));
    }
    r |= json_object_set_new(o, "dimensions", dimensions_value(p));
    return json_checked(o, r);
}

/* Adds the bounds for channels of different rates. Returns an exit code. */
static int add_rated(const struct cli *cli, const struct bounds_arguments *a, json_t *o)
{
    struct damage damage;
    struct detour *found;
    struct torus t;
    struct error e;
    char rates[1024];

    if (torus_parse(&t, a->dims, &e) != 0)
        return cli_fail_usage(cli, "--dims: %s", e.text);
    int code = link_arguments_read(cli, &a->links, &t, &damage);
    if (code != EXIT_DONE)
        return code;
    if (detour_new(&found, &damage, &e) != 0) {
        damage_free(&damage);
        return cli_fail(cli, &e);
    }
    detour_find_bound(found);
    json_t *rated = json_pack("{s:s, s:o, s:o, s:o}", "rates",
                              damage_format_rates(&damage, rates, sizeof rates), "all_port",
                              json_number(detour_bound(found)), "allgather",
                              json_number(algorithm_bound(detour_gather(found), &t)), "broadcast",
                              json_number(detour_broadcast_bound(found)));
    detour_free(found);
    damage_free(&damage);
    if (json_object_set_new(o, "rated", rated) == 0)
        return EXIT_DONE;
    (void)error_set(&e, ERROR_MEMORY, "out of memory for the bounds");
    return cli_fail(cli, &e);
}

static int resolve(const struct cli *cli, const struct bounds_arguments *a, struct product *p)
{
    struct torus t;
    struct error e;

    if (a->network != NULL && a->dims != NULL)
        return cli_fail_usage(cli, "--network and --dims: give one or the other");
    if (a->network == NULL && a->dims == NULL)
        return cli_fail_usage(cli, "give a network, such as --network 'ring:8 x complete:3', or a "
                                   "torus, such as --dims 8x8");
    if (a->dims == NULL && link_arguments_given(&a->links))
        return cli_fail_usage(cli, "%s needs --dims", link_arguments_option(&a->links));
    if (a->network != NULL && product_parse(p, a->network, &e) != 0)
        return cli_fail_usage(cli, "--network: %s", e.text);
    if (a->dims != NULL) {
        if (torus_parse(&t, a->dims, &e) != 0)
            return cli_fail_usage(cli, "--dims: %s", e.text);
        *p = product_of_torus(&t);
    }
    return EXIT_DONE;
}

static int run(struct cli *cli, const void *arguments)
{
    const struct bounds_arguments *a = arguments;
    struct product p;
    struct error e;
    uint32_t rank = 0, trees;
    int code = resolve(cli, a, &p);

    if (code != EXIT_DONE)
        return code;
    if (a->node != NULL && parse_number(a->node, p.nodes - 1, &rank, &e) != 0)
        return cli_fail_usage(cli, "--node: %s", e.text);
    if (least_cut(&p, &trees, &e) != 0)
        return cli_fail(cli, &e);
    json_t *o = value_of(&p, a->node != NULL ? &rank : NULL, trees);
    if (o != NULL && link_arguments_given(&a->links) &&
        (code = add_rated(cli, a, o)) != EXIT_DONE) {
        json_decref(o);
        return code;
    }
    return cli_print(cli, o, VIEW(sections));
}

const struct command command_bounds = {
    .name = "bounds",
    .summary = "Show distances and lower bounds of a torus, mesh, hypercube or other product",
    .usage = "--network NETWORK | --dims DIMS [--node RANK]\n"
             "       [--rate LIST] [--link-rate LIST] [--rates FILE] [--json]",
    .options = options,
    .arguments_size = sizeof(struct bounds_arguments),
    .run = run,
};
