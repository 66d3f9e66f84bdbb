/* The connected programs. */
#pragma once

#include "daemon/lib/net/local.h"
#include "daemon/lib/net/sockets.h"
#include "daemon/torusd/program/record/programs_setup.h"
#include "proto/program.h"

/*            OPEN            opened()           ended()
 *  STRANGER -------> OPENING ----------> MEMBER ---------> FAILED
 *      |                |                   |                 |
 *      +----------------+--- LEAVE, rules --+-----------------+--> GONE, until its handles are closed
 *                          broken, death
 */
enum program_state {
    PROGRAM_STRANGER,
    PROGRAM_OPENING,
    PROGRAM_MEMBER,
    PROGRAM_FAILED,
    PROGRAM_GONE,
};

struct program {
    struct programs *programs;
    struct program *next;
    enum program_state state;
    uint32_t version; /* of the program's protocol, as its last message has it */
    pid_t process;
    uint32_t user;
    bool counted; /* the connection counts for its user */
    uint64_t connected_at;

    uv_poll_t socket, process_end;
    unsigned handles; /* number of open handles */
    int fd;
    int process_fd; /* -1: none */
    int doorbell;   /* -1 before OPENING, like the two descriptors below */
    int page_file;  /* -1 again after it was sent to the program */
    int notices[2]; /* the daemon's end, and the program's (-1 after it was sent) */
    int file;       /* of the memory that the program is allocating, or -1 */
    uint32_t file_number;
    uint64_t file_size;
    /* When `file` was last seen to grow, in milliseconds of the loop, and its st_blocks then. */
    uint64_t file_used_at, file_used;
    uint32_t file_late; /* number of the memory that was not allocated in time; 0: none */

    struct group *group; /* only if OPENING or MEMBER */
    char name[GROUP_NAME_SIZE];
    struct error failure; /* only if FAILED */
    bool tells;           /* OPENING: the program wants to know which nodes it waits for */
    struct {
        bool said;
        uint32_t count;
        char list[100];
    } told; /* what the program was told last */

    struct program_memory *page_memory;
    struct program_page *page;
    uint32_t taken;     /* calls that the daemon has taken, of those submitted */
    uint64_t under_way; /* bit k % PROGRAM_CALLS is set while call k is under way */
    uint32_t ended;
    bool wants_notices;

    struct program_memory *memory[PROGRAM_MEMORIES]; /* index: number - 1 */
    uint64_t memory_size;                            /* bytes of all memories, and of `file` */
};

struct programs {
    struct programs_setup set;
    char path[108];
    struct listener listener;
    struct local_name name;
    /* A spare descriptor, to accept and turn away a program when none is left. */
    struct reserve reserve;
    uv_poll_t doorbells; /* of all programs: an epoll descriptor */
    int doorbells_fd;
    uv_timer_t tidying; /* checks the time limits of programs */
    uv_timer_t telling; /* tells programs which nodes they wait for */
    struct program *first;
    unsigned handles; /* number of open handles */
    bool closing;
    uint64_t *counts; /* room for the arrays of one call, four for each member */
    uint64_t counts_room;
};

/* Removes a connection from the list after all its handles were closed. The caller frees it. */
void programs_forget(struct program *p);
/* Frees everything, if it is closing and no handle is open. */
void programs_release(struct programs *programs);
/* Returns how many connections a process (0: unknown, returns none) has in that state or a later one, except
 * GONE. */
unsigned programs_of_process(const struct programs *programs, pid_t process,
                             enum program_state least);
