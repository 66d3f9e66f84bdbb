/* The name that a paper gives to a step of its algorithm: "Phase 2, stage 1"; and why it is there. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

#define PHASE_NAME_SIZE 160
#define PHASE_REASON_SIZE 320

/* Writes the name of a step, counted from 0, to `text`, which has room for PHASE_NAME_SIZE bytes; "" if the paper of this
 * algorithm names none, or if the torus is padded (daemon/lib/schedule/algorithms/rings.h), so that steps do not lie in one phase. */
void phase_name(const struct algorithm *a, const struct torus *t, uint32_t step, char *text);

/* Writes why blocks move as they do in a step, in a sentence or two, to `text`, which has room for PHASE_REASON_SIZE bytes;
 * "" if that is not known, as for schedules from files. */
void phase_reason(const struct algorithm *a, const struct torus *t, uint32_t step, char *text);
