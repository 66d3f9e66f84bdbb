#include "daemon/torusd/tree/tree_files.h"

#include "daemon/torusd/tree/reader.h"
#include "daemon/torusd/tree/writer.h"

#define PATIENCE_MS                                                                                \
    10000u /* some writers take seconds to notice that they shall stop, and to close */

void tree_files_init(struct tree_files *files, const char *state_folder, const struct roots *roots)
{
    *files = (struct tree_files){.state_folder = state_folder, .patience_ms = PATIENCE_MS};
    atomic_init(&files->roots, roots);
    atomic_init(&files->users, 0);
    made_folders_init(&files->made);
    files->store.context = files;
    atomic_init(&files->output_mode, 0755);
    tree_reader_add(&files->store);
    tree_writer_add(&files->store);
}

void tree_files_free(struct tree_files *files)
{
    made_folders_free(&files->made);
}

const struct tree_store *tree_files_store(struct tree_files *files)
{
    return &files->store;
}
