/* torusctl copy, gather and scatter with a fake daemon: what they ask, their output, and their exit codes. */
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include "proto/error.h"
#include "tests/support/cmocka.h"
#include "tests/unit/cli_fixture.h"
#include "tests/unit/copy_replies.h"

/* The daemon: what it changes in its reply. The status that it sends is that of node 6 of 16. */
static void (*change)(struct copy_reply *reply);
static volatile pid_t started; /* torusctl, if the daemon interrupts it */

static void serve_survey(int fd)
{
    Control__Survey survey = CONTROL__SURVEY__INIT;
    Control__Survey__Node node[16], *list[16];
    Control__NodeAnswer answer = CONTROL__NODE_ANSWER__INIT;
    uint8_t bytes[64];

    answer.host = (char *)(uintptr_t) "al\033pha";
    for (unsigned i = 0; i < 16; i++) {
        list[i] = &node[i];
        control__survey__node__init(&node[i]);
    }
    node[3].outcome = 1; /* answered */
    node[3].answer.data = bytes;
    node[3].answer.len = control__node_answer__pack(&answer, bytes);
    survey.n_node = 16;
    survey.node = list;
    fake_reply(fd, CONTROL_REPLY(SURVEY, survey, &survey));
}

static void serve(int fd)
{
    Control__Request *request;
    struct copy_reply reply;

    while ((request = fake_request(fd)) != NULL) {
        switch (request->kind_case) {
        case CONTROL__REQUEST__KIND_STATUS:
            fake_reply_status(fd);
            break;
        case CONTROL__REQUEST__KIND_SURVEY:
            serve_survey(fd);
            break;
        case CONTROL__REQUEST__KIND_COPY:
            FAKE_MUST(request->copy->node == 6);
            copy_reply_make(&reply);
            if (change != NULL)
                change(&reply);
            copy_reply_send(fd, &reply);
            break;
        default:
            FAKE_MUST(false);
        }
        control__request__free_unpacked(request, NULL);
    }
}

/* Runs the command. Returns its exit code. */
#define RUN(changes, ...) (change = (changes), CLI_SERVED(serve, __VA_ARGS__))

TEST(a_copy_is_reported_in_three_lines)
{
    assert_int_equal(RUN(NULL, "copy", "/data/a", "--to", "/data/a"), 0);
    assert_string_equal(cli_problem, "");
    assert_string_equal(
        cli_output, "copied to 3 nodes: 10 files, 2 folders, 1 symbolic link (4 MiB)\n"
                    "added 2, changed 1, removed 0, unchanged 10 at each node\n"
                    "moved 3 MiB of 4 MiB in 2 s, 500 ms of it to compare (2 MiB/s afterwards)\n");
}

static void change_nothing_moved(struct copy_reply *r)
{
    r->result.bytes_sent = 0;
    r->result.n_node = 1;
    r->node[0].added = r->node[0].changed = 0;
}

static void change_remarks(struct copy_reply *r)
{
    static uint32_t absent[] = {3, 4};

    r->node[0].added = 7;
    r->node[1].not_owned = 5;
    r->node[2].not_attributed = 1;
    r->result.attempts = 2;
    r->result.left_out = 2;
    copy_reply_bytes(&r->result.first_left_out, "/run/a\nb", 8);
    r->result.n_absent = 2;
    r->result.absent = absent;
}

TEST(what_is_unusual_has_a_line)
{
    assert_int_equal(RUN(change_nothing_moved, "copy", "/a", "--to", "/a"), 0);
    assert_string_equal(cli_output,
                        "copied to 1 node: 10 files, 2 folders, 1 symbolic link (4 MiB)\n"
                        "added 0, changed 0, removed 0, unchanged 10\n"
                        "moved no data of 4 MiB in 2 s\n");
    assert_int_equal(RUN(change_remarks, "copy", "/a", "--to", "/a"), 0);
    assert_contains(cli_output, "\nadded 2 to 7, changed 1, removed 0, unchanged 10 "
                                "(--per-node shows each node)\n");
    assert_non_null(strstr(
        cli_output,
        "\n2 nodes were down, and took no part: node 3 (al?pha), node 4\n"
        "2 attempts, because links or nodes went down\n"
        "not copied: 2 sockets, FIFOs or devices, such as /run/a\\x0ab\n"
        "owner not kept: 5 entries at 1 node, where torusd may not change owners\n"
        "extended attributes not kept: 1 entry at 1 node, whose file system refuses them\n"));
}

static void change_failure(struct copy_reply *r)
{
    r->node[2].code = ERROR_IO; /* node 3, whose host is known */
    r->node[2].error = (char *)(uintptr_t) "/data/a/b: no room";
}

TEST(nodes_that_fail_are_named)
{
    assert_int_equal(RUN(change_failure, "copy", "/a", "--to", "/a", "--per-node"), 1);
    assert_contains(cli_output, "copied to 2 of 3 nodes: 10 files");
    assert_contains(cli_output, "\n   3  al?pha");
    assert_string_equal(cli_problem, "torusctl: node 3 (al?pha): /data/a/b: no room\n");
}

static void change_all_fail(struct copy_reply *r)
{
    for (unsigned i = 0; i < COPY_REPLY_NODES; i++) {
        r->node[i].code = ERROR_REFUSED;
        r->node[i].error = (char *)(uintptr_t) "node 6: /a is not there";
    }
}

static void change_two_fail(struct copy_reply *r)
{
    r->node[0].code = r->node[2].code = ERROR_IO;
    r->node[0].error = r->node[2].error = (char *)(uintptr_t) "no room";
}

TEST(equal_errors_have_one_line)
{
    assert_int_equal(RUN(change_all_fail, "copy", "/a", "--to", "/a"), 1);
    assert_string_equal(cli_output, "copied to 0 of 3 nodes\n");
    assert_string_equal(cli_problem, "torusctl: node 6: /a is not there\n");
    assert_int_equal(RUN(change_two_fail, "copy", "/a", "--to", "/a"), 1);
    assert_string_equal(cli_problem, "torusctl: node 3 (al?pha); node 5: no room\n");
}

static void change_nodes_differently(struct copy_reply *r)
{
    r->node[0].added = 9;
    r->node[0].bytes_missing = 1 << 20;
    r->node[1].changed = r->node[2].changed = 0;
    r->node[1].removed = 4;
}

static void change_to_equal(struct copy_reply *r)
{
    for (unsigned i = 0; i < COPY_REPLY_NODES; i++) {
        r->node[i].added = r->node[i].changed = r->node[i].bytes_missing = 0;
        copy_reply_bytes(&r->node[i].first, "", 0);
    }
}

TEST(a_dry_run_says_what_it_would_do)
{
    assert_int_equal(RUN(NULL, "copy", "/a", "--to", "/a", "--dry-run"), 0);
    assert_string_equal(cli_output,
                        "would add 2 entries at 3 nodes, change 1 entry at 3 nodes, and remove "
                        "nothing; 3 MiB would move to each of these nodes; nothing was changed\n");
    assert_int_equal(RUN(change_nodes_differently, "copy", "/a", "--to", "/a", "--dry-run"), 0);
    assert_string_equal(
        cli_output, "would add 2 to 9 entries at 3 nodes, change 1 entry at 1 node, and remove 4 "
                    "entries at 1 node; up to 3 MiB would move to each of these nodes; nothing was "
                    "changed\n");
    assert_int_equal(RUN(change_to_equal, "copy", "/a", "--to", "/a", "--dry-run"), 0);
    assert_string_equal(cli_output, "nothing to do at 3 nodes: everything is there already\n");
}

static void change_one(struct copy_reply *r)
{
    change_to_equal(r);
    r->node[2].added = 1;
    r->node[2].changed = 2;
    copy_reply_bytes(&r->node[2].first, "x/\\x0ay", 7);
}

TEST(verify_says_what_differs)
{
    assert_int_equal(RUN(change_to_equal, "copy", "/a", "--to", "/a", "--verify"), 0);
    assert_string_equal(cli_output,
                        "equal at all 3 nodes: 10 files, 2 folders, 1 symbolic link (4 MiB)\n");
    assert_int_equal(RUN(change_one, "copy", "/a", "--to", "/a", "--verify"), 1);
    assert_string_equal(cli_output,
                        "node 1: equal\n"
                        "node 3 (al?pha): differs: 1 missing, 2 different; first: x/\\x0ay\n"
                        "node 5: equal\n");
    assert_string_equal(cli_problem, "");
}

TEST(machines_get_everything)
{
    assert_int_equal(RUN(change_one, "copy", "/d/a\n", "--to", "/x", "--verify", "--json"), 1);
    cli_expect("operation=copy sources.0=/d/a\\x0a equal=false verify=true failures=0 "
               "bytes_sent=3145728 per_node=#3 per_node.1.rank=3 per_node.1.host=al?pha "
               "per_node.1.error=null per_node.1.equal=false per_node.1.changed=2 "
               "per_node.1.from=none");
    assert_int_equal(RUN(change_failure, "gather", "/a", "--to", "/x/%r", "--json"), 1);
    cli_expect("failures=1 per_node.1.from=6 per_node.1.error.code=io");
}

/* ---- Requests -------------------------------------------------------------------------------- */

static bool is_text(const ProtobufCBinaryData *bytes, const char *text)
{
    return bytes->len == strlen(text) && memcmp(bytes->data, text, bytes->len) == 0;
}

static void serve_checked(int fd)
{
    Control__Request *request;
    struct copy_reply reply;

    fake_expect(fd, CONTROL__REQUEST__KIND_STATUS);
    fake_reply_status(fd);
    request = fake_request(fd);
    FAKE_MUST(request != NULL && request->kind_case == CONTROL__REQUEST__KIND_COPY);
    FAKE_MUST(is_text(&request->copy->source[0], "/data/50%%") && request->copy->n_source == 2);
    FAKE_MUST(is_text(&request->copy->target, "/x/%r") && request->copy->into);
    FAKE_MUST(request->copy->n_nodes == 2 && request->copy->nodes[0] == 5);
    FAKE_MUST(request->copy->nodes[1] == 7); /* without node 6, which is asked */
    FAKE_MUST(request->copy->n_pattern == 2 && is_text(&request->copy->pattern[0], "+ a"));
    FAKE_MUST(is_text(&request->copy->pattern[1], "- *") && request->copy->delete_);
    FAKE_MUST(request->copy->shrink && request->copy->checksum && request->copy->as_it_comes);
    FAKE_MUST(request->copy->timeout_ms == 2500);
    control__request__free_unpacked(request, NULL);
    copy_reply_make(&reply);
    copy_reply_send(fd, &reply);
}

TEST(options_become_a_request)
{
    assert_int_equal(CLI_SERVED(serve_checked, "copy", "/data/50%", "--to", "/x/%r", "/b/",
                                "--nodes", "5-7", "--include", "a", "--exclude=*", "--delete",
                                "--checksum", "--as-it-comes", "--on-failure", "shrink",
                                "--timeout", "2.5"),
                     0);
}

static void serve_exchange(int fd)
{
    Control__Request *request;
    struct copy_reply reply;

    fake_expect(fd, CONTROL__REQUEST__KIND_STATUS);
    fake_reply_status(fd);
    request = fake_request(fd);
    FAKE_MUST(request != NULL && request->kind_case == CONTROL__REQUEST__KIND_COPY);
    FAKE_MUST(request->copy->kind == 4 && request->copy->n_source == 1);
    FAKE_MUST(is_text(&request->copy->source[0], "/o/%r") && request->copy->delete_);
    FAKE_MUST(is_text(&request->copy->target, "/i") && !request->copy->into);
    control__request__free_unpacked(request, NULL);
    copy_reply_make(&reply);
    copy_reply_send(fd, &reply);
}

TEST(an_exchange_of_trees_is_a_copy)
{
    assert_int_equal(CLI_SERVED(serve_exchange, "exchange", "--from", "/o/%r", "--to", "/i/",
                                "--trees", "--replace"),
                     0);
    assert_contains(cli_output, "exchanged among 3 nodes: 30 files");
    assert_int_equal(
        CLI_RUN("exchange", "--from", "/o", "--to", "/i", "--trees", "--mode", "stepped"), 2);
    assert_int_equal(CLI_RUN("exchange", "--from", "/o", "--trees"), 2);
}

/* ---- Failures -------------------------------------------------------------------------------- */

static void serve_interrupted(int fd)
{
    fake_expect(fd, CONTROL__REQUEST__KIND_STATUS);
    fake_reply_status(fd);
    fake_expect(fd, CONTROL__REQUEST__KIND_COPY);
    fake_reply_accepted(fd, "6.7.1");
    while (started == 0)
        (void)usleep(1000);
    (void)kill(started, SIGINT);
    fake_expect(fd, CONTROL__REQUEST__KIND_CANCEL);
    fake_reply_error(fd, ERROR_CANCELLED, "cancelled", "6.7.1");
}

static void serve_broken(int fd)
{
    fake_expect(fd, CONTROL__REQUEST__KIND_STATUS);
    fake_reply_status(fd);
    fake_expect(fd, CONTROL__REQUEST__KIND_COPY);
    fake_reply_accepted(fd, "6.7.1");
    copy_reply_progress(fd, 3, 0, 1000, 2000);
    fake_reply_error(fd, ERROR_LINK, "node 3 is down", "6.7.1");
}

static void serve_refusal(int fd)
{
    fake_expect(fd, CONTROL__REQUEST__KIND_STATUS);
    fake_reply_status(fd);
    fake_expect(fd, CONTROL__REQUEST__KIND_COPY);
    fake_reply_error(fd, ERROR_REFUSED, "/a is missing", "");
}

TEST(what_stays_is_said)
{
    struct fake f;
    int o, e;

    fake_start(&f, serve_interrupted);
    started = cli_start(
        (const char *const[]){"torusctl", "--socket", f.path, "copy", "/a", "--to", "/b", NULL}, &o,
        &e);
    assert_int_equal(cli_finish(started, o, e), 1);
    fake_stop(&f);
    assert_contains(cli_problem, "torusctl: copy 6.7.1: cancelled; what has arrived stays");

    assert_int_equal(CLI_SERVED(serve_broken, "copy", "/a", "--to", "/b", "--json"), 1);
    cli_check_error("link", "6.7.1");
    assert_contains(cli_problem, "stays at the nodes");

    assert_int_equal(CLI_SERVED(serve_refusal, "copy", "/a", "--to", "/b"), 1);
    assert_string_equal(cli_problem, "torusctl: /a is missing\n");
}

TEST(invalid_command_lines_are_refused)
{
    assert_int_equal(CLI_RUN("copy"), 2);
    assert_int_equal(CLI_RUN("copy", "/a"), 2);
    assert_int_equal(CLI_RUN("gather", "/a", "--to", "/b"), 2);
    assert_int_equal(CLI_RUN("scatter", "/a", "--to", "/b"), 2);
    assert_int_equal(CLI_RUN("copy", "/a", "--to", "/b", "--exclude-from", "/"), 1);
    assert_int_equal(CLI_RUN("--socket", "/nowhere", "copy", "/a", "--to", "/b"), 3);
    assert_int_equal(RUN(NULL, "copy", "/a", "--to", "/b", "--nodes", "16"), 2);
    assert_int_equal(RUN(NULL, "copy", "/a", "--to", "/b", "--nodes", "6"), 2);
}
