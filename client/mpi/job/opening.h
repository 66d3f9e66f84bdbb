/* In MPI_Init the program finds out whether the torus can serve it, and if so opens the job's
 * group (job.h). */
#ifndef TORUSD_MPI_OPENING_H
#define TORUSD_MPI_OPENING_H

/* Called once, when MPI_Init has ended. Fills in `job`, and sets `job_is_served` until MPI_Finalize begins. If the
 * torus cannot serve the program, one of its processes says why on standard error. */
void opening_begin(void);

#endif
