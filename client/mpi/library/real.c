#include "client/mpi/library/real.h"

#include <ctype.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPEN_MPI
#define LIBRARY_NAME "libmpi.so"
#define FOREIGN_SYMBOL "MPIR_F08_MPI_BOTTOM"
#else
#define LIBRARY_NAME "libmpi" /* libmpich.so.12, libmpi.so.12 */
#define FOREIGN_SYMBOL "ompi_mpi_comm_world"
#endif

struct real real;

struct real_handles mpi;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The MPI library, if it was loaded by dlopen() with RTLD_LOCAL; otherwise NULL. */
static void *local_library;

/* ---- Finding --------------------------------------------------------------------------------- */

static int find_local(struct dl_phdr_info *info, size_t size, void *data)
{
    const char *name = strrchr(info->dlpi_name, '/');

    (void)size;
    (void)data;
    if (name != NULL && strncmp(name + 1, LIBRARY_NAME, strlen(LIBRARY_NAME)) == 0)
        local_library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    return local_library != NULL;
}

/* Finds a symbol of the MPI library. For functions, `where` is RTLD_NEXT, because the preload defines the same names.
 * For objects it is RTLD_DEFAULT, because a copy relocation may have put the object into the program itself. */
static void *find_symbol(void *where, const char *name)
{
    void *found = dlsym(where, name);

    if (found != NULL)
        return found;
    if (local_library == NULL)
        (void)dl_iterate_phdr(find_local, NULL);
    return local_library != NULL ? dlsym(local_library, name) : NULL;
}

static void find_function(const char *name, void *to)
{
    void *found = find_symbol(RTLD_NEXT, name);

    memcpy(to, &found, sizeof found);
}

static void find_functions(void)
{
#define ONE(name) find_function("PMPI_" #name, &real.name);
#define X(name, kind) ONE(name) LARGE_##kind(ONE, name)
    OPERATIONS(X)
    REAL_LARGE(ONE)
    REAL_OTHERS(ONE)
#undef X
#undef ONE
#define X(name, kind) find_function("PMPI_" #name, &real.name);
    NONBLOCKING_PLAIN(X)
    NONBLOCKING(X)
    UNSERVED_NONBLOCKING(X)
#undef X
#define X(name, shape) find_function("P" ABI_TEXT(ABI_PERSISTENT(name)), &real.name);
    UNSERVED_PERSISTENT_PLAIN(X)
    UNSERVED_PERSISTENT(X)
#undef X
#if ABI_LARGE_COUNTS
#define X(name, kind) find_function("PMPI_" #name "_c", &real.name##_c);
    NONBLOCKING(X)
    UNSERVED_NONBLOCKING(X)
#undef X
#define X(name, shape) find_function("P" ABI_TEXT(ABI_PERSISTENT(name##_c)), &real.name##_c);
    UNSERVED_PERSISTENT(X)
#undef X
#endif
}

static void find_all(void)
{
    if (find_symbol(RTLD_DEFAULT, FOREIGN_SYMBOL) != NULL) {
        (void)fputs(ABI_PRELOAD ": this program does not use " ABI_NAME
                                ", but another MPI library: "
                                "use the preload for that library\n",
                    stderr);
        exit(EXIT_FAILURE);
    }
    find_functions();
    if (real.Init == NULL) {
        (void)fprintf(stderr, ABI_PRELOAD ": cannot find the library of " ABI_NAME
                                          " that this program calls\n");
        abort();
    }
    mpi = (struct real_handles){
        .world = ABI_HANDLE(MPI_COMM_WORLD),
        .self = ABI_HANDLE(MPI_COMM_SELF),
        .null = ABI_HANDLE(MPI_COMM_NULL),
        .request_null = ABI_HANDLE(MPI_REQUEST_NULL),
        .byte = ABI_HANDLE(MPI_BYTE),
        .packed = ABI_HANDLE(MPI_PACKED),
        .type_null = ABI_HANDLE(MPI_DATATYPE_NULL),
        .integer = ABI_HANDLE(MPI_INT),
        .uint64 = ABI_HANDLE(MPI_UINT64_T),
        .op_null = ABI_HANDLE(MPI_OP_NULL),
        .max = ABI_HANDLE(MPI_MAX),
        .min = ABI_HANDLE(MPI_MIN),
        .sum = ABI_HANDLE(MPI_SUM),
        .errors_return = ABI_HANDLE(MPI_ERRORS_RETURN),
        .info_null = ABI_HANDLE(MPI_INFO_NULL),
    };
}

void real_find(void)
{
    (void)pthread_once(&once, find_all);
}

void *real_object(const char *expansion)
{
    const char *at = strchr(expansion, '&');
    char name[64];
    size_t length = 0;

    if (at == NULL)
        return NULL;
    while (*at != '\0' && !isalpha((unsigned char)*at) && *at != '_')
        at++;
    while (length + 1 < sizeof name && (isalnum((unsigned char)at[length]) || at[length] == '_'))
        length++;
    memcpy(name, at, length);
    name[length] = '\0';
    return find_symbol(RTLD_DEFAULT, name);
}

int attribute_stays(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm;
    (void)keyval;
    (void)extra;
    (void)in;
    (void)out;
    *flag = 0;
    return MPI_SUCCESS;
}

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
