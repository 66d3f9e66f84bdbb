/* A program's connection to its daemon, for one group: messages, the page of calls, shared memory
 * (proto/program.h). */
#ifndef TORUSD_CLIENT_LINK_H
#define TORUSD_CLIENT_LINK_H

#include <torus/group.h>

#include <sys/types.h>

#include "proto/program.h"

struct program_link {
    int fd, doorbell, notices; /* -1: not open */
    pid_t process;             /* the process that has opened it */
    char *path;
    struct program_page *page;
    uint32_t submitted;       /* calls that were submitted */
    uint32_t told;            /* ended calls that the caller knows of */
    bool wants_notices;       /* whether the caller wants notices of the other ended calls */
    struct torus_error error; /* why the link cannot be used any more, unless its code is 0 */
};

#endif
