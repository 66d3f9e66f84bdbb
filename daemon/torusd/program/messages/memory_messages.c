#include "daemon/torusd/program/messages/memory_messages.h"

#include <stdio.h>
#include <unistd.h>

#include "daemon/torusd/program/connection/ending.h"
#include "daemon/torusd/program/connection/send.h"
#include "daemon/torusd/program/connection/tidying.h"
#include "daemon/torusd/program/shared/memories.h"
#include "daemon/torusd/program/shared/memory.h"

static int refuse_memory(struct program *p, uint32_t number, const struct error *e)
{
    struct program_message refused = program_message_of(PROGRAM_MEMORY_REFUSED, number);

    refused.code = (uint32_t)e->code;
    (void)snprintf(refused.text, sizeof refused.text, "%s", e->text);
    return program_answer(p, &refused, NULL, 0);
}

int program_take_memory(struct program *p, const struct program_message *m)
{
    struct program_message file;
    uint32_t number = 1;
    struct error e;

    if (p->file >= 0)
        return program_break_rules(p, "has requested two memories at the same time");
    while (number <= PROGRAM_MEMORIES && p->memory[number - 1] != NULL)
        number++;
    if (number > PROGRAM_MEMORIES) {
        (void)error_set(&e, ERROR_BUSY,
                        "a program shares at most %u memories with the daemon: free some, or "
                        "allocate larger ones",
                        PROGRAM_MEMORIES);
        return refuse_memory(p, 0, &e);
    }
    if (program_count_memory(p, m->size, &e) != 0)
        return refuse_memory(p, number, &e);
    if ((p->file = memory_file(m->size, &e)) < 0) {
        program_uncount_memory(p, m->size);
        return refuse_memory(p, number, &e);
    }
    p->file_number = number;
    p->file_size = m->size;
    p->file_used = p->file_late = 0;
    p->file_used_at = uv_now(p->programs->set.loop);
    programs_watch(p->programs);
    file = program_message_of(PROGRAM_FILE, number);
    return program_answer(p, &file, &p->file, 1);
}

int program_take_ready(struct program *p, const struct program_message *m)
{
    struct program_message taken = program_message_of(PROGRAM_MEMORY_TAKEN, m->number);
    struct program_memory *memory;
    struct error e;

    if (p->file < 0 && m->number != 0 && m->number == p->file_late) {
        p->file_late = 0;
        (void)error_set(&e, ERROR_TIMEOUT,
                        "%llu bytes of shared memory were requested, but for %u s not allocated: "
                        "the daemon has released them; allocate them again",
                        (unsigned long long)p->file_size, MEMORY_UNUSED_MS / 1000);
        return refuse_memory(p, m->number, &e);
    }
    if (p->file < 0 || m->number != p->file_number)
        return program_break_rules(p, "has allocated a memory that it has not requested");
    memory = memory_map(p->file, p->programs->set.loop, &e);
    if (memory == NULL) {
        program_drop_memory(p);
        return refuse_memory(p, m->number, &e);
    }
    (void)close(p->file);
    p->file = -1;
    p->memory[m->number - 1] = memory;
    return program_answer(p, &taken, NULL, 0);
}

int program_take_free(struct program *p, const struct program_message *m)
{
    struct program_memory *memory;

    if (p->file >= 0 && m->number == p->file_number) {
        program_drop_memory(p);
        return 0;
    }
    if (p->file < 0 && m->number != 0 && m->number == p->file_late) {
        p->file_late = 0;
        return 0;
    }
    memory = m->number > 0 && m->number <= PROGRAM_MEMORIES ? p->memory[m->number - 1] : NULL;
    if (memory == NULL)
        return program_break_rules(p, "has freed a memory that it does not have");
    p->memory[m->number - 1] = NULL;
    program_uncount_memory(p, memory->size);
    program_memory_unref(memory);
    return 0;
}
