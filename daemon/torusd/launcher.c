#include "daemon/torusd/launcher.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/number.h"

#define FORMAT "/tmp/torusd-%u"
#define TRIES 1000u

/* Appends "/NAME" to a path. */
static int below(char out[PATH_MAX], const char *path, const char *name, struct error *e)
{
    if (snprintf(out, PATH_MAX, "%s/%s", path, name) < PATH_MAX)
        return 0;
    return error_set(e, ERROR_USAGE, "the path %.80s.../%.80s is too long", path, name);
}

int job_folder_name(struct job_folder *f, const char *job, struct error *e)
{
    char host[HOST_NAME_MAX + 1] = "", name[PATH_MAX];

    /* As libtorus replaces %h in TORUS_SOCKET. */
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0' || host[0] == '.' ||
        strchr(host, '/') != NULL)
        return error_set(e, ERROR_IO, "this host has no name: set it with hostname");
    (void)snprintf(name, sizeof name, FORMAT "/%s", (unsigned)geteuid(), job);
    if (below(f->path, name, host, e) != 0 || below(f->data, f->path, "data", e) != 0 ||
        below(f->state, f->path, "state", e) != 0)
        return -1;
    return below(f->control, f->path, "control.sock", e);
}

/* How an attempt to make a folder ended. GONE: the folder that it is in has been removed. */
enum made { MADE, NOT_MADE, GONE };

static enum made failed(const char *what, const char *path, struct error *e)
{
    const int number = errno;

    (void)error_set(e, ERROR_IO, "%s%s: %s", what, path, strerror(number));
    return number == ENOENT ? GONE : NOT_MADE;
}

static enum made make(const char *path, struct error *e)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST ? MADE
                                                     : failed("cannot make the folder ", path, e);
}

/* Everybody can make folders in /tmp, so somebody else may have been first. */
static enum made check_owner(const char *path, struct error *e)
{
    struct stat status;

    if (lstat(path, &status) != 0)
        return failed("", path, e);
    if (S_ISDIR(status.st_mode) && status.st_uid == geteuid() && (status.st_mode & 077) == 0)
        return MADE;
    (void)error_set(e, ERROR_REFUSED,
                    "%s is not a folder of this user that nobody else may enter: remove it, or "
                    "let its owner remove it",
                    path);
    return NOT_MADE;
}

static enum made make_all(const struct job_folder *f, struct error *e)
{
    char user[PATH_MAX], job[PATH_MAX];
    enum made made;

    (void)snprintf(user, sizeof user, FORMAT, (unsigned)geteuid());
    (void)snprintf(job, sizeof job, "%.*s", (int)(strrchr(f->path, '/') - f->path), f->path);
    if ((made = make(user, e)) != MADE || (made = check_owner(user, e)) != MADE ||
        (made = make(job, e)) != MADE || (made = make(f->path, e)) != MADE)
        return made;
    return make(f->data, e);
}

int job_folder_make(const struct job_folder *f, struct error *e)
{
    enum made made;

    /* Another job of this user that ends now removes the folders above its own, if they are empty. */
    for (unsigned i = 0; (made = make_all(f, e)) == GONE && i < TRIES; i++)
        ;
    return made == MADE ? 0 : -1;
}

void job_folder_remove(const struct job_folder *f)
{
    const char *slash = strrchr(f->path, '/');
    char part[PATH_MAX];

    (void)rmdir(f->data);
    (void)rmdir(f->state);
    if (rmdir(f->path) != 0)
        return;
    (void)snprintf(part, sizeof part, "%.*s", (int)(slash - f->path), f->path);
    if (rmdir(part) != 0)
        return;
    (void)snprintf(part, sizeof part, FORMAT, (unsigned)geteuid());
    (void)rmdir(part);
}

#define INTERVAL_MS 1000

/* A signal by PR_SET_PDEATHSIG would also come when the thread ends that started this process. */
static void on_timer(uv_timer_t *timer)
{
    struct parent_watch *w = timer->data;

    if (getppid() == w->parent)
        return;
    (void)uv_timer_stop(timer);
    w->ended(w->context);
}

void parent_watch_start(struct parent_watch *w, uv_loop_t *loop, pid_t parent,
                        parent_ended_fn *ended, void *context)
{
    *w = (struct parent_watch){.parent = parent, .ended = ended, .context = context};
    (void)uv_timer_init(loop, &w->timer);
    w->timer.data = w;
    (void)uv_timer_start(&w->timer, on_timer, INTERVAL_MS, INTERVAL_MS);
}

void parent_watch_stop(struct parent_watch *w)
{
    uv_close((uv_handle_t *)&w->timer, NULL);
}

#define JOB_VARIABLE "TORUS_JOB"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

static const struct variables {
    const char *rank, *size, *local_rank;
} all[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
    {"PMIX_RANK", NULL, NULL},
};
enum { OPEN_MPI, MPICH, SLURM, PMIX, LAUNCHERS };

/* Slurm comes last, because all steps of a Slurm job have the same name, whatever starts their processes. */
static const char *const jobs[] = {JOB_VARIABLE, "SLURM_JOB_ID", "PMIX_NAMESPACE"};

/* Returns the value, or NULL if it is missing or empty. */
static const char *value_of(const char *variable)
{
    const char *value = variable != NULL ? getenv(variable) : NULL;

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* Several launchers may have left variables. A launcher that was started by another one comes before it. */
static const struct variables *find(void)
{
    const char *slurm = value_of(all[SLURM].rank), *pmix = value_of(all[PMIX].rank);

    for (size_t i = 0; i < LAUNCHERS; i++) {
        /* PMIx' own launcher runs its servers, and with them this process, below srun. */
        bool is_of_server = i == SLURM && slurm != NULL && pmix != NULL && strcmp(slurm, pmix) != 0;
        if (value_of(all[i].rank) != NULL && !is_of_server)
            return &all[i];
    }
    return NULL;
}

static int read_number(const char *variable, uint32_t *number, bool *found, struct error *e)
{
    const char *value = value_of(variable);

    *found = value != NULL;
    if (value == NULL || number_parse(value, LAUNCHER_RANK_MOST, number, e) == 0)
        return 0;
    return error_wrap(e, "variable %s", variable);
}

static void set_job(struct launcher *l)
{
    const char *value = NULL;

    for (size_t i = 0; value == NULL && i < sizeof jobs / sizeof jobs[0]; i++)
        value = value_of(jobs[i]);
    if (value != NULL)
        (void)snprintf(l->job, sizeof l->job, "%s", value);
    else /* MPICH names no job; all processes of a host have the same parent */
        (void)snprintf(l->job, sizeof l->job, "pid-%ld", (long)getppid());
    for (char *c = l->job; *c != '\0'; c++)
        if (strchr(LETTERS, *c) == NULL || (c == l->job && *c == '.'))
            *c = '_';
}

int launcher_find(struct launcher *l, struct error *e)
{
    const struct variables *v = find();
    bool found;

    *l = (struct launcher){0};
    if (v == NULL && value_of(JOB_VARIABLE) == NULL)
        return error_set(e, ERROR_USAGE,
                         "--from-env finds no variables of a launcher: neither %s (Open MPI), %s "
                         "(MPICH), %s (Slurm) nor %s is set. Start torusd by mpiexec or srun; or "
                         "set " JOB_VARIABLE
                         " to a name for the job, if something else starts torusd on each host",
                         all[OPEN_MPI].rank, all[MPICH].rank, all[SLURM].rank, all[PMIX].rank);
    set_job(l);
    if (v == NULL)
        return 0;
    l->rank_variable = v->rank;
    l->size_variable = v->size;
    if (read_number(v->rank, &l->rank, &found, e) != 0 ||
        read_number(v->size, &l->size, &l->has_size, e) != 0)
        return -1;
    return read_number(v->local_rank, &l->local_rank, &found, e);
}
