/* libtorus: surveys, whose answers other nodes make, so that nothing in them is certain. */
#include "tests/support/cmocka.h"
#include "tests/unit/client_fixture.h"

#define NODES 7u

static void pack(Control__Survey__Node *node, const Control__NodeAnswer *answer)
{
    node->outcome = TORUS_SURVEY_ANSWERED;
    node->answer.len = control__node_answer__get_packed_size(answer);
    node->answer.data = malloc(node->answer.len + 1);
    FAKE_MUST(node->answer.data != NULL);
    (void)control__node_answer__pack(answer, node->answer.data);
}

static void fill_status(Control__Status *status, Control__Calibration *calibration,
                        Control__Costs *costs, uint32_t rank)
{
    control__status__init(status);
    control__calibration__init(calibration);
    control__costs__init(costs);
    calibration->costs = costs;
    status->calibration = calibration;
    status->dims = (char *)(uintptr_t) "7";
    status->version = (char *)(uintptr_t) "1\n";
    status->rank = rank;
}

/* Node 0 is honest; 1 cannot be reached; 2 sends noise; 3 claims another rank; 4 has a status and no links, 5 facts with
 * control characters; 6 an outcome that does not exist. */
static void serve_survey(int fd)
{
    Control__Survey survey = CONTROL__SURVEY__INIT;
    Control__Survey__Node node[NODES], *list[NODES];
    Control__NodeAnswer answer = CONTROL__NODE_ANSWER__INIT;
    Control__Status status;
    Control__Calibration calibration;
    Control__Costs costs;
    Control__Links links = CONTROL__LINKS__INIT;
    Control__Reply reply = CONTROL__REPLY__INIT;

    for (unsigned i = 0; i < NODES; i++) {
        list[i] = &node[i];
        control__survey__node__init(&node[i]);
    }
    fill_status(&status, &calibration, &costs, 0);
    answer.host = (char *)(uintptr_t) "al\033pha";
    answer.status = &status;
    answer.links = &links;
    pack(&node[0], &answer);
    node[1].outcome = TORUS_SURVEY_UNREACHABLE;
    pack(&node[2], &answer);
    memset(node[2].answer.data, 0xff, node[2].answer.len);
    pack(&node[3], &answer);
    status.rank = 4;
    answer.links = NULL;
    pack(&node[4], &answer);
    answer.status = NULL;
    answer.facts = (char *)(uintptr_t) "a 1\nb \0332\xff\n\nc 3";
    pack(&node[5], &answer);
    node[6].outcome = 4711;
    survey.n_node = NODES;
    survey.node = list;
    survey.took_us = 1500;
    reply.kind_case = CONTROL__REPLY__KIND_SURVEY;
    reply.survey = &survey;
    fake_expect(fd, CONTROL__REQUEST__KIND_SURVEY);
    fake_reply(fd, &reply);
    for (unsigned i = 0; i < NODES; i++)
        free(node[i].answer.data);
}

TEST(answers_of_all_kinds)
{
    static const enum torus_survey_outcome expected[NODES] = {
        TORUS_SURVEY_ANSWERED,   TORUS_SURVEY_UNREACHABLE, TORUS_SURVEY_UNREADABLE,
        TORUS_SURVEY_UNREADABLE, TORUS_SURVEY_UNREADABLE,  TORUS_SURVEY_ANSWERED,
        TORUS_SURVEY_UNREADABLE};
    struct fake f;
    struct torus_client *client = client_begin(&f, serve_survey);
    struct torus_survey *survey;
    struct torus_error e;

    assert_int_equal(torus_client_survey(client, TORUS_SURVEY_STATE, 0, &survey, &e), 0);
    assert_int_equal(survey->count, NODES);
    assert_int_equal(survey->took_us, 1500);
    for (uint32_t i = 0; i < NODES; i++) {
        assert_int_equal(survey->nodes[i]->rank, i);
        assert_int_equal(survey->nodes[i]->outcome, expected[i]);
        assert_true((survey->nodes[i]->status != NULL) == (i == 0));
        assert_true((survey->nodes[i]->links != NULL) == (i == 0));
    }
    assert_string_equal(survey->nodes[0]->host, "al?pha");
    assert_string_equal(survey->nodes[0]->status->version, "1?");
    assert_string_equal(survey->nodes[1]->host, "");
    assert_string_equal(survey->nodes[5]->facts, "a 1\nb ?2?\n\nc 3");
    assert_string_equal(survey->nodes[6]->facts, "");
    torus_survey_free(survey);
    torus_survey_free(NULL);
    client_end(&f, client);
}

static void serve_old_daemon(int fd)
{
    client_expect_request(fd);
    fake_reply_error(fd, TORUS_ERROR_PROTOCOL, "unknown request", "");
}

TEST(a_daemon_without_surveys)
{
    struct fake f;
    struct torus_client *client = client_begin(&f, serve_old_daemon);
    struct torus_survey *survey;
    struct torus_error e;

    assert_int_equal(torus_client_survey(client, TORUS_SURVEY_HOST, 100, &survey, &e), -1);
    assert_int_equal(e.code, TORUS_ERROR_PROTOCOL);
    assert_null(survey);
    client_end(&f, client);
}

TEST(outcomes_have_names)
{
    assert_string_equal(torus_survey_outcome_name(TORUS_SURVEY_SILENT), "silent");
    assert_string_equal(torus_survey_outcome_name((enum torus_survey_outcome)99), "unknown");
}
