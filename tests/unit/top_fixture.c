#include "top_fixture.h"

#include "tests/support/cmocka.h"

struct fake_node {
    struct torus_node_answer answer;
    struct torus_status status;
    struct torus_links links;
    struct torus_link link[TORUS_MAX_PORTS];
    const struct torus_link *link_list[TORUS_MAX_PORTS];
    struct torus_activity exchange[FAKE_RUNS];
    const struct torus_activity *exchange_list[FAKE_RUNS];
    struct torus_group_info group[FAKE_RUNS];
    const struct torus_group_info *group_list[FAKE_RUNS];
    struct torus_copy_activity copy[FAKE_RUNS];
    const struct torus_copy_activity *copy_list[FAKE_RUNS];
    char host[16];
};

struct fake_survey {
    struct torus_survey survey; /* first: torus_survey_free() gets this address */
    struct fake_node *node;
    const struct torus_node_answer **list;
};

void __wrap_torus_survey_free(struct torus_survey *survey);

void __wrap_torus_survey_free(struct torus_survey *survey)
{
    struct fake_survey *f = (struct fake_survey *)survey;

    if (f == NULL)
        return;
    free(f->node);
    free(f->list);
    free(f);
}

static struct fake_node *node_of(struct all_nodes *c, uint32_t rank)
{
    assert_true(rank < c->torus.nodes);
    return &((struct fake_survey *)c->state)->node[rank];
}

static void make_links(struct fake_node *n, const struct torus *t, uint32_t rank)
{
    for (unsigned port = 0; port < torus_ports(t); port++) {
        const uint32_t neighbour = torus_neighbour(t, rank, port);
        if (neighbour == TORUS_NO_NODE)
            continue;
        struct torus_link *l = &n->link[port];
        *l = (struct torus_link){.port = port,
                                 .name = "",
                                 .neighbour = neighbour,
                                 .address = "",
                                 .state = TORUS_LINK_UP,
                                 .reason = "",
                                 .connects = 1,
                                 .key = "",
                                 .interface = "eth0",
                                 .planned_from = ""};
        n->link_list[n->links.count++] = l;
    }
    n->links.link = n->link_list;
}

struct all_nodes fake_survey_make(const char *dims, uint64_t uptime_ms)
{
    struct all_nodes c = {0};
    struct error e;
    struct fake_survey *f = calloc(1, sizeof *f);

    assert_non_null(f);
    assert_int_equal(torus_parse(&c.torus, dims, &e), 0);
    const uint32_t nodes = c.torus.nodes;
    f->node = calloc(nodes, sizeof *f->node);
    f->list = calloc(nodes, sizeof *f->list);
    c.name = calloc(nodes, sizeof *c.name);
    c.missing = calloc(nodes, sizeof *c.missing);
    assert_true(f->node != NULL && f->list != NULL && c.name != NULL && c.missing != NULL);
    for (uint32_t rank = 0; rank < nodes; rank++) {
        struct fake_node *n = &f->node[rank];
        (void)snprintf(n->host, sizeof n->host, "h%u", rank);
        n->status = (struct torus_status){.version = "1",
                                          .pid = 100 + rank,
                                          .dims = dims,
                                          .rank = rank,
                                          .uptime_ms = uptime_ms,
                                          .host = n->host,
                                          .exchanges = n->exchange_list,
                                          .groups = n->group_list,
                                          .copies = n->copy_list};
        make_links(n, &c.torus, rank);
        n->answer = (struct torus_node_answer){.rank = rank,
                                               .outcome = TORUS_SURVEY_ANSWERED,
                                               .host = n->host,
                                               .status = &n->status,
                                               .links = &n->links,
                                               .facts = ""};
        f->list[rank] = &n->answer;
        c.name[rank] = strdup(n->host);
        c.missing[rank] = strdup("");
    }
    f->survey = (struct torus_survey){.count = nodes, .nodes = f->list};
    c.state = &f->survey;
    return c;
}

struct torus_link *fake_link(struct all_nodes *c, uint32_t rank, unsigned port)
{
    assert_true(port < torus_ports(&c->torus));
    return &node_of(c, rank)->link[port];
}

struct torus_status *fake_status(struct all_nodes *c, uint32_t rank)
{
    return &node_of(c, rank)->status;
}

struct torus_activity *fake_exchange(struct all_nodes *c, uint32_t rank, const char *id)
{
    struct fake_node *n = node_of(c, rank);
    const size_t i = n->status.exchange_count++;

    assert_true(i < FAKE_RUNS);
    n->exchange[i] = (struct torus_activity){
        .id = id, .algorithm = "at2", .state = TORUS_STATE_RUNNING, .reason = "", .rounds = 1};
    n->exchange_list[i] = &n->exchange[i];
    return &n->exchange[i];
}

struct torus_group_info *fake_group(struct all_nodes *c, uint32_t rank, const char *name)
{
    struct fake_node *n = node_of(c, rank);
    const size_t i = n->status.group_count++;

    assert_true(i < FAKE_RUNS);
    n->group[i] = (struct torus_group_info){
        .name = name, .id = "1", .open = true, .missing = "", .avoids = ""};
    n->group_list[i] = &n->group[i];
    return &n->group[i];
}

struct torus_copy_activity *fake_copy(struct all_nodes *c, uint32_t rank, const char *id)
{
    struct fake_node *n = node_of(c, rank);
    const size_t i = n->status.copy_count++;

    assert_true(i < FAKE_RUNS);
    n->copy[i] = (struct torus_copy_activity){
        .id = id, .target = "/data/model", .phase = TORUS_COPY_MOVING, .waits_for = ""};
    n->copy_list[i] = &n->copy[i];
    return &n->copy[i];
}

void fake_bytes(struct all_nodes *c, uint32_t rank, unsigned port, uint64_t bytes)
{
    const uint32_t neighbour = torus_neighbour(&c->torus, rank, port);

    fake_link(c, rank, port)->tx_bytes = bytes;
    fake_link(c, neighbour, torus_port_opposite(&c->torus, port))->rx_bytes = bytes;
}

void fake_all_bytes(struct all_nodes *c, uint64_t bytes)
{
    for (uint32_t rank = 0; rank < c->torus.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&c->torus); port++)
            if (torus_neighbour(&c->torus, rank, port) != TORUS_NO_NODE)
                fake_bytes(c, rank, port, bytes);
}

void fake_down(struct all_nodes *c, uint32_t rank, unsigned port, const char *reason)
{
    const uint32_t neighbour = torus_neighbour(&c->torus, rank, port);
    struct torus_link *ends[] = {
        fake_link(c, rank, port),
        fake_link(c, neighbour, torus_port_opposite(&c->torus, port)),
    };

    for (size_t i = 0; i < 2; i++) {
        ends[i]->state = TORUS_LINK_DIALLING;
        ends[i]->reason = reason;
    }
}

void fake_dead(struct all_nodes *c, uint32_t rank)
{
    struct fake_node *n = node_of(c, rank);

    for (unsigned port = 0; port < torus_ports(&c->torus); port++)
        if (torus_neighbour(&c->torus, rank, port) != TORUS_NO_NODE)
            fake_down(c, rank, port, "no answer");
    n->answer = (struct torus_node_answer){
        .rank = rank, .outcome = TORUS_SURVEY_UNREACHABLE, .host = "", .facts = ""};
    free(c->missing[rank]);
    c->missing[rank] = strdup("is down, or cannot be reached");
}

struct all_nodes fake_survey_full(const char *dims, uint64_t uptime_ms, uint64_t bytes)
{
    struct all_nodes c = fake_survey_make(dims, uptime_ms);

    fake_status(&c, 0)->link_mbit = 8;
    fake_all_bytes(&c, bytes);
    return c;
}

void take(struct top_model *m, struct all_nodes *c, double seconds)
{
    assert_int_equal(top_model_take(m, c, seconds), 0);
    assert_null(c->state); /* taken over */
}

struct top_model fake_model(const char *dims, uint64_t bytes)
{
    struct top_model m = {0};

    for (unsigned i = 1; dims != NULL && i <= 2; i++) {
        struct all_nodes c = fake_survey_full(dims, 1000 * i, bytes * i);
        take(&m, &c, i);
    }
    return m;
}
