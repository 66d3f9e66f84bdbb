/* The connection of a program to its daemon for one group: messages, the page of calls, shared memory
 * (proto/program.h). */
#pragma once

#include <torus/group.h>

#include <sys/types.h>

#include "proto/program.h"

struct program_link {
    int fd, doorbell, notices; /* -1: not open */
    pid_t process;             /* the process that has opened the link */
    bool asked;                /* the daemon may know the program's group */
    char *path;
    struct program_page *page;
    uint32_t submitted;       /* number of calls submitted */
    uint32_t acknowledged;    /* number of ended calls whose end the program has learned */
    bool wants_notices;       /* the program uses link_notices() */
    struct torus_error error; /* why the link cannot be used any more, unless its code is 0 */
};
