/* The requests for the candidates of "auto", and for the costs with which these are predicted. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/torusd/control/internal.h"
#include "daemon/torusd/exchange/choose_routes.h"

void control_calibration_fill(const struct exchanges *exchanges, struct calibration_message *out)
{
    const struct predict_costs costs = exchanges_costs(exchanges);

    control__calibration__init(&out->message);
    control__costs__init(&out->costs);
#define COST(type, number, field, cost, result) out->costs.field = costs.cost;
    CONTROL_COSTS(COST)
#undef COST
    out->message.costs = &out->costs;
    out->message.measured_at = exchanges_calibration(exchanges)->measured_at;
}

void control_calibration(struct control_client *client, const Control__Request *request)
{
    const Control__CalibrationRequest *wanted = request->calibration;
    struct exchanges *exchanges = client->server->set.exchanges;
    struct calibration_message calibration;
    struct error e;
    int result = 0;

    if ((wanted->measured != NULL || wanted->reset) && !control_may(client, ACCESS_ADMIN))
        return;
    if (wanted->measured != NULL && wanted->reset) {
        result = error_set(&e, ERROR_USAGE,
                           "the request has new costs and a reset: ask for one or the other");
    } else if (wanted->measured != NULL) {
#define COST(type, number, field, cost, result) .cost = wanted->measured->field,
        const struct predict_costs costs = {CONTROL_COSTS(COST)};
#undef COST
        result = exchanges_calibrate(exchanges, &costs, (uint64_t)time(NULL), &e);
    } else if (wanted->reset) {
        result = exchanges_calibrate(exchanges, NULL, 0, &e);
    }
    if (result != 0) {
        control_reply_error(client, &e, NULL);
        return;
    }
    control_calibration_fill(exchanges, &calibration);
    control_reply(client, CONTROL_REPLY(CALIBRATION, calibration, &calibration.message));
}

/* The assumed block size of files whose sizes are not known yet. */
#define FOLDER_BLOCK (UINT64_C(1) << 20)

/* Returns false if schedules are being counted. */
static bool answer_candidates(struct control_client *client,
                              const Control__CandidatesRequest *wanted)
{
    struct exchanges *exchanges = client->server->set.exchanges;
    uint64_t block_bytes = wanted->folders ? FOLDER_BLOCK : wanted->block_bytes;
    const struct block_sizes sizes = {block_bytes, block_bytes};
    struct candidate list[CHOOSE_MOST];
    Control__Candidates__Candidate candidate[CHOOSE_MOST], *candidates[CHOOSE_MOST];
    struct calibration_message calibration;
    struct link_rates links;
    Control__LinkRates link_rates;
    Control__Candidates message = CONTROL__CANDIDATES__INIT;
    enum mode mode;
    struct error e;
    unsigned count = 0;
    int result = -1;

    if (mode_parse(wanted->mode, &mode) != 0)
        (void)error_set(&e, ERROR_USAGE, "mode \"%.20s\" is neither stepped nor streaming",
                        wanted->mode);
    else
        result = choose_candidates(exchanges, &sizes, mode, list, &count, &links, &e);
    if (result == 0)
        return false;
    if (result < 0) {
        control_reply_error(client, &e, NULL);
        return true;
    }
    for (unsigned i = 0; i < count; i++) {
        const struct candidate *from = &list[i];
        Control__Candidates__Candidate *to = candidates[i] = &candidate[i];
        control__candidates__candidate__init(to);
        CONTROL_CANDIDATE(CONTROL_FILL)
    }
    control_calibration_fill(exchanges, &calibration);
    message.n_candidate = count;
    message.candidate = candidates;
    message.calibration = &calibration.message;
    message.block_bytes = block_bytes;
    message.link_rates = control_link_rates(&link_rates, &links);
    control_reply(client, CONTROL_REPLY(CANDIDATES, candidates, &message));
    return true;
}

void control_candidates(struct control_client *client, const Control__Request *request)
{
    const struct error no_memory = {.code = ERROR_MEMORY, .text = "out of memory"};
    const Control__CandidatesRequest *wanted = request->candidates;
    Control__CandidatesRequest *kept;

    if (answer_candidates(client, wanted))
        return;
    kept = malloc(sizeof *kept);
    if (kept == NULL || (kept->mode = strdup(wanted->mode)) == NULL) {
        free(kept);
        control_reply_error(client, &no_memory, NULL);
        return;
    }
    kept->block_bytes = wanted->block_bytes;
    kept->folders = wanted->folders;
    client->candidates = kept;
}

void control_candidates_forget(struct control_client *client)
{
    if (client->candidates != NULL)
        free(client->candidates->mode);
    free(client->candidates);
    client->candidates = NULL;
}

void control_candidates_counted(struct control_client *client)
{
    if (client->candidates != NULL && answer_candidates(client, client->candidates))
        control_candidates_forget(client);
}
