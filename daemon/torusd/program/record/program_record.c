#include "daemon/torusd/program/record/program_record.h"

#include <stdlib.h>
#include <unistd.h>

void programs_release(struct programs *programs)
{
    if (!programs->closing || programs->handles > 0 || programs->first != NULL)
        return;
    (void)close(programs->doorbells_fd);
    reserve_close(&programs->reserve);
    free(programs->counts);
    free(programs);
}

void programs_forget(struct program *p)
{
    struct programs *programs = p->programs;

    for (struct program **at = &programs->first; *at != NULL; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            break;
        }
    reserve_fill(&programs->reserve, programs->closing ? 0 : 1);
    programs_release(programs);
}

/* The process is 0 if the daemon cannot see it, in another namespace. */
unsigned programs_of_process(const struct programs *programs, pid_t process,
                             enum program_state least)
{
    unsigned count = 0;

    for (const struct program *p = programs->first; p != NULL; p = p->next)
        count +=
            process > 0 && p->process == process && p->state >= least && p->state != PROGRAM_GONE;
    return count;
}
