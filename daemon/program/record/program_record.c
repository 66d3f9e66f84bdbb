#include "daemon/program/record/program_record.h"

#include <stdlib.h>
#include <unistd.h>

void programs_release(struct programs *all)
{
    if (!all->closing || all->handles > 0 || all->first != NULL)
        return;
    (void)close(all->doorbells_fd);
    reserve_close(&all->reserve);
    free(all->counts);
    free(all);
}

void programs_forget(struct program *p)
{
    struct programs *all = p->all;

    for (struct program **at = &all->first; *at != NULL; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            break;
        }
    reserve_fill(&all->reserve, all->closing ? 0 : 1);
    programs_release(all);
}

/* The process is 0 if the daemon cannot see it, in another namespace. */
unsigned programs_of_process(const struct programs *all, pid_t process, enum program_state least)
{
    unsigned count = 0;

    for (const struct program *p = all->first; p != NULL; p = p->next)
        count +=
            process > 0 && p->process == process && p->state >= least && p->state != PROGRAM_GONE;
    return count;
}
