/* torusctl run without ssh: quotes, orders, hosts, lines of output. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/running/run_frames.h"
#include "client/cli/running/run_hosts.h"
#include "client/cli/running/run_output.h"
#include "client/cli/terminal/shell_words.h"
#include "tests/support/cmocka.h"

static struct error e;

/* --- quotes --- */

/* What a shell makes of a word. */
static void assert_survives(const char *word)
{
    char command[1200], said[1200];
    char *quoted = shell_word(word);
    FILE *shell;
    size_t n;

    (void)snprintf(command, sizeof command, "printf %%s %s", quoted);
    shell = popen(command, "re");
    assert_non_null(shell);
    n = fread(said, 1, sizeof said - 1, shell);
    said[n] = '\0';
    assert_int_equal(pclose(shell), 0);
    assert_string_equal(said, word);
    free(quoted);
}

TEST(test_words_survive_a_shell)
{
    char all[256];

    for (int i = 1; i < 256; i++)
        all[i - 1] = (char)i;
    all[255] = '\0';
    assert_survives(all);
    assert_survives("");
    assert_survives("'");
    assert_survives("a\\'b\\\\");
    assert_survives("$HOME `id` \"x\" !! *?[a] ~ #");
    assert_survives("=ls"); /* zsh would look for it */
    char *line = shell_line((const char *const[]){"echo", "a b", "it's", "", "x=%h", NULL});
    assert_string_equal(line, "echo 'a b' 'it'\\''s' '' x=%h");
    free(line);
}

/* --- orders --- */

static const char *const arguments[] = {"python3", "a b'\n\377$", "", NULL};
static const char *const variables[] = {"A=1", "B=x=y", NULL};
static const struct run_order sent = {.folder = "/home/a b",
                                      .first_rank = 6,
                                      .ranks = 2,
                                      .grace_ms = 10000,
                                      .silence_ms = 30000,
                                      .input = true,
                                      .variables = 2,
                                      .arguments = 3,
                                      .variable = (const char **)(uintptr_t)variables,
                                      .argument = (const char **)(uintptr_t)arguments};

TEST(test_an_order_arrives)
{
    struct frame_stream s = {0};
    struct run_frame f;
    struct run_order o;

    assert_int_equal(run_order_put(&s, &sent, &e), 0);
    assert_int_equal(run_frame_put_number(&s, RUN_ENDED, 258, 0x01020304), 0);
    assert_int_equal(run_frame_next(&s, &f, &e), 1);
    assert_int_equal(f.kind, RUN_ORDER);
    assert_int_equal(run_order_read(&o, f.bytes, f.length, &e), 0);
    assert_string_equal(o.folder, sent.folder);
    assert_int_equal(o.first_rank, 6);
    assert_int_equal(o.ranks, 2);
    assert_int_equal(o.grace_ms, 10000);
    assert_int_equal(o.silence_ms, 30000);
    assert_true(o.input);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(o.argument[i], arguments[i]);
    assert_null(o.argument[3]);
    assert_string_equal(o.variable[1], "B=x=y");
    assert_null(o.variable[2]);
    run_order_free(&o);
    assert_int_equal(run_frame_next(&s, &f, &e), 1);
    assert_int_equal(f.process, 258);
    assert_int_equal(run_frame_number(&f), 0x01020304);
    assert_int_equal(run_frame_next(&s, &f, &e), 0);
    frame_stream_free(&s);
}

/* Orders that are cut, or have any byte changed, are refused or read, in memory that ends behind them. */
TEST(test_wrong_orders)
{
    static const uint8_t short_head[] = {0, 0, 0, 2, 0, 0, 0, 0, RUN_ORDER, 0};
    size_t room;
    struct frame_stream s = {0};
    struct run_frame f;
    struct run_order o;

    assert_int_equal(run_order_put(&s, &sent, &e), 0);
    assert_int_equal(run_frame_next(&s, &f, &e), 1);
    for (size_t length = 0; length < f.length; length++) {
        uint8_t *cut = malloc(length + (length == 0));
        memcpy(cut, f.bytes, length);
        assert_int_equal(run_order_read(&o, cut, length, &e), -1);
        free(cut);
    }
    uint8_t *more = calloc(1, f.length + 1);
    memcpy(more, f.bytes, f.length);
    assert_int_equal(run_order_read(&o, more, f.length + 1, &e), -1);
    free(more);
    for (size_t at = 0; at < f.length; at++) {
        uint8_t *changed = malloc(f.length);
        memcpy(changed, f.bytes, f.length);
        changed[at] = changed[at] == '\0' ? '9' : '\0';
        if (run_order_read(&o, changed, f.length, &e) == 0)
            run_order_free(&o);
        free(changed);
    }
    frame_stream_free(&s);
    memcpy(frame_stream_room(&s, sizeof short_head, &room), short_head, sizeof short_head);
    frame_stream_added(&s, sizeof short_head);
    assert_int_equal(run_frame_next(&s, &f, &e), -1);
    frame_stream_free(&s);
}

/* --- hosts --- */

static struct run_hosts hosts;

static int read_hosts(const char *text, struct run_choice choice)
{
    char path[] = "/tmp/torus-hosts-XXXXXX";
    int fd = mkstemp(path), rc;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
    choice.file = path;
    rc = run_hosts_read(&hosts, &choice, &e);
    (void)unlink(path);
    return rc;
}

TEST(test_a_list_of_hosts)
{
    assert_int_equal(read_hosts("# mine\n\nalpha slots=2\nbob@beta # x\r\nfd12::7\nfe80::1%eth0\n"
                                "10.0.0.1",
                                (struct run_choice){.only = NULL}),
                     0);
    assert_int_equal(hosts.count, 5);
    assert_string_equal(hosts.list[0].target, "alpha");
    assert_string_equal(hosts.list[1].name, "beta");
    assert_string_equal(hosts.list[1].target, "bob@beta");
    assert_string_equal(hosts.list[2].name, "fd12::7");
    assert_string_equal(hosts.list[3].target, "fe80::1%eth0");
    assert_false(hosts.list[0].is_node);
    run_hosts_free(&hosts);
    assert_int_equal(read_hosts("-oProxyCommand=x\n", (struct run_choice){.only = NULL}), -1);
    assert_contains(e.text, "line 1");
    assert_int_equal(read_hosts("a\nb\nx@a\n", (struct run_choice){.only = NULL}), -1);
    assert_contains(e.text, "twice");
    assert_int_equal(read_hosts("\n", (struct run_choice){.only = NULL}), -1);
    assert_int_equal(read_hosts("a\n", (struct run_choice){.torus_ip = true}), -1);
}

static const char cluster[] = "; ours\n[cluster]\ndims = 3\n[*]\n+0 = eth1\n-0 = eth2\n[alpha]\n"
                              "[beta]\nssh = root@10.0.0.3\n[gamma]\n";

TEST(test_a_cluster_file)
{
    assert_int_equal(read_hosts(cluster, (struct run_choice){.without = "alpha"}), 0);
    assert_int_equal(hosts.count, 2);
    assert_int_equal(hosts.nodes, 3);
    assert_string_equal(hosts.dims, "3");
    assert_string_equal(hosts.list[0].name, "beta");
    assert_string_equal(hosts.list[0].target, "10.0.0.3"); /* not as root */
    assert_int_equal(hosts.list[0].node, 1);
    assert_string_equal(hosts.list[1].target, "gamma");
    run_hosts_free(&hosts);
    assert_int_equal(read_hosts(cluster, (struct run_choice){.torus_ip = true, .only = "beta"}), 0);
    assert_int_equal(hosts.count, 1);
    assert_string_equal(hosts.list[0].target, "10.128.0.2");
    assert_true(hosts.list[0].by_address);
    run_hosts_free(&hosts);
    assert_int_equal(read_hosts(cluster, (struct run_choice){.only = "delta"}), -1);
    assert_contains(e.text, "no host \"delta\"");
    assert_int_equal(
        read_hosts(cluster, (struct run_choice){.only = "beta", .without = "beta.example"}), -1);
}

TEST(test_the_words_for_ssh)
{
    const struct run_host host = {.name = "beta", .target = "10.128.0.2", .by_address = true};
    char **words, *line;

    (void)unsetenv("TORUS_SSH");
    words = run_ssh(&host, "bob", 9, 5, "/opt/it's/torusctl");
    line = shell_line((const char *const *)(uintptr_t)words);
    assert_string_equal(words[0], "ssh");
    assert_contains(line, "-oBatchMode=yes");
    assert_contains(line, "-oConnectTimeout=9");
    assert_contains(line, "-oHostKeyAlias=beta -lbob -- 10.128.0.2 ");
    free(line);
    run_ssh_free(words);
    assert_int_equal(setenv("TORUS_SSH", "ssh -F 'a b'", 1), 0);
    words = run_ssh(&host, NULL, 9, 5, "/torusctl");
    assert_string_equal(words[0], "sh");
    assert_string_equal(words[2], "exec ssh -F 'a b' \"$@\"");
    run_ssh_free(words);
    (void)unsetenv("TORUS_SSH");
}

/* --- output --- */

static const char *printed(struct run_output *o)
{
    static char text[256];
    const size_t n = run_stream_waiting(&o->waiting);

    memcpy(text, o->waiting.data + o->waiting.taken, n);
    text[n] = '\0';
    o->waiting.taken += n;
    return text;
}

#define ADD(text)                                                                                  \
    run_output_add(&o, "a: ", &line, (const uint8_t *)(text), strlen(text)), printed(&o)

TEST(test_lines)
{
    struct run_output o = {.fd = -1};
    struct run_line line = {0};

    assert_string_equal(ADD("one\ntw"), "a: one\n");
    assert_string_equal(ADD("o"), "");
    assert_string_equal(ADD("\n\n"), "a: two\na: \n");
    assert_string_equal(ADD("10 %\r20 %\r"), "a: 10 %\r");
    assert_string_equal(ADD("30 %\r"), "a: 20 %\r");
    assert_string_equal(ADD("\nend\r\nrest"), "a: 30 %\r\na: end\r\n");
    run_output_end(&o, "a: ", &line);
    assert_string_equal(printed(&o), "a: rest\n");
    run_output_add(&o, NULL, &line, (const uint8_t *)"x", 1);
    assert_string_equal(printed(&o), "x");
    frame_stream_free(&o.waiting);
}
