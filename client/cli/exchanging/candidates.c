#include "client/cli/exchanging/candidates.h"

#include <string.h>
#include <time.h>

#include "client/cli/algorithms/link_rates.h"
#include "client/cli/terminal/json.h"
#include "daemon/lib/schedule/detour/detour.h"

const struct field calibration_fields[] = {
    {"costs", "source", FORMAT_PLAIN},
    {"measured", "measured_at", FORMAT_PLAIN},
    {"a step", "step_seconds", FORMAT_SECONDS},
    {"a message", "message_seconds", FORMAT_SECONDS},
    {"a link, in blocks", "bits_per_second", FORMAT_RATE},
    {0},
};
static const struct section sections[] = {
    TABLE("candidates", FIELD("algorithm"), FIELD("mode"), FIELD("segments"),
          FIELD("piece", "piece_bytes", FORMAT_BYTES), FIELD("steps"), FIELD("messages"),
          FIELD("blocks"), FIELD("predicted", "seconds", FORMAT_SECONDS)),
    {.layout = LAYOUT_RECORD, .key = "costs", .fields = calibration_fields},
    RECORD("link_rates", RATES_FIELDS, FIELD("lower bound", "bound_seconds", FORMAT_SECONDS),
           EQUAL_BOUND_FIELD),
};
const struct view candidates_view = {sections, sizeof sections / sizeof sections[0]};

static json_t *moment(uint64_t seconds)
{
    time_t at = (time_t)seconds;
    struct tm utc;
    char text[64];

    if (seconds == 0 || seconds > INT64_MAX || gmtime_r(&at, &utc) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &utc) == 0)
        return json_null();
    return json_string(text);
}

json_t *calibration_value(const struct torus_calibration *c)
{
    json_t *o = json_object();
    int r = 0;

    r |= json_object_set_new(o, "source", json_string(c->measured_at > 0 ? "measured" : "default"));
    r |= json_object_set_new(o, "measured_at", moment(c->measured_at));
    r |= json_set_members(
        o, c->costs, MEMBERS(REAL(torus_costs, step_seconds), REAL(torus_costs, message_seconds)));
    r |= json_object_set_new(o, "bits_per_second", json_real(c->costs->bytes_per_second * 8));
    return json_checked(o, r);
}

static JSON_MEMBERS(candidate_members, MEMBER(torus_candidate, algorithm),
                    NAMED(torus_candidate, mode, torus_mode_name),
                    MEMBER(torus_candidate, segments), MEMBER(torus_candidate, piece_bytes),
                    MEMBER(torus_candidate, steps), MEMBER(torus_candidate, messages),
                    MEMBER(torus_candidate, blocks), REAL(torus_candidate, seconds));

json_t *candidates_value(const struct torus_candidates *c)
{
    json_t *o = json_of(c, MEMBERS(MEMBER(torus_candidates, block_bytes)));
    int r = json_object_set_new(o, "candidates",
                                json_list_of(c->candidate, c->count, candidate_members)) |
            json_object_set_new(o, "costs", calibration_value(c->calibration));

    if (c->link_rates != NULL) {
        json_t *links = json_object();
        r |= link_rates_set_bounds(links, c->link_rates, (double)c->block_bytes);
        r |= json_object_set_new(o, "link_rates", links);
    }
    return json_checked(o, r);
}

/* Whether the routes of a result are those that the candidates name `stream`: found for the same rates. */
static bool is_found(const struct torus_candidates *candidates, const struct torus_result *result)
{
    return strcmp(result->algorithm, DETOUR_NAME) == 0 && result->without[0] == '\0' &&
           result->missing_count == 0 && result->link_rates != NULL &&
           candidates->link_rates != NULL &&
           strcmp(result->link_rates->rates, candidates->link_rates->rates) == 0;
}

double candidates_seconds(const struct torus_candidates *candidates,
                          const struct torus_result *result)
{
    const char *algorithm = is_found(candidates, result) ? FOUND_NAME : result->algorithm;
    const enum torus_mode mode = result->mode;

    for (size_t i = 0; i < candidates->count; i++)
        if (strcmp(candidates->candidate[i]->algorithm, algorithm) == 0 &&
            candidates->candidate[i]->mode == mode)
            return candidates->candidate[i]->seconds;
    return -1;
}
