#include "client/mpi/library/real.h"

#include <ctype.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
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
#define X(name) find_function("PMPI_" #name, &real.name);
    REAL_SERVED(X)
    REAL_LARGE(X)
    REAL_OTHERS(X)
#undef X
#define X(name, shape) find_function("PMPI_" #name, &real.name);
    UNSERVED_OF_MPI_PLAIN(X)
    UNSERVED_OF_MPI(X)
#undef X
#define X(name, shape) find_function("P" ABI_TEXT(ABI_PERSISTENT(name)), &real.name);
    UNSERVED_PERSISTENT_PLAIN(X)
    UNSERVED_PERSISTENT(X)
#undef X
#if ABI_LARGE_COUNTS
#define X(name, shape) find_function("PMPI_" #name "_c", &real.name##_c);
    UNSERVED_OF_MPI(X)
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
        .byte = ABI_HANDLE(MPI_BYTE),
        .packed = ABI_HANDLE(MPI_PACKED),
        .type_null = ABI_HANDLE(MPI_DATATYPE_NULL),
        .integer = ABI_HANDLE(MPI_INT),
        .uint64 = ABI_HANDLE(MPI_UINT64_T),
        .op_null = ABI_HANDLE(MPI_OP_NULL),
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
