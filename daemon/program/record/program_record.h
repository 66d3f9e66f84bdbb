/* What the daemon knows of the programs that are connected. */
#ifndef TORUSD_PROGRAM_RECORD_PROGRAM_RECORD_H
#define TORUSD_PROGRAM_RECORD_PROGRAM_RECORD_H

#include "daemon/net/local/local.h"
#include "daemon/net/sockets/listener.h"
#include "daemon/program/record/programs_setup.h"
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
    struct programs *all;
    struct program *next;
    enum program_state state;
    pid_t process;
    uint32_t user;
    bool counted; /* it has a place of that user */
    uint64_t connected_at;

    uv_poll_t socket, process_end;
    unsigned handles; /* open */
    int fd;
    int process_fd; /* or -1 */
    int doorbell;   /* -1 until OPENING, as the next */
    int page_file;  /* -1 again once the program has it */
    int notices[2]; /* this end, and the program's: -1 once it has it */
    int file;       /* of a memory that the program is allocating, or -1 */
    uint32_t file_number;
    uint64_t file_size;
    uint64_t file_used_at,
        file_used;      /* when the program has last been seen to allocate it, and how much was */
    uint32_t file_late; /* number of the last one that was taken back; 0: none */

    struct group *group; /* OPENING and MEMBER */
    char name[GROUP_NAME_SIZE];
    struct error failure; /* FAILED */
    bool tells;           /* OPENING: it wants to know whom it waits for, */
    struct {
        bool said;
        uint32_t count;
        char list[100];
    } told; /* and has been told this */

    struct program_memory *page_memory;
    struct program_page *page;
    uint32_t taken;     /* calls, of those that it has submitted */
    uint64_t under_way; /* bit k % PROGRAM_CALLS */
    uint32_t ended;
    bool wants_notices;

    struct program_memory *memory[PROGRAM_MEMORIES]; /* number - 1 */
    uint64_t memory_size;                            /* of all of them, and `file` */
};

struct programs {
    struct programs_setup set;
    char path[108];
    struct listener listener;
    struct local_name name;
    struct reserve reserve; /* a descriptor to turn a program away with */
    uv_poll_t doorbells;    /* of all programs: an epoll descriptor */
    int doorbells_fd;
    uv_timer_t tidying; /* strangers that do not say what they want */
    uv_timer_t telling; /* programs whom they wait for */
    struct program *first;
    unsigned handles; /* open */
    bool closing;
    uint64_t *counts; /* room for the arrays of one call, four for each member */
    uint64_t counts_room;
};

/* A connection has been closed for good: it is not in the list any more. Freed by the caller. */
void programs_forget(struct program *p);
/* Frees everything, once it is closing and nothing is open any more. */
void programs_release(struct programs *all);
/* Connections of this process (0: unknown, none) in that state or a later one, without those that are gone. */
unsigned programs_of_process(const struct programs *all, pid_t process, enum program_state least);

#endif
