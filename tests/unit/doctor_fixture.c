#include "doctor_fixture.h"

#include "client/cli/doctor/doctor.h"
#include "tests/support/cmocka.h"

static const char fine[] = "clock.synchronised yes\n"
                           "files.limit 65536\n"
                           "files.open 40\n"
                           "memory.available_bytes 8000000000\n"
                           "cpu.load 0.50 0.40 0.30 1/234 5678\n"
                           "cpu.count 4\n"
                           "memory.group_max max\n"
                           "disk.0.kind state_dir\n"
                           "disk.0.path /var/lib/torusd\n"
                           "disk.0.total_bytes 100000000000\n"
                           "disk.0.free_bytes 50000000000\n"
                           "disk.0.inodes 1000000\n"
                           "disk.0.free_inodes 900000\n"
                           "disk.0.read_only no\n"
                           "disk.0.writable yes\n"
                           "ip_routes.count 0\n"
                           "ip_routes.interface none\n"
                           "firewall.docker no\n"
                           "firewall.forward unknown\n"
                           "cpu.governor performance\n"
                           "sysctl.net.ipv4.tcp_slow_start_after_idle 0\n"
                           "sysctl.net.ipv4.ip_forward 0\n"
                           "sysctl.net.ipv4.conf.all.rp_filter 0\n";

static void fill_links(struct ring *r, uint32_t node)
{
    for (unsigned port = 0; port < 2; port++) {
        r->link[node][port] =
            (struct torus_link){.port = port,
                                .name = port == 0 ? "+0" : "-0",
                                .neighbour = (node + (port == 0 ? 1 : RING - 1)) % RING,
                                .address = "",
                                .state = TORUS_LINK_UP,
                                .reason = "",
                                .tx_bytes = 100000000,
                                .connects = 1,
                                .hour_ms = 3500000,
                                .hour_tx_bytes = 100000000,
                                .hour_connects = 1,
                                .planned_from = "",
                                .key = r->keys[node][0],
                                .interface = port == 0 ? "eth0" : "eth1"};
        r->list[node][port] = &r->link[node][port];
    }
    r->links[node] = (struct torus_links){.count = 2, .link = r->list[node]};
}

static void fill_facts(struct ring *r, uint32_t node)
{
    static const char *const values[][2] = {{"mtu", "9000"},
                                            {"state", "up"},
                                            {"carrier", "1"},
                                            {"speed_mbit", "1000"},
                                            {"duplex", "full"},
                                            {"hour_ms", "3500000"},
                                            {"hour_rx_packets", "1000000"},
                                            {"hour_tx_packets", "1000000"},
                                            {"hour_rx_errors", "0"},
                                            {"hour_tx_errors", "0"},
                                            {"hour_rx_dropped", "0"},
                                            {"hour_tx_dropped", "0"},
                                            {"physical", "yes"},
                                            {"rp_filter", "0"},
                                            {"tso", "on"},
                                            {"gso", "on"},
                                            {"gro", "on"}};

    (void)strcpy(r->facts[node], fine);
    for (unsigned port = 0; port < 2; port++)
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            char name[64];
            (void)snprintf(name, sizeof name, "interface.eth%u.%s", port, values[i][0]);
            ring_set(r, node, name, values[i][1]);
        }
}

void ring_begin(struct ring *r)
{
    static const char *const hosts[RING] = {"alpha", "beta", "gamma", "delta"};

    memset(r, 0, sizeof *r);
    assert_int_equal(torus_parse(&r->torus, "4", NULL), 0);
    for (uint32_t i = 0; i < RING; i++) {
        r->keys[i][0] = "aaaaaaaaaaaaaaaa";
        r->status[i] = (struct torus_status){.version = "1.0",
                                             .rank = i,
                                             .link_mbit = 1000,
                                             .memory_budget = 100000000,
                                             .peer_protocol = 13,
                                             .key_count = 1,
                                             .keys = r->keys[i]};
        fill_links(r, i);
        fill_facts(r, i);
        r->node[i] = (struct doctor_node){.host = hosts[i],
                                          .missing = "",
                                          .status = &r->status[i],
                                          .links = &r->links[i],
                                          .facts = r->facts[i],
                                          .clock_offset_us = 200,
                                          .clock_error_us = 1000};
    }
    r->doctor = (struct doctor){.torus = &r->torus, .nodes = RING, .node = r->node};
}

void ring_set(struct ring *r, uint32_t node, const char *name, const char *value)
{
    char *facts = r->facts[node], before[sizeof r->facts[0]], key[sizeof r->facts[0]];

    /* The first fact with a name counts. */
    (void)strcpy(before, facts);
    (void)snprintf(key, sizeof key, "%s %s\n", name, value);
    assert_true(strlen(before) + strlen(key) < sizeof r->facts[0]);
    (void)strcpy(facts, key);
    (void)strcat(facts, before);
}

void ring_hide(struct ring *r, uint32_t node, const char *names)
{
    char *to = r->facts[node];

    for (const char *line = to, *next; *line != '\0'; line = next) {
        next = strchr(line, '\n') + 1;
        if (strncmp(line, names, strlen(names)) == 0)
            continue;
        memmove(to, line, (size_t)(next - line));
        to += next - line;
    }
    *to = '\0';
}

void ring_fault(struct ring *r, uint32_t node, uint32_t port, const char *code, uint32_t found_node,
                uint32_t found_port)
{
    r->fault[node] = (struct torus_link_fault){.node = node,
                                               .port = port,
                                               .code = code,
                                               .text = "a text",
                                               .found_node = found_node,
                                               .found_port = found_port};
    r->faults[node][0] = &r->fault[node];
    r->status[node].link_fault_count = 1;
    r->status[node].link_faults = r->faults[node];
}

void ring_lose(struct ring *r, uint32_t node)
{
    r->node[node].status = NULL;
    r->node[node].links = NULL;
    r->node[node].facts = "";
    r->node[node].missing = "is down, or cannot be reached";
}

static const struct finding *only_finding(const struct ring *r)
{
    const struct finding *found = NULL;

    for (size_t i = 0; i < r->doctor.findings; i++) {
        const struct finding *f = &r->doctor.finding[i];
        if (f->severity <= SEVERITY_UNSEEN)
            continue;
        if (found != NULL)
            fail_msg("two findings: %s; %s", found->what, f->what);
        found = f;
    }
    return found;
}

void ring_expect(struct ring *r, enum severity severity, const char *check, const char *mend, ...)
{
    const struct finding *f;
    const char *text;
    va_list texts;

    doctor_judge(&r->doctor);
    f = only_finding(r);
    if (f == NULL)
        fail_msg("nothing is found by %s", check);
    if (f->severity != severity || strcmp(f->check, check) != 0)
        fail_msg("%s %s: %s", severity_name(f->severity), f->check, f->what);
    va_start(texts, mend);
    while ((text = va_arg(texts, const char *)) != NULL)
        assert_contains(f->what, text);
    va_end(texts);
    assert_contains(f->mend, mend);
    assert_true(f->why[0] != '\0');
    assert_int_equal(doctor_worst(&r->doctor), severity);
    doctor_free(&r->doctor);
}

void ring_expect_fine(struct ring *r)
{
    const struct finding *f;

    doctor_judge(&r->doctor);
    f = only_finding(r);
    if (f != NULL)
        fail_msg("%s: %s", f->check, f->what);
    for (size_t i = 0; i < r->doctor.findings; i++)
        if (r->doctor.finding[i].severity != SEVERITY_FINE)
            fail_msg("%s was not seen: %s", r->doctor.finding[i].check, r->doctor.finding[i].what);
    assert_true(r->doctor.findings >= 8);
    doctor_free(&r->doctor);
}

unsigned ring_count(struct ring *r, const char *check)
{
    unsigned count = 0;

    doctor_judge(&r->doctor);
    for (size_t i = 0; i < r->doctor.findings; i++)
        count += r->doctor.finding[i].severity > SEVERITY_UNSEEN &&
                 strcmp(r->doctor.finding[i].check, check) == 0;
    doctor_free(&r->doctor);
    return count;
}

void ring_expect_unseen(struct ring *r, const char *check, uint32_t node, const char *why)
{
    bool found = false;

    doctor_judge(&r->doctor);
    for (size_t i = 0; i < r->doctor.findings; i++) {
        const struct finding *f = &r->doctor.finding[i];
        if (strcmp(f->check, check) != 0 || f->node != node)
            continue;
        if (f->severity != SEVERITY_UNSEEN)
            fail_msg("%s %s: %s", severity_name(f->severity), check, f->what);
        found |= strstr(f->what, why) != NULL;
    }
    doctor_free(&r->doctor);
    if (!found)
        fail_msg("%s is not said to be unseen because of \"%s\"", check, why);
}
