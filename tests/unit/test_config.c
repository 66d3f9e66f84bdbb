#include "daemon/lib/base/limits.h"
#include "daemon/lib/base/log.h"
#include "daemon/lib/net/address.h"
#include "daemon/torusd/config.h"
#include "daemon/torusd/settings.h"
#include "folder_fixture.h"
#include "tests/support/cmocka.h"

static const char *write_config(void **state, const char *text)
{
    const char *path = at(state, "torusd.ini");
    make_file(path, text, strlen(text));
    return path;
}

/* For printf: the socket, and two data roots. */
static const char every_setting[] = "; a node\n"
                                    "[node]\n"
                                    "dims = 4x8m\n"
                                    "rank = 9\n"
                                    "coordinates = 1,1\n"
                                    "control = %s\n"
                                    "state_dir = /var/lib/x\n"
                                    "data_roots = %s::%s:\n"
                                    "link_mbit = 2500.5\n"
                                    "link_burst = 15KiB\n"
                                    "daemons_per_processor = 1.5\n"
                                    "memory = 3MiB\n"
                                    "heartbeat_ms = 40\n"
                                    "silence_ms = 700\n"
                                    "congestion = cubic\n"
                                    "hop_limit = 64\n"
                                    "io_threads = 3\n"
                                    "metrics = [::1]:0\n"
                                    "output_mode = 2750\n"
                                    "key_file = /etc/one\n"
                                    "second_key_file = /etc/two\n"
                                    "encrypt = yes\n"
                                    "read_group = readers\n"
                                    "exchange_group = users\n"
                                    "admin_group = admins\n"
                                    "log_level = debug\n"
                                    "[ports]\n"
                                    "+0 = 10.0.0.2:7411\n"
                                    "-0 = 10.0.0.1:7411\n"
                                    "+1 = [::1]:80\n"
                                    "-1 = 127.0.0.1:1\n"
                                    "+1.link_mbit = 100\n"
                                    "-1.link_mbit = 2/20.5\n";

static void assert_rate(struct nominal_rate rate, double send, double receive)
{
    assert_true(rate.send > send - 1e-9 && rate.send < send + 1e-9);
    assert_true(rate.receive > receive - 1e-9 && rate.receive < receive + 1e-9);
}

FOLDER_TEST(every_setting_is_read)
{
    char text[4096], address[ENDPOINT_TEXT_SIZE];
    struct config c;
    struct error e = {0};
    make_folder(at(state, "a"));
    make_folder(at(state, "b"));
    (void)snprintf(text, sizeof text, every_setting, at(state, "sock"), at(state, "a"),
                   at(state, "b"));
    config_init(&c);
    if (config_read(&c, write_config(state, text), &e) != 0 || config_finish(&c, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(c.torus.nodes, 32);
    assert_false(c.torus.wrap[1]);
    assert_int_equal(c.rank, 9);
    assert_string_equal(c.control, at(state, "sock"));
    assert_string_equal(c.state_folder, "/var/lib/x");
    assert_int_equal(c.roots.count, 2);
    assert_string_equal(c.roots.path[0], at(state, "a"));
    assert_string_equal(c.roots.path[1], at(state, "b"));
    assert_true(c.link_mbit > 2500.4 && c.link_mbit < 2500.6);
    assert_int_equal(c.link_burst, 15 * 1024);
    assert_true(c.daemons_per_processor > 1.4 && c.daemons_per_processor < 1.6);
    assert_int_equal(c.memory, 3 << 20);
    assert_int_equal(c.heartbeat_ms, 40);
    assert_int_equal(c.silence_ms, 700);
    assert_int_equal(c.hop_limit, 64);
    assert_int_equal(c.io_threads, 3);
    assert_string_equal(c.metrics, "[::1]:0");
    assert_int_equal(c.output_mode, 02750);
    assert_string_equal(c.congestion, "cubic");
    assert_string_equal(c.key_file, "/etc/one");
    assert_string_equal(c.second_key_file, "/etc/two");
    assert_true(c.encrypt);
    assert_string_equal(c.group[ACCESS_READ], "readers");
    assert_string_equal(c.group[ACCESS_EXCHANGE], "users");
    assert_string_equal(c.group[ACCESS_ADMIN], "admins");
    assert_int_equal(c.log_level, LOG_LEVEL_DEBUG);
    endpoint_format(&c.endpoint[0], address, sizeof address);
    assert_string_equal(address, "10.0.0.2:7411");
    endpoint_format(&c.endpoint[2], address, sizeof address);
    assert_string_equal(address, "[::1]:80");
    assert_rate(config_port_rate(&c, 0), 2500.5, 2500.5); /* that of all links */
    assert_rate(config_port_rate(&c, 2), 100, 100);
    assert_rate(config_port_rate(&c, 3), 2, 20.5);
    config_free(&c);
}

FOLDER_TEST(what_is_left_out_has_a_default)
{
    struct config c;
    struct error e;
    config_init(&c);
    assert_int_equal(config_read(&c, write_config(state, "[node]\ndims=1x1\nrank=0\n"), &e), 0);
    assert_int_equal(config_finish(&c, &e), 0);
    assert_string_equal(c.control, "/run/torusd/control.sock");
    assert_string_equal(c.state_folder, "/var/lib/torusd");
    assert_true(c.daemons_per_processor > 0.9 && c.daemons_per_processor < 1.1);
    assert_int_equal(c.link_burst, 0);
    assert_int_equal(c.memory, 96 << 20);
    assert_int_equal(c.heartbeat_ms, 250);
    assert_int_equal(c.silence_ms, 1000);
    assert_int_equal(c.hop_limit, 1);
    assert_int_equal(c.io_threads, IO_THREADS_AUTO);
    assert_string_equal(c.metrics, "");
    assert_int_equal(c.output_mode, 0700);
    assert_int_equal(c.log_level, LOG_LEVEL_INFO);
    assert_int_equal(c.roots.count, 0);
    config_free(&c);
}

static void check_refused(void **state, const char *text, int line, const char *why)
{
    struct config c;
    struct error e = {0};
    char where[FIXTURE_PATH + 20];
    const char *path = write_config(state, text);

    config_init(&c);
    assert_fails(config_read(&c, path, &e), e, ERROR_USAGE, "");
    (void)snprintf(where, sizeof where, "%s:%d: ", path, line);
    if (strncmp(e.text, where, strlen(where)) != 0 || strstr(e.text, why) == NULL)
        fail_msg("\"%s\", expected \"%s...%s...\"", e.text, where, why);
    config_free(&c);
}

static const struct {
    const char *text;
    int line;
    const char *why;
} wrong_lines[] = {
    {"[node]\ndims = 0x4\n", 2, ""},
    {"[node]\n\n# c\nrank = x\n", 4, "rank \"x\""},
    {"[node]\nrank = -1\n", 2, "rank \"-1\""},
    {"[node]\nrank = 1048576\n", 2, "rank"},
    {"[node]\nrank = 99999999999999999999\n", 2, "rank"},
    {"[node]\nlink_mbit = fast\n", 2, "link_mbit"},
    {"[node]\nlink_mbit = -1\n", 2, "link_mbit"},
    {"[node]\nlink_mbit = nan\n", 2, "link_mbit"},
    {"[node]\nlink_mbit = inf\n", 2, "link_mbit"},
    {"[node]\nlink_burst = -1\n", 2, "link_burst \"-1\""},
    {"[node]\nlink_burst = much\n", 2, "link_burst"},
    {"[node]\ndaemons_per_processor = few\n", 2, "daemons_per_processor"},
    {"[node]\ndaemons_per_processor = 0.5\n", 2, "1 or higher"},
    {"[node]\ndaemons_per_processor = nan\n", 2, "1 or higher"},
    {"[node]\noutput_mode = 0650\n", 2, "output_mode \"0650\""},
    {"[node]\noutput_mode = 4755\n", 2, "output_mode"},
    {"[node]\noutput_mode = rwx\n", 2, "output_mode"},
    {"[node]\noutput_mode = 790\n", 2, "output_mode"},
    {"[node]\nhop_limit = 0\n", 2, "hop_limit \"0\""},
    {"[node]\nhop_limit = 256\n", 2, "from 1 to 255"},
    {"[node]\nhop_limit = 1x\n", 2, "hop_limit"},
    {"[node]\nhop_limit = -1\n", 2, "hop_limit"},
    {"[node]\nio_threads = many\n", 2, "io_threads \"many\" is neither auto nor a number"},
    {"[node]\nio_threads = 65\n", 2, "from 0 to 64"},
    {"[node]\nio_threads = -1\n", 2, "io_threads"},
    {"[node]\nmetrics = localhost:9101\n", 2, "host names are not possible"},
    {"[node]\nmetrics = 9101\n", 2, "the port is missing"},
    {"[node]\nmetrics = 127.0.0.1:65536\n", 2, "from 0 to 65535"},
    {"[node]\nmetrics = ::1:9101\n", 2, "an IPv6 address needs brackets"},
    {"[node]\nmetrics = fe80::1:9101\n", 2, "metrics"},
    {"[node]\nheartbeat_ms = 9\n", 2, "milliseconds from 10 to 5000"},
    {"[node]\nheartbeat_ms = 5001\n", 2, "heartbeat_ms \"5001\""},
    {"[node]\nheartbeat_ms = 0.25\n", 2, "heartbeat_ms"},
    {"[node]\nsilence_ms = 299\n", 2, "milliseconds from 300 to 600000"},
    {"[node]\nsilence_ms = -1000\n", 2, "silence_ms"},
    {"[node]\nsilence_ms = 99999999999999999999\n", 2, "silence_ms"},
    {"[node]\nsilence_ms =\n", 2, "silence_ms"},
    {"[node]\nmemory = much\n", 2, "memory"},
    {"[node]\nmemory = 1023KiB\n", 2, "at least 1MiB"},
    {"[node]\nlog_level = loud\n", 2, "log_level"},
    {"[node]\ndata_roots = /no/such/folder\n", 2, "/no/such/folder"},
    {"[node]\ncongestion = a-name-that-is-too-long\n", 2, "too long"},
    {"[node]\nencrypt = maybe\n", 2, "neither yes nor no"},
    {"[node]\nspeed = 1\n", 2, "unknown setting \"speed\""},
    {"[node]\n+0 = 1.2.3.4:5\n", 2, "move it to section [ports]"},
    {"[ports]\nrank = 1\n", 2, "move it to section [node]"},
    {"[ports]\n+8 = 1.2.3.4:5\n", 2, "\"+8\" is not a port"},
    {"[ports]\n+ = 1.2.3.4:5\n", 2, "is not a port"},
    {"[ports]\n+0.link_mbit = fast\n", 2, "link_mbit \"fast\" of port +0 is not a rate"},
    {"[ports]\n+0.link_mbit = 0\n", 2, "is not a rate"},
    {"[ports]\n+0.link_mbit = -5\n", 2, "is not a rate"},
    {"[ports]\n+0.link_mbit = 5/\n", 2, "is not a rate"},
    {"[ports]\n+0.link_mbit = 5/6/7\n", 2, "is not a rate"},
    {"[ports]\n+0.link_mbit = 1e999\n", 2, "is not a rate"},
    {"[ports]\n+8.link_mbit = 5\n", 2, "\"+8\" is not a port"},
    {"[ports]\n+0.link_bytes = 5\n", 2, "is not a port"},
    {"[node]\n+0.link_mbit = 5\n", 2, "move it to section [ports]"},
    {"rank = 1\n", 1, "move it to section [node]"},
    {"[node]\nnonsense\n", 2, "neither \"name = value\""},
    {"[node]\n[cluster]\n", 2, "unknown section [cluster]"},
    {"[node]\ncongestion = 0123456789abcdef\n", 2, "congestion is too long: 16 bytes, at most 15"},
};

FOLDER_TEST(errors_name_file_and_line)
{
    for (size_t i = 0; i < sizeof wrong_lines / sizeof wrong_lines[0]; i++)
        check_refused(state, wrong_lines[i].text, wrong_lines[i].line, wrong_lines[i].why);
}

/* A line after a setting is not part of the setting, however far it is indented. */
FOLDER_TEST(indented_lines_are_lines)
{
    struct config c;
    struct error e = {0};

    config_init(&c);
    assert_int_equal(config_read(&c,
                                 write_config(state, "  [node]\n\tdims = 4x8\n    rank = 3\n"
                                                     "  ; a comment\n \t \n  [ports]\n"),
                                 &e),
                     0);
    assert_int_equal(c.torus.nodes, 32);
    assert_int_equal(c.rank, 3);
    config_free(&c);
    check_refused(state, "[node]\ndata_roots = /tmp\n  /usr\n", 3, "neither \"name = value\"");
    check_refused(state, "[node]\nrank = 1\n  color = red\n", 3, "unknown setting \"color\"");
}

/* A file as editors on other systems write it. */
FOLDER_TEST(marks_and_line_ends_of_editors_are_no_part_of_it)
{
    struct config c;
    struct error e = {0};

    config_init(&c);
    assert_int_equal(config_read(&c,
                                 write_config(state, "\xef\xbb\xbf[node]\r\ndims = 4x8\r\n\r\n"
                                                     "congestion = \r\nrank = 3"),
                                 &e),
                     0);
    assert_int_equal(c.torus.nodes, 32);
    assert_string_equal(c.congestion, "");
    config_free(&c);
    check_refused(state, "[node]\r\nrank = 1\r\ncolor = red\r\n", 3, "unknown setting");
    check_refused(state, "[node]\rrank = 1\r", 1, "lines must end with LF or CR LF");
}

/* Of any length. */
FOLDER_TEST(a_long_line_is_one_line)
{
    char text[4096], folder[3000];
    struct config c;
    struct error e = {0};

    memset(folder, 'x', sizeof folder - 1);
    folder[sizeof folder - 1] = '\0';
    (void)snprintf(text, sizeof text, "[node]\ncontrol = /%s\nrank = 5\n", folder);
    config_init(&c);
    assert_int_equal(config_read(&c, write_config(state, text), &e), 0);
    assert_int_equal(strlen(c.control), sizeof folder);
    config_free(&c);
    (void)snprintf(text, sizeof text, "[node]\ncontrol = /%s\nspeed = 5\n", folder);
    check_refused(state, text, 3, "unknown setting \"speed\"");
}

FOLDER_TEST(a_missing_file_is_named)
{
    struct config c;
    struct error e = {0};
    config_init(&c);
    assert_fails(config_read(&c, at(state, "missing"), &e), e, ERROR_IO, at(state, "missing"));
    assert_int_equal(config_read(&c, *state, &e), -1); /* a folder */
    assert_int_equal(e.code, ERROR_IO);
    assert_contains(e.text, "a folder cannot be read as a configuration");
    config_free(&c);
}

/* `settings`: "name=value" strings, NULL at the end. */
static void check_unfinished(const char *const *settings, const char *why)
{
    struct config c;
    struct error e = {0};
    char name[200];

    config_init(&c);
    for (; *settings != NULL; settings++) {
        (void)snprintf(name, sizeof name, "%s", *settings);
        char *value = strchr(name, '=');
        *value++ = '\0';
        assert_int_equal(config_set(&c, name, value, &e), 0);
    }
    assert_fails(config_finish(&c, &e), e, ERROR_USAGE, why);
    config_free(&c);
}

static const struct {
    const char *why, *settings[6]; /* NULL at the end */
} unfinished[] = {
    {"dims is missing", {"rank=1"}},
    {"rank is missing", {"dims=4x4"}},
    {"4x4 has ranks 0 to 15", {"dims=4x4", "rank=16"}},
    {"port +0 needs an address to dial", {"dims=4x4", "rank=1"}},
    {"silence_ms is 1000, but must be at least twice heartbeat_ms, which is 501",
     {"dims=1x1", "rank=0", "heartbeat_ms=501"}},
    {"encrypt is set, but key_file is not", {"dims=1x1", "rank=0", "encrypt=yes"}},
    {"second_key_file is set, but key_file is not", {"dims=1x1", "rank=0", "second_key_file=/x"}},
    {"port -0 needs an address to listen on", {"dims=4x4", "rank=1", "+0=1.2.3.4:5"}},
    {"node 0 of torus 3m has no link at this port",
     {"dims=3m", "rank=0", "+0=1.2.3.4:5", "-0=1.2.3.4:5"}},
    {"has no link at this port",
     {"dims=3", "rank=0", "+0=1.2.3.4:5", "-0=1.2.3.4:5", "+1=1.2.3.4:5"}},
    {"port +1 has a rate, but node 0 of torus 3 has no link at this port",
     {"dims=3", "rank=0", "+0=1.2.3.4:5", "-0=1.2.3.4:5", "+1.link_mbit=5"}},
    {"port +0 needs an address to dial", {"dims=3", "rank=0", "+0.link_mbit=5"}},
    {"mean rank 5, but rank is 4", {"dims=4x4", "rank=4", "coordinates=1,1"}},
    {"2 numbers with commas", {"dims=4x4", "coordinates=1"}},
    {"2 numbers with commas", {"dims=4x4", "coordinates=1,4"}},
    {"2 numbers with commas", {"dims=4x4", "coordinates=1,1,1"}},
    {"2 numbers with commas", {"dims=4x4", "coordinates=-1,1"}},
    {"2 numbers with commas", {"dims=4x4", "coordinates=1, 1"}},
};

FOLDER_TEST(what_does_not_fit_together_is_refused)
{
    for (size_t i = 0; i < sizeof unfinished / sizeof unfinished[0]; i++)
        check_unfinished(unfinished[i].settings, unfinished[i].why);
}

static const struct {
    const char *text, *printed; /* NULL: as it was written */
} good_addresses[] = {
    {"10.0.0.1:7411", NULL},
    {"10.0.0.1:1", NULL},
    {"10.0.0.1:65535", NULL},
    {"10.0.0.2:7411 on eth1", NULL},
    {"  10.0.0.2:7411 \t on   eth1 ", "10.0.0.2:7411 on eth1"},
    {"0.0.0.0:7411", NULL},
    {"[::]:7411", NULL},
    {"[fd00::1]:7411", NULL},
    {"[FD00::B]:7411", NULL},
    {"[fe80::b%eth0]:7411", NULL},
    {"[fe80::b%2]:7411", NULL},
    {"[fe80::b]:7411 on eth0", NULL},
    {"[fe80::b%eth0]:7411 on eth0", "[fe80::b]:7411 on eth0"},
    {"[::ffff:10.0.0.1]:7411", NULL},
    {"localhost:7411", NULL},
    {"Node-2.cable_1.example:7411", NULL},
    {"no.such.name.invalid:7411", NULL},
};

static const struct {
    const char *text, *why;
} bad_addresses[] = {
    {"", "the port is missing"},
    {"10.0.0.1", "the port is missing"},
    {"10.0.0.1:", "from 1 to 65535"},
    {"10.0.0.1:0", "from 1 to 65535"},
    {"10.0.0.1:65536", "from 1 to 65535"},
    {"10.0.0.1:99999", "from 1 to 65535"},
    {"10.0.0.1:4294974707", "from 1 to 65535"},
    {"10.0.0.1:-1", "from 1 to 65535"},
    {"10.0.0.1:7411x", "from 1 to 65535"},
    {"10.0.0.1:http", "from 1 to 65535"},
    {":7411", "the address is missing"},
    {"10.0.0.256:7411", "the IPv4 address is not valid"},
    {"10.0.0.1%eth0:7411", "cannot have such characters"},
    {"a b:7411", "the port is missing"},
    {"[::1:7411", "the ] is missing"},
    {"[::1]7411", "the port is missing"},
    {"[10.0.0.1]:7411", "only an IPv6 address may be in brackets"},
    {"[name]:7411", "only an IPv6 address may be in brackets"},
    {"fd00::1:7411", "needs brackets"},
    {"[fe80::b]:7411", "needs its interface"},
    {"[fe80::b%]:7411", "no interface follows"},
    {"[fe80::b%eth0]:7411 on eth1", "names two interfaces"},
    {"[fe80::b%an-interface-of-16]:7411", "the name of the interface is not valid"},
    {"[fd00::1%eth0]:7411", "only a link-local address"},
    {"10.0.0.1:7411 eth0", "only \"on\""},
    {"10.0.0.1:7411 on", "only \"on\""},
    {"10.0.0.1:7411 on ", "one interface"},
    {"10.0.0.1:7411 on eth0 eth1", "one interface"},
    {"10.0.0.1:7411 on an-interface-of-16", "the name of the interface is not valid"},
    {"10.0.0.1:7411 on a/b", "the name of the interface is not valid"},
};

/* Only settings that can never become right are refused: names are not looked up. */
FOLDER_TEST(addresses_are_checked)
{
    char text[ENDPOINT_TEXT_SIZE];
    struct endpoint endpoint;
    struct error e;

    for (size_t i = 0; i < sizeof good_addresses / sizeof good_addresses[0]; i++) {
        assert_success(endpoint_parse(good_addresses[i].text, &endpoint, &e), e);
        endpoint_format(&endpoint, text, sizeof text);
        assert_string_equal(text, good_addresses[i].printed != NULL ? good_addresses[i].printed
                                                                    : good_addresses[i].text);
    }
    for (size_t i = 0; i < sizeof bad_addresses / sizeof bad_addresses[0]; i++) {
        if (endpoint_parse(bad_addresses[i].text, &endpoint, &e) == 0)
            fail_msg("\"%s\" has been taken", bad_addresses[i].text);
        assert_int_equal(e.code, ERROR_USAGE);
        assert_contains(e.text, bad_addresses[i].why);
    }
    check_refused(state, "[node]\nrank = 0\n[ports]\n+0 = 10.0.0.1:99999\n", 4, "port +0: ");
}

FOLDER_TEST(coordinates_are_as_good_as_a_rank)
{
    struct config c;
    struct error e;

    config_init(&c);
    assert_int_equal(config_set(&c, "coordinates", "0,0,0", &e), 0); /* before the dimensions */
    assert_int_equal(config_set(&c, "dims", "1x1x1", &e), 0);
    assert_int_equal(config_finish(&c, &e), 0);
    assert_int_equal(c.rank, 0);
    config_free(&c);
}

FOLDER_TEST(the_last_setting_wins)
{
    struct config c;
    struct error e;
    assert_int_equal(
        (config_init(&c), config_read(&c, write_config(state, "[node]\nrank=1\nrank=2\n"), &e)), 0);
    assert_int_equal(c.rank, 2);
    assert_int_equal(config_set(&c, "rank", "3", &e), 0);
    assert_int_equal(c.rank, 3);
    config_free(&c);
}

/* Every row has an explanation, and its option sets the same value as its name in the file. */
TEST(test_settings)
{
    for (const struct setting *s = config_settings; s->option != NULL; s++) {
        assert_true(s->help[0] != '\0');
        assert_null(strchr(s->option, '_'));
        assert_true((s->name != NULL) == (s->size > 0));
        assert_true(s->name == NULL || s->value != NULL);
        assert_true((s->when == SETTING_NEVER) ==
                    (s->name == NULL || strcmp(s->name, "coordinates") == 0));
    }
}

/* Settings that are read again: what differs, and what a running daemon takes over. */

/* Reads settings into *c, and finishes them. */
static void read_settings(void **state, struct config *c, const char *text)
{
    const char *path = at(state, "torusd.ini");
    struct error e = {0};

    make_file(path, text, strlen(text));
    config_init(c);
    if (config_read(c, path, &e) != 0 || config_finish(c, &e) != 0)
        fail_msg("%s", e.text);
}

static void check_changes(void **state, const struct config *now, const char *text,
                          const char *changed_names, const char *other_names)
{
    char changed[CONFIG_CHANGES_SIZE], others[CONFIG_CHANGES_SIZE];
    struct config fresh;

    read_settings(state, &fresh, text);
    config_changes(now, &now->roots, &fresh, changed, others);
    assert_string_equal(changed, changed_names);
    assert_string_equal(others, other_names);
    config_free(&fresh);
}

FOLDER_TEST(changes_are_listed_and_taken)
{
    static const char text[] = "[node]\ndims = 2mx2m\nrank = 0\n"
                               "[ports]\n+0 = 10.0.0.2:7411\n+1 = 10.0.1.2:7411\n";
    static const char other[] = "[node]\ndims = 2mx3m\ncoordinates = 0,0\nmemory = 95MiB\n"
                                "key_file = /x\nencrypt = yes\nlog_level = debug\n"
                                "[ports]\n+0 = 10.0.0.2:7411\n+1 = 10.0.1.3:7411\n";
    static const char fewer[] = "[node]\ndims = 2mx1\nrank = 0\n[ports]\n+0 = 10.0.0.2:7411\n";
    struct config now, fresh;

    read_settings(state, &now, text);
    check_changes(state, &now, text, "", "");
    check_changes(state, &now, other, "key_file, log_level", "dims, encrypt, memory, +1");
    check_changes(state, &now, fewer, "", "dims, +1");
    read_settings(state, &fresh, other);
    config_take_changes(&now, &fresh);
    config_free(&fresh);
    assert_string_equal(now.key_file, "/x");
    assert_int_equal(now.log_level, LOG_LEVEL_DEBUG);
    assert_false(now.encrypt);
    check_changes(state, &now, other, "", "dims, encrypt, memory, +1");
    config_free(&now);
}

FOLDER_TEST(rates_of_links_change_while_the_daemon_runs)
{
#define TWO_PORTS "[ports]\n+0 = 10.0.0.2:7411\n+1 = 10.0.1.2:7411\n"
    static const char text[] =
        "[node]\ndims = 2mx2m\nrank = 0\nlink_mbit = 10\n" TWO_PORTS "+1.link_mbit = 5\n";
    static const char other[] =
        "[node]\ndims = 2mx2m\nrank = 0\nlink_mbit = 20\n" TWO_PORTS "+0.link_mbit = 2/3\n";
    struct config now, fresh;

    read_settings(state, &now, text);
    check_changes(state, &now, text, "", "");
    check_changes(state, &now, other, "link_mbit, +0.link_mbit, +1.link_mbit", "");
    read_settings(state, &fresh, other);
    config_take_changes(&now, &fresh);
    config_free(&fresh);
    check_changes(state, &now, other, "", "");
    assert_rate(config_port_rate(&now, 0), 2, 3);
    assert_rate(config_port_rate(&now, 2), 20, 20);
    config_free(&now);
#undef TWO_PORTS
}

FOLDER_TEST(a_rate_of_a_port_that_is_not_there_names_its_line)
{
    struct config c;
    struct error e = {0};
    char where[FIXTURE_PATH + 20];
    const char *path = write_config(state, "[node]\ndims = 3\nrank = 0\n[ports]\n+0 = 1.2.3.4:5\n"
                                           "-0 = 1.2.3.4:6\n+1.link_mbit = 5\n");

    config_init(&c);
    assert_int_equal(config_read(&c, path, &e), 0);
    (void)snprintf(where, sizeof where, "%s:7: port +1 has a rate", path);
    assert_fails(config_finish(&c, &e), e, ERROR_USAGE, where);
    config_free(&c);
}
