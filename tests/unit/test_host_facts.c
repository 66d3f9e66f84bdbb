/* Facts about the machine on which the test runs. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/lib/host/facts.h"
#include "daemon/lib/host/gathering.h"
#include "tests/support/cmocka.h"

/* The value of a fact, or NULL. */
static const char *value_of(const struct facts *f, const char *name)
{
    static char value[600];
    const size_t length = strlen(name);

    for (const char *line = f->text; *line != '\0'; line = strchr(line, '\n') + 1)
        if (strncmp(line, name, length) == 0 && line[length] == ' ') {
            (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(line + length + 1, "\n"),
                           line + length + 1);
            return value;
        }
    return NULL;
}

TEST(each_line_is_a_fact)
{
    static struct facts f;
    const struct gather_setup setup = {
        .folders = 2, .folder = {"/", "/nowhere/at/all"}, .kind = {"data_root", "state_dir"}};
    unsigned lines = 0;
    struct statvfs root;
    char host[256];

    gather_facts(&f, "setting.rank 7\n", &setup);
    assert_false(f.full);
    assert_int_equal(f.length, strlen(f.text));
    for (const char *line = f.text; *line != '\0'; line = strchr(line, '\n') + 1) {
        const size_t name = strcspn(line, " \n");
        assert_true(name > 0 && line[name] == ' ' && line[name + 1] != '\n');
        lines++;
    }
    assert_true(lines > 30);
    assert_string_equal(value_of(&f, "setting.rank"), "7");
    assert_int_equal(gethostname(host, sizeof host), 0);
    assert_string_equal(value_of(&f, "system.host"), host);
    assert_non_null(value_of(&f, "interface.lo.mtu"));
    assert_int_equal(statvfs("/", &root), 0);
    assert_int_equal(strtoull(value_of(&f, "disk.0.total_bytes"), NULL, 10),
                     (unsigned long long)root.f_blocks * root.f_frsize);
    assert_non_null(value_of(&f, "disk.1.error"));
    assert_non_null(value_of(&f, "ip_routes.count"));
    assert_non_null(value_of(&f, "firewall.forward"));
    assert_true(strtoull(value_of(&f, "memory.total_bytes"), NULL, 10) > 1 << 20);
}

TEST(values_are_printable_and_bounded)
{
    static struct facts f;
    char name[32];

    facts_begin(&f);
    facts_add(&f, "a", "b\nc\033d");
    assert_string_equal(f.text, "a b?c?d\n");
    for (unsigned i = 0; i < 100000; i++) {
        (void)snprintf(name, sizeof name, "fact.%u", i);
        facts_add(&f, name, "%u", i);
    }
    assert_true(f.full);
    assert_true(f.length < FACTS_MOST && f.text[f.length] == '\0' && f.text[f.length - 1] == '\n');
}

/* --- what cannot be read --- */

TEST(an_unseen_fact_has_a_reason)
{
    static struct facts f;

    facts_begin(&f);
    facts_add_file(&f, "a.fact", "/proc/self/nothing");
    facts_add_file(&f, "another", "/dev/null");
    assert_null(value_of(&f, "a.fact"));
    assert_string_equal(value_of(&f, "unseen.a.fact"),
                        "/proc/self/nothing: No such file or directory");
    assert_string_equal(value_of(&f, "unseen.another"), "/dev/null: it is empty");
}

/* Makes the kernel do this to whoever asks for the state of the clock. */
static void filter_clock(uint32_t action)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_adjtime, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_adjtimex, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof *code, code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(77);
}

/* A process that may not ask lives on, and says that it does not know. */
TEST(the_clock_in_a_sandbox)
{
    static const struct {
        uint32_t action;
        bool known;
    } filters[] = {{SECCOMP_RET_ALLOW, true},
                   {SECCOMP_RET_ERRNO | EPERM, false},
                   {SECCOMP_RET_KILL_PROCESS, false}};

    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        static struct facts f;
        int status;
        const pid_t child = fork();
        if (child == 0) {
            filter_clock(filters[i].action);
            facts_begin(&f);
            gather_clock(&f);
            const bool known = value_of(&f, "clock.synchronised") != NULL;
            const bool unseen = value_of(&f, "unseen.clock.synchronised") != NULL;
            /* A file of systemd-timesyncd says that the clock is right, too. */
            const bool file = access("/run/systemd/timesync/synchronized", F_OK) == 0;
            _exit(known != unseen && known == (filters[i].known || file) ? 0 : 1);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            skip(); /* no filters here */
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

/* Errors from before torusd has run do not count, nor those of another interface with the same name. */
TEST(counters_of_the_last_hour)
{
    struct past *past = past_new();
    struct rtnl_link_stats64 stats = {.rx_packets = 1000000, .rx_errors = 500};
    static struct facts f;

    assert_non_null(past);
    facts_begin(&f);
    past_add(past, &f, "eth9", 7, &stats);
    assert_string_equal(value_of(&f, "interface.eth9.hour_rx_errors"), "0");
    stats.rx_errors += 20;
    stats.tx_dropped = 3;
    facts_begin(&f);
    past_add(past, &f, "eth9", 7, &stats);
    assert_string_equal(value_of(&f, "interface.eth9.hour_rx_errors"), "20");
    assert_string_equal(value_of(&f, "interface.eth9.hour_tx_dropped"), "3");
    assert_string_equal(value_of(&f, "interface.eth9.hour_rx_packets"), "0");
    assert_true(strtoull(value_of(&f, "interface.eth9.hour_ms"), NULL, 10) > 0);
    facts_begin(&f);
    past_add(past, &f, "eth9", 8, &stats);
    assert_string_equal(value_of(&f, "interface.eth9.hour_rx_errors"), "0");
    past_free(past);
}

#define DOCKER                                                                                     \
    "table ip filter {\n\tchain DOCKER-USER {\n\t\tiifname \"eth1\" jump TORUS-ROUTED\n\t}\n"      \
    "\tchain FORWARD {\n\t\ttype filter hook forward priority 0; policy drop;\n\t}\n}\n"

TEST(policies_of_firewalls)
{
    assert_string_equal(firewall_policy("*filter\n:INPUT DROP [0:0]\n:FORWARD ACCEPT [5:300]\n"),
                        "accept");
    assert_string_equal(firewall_policy("*filter\n:INPUT ACCEPT [0:0]\n:FORWARD DROP [0:0]\n"),
                        "drop");
    assert_string_equal(
        firewall_policy("table ip filter {\n\tchain FORWARD {\n\t\ttype filter hook "
                        "forward priority filter; policy drop;\n\t}\n}\n"),
        "drop");
    assert_string_equal(firewall_policy("\t\ttype filter hook forward priority 0; policy accept;\n"
                                        "\t\ttype filter hook input priority 0; policy drop;\n"),
                        "accept");
    assert_string_equal(firewall_policy("\t\ttype filter hook forward priority 0; policy accept;\n"
                                        "\t\ttype filter hook forward priority 1; policy drop;\n"),
                        "drop");
    assert_string_equal(firewall_policy(""), "accept");
    /* Rules of torus-routed decide, in their table. */
    assert_string_equal(firewall_policy("*filter\n:FORWARD DROP [0:0]\n:TORUS-ROUTED - [0:0]\n"
                                        "-A DOCKER-USER -i eth1 -j TORUS-ROUTED\n"),
                        "accept");
    assert_string_equal(firewall_policy(DOCKER), "accept");
    assert_string_equal(firewall_policy(DOCKER
                                        "table inet mine {\n\tchain c {\n\t\ttype filter hook "
                                        "forward priority 1; policy drop;\n\t}\n}\n"),
                        "drop");
}

/* --- on a worker thread --- */

static struct work *submitted;
static unsigned told;
static char last[64];

static int submit(void *context, struct work *work)
{
    if (context != NULL)
        return -1;
    assert_null(submitted);
    submitted = work;
    return 0;
}

static void on_facts(void *context, const char *facts)
{
    told++;
    (void)snprintf(last, sizeof last, "%.20s", facts);
}

static void finish(void)
{
    struct work *work = submitted;

    submitted = NULL;
    work->run(work);
    work->done(work);
}

TEST(gathers_once_for_all)
{
    const struct workers workers = {NULL, submit}, none = {&told, submit};
    struct gathering g = {.workers = &workers, .done = on_facts};
    const struct gather_setup setup = {.folders = 1, .folder = {"/"}, .kind = {"data_root"}};

    gathering_start(&g, "setting.rank 3\n", &setup);
    gathering_start(&g, "setting.rank 3\n", &setup);
    assert_int_equal(told, 0);
    finish();
    assert_int_equal(told, 1);
    assert_memory_equal(last, "setting.rank 3\n", 15);
    gathering_start(&g, "setting.rank 3\n", &setup);
    gathering_stop(&g);
    finish();
    assert_int_equal(told, 1);
    g = (struct gathering){.workers = &none, .done = on_facts};
    gathering_start(&g, "setting.rank 3\n", &setup);
    assert_int_equal(told, 2);
    assert_string_equal(last, "");
}

/* Counters are noted from time to time, though nobody asks. */
TEST(notes_counters)
{
    const struct workers workers = {NULL, submit};
    struct gathering g = {.workers = &workers, .past = past_new(), .done = on_facts};

    assert_non_null(g.past);
    gathering_note(&g);
    gathering_note(&g); /* one at a time */
    finish();
    assert_true(g.past->count > 0 && g.past->interface[0].hour.notes == 1);
    gathering_note(&g);
    finish();
    assert_int_equal(g.past->interface[0].hour.notes, 1); /* too early */
    past_free(g.past);
}
