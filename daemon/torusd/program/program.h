/* One connection.
 *
 * Happy path: accepted -> OPEN -> group_open() -> opened() -> calls by the page -> LEAVE.
 *
 * Failure modes: a program that says nothing is closed after a while (messages.c). If it dies, its group is
 * abandoned. If it breaks the rules, its group is abandoned too, and the program is told why. If its group
 * fails, the program is told that for every call. */
#pragma once

#include "daemon/lib/net/sockets.h"
#include "daemon/lib/net/unix_socket.h"
#include "daemon/torusd/program/server.h"
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

    bool *listed;        /* by node: named by MEMBERS; NULL: no such message has arrived */
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
    uint32_t taken;     /* the number up to which the daemon has taken the calls submitted */
    uint64_t under_way; /* bit k % PROGRAM_CALLS is set while call k is under way */
    uint32_t number[PROGRAM_CALLS]; /* by slot: k of that call */
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

/* Frees everything, if it is closing and no handle is open. */
void programs_release(struct programs *programs);
/* Returns how many connections a process (0: unknown, returns none) has in that state or a later one, except
 * GONE. */
unsigned programs_of_process(const struct programs *programs, pid_t process,
                             enum program_state least);

/* --- shared.c --- */

/* Memory that the daemon shares with a program: a memfd of a fixed size, made here. The program allocates all
 * of it before it is mapped here, so that no access can fail for lack of memory. */

/* Makes a memfd of that size, which cannot be changed any more. Returns its descriptor, or -1 with *e. */
int memory_file(uint64_t size, struct error *e);
/* Maps all of such a file, which the caller may close afterwards. Returns the memory with one reference, or
 * NULL with *e if parts of it are not allocated or there is no room. Large memory is unmapped in a worker
 * thread, and the loop must run until that is done. That takes about 0.1 s for 1 GiB, and longer if the program
 * is gone, because its memory is freed then. */
struct program_memory *memory_map(int fd, uv_loop_t *loop, struct error *e);
/* Returns how many bytes all programs of a machine may have allocated together. */
uint64_t memory_most(void);
/* Copies from memory that a program may change meanwhile. Check the copy only. */
void memory_copy_once(void *to, const void *from, size_t size);

#define MEMORY_UNUSED_MS 10000u /* how long a program may make no progress in allocating memory */

/* Counts a memory of `size` bytes. Returns 0, or -1 with *e if its user has too much. */
int program_count_memory(struct program *p, uint64_t size, struct error *e);
/* Uncounts a memory of `size` bytes; does not free it. */
void program_uncount_memory(struct program *p, uint64_t size);
/* Closes and uncounts the memory that the program is allocating. */
void program_drop_memory(struct program *p);
/* Releases memory that was requested and is not allocated in time. `now`: milliseconds of the loop. Returns
 * whether the daemon still waits for an allocation. */
bool program_tidy_memory(struct program *p, uint64_t now);

/* Memory and descriptors that a program shares with the daemon: the page with calls and their outcomes, the
 * doorbell and the notices. */

/* Makes the page, the doorbell and the notices. Returns 0, or -1 with *e. */
int program_share(struct program *p, struct error *e);
/* Closes and unmaps the page, the doorbell, the notices, and the program's memories. */
void program_unshare(struct program *p);
/* Tells a program that a call has ended; e is NULL if it has succeeded. */
void program_call_ended(struct program *p, uint32_t number, const struct error *e);
/* Tells a program which members a call waits for, as text. */
void program_call_late(struct program *p, uint32_t number, const char *whom);
/* Fails all calls under way, because the group has failed. */
void program_fail(struct program *p, const struct error *e);
/* Makes the descriptor that the program polls readable. */
void program_notify(struct program *p);

/* --- connection.c --- */

/* Returns a message that has only a kind and a number. */
struct program_message program_message_of(enum program_kind kind, uint32_t number);
/* Sends a message with these descriptors, if there are any. Returns 0, or -1 if the program does not read.
 * Sends nothing to a program that is gone: the next message received from it says that it died or left. */
int program_send(struct program *p, const struct program_message *message, const int *fds,
                 unsigned count);

/* Closes a connection. If the program still has a group, it leaves it. */
void program_close(struct program *p);
/* Ends the connection of a program that died without leaving. */
void program_die(struct program *p);
/* Tells a program why it is refused, and closes its connection. */
void program_refuse(struct program *p, const struct error *why);
/* Refuses a program that has broken the rules; `what` follows "the program of node 3". Returns -1. */
int program_break_rules(struct program *p, const char *what);
/* Sends like program_send(), and refuses a program that does not read. Returns 0, or -1: the program is gone. */
int program_answer(struct program *p, const struct program_message *message, const int *fds,
                   unsigned count);

/* --- messages.c, calls.c --- */

/* Creates the connection, and takes the descriptor over. Returns NULL if there is no memory. */
struct program *program_new(struct programs *programs, int fd);
/* Starts to check time limits every second: for opening a group, and for allocating requested memory. */
void programs_watch(struct programs *programs);

/* Checks that the program's process may have one more connection. Returns 0, or -1 with *e. */
int programs_may_connect(const struct program *p, struct error *e);

/* Takes the calls that a program has made, because its doorbell has rung. */
void program_take_calls(struct program *p);
