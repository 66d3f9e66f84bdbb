#include "client/mpi/job/known.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/mpi/job/job.h"
#include "client/mpi/library/real.h"

#define ROW (CHOICES_COUNT * CHOICE_CLASSES) /* entries of a form of communicators */

static struct choice_known *entries;

static char *table; /* at rank 0: the path of the table that is to be written; NULL: none */
static bool writes; /* the same on all ranks */

static size_t count_entries(void)
{
    return ((size_t)1 << job.dims) * 2 * ROW;
}

struct choice_known *known_at(uint32_t dimensions, bool several, enum mpi_operation operation,
                              unsigned size_class)
{
    return &entries[(dimensions * 2 + several) * ROW + operation * CHOICE_CLASSES + size_class];
}

/* ---- The file -------------------------------------------------------------------------------- */

/* The first lines name what the table holds for; then each line has the dimensions, "1" or "several" ranks on each
 * node, the operation, the number of a class of sizes, and the way. */
#define FIRST_LINE "table of torus-mpi, version 1\n"
#define LINE "dimensions %u, %15s ranks a node, %63[^,], size class %u: %15s"

static void name_of_job(char *name, size_t size)
{
    size_t used = (size_t)snprintf(name, size, ABI_NAME ", %u ranks on", (unsigned)job.processes);

    for (unsigned d = 0; d < job.dims && used < size; d++)
        used += (size_t)snprintf(name + used, size - used, "%c%u", d == 0 ? ' ' : 'x',
                                 (unsigned)job.size[d]);
}

static void print_entry(FILE *to, size_t index, enum way way)
{
    const unsigned size_class = index % CHOICE_CLASSES, form = (unsigned)(index / ROW);
    const unsigned operation = (unsigned)(index % ROW / CHOICE_CLASSES);

    (void)fprintf(to, "dimensions %u, %s ranks a node, %s, size class %u: %s\n", form / 2,
                  form % 2 == 0 ? "1" : "several", mpi_operation_name(operation), size_class,
                  way == WAY_TORUS ? "torus" : "MPI");
}

/* Reads a line. Returns 0, or -1 if it is invalid. */
static int read_entry(const char *line)
{
    char ranks[16], name[64], way[16];
    unsigned dimensions, size_class;

    if (sscanf(line, LINE, &dimensions, ranks, name, &size_class, way) != 5 ||
        dimensions >> job.dims != 0 || size_class >= CHOICE_CLASSES ||
        (strcmp(way, "torus") != 0 && strcmp(way, "MPI") != 0))
        return -1;
    for (unsigned o = 0; o < CHOICES_COUNT; o++)
        if (strcmp(mpi_operation_name(o), name) == 0) {
            size_t form = dimensions * 2 + (strcmp(ranks, "1") != 0);
            entries[form * ROW + o * CHOICE_CLASSES + size_class] = (struct choice_known){
                .known = true, .way = strcmp(way, "torus") == 0 ? WAY_TORUS : WAY_MPI};
            return 0;
        }
    return -1;
}

/* Reads a table. Returns whether it holds for this job. */
static bool read_table(FILE *file)
{
    char line[256], name[128];
    size_t length;

    name_of_job(name, sizeof name);
    length = strlen(name);
    if (fgets(line, sizeof line, file) == NULL || strcmp(line, FIRST_LINE) != 0 ||
        fgets(line, sizeof line, file) == NULL || strncmp(line, name, length) != 0 ||
        line[length] != '\n')
        return false;
    while (fgets(line, sizeof line, file) != NULL)
        if (read_entry(line) != 0)
            return false;
    return true;
}

/* Returns a mode for all ranks: the table fixes the ways, is to be written, or does not matter. */
enum table_mode { TABLE_NONE, TABLE_FIXES, TABLE_WRITTEN };

static enum table_mode open_table(const char *path)
{
    FILE *file;
    bool holds;

    if (path == NULL)
        return TABLE_NONE;
    file = fopen(path, "re");
    if (file != NULL) {
        holds = read_table(file);
        (void)fclose(file);
        if (holds)
            return TABLE_FIXES;
        (void)fprintf(stderr,
                      "torus: %s is no table for this program, its torus and " ABI_NAME
                      ", and is ignored\n",
                      path);
        memset(entries, 0, count_entries() * sizeof *entries);
        return TABLE_NONE;
    }
    if (errno != ENOENT) {
        (void)fprintf(stderr, "torus: cannot read %s, which is ignored: %s\n", path,
                      strerror(errno));
        return TABLE_NONE;
    }
    table = strdup(path);
    return table != NULL ? TABLE_WRITTEN : TABLE_NONE;
}

int known_begin(const char *path)
{
    int mode = TABLE_NONE, ready, all;

    entries = calloc(count_entries(), sizeof *entries);
    ready = entries != NULL;
    if (real.Allreduce(&ready, &all, 1, mpi.integer, mpi.min, job.messages) != MPI_SUCCESS || !all)
        return -1;
    if (job.rank == 0)
        mode = (int)open_table(path);
    if (real.Bcast(&mode, 1, mpi.integer, 0, job.messages) != MPI_SUCCESS)
        return -1;
    writes = mode == TABLE_WRITTEN;
    if (mode != TABLE_FIXES)
        return 0;
    job.ways = WAYS_FIXED;
    return real.Bcast(entries, (int)(count_entries() * sizeof *entries), mpi.byte, 0,
                      job.messages) == MPI_SUCCESS
               ? 0
               : -1;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Votes of ranks for an entry. */
struct tally {
    int ranks, torus;
};

static void write_table(const struct tally *tally)
{
    FILE *to = fopen(table, "wxe");
    char name[128];

    if (to == NULL) {
        (void)fprintf(stderr, "torus: cannot write %s: %s\n", table, strerror(errno));
        return;
    }
    name_of_job(name, sizeof name);
    (void)fprintf(to, FIRST_LINE "%s\n", name);
    for (size_t i = 0; i < count_entries(); i++)
        if (tally[i].ranks > 0)
            print_entry(to, i, 2 * tally[i].torus > tally[i].ranks ? WAY_TORUS : WAY_MPI);
    if (fclose(to) != 0)
        (void)fprintf(stderr, "torus: cannot write %s: %s\n", table, strerror(errno));
}

/* Adds up what all ranks know: communicators of the same form may have decided differently. */
static void collect_table(void)
{
    struct tally *mine = calloc(count_entries(), sizeof *mine);
    struct tally *all = calloc(count_entries(), sizeof *all);
    int ready = mine != NULL && all != NULL, ready_all = false;

    if (real.Allreduce(&ready, &ready_all, 1, mpi.integer, mpi.min, job.messages) == MPI_SUCCESS &&
        ready_all) {
        for (size_t i = 0; i < count_entries(); i++)
            mine[i] =
                (struct tally){entries[i].known, entries[i].known && entries[i].way == WAY_TORUS};
        if (real.Reduce(mine, all, (int)(2 * count_entries()), mpi.integer, mpi.sum, 0,
                        job.messages) == MPI_SUCCESS &&
            job.rank == 0)
            write_table(all);
    }
    free(all);
    free(mine);
}

void known_end(void)
{
    if (writes)
        collect_table();
    free(table);
    table = NULL;
    free(entries);
    entries = NULL;
}
