#include "daemon/torusd/planning/calibration.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* No link, processor or clock exceeds these. */
#define STEP_MOST 60.0
#define MESSAGE_MOST 60.0
#define RATE_LEAST 1.0
#define RATE_MOST 1e14

static bool is_within_bounds(double value, double least, double most)
{
    return isfinite(value) && value >= least && value <= most;
}

int calibration_check_costs(const struct predict_costs *costs, struct error *e)
{
    if (!is_within_bounds(costs->step, 0, STEP_MOST) ||
        !is_within_bounds(costs->message, 0, MESSAGE_MOST) ||
        !is_within_bounds(costs->bytes_per_second, RATE_LEAST, RATE_MOST))
        return error_set(e, ERROR_USAGE,
                         "costs out of range: %g s per step, %g s per message, %g bytes per second",
                         costs->step, costs->message, costs->bytes_per_second);
    return 0;
}

int calibration_check(const struct calibration *c, struct error *e)
{
    const struct predict_costs *costs = &c->costs;

    if (c->version == 0 || c->id == 0)
        return error_set(e, ERROR_PROTOCOL, "the calibration has no version or no id");
    if (c->measured_at > CALIBRATION_TIME_MOST)
        return error_set(e, ERROR_PROTOCOL,
                         "the calibration was measured at %" PRIu64
                         " s after 1970, which is impossible",
                         c->measured_at);
    if (c->measured_at == 0 &&
        (costs->step != 0 || costs->message != 0 || costs->bytes_per_second != 0))
        return error_set(e, ERROR_PROTOCOL,
                         "the calibration has costs, but no time of their measurement");
    if (c->measured_at != 0 && calibration_check_costs(costs, e) != 0) {
        e->code = ERROR_PROTOCOL;
        return -1;
    }
    return 0;
}

static int compare_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

static bool names_id(const struct calibration *c, uint64_t id)
{
    for (unsigned i = 0; i < CALIBRATION_REPLACED && c->replaced[i] != 0; i++)
        if (c->replaced[i] == id)
            return true;
    return false;
}

/* Does nothing if the id is named already, or if there is no room. */
void calibration_replaces(struct calibration *c, uint64_t id)
{
    if (id == 0 || names_id(c, id))
        return;
    for (unsigned i = 0; i < CALIBRATION_REPLACED; i++)
        if (c->replaced[i] == 0) {
            c->replaced[i] = id;
            return;
        }
}

static void name_first(struct calibration *c, uint64_t id)
{
    unsigned i = 0;

    while (i < CALIBRATION_REPLACED - 1 && c->replaced[i] != 0 && c->replaced[i] != id)
        i++;
    memmove(c->replaced + 1, c->replaced, i * sizeof c->replaced[0]);
    c->replaced[0] = id;
}

/* Orders two calibrations if neither replaces the other. */
static int compare_calibrations(const struct calibration *a, const struct calibration *b)
{
    int result;

    if (a->version != b->version)
        return a->version > b->version ? 1 : -1;
    if (a->measured_at != b->measured_at)
        return a->measured_at > b->measured_at ? 1 : -1;
    result = compare_numbers(a->costs.step, b->costs.step);
    if (result == 0)
        result = compare_numbers(a->costs.message, b->costs.message);
    if (result == 0)
        result = compare_numbers(a->costs.bytes_per_second, b->costs.bytes_per_second);
    if (result == 0)
        result = (a->id > b->id) - (a->id < b->id);
    return result;
}

bool calibration_newer(const struct calibration *a, const struct calibration *b)
{
    bool a_replaces = names_id(a, b->id), b_replaces = names_id(b, a->id);

    return a_replaces != b_replaces ? a_replaces : compare_calibrations(a, b) > 0;
}

struct calibration calibration_after(const struct calibration *known, uint64_t id)
{
    struct calibration c = {.id = id};

    c.version = known->version < UINT32_MAX ? known->version + 1 : UINT32_MAX;
    calibration_replaces(&c, known->id);
    for (unsigned i = 0; i < CALIBRATION_REPLACED; i++)
        calibration_replaces(&c, known->replaced[i]);
    return c;
}

/* The ids that have decided a comparison here come first, so that invented ids cannot drive them out.
 * (Otherwise calibrations that travel in circles could replace each other for ever.) */
enum calibration_news calibration_merge(struct calibration *mine, const struct calibration *theirs)
{
    const struct calibration before = *mine;
    bool take = calibration_newer(theirs, mine), keep = calibration_newer(mine, theirs);

    if (take) {
        *mine = *theirs;
        memcpy(mine->replaced, before.replaced, sizeof mine->replaced);
    }
    for (unsigned i = 0; i < CALIBRATION_REPLACED; i++)
        calibration_replaces(mine, theirs->replaced[i]);
    if (take && names_id(theirs, before.id))
        name_first(mine, before.id);
    else if (keep && names_id(&before, theirs->id))
        name_first(mine, theirs->id);
    return take ? CALIBRATION_TAKEN : keep ? CALIBRATION_OUTDATED : CALIBRATION_SAME;
}

/* All digits of the numbers are written, so that reading gives the same numbers. */
size_t calibration_format(const struct calibration *c, char text[CALIBRATION_TEXT_SIZE])
{
    int length = snprintf(text, CALIBRATION_TEXT_SIZE,
                          "id %016" PRIx64 "\nversion %" PRIu32 "\nmeasured_at %" PRIu64 "\n"
                          "step_seconds %.17g\nmessage_seconds %.17g\nbytes_per_second %.17g\n"
                          "replaced",
                          c->id, c->version, c->measured_at, c->costs.step, c->costs.message,
                          c->costs.bytes_per_second);

    for (unsigned i = 0; i < CALIBRATION_REPLACED && c->replaced[i] != 0; i++)
        length += snprintf(text + length, CALIBRATION_TEXT_SIZE - (size_t)length, " %016" PRIx64,
                           c->replaced[i]);
    length += snprintf(text + length, CALIBRATION_TEXT_SIZE - (size_t)length, "\n");
    return (size_t)length;
}

int calibration_parse(const char *text, struct calibration *c)
{
    char again[CALIBRATION_TEXT_SIZE];
    int length = 0, more = 0;

    *c = (struct calibration){0};
    if (sscanf(text,
               "id %" SCNx64 " version %" SCNu32 " measured_at %" SCNu64 " step_seconds %lf"
               " message_seconds %lf bytes_per_second %lf replaced%n",
               &c->id, &c->version, &c->measured_at, &c->costs.step, &c->costs.message,
               &c->costs.bytes_per_second, &length) != 6 ||
        length == 0)
        return -1;
    for (unsigned i = 0; i < CALIBRATION_REPLACED; i++, length += more)
        if (sscanf(text + length, " %16" SCNx64 "%n", &c->replaced[i], &more) != 1)
            break;
    /* If the text has other or missing contents, writing the values again gives a different text. */
    (void)calibration_format(c, again);
    return strcmp(text, again) == 0 ? 0 : -1;
}
