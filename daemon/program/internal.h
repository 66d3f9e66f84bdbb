/* Shared by the files of this folder only. */
#ifndef TORUSD_PROGRAM_INTERNAL_H
#define TORUSD_PROGRAM_INTERNAL_H

#include "daemon/net/local/local.h"
#include "daemon/net/sockets/listener.h"
#include "daemon/program/memory.h"
#include "daemon/program/server.h"
#include "daemon/schedule/torus.h"
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

/* program.c */
/* A connection, for which it takes the descriptor over. Returns it, or NULL if there is no memory. */
struct program *program_new(struct programs *all, int fd);
/* It breaks the rules, or is turned away: is told why, and closed. */
void program_refuse(struct program *p, const struct error *why);
void program_close(struct program *p);
/* It has ended without leaving. */
void program_die(struct program *p);

/* messages.c */
/* Takes messages, but not all in one turn. Returns false when there are no more. */
bool program_receive(struct program *p);
/* Takes back memory that it has requested and does not allocate. Returns whether some is still awaited. */
bool program_tidy_memory(struct program *p, uint64_t now);
/* Gives back a memory of so many bytes, in the account only. */
void program_uncount_memory(struct program *p, uint64_t size);
/* With a descriptor each, if there are any. Returns 0, or -1 if the program does not read. To one that
 * is gone nothing is sent: that it has died, or left, is what is received next. */
int program_send(struct program *p, const struct program_message *message, const int *fds,
                 unsigned count);

/* calls.c */
/* Makes the page, the doorbell and the notices. Returns 0, or -1 with *e. */
int program_share(struct program *p, struct error *e);
/* Closes and unmaps all that. */
void program_unshare(struct program *p);
/* The doorbell has rung: takes its calls. */
void program_look(struct program *p);
void program_call_ended(struct program *p, uint32_t number, const struct error *e);
void program_call_late(struct program *p, uint32_t number, const char *whom);
/* The group has failed: so have all calls under way. */
void program_fail(struct program *p, const struct error *e);
void program_notify(struct program *p);

/* telling.c */
/* A program wants to be told whom it waits for. */
void programs_tell(struct programs *all);

/* server.c */
/* Looks every second from now on whether there is something to be taken back. */
void programs_watch(struct programs *all);
/* Whether its process has not too many open yet: 0, or -1 with *e. */
int programs_may_open(const struct program *p, struct error *e);
void programs_forget(struct program *p);

#endif
