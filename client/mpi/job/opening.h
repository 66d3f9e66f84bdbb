/* Decides in MPI_Init whether the torus can serve the program, and if so opens the group of the job (job.h). */
#pragma once

/* Called once, after the MPI_Init of the MPI library. Fills in `job`, and sets `job_is_served` until MPI_Finalize
 * begins. If the torus cannot serve the program, one of its processes prints the reason on standard error. */
void opening_begin(void);
