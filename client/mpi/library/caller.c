#include "client/mpi/library/caller.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "client/mpi/library/real.h"

#define REMEMBERED 32u /* how many calling objects are remembered; programs have one to three */

#ifdef OPEN_MPI
#define COMPONENT "mca_" /* mca_io_romio321.so */
#else
#define COMPONENT ""
#endif

/* An executable or a shared library, as it is mapped. */
struct object {
    uintptr_t begin, end;
    bool is_mpi;
};

static struct object objects[REMEMBERED];
static _Atomic unsigned remembered; /* entries below this index are complete and do not change */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static bool contains(const struct object *o, uintptr_t address)
{
    return address >= o->begin && address < o->end;
}

static const struct object *find_known(uintptr_t address)
{
    unsigned count = atomic_load_explicit(&remembered, memory_order_acquire);

    for (unsigned i = 0; i < count; i++)
        if (contains(&objects[i], address))
            return &objects[i];
    return NULL;
}

static bool is_mpi(const struct dl_phdr_info *info, const struct object *object)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash != NULL ? slash + 1 : info->dlpi_name;

    return contains(object, (uintptr_t)real.Barrier) ||
           (COMPONENT[0] != '\0' && strncmp(name, COMPONENT, strlen(COMPONENT)) == 0);
}

struct search {
    uintptr_t address;
    struct object found;
};

static int search_object(struct dl_phdr_info *info, size_t size, void *data)
{
    struct search *s = data;
    struct object o = {.begin = UINTPTR_MAX};

    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + header->p_vaddr;
        if (header->p_type != PT_LOAD)
            continue;
        o.begin = begin < o.begin ? begin : o.begin;
        o.end = begin + header->p_memsz > o.end ? begin + header->p_memsz : o.end;
    }
    if (!contains(&o, s->address))
        return 0;
    o.is_mpi = is_mpi(info, &o);
    s->found = o;
    return 1;
}

/* Finds the object that contains the address. Returns whether it belongs to MPI. Code that was generated at run time
 * is in no object, and does not belong to MPI. */
static bool find_object(uintptr_t address)
{
    struct search s = {.address = address};

    if (dl_iterate_phdr(search_object, &s) == 0)
        return false;
    (void)pthread_mutex_lock(&mutex);
    if (find_known(address) == NULL) {
        unsigned count = atomic_load_explicit(&remembered, memory_order_relaxed);
        if (count < REMEMBERED) {
            objects[count] = s.found;
            atomic_store_explicit(&remembered, count + 1, memory_order_release);
        }
    }
    (void)pthread_mutex_unlock(&mutex);
    return s.found.is_mpi;
}

bool caller_is_mpi(const void *return_address)
{
    const struct object *known = find_known((uintptr_t)return_address);

    return known != NULL ? known->is_mpi : find_object((uintptr_t)return_address);
}
