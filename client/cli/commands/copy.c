/* torusctl copy: copies trees of files from this node to other nodes. */
#include "client/cli/copying/copy_run.h"

static const struct option options[] = {
    {"SOURCE...", NULL, offsetof(struct copy_arguments, sources),
     "files and folders of this machine, below a data root of its daemon"},
    {"--to", "TARGET", offsetof(struct copy_arguments, to),
     "path of the copy at each node, below a data root there"},
    COPY_OPTIONS(COPY_IF_DOWN),
    {0},
};

static int run(struct cli *cli, const void *arguments)
{
    return copy_run(cli, TORUS_COPY_TO_ALL, arguments);
}

const struct command command_copy = {
    .name = "copy",
    .summary = "Copy files and folders from this node to all nodes, or some",
    .usage = "SOURCE... --to TARGET [--nodes LIST] [options]",
    .details =
        "Copies trees of any shape: files, folders, symbolic links, hard links, sparse files,\n"
        "with permissions, times, extended attributes and, if torusd may, owners. The data of\n"
        "all nodes travels together, over all cables. What a node has already is not sent: a\n"
        "file of the same size and time is taken as equal, unless --checksum is given, and of a\n"
        "changed large file only the changed pieces move.\n"
        "\n"
        "One SOURCE gets the name TARGET. If TARGET ends with a slash, or is '.' or '..', or if\n"
        "there are several sources, TARGET is a folder in which each SOURCE keeps its last name.\n"
        "A slash at the end of SOURCE has no meaning. In TARGET, %r stands for the rank of the\n"
        "node that writes, and %% for a per cent sign. A relative path starts from the working\n"
        "directory of this command, at every node. A SOURCE that is a symbolic link is followed;\n"
        "links below it are copied as links, unless --copy-links is given. Sockets, FIFOs and\n"
        "devices are not copied, nor is what interrupted copies have left (.*.torus-copy).\n"
        "\n"
        "A file that only grows meanwhile is copied as it was found. If a file changes\n"
        "otherwise, the copy fails, or leaves that file out (--changing skip).\n"
        "\n"
        "Each node gets everything or nothing: the files get their names when all of them are\n"
        "there. Until then a node needs room for the old and the new files. With --as-it-comes,\n"
        "each file gets its name as soon as it is complete, which needs less room. If nodes\n"
        "fail, for example because a disk is full, the others complete their copy, the command\n"
        "prints the errors, and the exit status is 1.\n"
        "\n"
        "If a copy is interrupted (Ctrl-C, a node that goes down, a timeout), what has arrived\n"
        "stays at the nodes for a day, out of sight, and the next copy to the same TARGET\n"
        "continues from there. When nodes put files in place already, Ctrl-C comes too late:\n"
        "the command waits for the end, and reports it.\n"
        "\n"
        "PATTERN is one of rsync's: * matches within a name, ** also slashes, ? one character,\n"
        "[a-z] one of several. A pattern with a slash matches the end of a path, and one\n"
        "without a slash a name. A slash at its beginning means the top of the copied tree, and\n"
        "a slash at its end a folder. The first pattern that matches decides. In a FILE with\n"
        "patterns, lines that begin with '#' or ';' are comments, and '+ PATTERN' keeps names.\n"
        "--delete does not remove what patterns leave out.\n"
        "\n"
        "--verify reads all files at all nodes, and prints which nodes differ, and the first\n"
        "path that differs. What the target has in addition counts only with --delete. The exit\n"
        "status is 0 if all nodes are equal, and 1 if one differs or could not be compared.\n"
        "\n"
        "On a terminal, the command shows its progress.\n"
        "\n"
        "examples:\n"
        "  torusctl copy /srv/torusd/model --to /srv/torusd/model\n"
        "  torusctl copy /data/model --to /data/model --delete --dry-run\n"
        "  torusctl copy /data/model --to /data/model --verify\n"
        "  torusctl copy src tests --to /data/project/ --exclude .git --exclude '*.o'\n"
        "  torusctl copy /data/model --to /data/model --nodes 1,4-7 --on-failure shrink\n",
    .options = options,
    .arguments_size = sizeof(struct copy_arguments),
    .needs_daemon = true,
    .run = run,
};
