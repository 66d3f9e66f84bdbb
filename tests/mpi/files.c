/* Collective input and output: files FOLDER. The MPI library does it with collective operations of its own. Each
 * rank checks what it reads, and prints "rank R: right" at the end. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBERS 5000

static int rank, size;

static void check(int condition, const char *what)
{
    if (condition)
        return;
    fprintf(stderr, "rank %d: wrong: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* MPI_Wait calls collective operations, too. */
static void write_later(MPI_File file, const int *numbers)
{
#ifdef OPEN_MPI /* 4.1.4 alone crashes in this with ROMIO */
    MPI_File_write_at_all(file, 0, numbers, NUMBERS, MPI_INT, MPI_STATUS_IGNORE);
#else
    MPI_Request request;

    MPI_File_iwrite_at_all(file, 0, numbers, NUMBERS, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
}

/* Every rank has a column of the file. */
static void use(const char *path)
{
    int numbers[NUMBERS], again[NUMBERS];
    MPI_Datatype column;
    MPI_File file;
    int opened;

    opened =
        MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    check(opened == MPI_SUCCESS, "MPI_File_open");
    MPI_Type_vector(NUMBERS, 1, size, MPI_INT, &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = NUMBERS * rank + i;
    MPI_File_set_view(file, (MPI_Offset)rank * (MPI_Offset)sizeof(int), MPI_INT, column, "native",
                      MPI_INFO_NULL);
    MPI_File_write_all(file, numbers, NUMBERS, MPI_INT, MPI_STATUS_IGNORE);
    write_later(file, numbers);
    MPI_File_sync(file);
    MPI_File_read_at_all(file, 0, again, NUMBERS, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < NUMBERS; i++)
        check(again[i] == numbers[i], "MPI_File_read_at_all");
    MPI_File_close(&file);
    MPI_Type_free(&column);
}

int main(int argc, char **argv)
{
    char path[512];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    check(argc == 2, "usage: files FOLDER");
    snprintf(path, sizeof path, "%s/file", argv[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    use(path);
    printf("rank %d: right\n", rank);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
