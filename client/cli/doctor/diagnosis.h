/* Asks all nodes, and lets the checks judge the answers. */
#pragma once

#include "client/cli/doctor/doctor.h"
#include "client/cli/survey/all_nodes.h"

struct diagnosis {
    struct doctor doctor;
    struct all_nodes all;
    struct torus_survey *hosts; /* TORUS_SURVEY_HOST; NULL: the daemon could not be asked */
    struct doctor_node *node;
    char *facts;         /* of this machine, by this program; NULL: not gathered */
    char no_daemon[400]; /* why no daemon could be asked; "": one was */
};

/* Asks the daemon at cli->socket, or judges this machine alone if that is not possible. Returns EXIT_DONE, or another
 * exit code after printing the reason: there is no memory. The caller gives *d to diagnosis_free() in any case. */
int diagnosis_make(struct cli *cli, struct diagnosis *d);
void diagnosis_free(struct diagnosis *d);

/* The name of the machine that a finding is about; "" if it is not about one. */
const char *diagnosis_host(const struct diagnosis *d, const struct finding *f);

/* --- this machine, where no daemon can be asked --- */

#define CONFIGURATION "/etc/torusd/torusd.ini"
#define CLUSTER_FILE "/etc/torusd/cluster.ini"
#define UNIT "torusd.service"
