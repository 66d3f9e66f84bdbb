/* Preloaded into a rank after the preload of its library: counts how often the preload looks for the record of a
 * communicator, and prints the number at the end. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static unsigned count;

/* A handle is an int or a pointer, which are passed alike. */
int PMPI_Comm_get_attr(uintptr_t comm, int keyval, void *value, int *found)
{
    int (*real)(uintptr_t, int, void *, int *);
    void *const at = dlsym(RTLD_NEXT, "PMPI_Comm_get_attr");

    memcpy(&real, &at, sizeof real);
    count++;
    return real(comm, keyval, value, found);
}

__attribute__((destructor)) static void print(void)
{
    (void)fprintf(stderr, "%u looks for records\n", count);
}
