#include "client/cli/exchanging/candidates.h"

#include <string.h>
#include <time.h>

#include "client/cli/terminal/json.h"

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
    r |= json_object_set_new(o, "step_seconds", json_real(c->costs->step_seconds));
    r |= json_object_set_new(o, "message_seconds", json_real(c->costs->message_seconds));
    r |= json_object_set_new(o, "bits_per_second", json_real(c->costs->bytes_per_second * 8));
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

json_t *candidates_value(const struct torus_candidates *candidates)
{
    json_t *o = json_object(), *list = json_array();
    int r = 0;

    for (size_t i = 0; i < candidates->count; i++) {
        const struct torus_candidate *c = candidates->candidate[i];
        json_t *one = json_object();
        r |= json_object_set_new(one, "algorithm", json_string(c->algorithm));
        r |= json_object_set_new(one, "mode", json_string(torus_mode_name(c->mode)));
        r |= json_object_set_new(one, "segments", json_integer(c->segments));
        r |= json_object_set_new(one, "piece_bytes", json_count(c->piece_bytes));
        r |= json_object_set_new(one, "steps", json_number(c->steps));
        r |= json_object_set_new(one, "messages", json_number(c->messages));
        r |= json_object_set_new(one, "blocks", json_number(c->blocks));
        r |= json_object_set_new(one, "seconds", json_real(c->seconds));
        r |= json_array_append_new(list, one);
    }
    r |= json_object_set_new(o, "block_bytes", json_count(candidates->block_bytes));
    r |= json_object_set_new(o, "candidates", list);
    r |= json_object_set_new(o, "costs", calibration_value(candidates->calibration));
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

double candidates_seconds(const struct torus_candidates *candidates, const char *algorithm,
                          enum torus_mode mode)
{
    for (size_t i = 0; i < candidates->count; i++)
        if (strcmp(candidates->candidate[i]->algorithm, algorithm) == 0 &&
            candidates->candidate[i]->mode == mode)
            return candidates->candidate[i]->seconds;
    return -1;
}
