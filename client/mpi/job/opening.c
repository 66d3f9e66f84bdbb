/* Decides in MPI_Init whether the torus can serve the program, and if so opens the group of the job (job.h). */
#include "client/mpi/job/job.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <torus/group.h>
#include <unistd.h>

#include "client/mpi/job/fibers.h"
#include "client/mpi/job/known.h"
#include "client/mpi/job/launcher.h"
#include "client/mpi/job/statistics.h"
#include "client/mpi/library/errors.h"
#include "client/mpi/library/real.h"
#include "proto/dims.h"
#include "proto/text.h"

/* ==== Several processes on a node =============================================================
 *
 * One of them, the leader, opens the group for all. The first process on a node binds a socket whose name all
 * processes know, and becomes the host. The other processes, the guests, connect to it. When all have connected, the
 * host appoints the process with the lowest rank (perhaps itself) as the leader. The leader opens the group and sends
 * the result to the host, which sends it to all guests. The socket is abstract, so that its name vanishes however a
 * process ends. Each end notices when the other end is closed. */

typedef int locals_open_fn(uint32_t timeout_ms);

#define AGAIN_MS 10 /* interval between attempts to connect, until the host has called listen() */

/* Messages from a guest: it has arrived. From the host: lead. From the leader and the host: the result. */
enum kind { HERE, LEAD, ENDED };

struct message {
    enum kind kind;
    uint32_t rank;            /* HERE */
    uint32_t timeout_ms;      /* LEAD */
    int result;               /* ENDED */
    struct torus_error error; /* ENDED, if the result is not 0 */
};

static int fail(struct torus_error *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int fail(struct torus_error *e, const char *format, ...)
{
    va_list arguments;

    *e = (struct torus_error){.code = TORUS_ERROR_TIMEOUT};
    va_start(arguments, format);
    (void)vsnprintf(e->text, sizeof e->text, format, arguments);
    va_end(arguments);
    return -1;
}

/* ---- Time ------------------------------------------------------------------------------------ */

static uint64_t now_ms(void)
{
    return statistics_now() / 1000000;
}

/* Returns milliseconds until `end`, but at least 1, because 0 means no timeout for libtorus. */
static uint32_t left_ms(uint64_t end)
{
    uint64_t now = now_ms();

    return now < end ? (uint32_t)(end - now) : 1;
}

static bool is_readable(int fd, uint64_t end)
{
    struct pollfd p = {fd, POLLIN, 0};
    int n;

    do
        n = poll(&p, 1, (int)left_ms(end));
    while ((n < 0 && errno == EINTR) || (n == 0 && now_ms() < end));
    return n > 0;
}

/* ---- Messages -------------------------------------------------------------------------------- */

/* Returns whether the process at the other end belongs to this user. A process of another user can bind or connect to
 * the name. */
static bool is_of_user(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == getuid();
}

static void send_message(int fd, const struct message *m)
{
    (void)send(fd, m, sizeof *m, MSG_NOSIGNAL);
}

/* Waits for a message. Returns 0, or -1 if the other end is closed. */
static int receive_message(int fd, struct message *m)
{
    ssize_t n;

    do
        n = recv(fd, m, sizeof *m, 0);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof *m ? 0 : -1;
}

/* ---- The host -------------------------------------------------------------------------------- */

struct guest {
    int fd;
    uint32_t rank;
};

/* Waits until all other processes on this node have connected, or until `end`. Returns how many have. */
static uint32_t gather(int listener, struct guest *guests, uint64_t end)
{
    uint32_t arrived = 0;

    while (arrived + 1 < job.per_node && is_readable(listener, end)) {
        struct message m;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        if (is_of_user(fd) && is_readable(fd, end) && receive_message(fd, &m) == 0)
            guests[arrived++] = (struct guest){fd, m.rank};
        else
            (void)close(fd);
    }
    return arrived;
}

/* Appoints the process with the lowest rank as the leader. Returns the result of opening the group. */
static int appoint(struct guest *guests, uint32_t arrived, locals_open_fn *open, uint64_t end,
                   struct torus_error *e)
{
    struct message m = {.kind = LEAD, .timeout_ms = left_ms(end)};
    const struct guest *first = NULL;

    for (uint32_t i = 0; i < arrived; i++)
        if (guests[i].rank < (first != NULL ? first->rank : job.rank))
            first = &guests[i];
    if (first == NULL) {
        job.leads = true;
        return open(m.timeout_ms);
    }
    send_message(first->fd, &m);
    if (receive_message(first->fd, &m) != 0)
        return fail(e, "rank %u has ended", (unsigned)first->rank);
    *e = m.error;
    return m.result;
}

static int be_host(int listener, locals_open_fn *open, uint64_t end, struct torus_error *e)
{
    struct guest *guests = calloc(job.per_node, sizeof *guests);
    struct message m = {.kind = ENDED};
    uint32_t arrived;

    if (guests == NULL)
        return fail(e, "a rank is out of memory");
    arrived = gather(listener, guests, end);
    if (arrived + 1 < job.per_node)
        m.result = fail(e, "only %u of the %u ranks of node %u %s started there in time",
                        (unsigned)arrived + 1, (unsigned)job.per_node, (unsigned)job.node,
                        text_plural(arrived + 1, "has", "have"));
    else
        m.result = appoint(guests, arrived, open, end, e);
    if (m.result != 0)
        m.error = *e;
    for (uint32_t i = 0; i < arrived; i++) {
        send_message(guests[i].fd, &m);
        (void)close(guests[i].fd);
    }
    free(guests);
    return m.result;
}

/* ---- The guests ------------------------------------------------------------------------------ */

/* Waits for the messages of the host without a timeout: the host has a timeout, and if it ends, its socket is
 * closed. */
static int be_guest(int fd, const struct sockaddr_un *host, socklen_t length, locals_open_fn *open,
                    uint64_t end, struct torus_error *e)
{
    struct message m = {.kind = HERE, .rank = job.rank};

    while (connect(fd, (const struct sockaddr *)host, length) != 0) {
        if (errno != ECONNREFUSED || now_ms() >= end)
            return fail(e, "cannot reach another rank on node %u: %s", (unsigned)job.node,
                        strerror(errno));
        (void)poll(NULL, 0, AGAIN_MS);
    }
    if (!is_of_user(fd))
        return fail(e, "the socket for the ranks on node %u belongs to another user",
                    (unsigned)job.node);
    send_message(fd, &m);
    if (receive_message(fd, &m) == 0 && m.kind == LEAD) {
        job.leads = true;
        m = (struct message){.kind = ENDED, .result = open(m.timeout_ms)};
        if (m.result != 0)
            m.error = *e;
        send_message(fd, &m);
    }
    if (m.kind == HERE || (m.kind == ENDED && job.leads && receive_message(fd, &m) != 0))
        return fail(e, "another rank on node %u has ended", (unsigned)job.node);
    *e = m.error;
    return m.result;
}

/* Finds the other processes of this program on this node. The process with the lowest rank becomes the leader
 * (job.leads) and calls `open`, which also sets *error. All processes return the result of `open`: 0, or -1 with
 * *error. They also return -1 if fewer than job.per_node processes have started in time. */
static int locals_open(locals_open_fn *open, uint32_t timeout_ms, struct torus_error *error)
{
    const uint64_t end = now_ms() + timeout_ms;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), result;
    socklen_t length;

    if (fd < 0)
        return fail(error, "cannot create a socket: %s", strerror(errno));
    length = (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 +
             (socklen_t)snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "torus-%s-%u",
                                 job.name, (unsigned)job.node);
    if (bind(fd, (struct sockaddr *)&address, length) != 0)
        result = errno == EADDRINUSE ? be_guest(fd, &address, length, open, end, error)
                                     : fail(error, "cannot bind a socket: %s", strerror(errno));
    else if (listen(fd, (int)job.per_node) != 0)
        result = fail(error, "cannot listen on a socket: %s", strerror(errno));
    else
        result = be_host(fd, open, end, error);
    (void)close(fd);
    return result;
}

/* ==== The program ============================================================================= */

#define MISSED_MS 10000u /* within this time all other nodes notice that a node is cut off */

static struct torus_error why; /* why this program is not served */

static uint32_t first_unready; /* once have_agreed: the lowest rank that is not ready */

static bool have_agreed;

/* ---- Messages -------------------------------------------------------------------------------- */

static int set_reason(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int set_reason(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(why.text, sizeof why.text, format, arguments);
    va_end(arguments);
    return -1;
}

/* Prints the reason on one rank only: the first rank that decided it by itself or, if all ranks have agreed, the
 * lowest rank that is not ready. With TORUS_MPI=verbose, every rank prints it. */
static void warn_not_served(void)
{
    if ((have_agreed ? job.rank == first_unready : first_of_program()) || job.verbose)
        (void)fprintf(stderr,
                      "torus: rank %u: this program does not use the torus, but " ABI_NAME
                      " alone: %s\n",
                      (unsigned)job.rank, why.text);
}

static void print_served(const char *dims)
{
    if (job.rank == 0 && job.verbose)
        (void)fprintf(stderr, "torus: %u %s on the torus %s, %u on each node%s\n",
                      (unsigned)job.processes, text_plural(job.processes, "rank", "ranks"), dims,
                      (unsigned)job.per_node, job.threaded ? ", MPI_THREAD_MULTIPLE" : "");
}

/* ---- The torus ------------------------------------------------------------------------------- */

/* Reads dimensions like "4x8m". Returns 0 with job.dims, job.size and job.nodes, or -1. */
static int read_dims(const char *text)
{
    job.dims = dims_sizes(text, job.size, JOB_DIMS);
    job.nodes = 1;
    for (unsigned d = 0; d < job.dims; d++)
        job.nodes *= job.size[d];
    return job.dims > 0 ? 0 : set_reason("the daemon's torus is invalid");
}

/* Asks the daemon which node this is. */
static int find_node(char *dims, size_t size, uint32_t timeout_ms)
{
    struct torus_client *client = torus_client_open(NULL, &why);
    struct torus_status *status;
    int result;

    if (client == NULL)
        return -1;
    torus_client_set_timeout(client, timeout_ms); /* on a busy machine the daemon may be slow */
    result = torus_client_status(client, &status, &why);
    torus_client_close(client);
    if (result != 0)
        return -1;
    job.node = status->rank;
    (void)snprintf(dims, size, "%s", status->dims);
    torus_status_free(status);
    return read_dims(dims);
}

static int check_processes(void)
{
    if (job.nodes == 1)
        return set_reason("the torus has a single node");
    if (job.processes % job.nodes != 0)
        return set_reason("its %u %s cannot be divided equally among the %u nodes of the torus",
                          (unsigned)job.processes, text_plural(job.processes, "rank", "ranks"),
                          (unsigned)job.nodes);
    job.per_node = job.processes / job.nodes;
    return 0;
}

/* ---- The group ------------------------------------------------------------------------------- */

static uint64_t hash(uint64_t value, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;

    while (size-- > 0)
        value = (value ^ *at++) * UINT64_C(0x100000001b3); /* FNV-1a */
    return value;
}

static int name_job(void)
{
    uint64_t value = UINT64_C(0xcbf29ce484222325);
    uid_t user = getuid();
    char program[512];

    if (!settings_program(program, sizeof program))
        return set_reason("nothing distinguishes it from other programs that use the torus at the "
                          "same time: set TORUS_MPI_JOB to a text that no other program has");
    value = hash(value, program, strlen(program));
    value = hash(value, &user, sizeof user);
    value = hash(value, &job.processes, sizeof job.processes);
    (void)snprintf(job.name, sizeof job.name, "mpi-%016" PRIx64, value);
    return 0;
}

static int open_group(uint32_t timeout_ms)
{
    return lanes_open(timeout_ms, &why);
}

/* Opens the parts of the group, in a leader. */
static int complete_group(void)
{
    if (lanes_complete(&why) != 0)
        return -1;
    for (uint32_t mask = 1; mask < 1u << job.dims; mask++)
        job.refused[mask] = job_is_part(mask) && lanes_part(0, mask) == NULL;
    return 0;
}

/* ---- Beginning and ending -------------------------------------------------------------------- */

/* Creates job.messages. All processes call this at the same point. */
static int make_messages(void)
{
    if (real.Comm_dup(mpi.world, &job.messages) != MPI_SUCCESS)
        return set_reason("MPI_Comm_dup has failed");
    if (real.Comm_set_errhandler(job.messages, mpi.errors_return) != MPI_SUCCESS)
        return set_reason("MPI_Comm_set_errhandler has failed");
    return 0;
}

static void free_messages(void)
{
    if (job.messages != mpi.null)
        (void)real.Comm_free(&job.messages);
}

/* Decides by MPI whether the torus serves the program, with the same result in all processes. All processes call this
 * function. They exchange whether each of them is ready (some may have lost a link or a daemon since) and their
 * nodes. */
static int agree(bool ready)
{
    struct job_process mine = {job.node, job.leads};
    enum { UNREADY, SINGLE, SILENT, CHOOSES, PARTS };
    int all[PARTS + (1 << JOB_DIMS)], here[PARTS + (1 << JOB_DIMS)];
    uint32_t *count;
    int result = 0;

    job.process = calloc(job.processes, sizeof *job.process);
    count = calloc(job.nodes, sizeof *count);
    if (ready && (job.process == NULL || count == NULL)) {
        ready = false;
        (void)set_reason("a rank is out of memory");
    }
    if (make_messages() != 0)
        ready = false;
    here[UNREADY] = (int)(ready ? job.processes : job.rank); /* MPI_MIN finds the lowest */
    here[SINGLE] = !job.threaded;
    here[SILENT] = !job.statistics;
    here[CHOOSES] = job.ways != WAYS_TORUS;
    for (uint32_t mask = 0; mask < 1u << JOB_DIMS; mask++)
        here[PARTS + mask] = !job.refused[mask]; /* only leaders know */
    if (real.Allreduce(here, all, PARTS + (1 << JOB_DIMS), mpi.integer, mpi.min, mpi.world) !=
        MPI_SUCCESS) {
        free(count);
        return set_reason("MPI_Allreduce has failed");
    }
    have_agreed = true;
    first_unready = (uint32_t)all[UNREADY];
    if (first_unready < job.processes) {
        free(count);
        return ready ? set_reason("rank %u could not open the group on its node",
                                  (unsigned)first_unready)
                     : -1;
    }
    first_unready = 0; /* the rank that prints the reason if anything below fails */
    if (real.Allgather(&mine, sizeof mine, mpi.byte, job.process, sizeof mine, mpi.byte,
                       mpi.world) != MPI_SUCCESS) {
        free(count);
        return set_reason("MPI_Allgather has failed");
    }
    job.threaded = all[SINGLE] == 0;
    job.statistics = all[SILENT] == 0; /* printing them is a collective operation */
    job.ways = all[CHOOSES] == 0 ? WAYS_TORUS : WAYS_FASTER;
    for (uint32_t mask = 0; mask < 1u << JOB_DIMS; mask++)
        job.refused[mask] = all[PARTS + mask] == 0;
    for (uint32_t i = 0; i < job.processes; i++)
        if (job.process[i].node < job.nodes)
            count[job.process[i].node]++;
    for (uint32_t i = 0; i < job.nodes && result == 0; i++)
        if (count[i] != job.per_node)
            result = set_reason("node %u has %u of its ranks instead of %u", (unsigned)i,
                                (unsigned)count[i], (unsigned)job.per_node);
    free(count);
    return result;
}

/* After a failure to open the group here: returns whether it may be open on other nodes. */
static bool is_in_doubt(void)
{
    return why.code == TORUS_ERROR_IN_DOUBT || why.code == TORUS_ERROR_LOST;
}

static int open_job(uint32_t timeout_ms, const char *table)
{
    char dims[DIMS_TEXT_SIZE];
    bool opened, ready;
    int result;

    if (find_node(dims, sizeof dims, timeout_ms) != 0 || check_processes() != 0 || name_job() != 0)
        return -1;
    if (job.per_node == 1) {
        job.leads = true;
        opened = open_group(timeout_ms) == 0;
    } else {
        opened = locals_open(open_group, timeout_ms, &why) == 0;
    }
    /* If the group is open here, all processes have this preload, and they use agree() to decide. A process that
     * could not open the group, although others may have, must know whether to call agree(). The others publish that
     * the group was open when their first call has failed. That takes at most the time until they notice that a node
     * is cut off, and the timeout of the call. */
    ready = opened && (!job.leads || complete_group() == 0);
    if (opened && !ready)
        first_publish_opened();
    if (!opened && (!is_in_doubt() || !first_await_opened(timeout_ms + MISSED_MS)))
        return -1;
    result = agree(ready);
    first_unpublish_opened();
    if (result == 0 && job.ways != WAYS_TORUS && known_begin(table) != 0)
        result = set_reason("memory is short, or MPI has failed");
    if (result == 0)
        print_served(dims);
    return result;
}

static int on_finalize(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm;
    (void)keyval;
    (void)value;
    (void)extra;
    if (job_is_served && job.statistics)
        statistics_print(job.messages, job.rank, job.processes);
    if (job_is_served)
        known_end();
    job_is_served = false;
    fibers_end();
    torus_calls_await_left();
    lanes_close();
    free_messages();
    return MPI_SUCCESS;
}

/* Registers on_finalize(). MPI_Finalize first deletes the attributes of MPI_COMM_SELF, in the reverse order of their
 * creation. */
static void register_finalize(void)
{
    int keyval;

    if (real.Comm_create_keyval(attribute_stays, on_finalize, &keyval, NULL) == MPI_SUCCESS)
        (void)real.Comm_set_attr(mpi.self, keyval, &job);
}

/* Ranks that MPI_Comm_spawn has started inherit the environment of another rank: the socket of its daemon, perhaps of
 * another node, and TORUS_MPI_JOB. They would wait for ranks on other nodes that do not exist, or be taken for the program
 * that has started them. */
static bool was_spawned(void)
{
    MPI_Comm parent = mpi.null;

    return real.Comm_get_parent(&parent) == MPI_SUCCESS && parent != mpi.null;
}

static int begin_job(const struct settings *settings)
{
    if (!was_spawned())
        return open_job(settings->timeout_ms, settings->table);
    have_agreed = true; /* all ranks find this out alike */
    return set_reason("MPI_Comm_spawn has started it");
}

void opening_begin(void)
{
    struct settings settings = settings_read();
    struct errhandlers errhandlers;
    int rank, processes, level;

    job.messages = mpi.null;
    if (settings.off || real.Comm_rank(mpi.world, &rank) != MPI_SUCCESS ||
        real.Comm_size(mpi.world, &processes) != MPI_SUCCESS || processes == 1)
        return;
    job.rank = (uint32_t)rank;
    job.processes = (uint32_t)processes;
    job.verbose = settings.verbose;
    job.statistics = settings.statistics || settings.verbose;
    job.ways = settings.torus ? WAYS_TORUS : WAYS_FASTER;
    job.late_ms = settings.late_ms;
    job.threaded = real.Query_thread(&level) != MPI_SUCCESS || level == MPI_THREAD_MULTIPLE;
    if (settings.wrong != NULL && rank == 0)
        (void)fprintf(stderr,
                      "torus: the value of %s is invalid and ignored: TORUS_MPI is off, on, torus, "
                      "stats or verbose, or some of these with commas, TORUS_MPI_TIMEOUT and "
                      "TORUS_MPI_LATE a number of seconds\n",
                      settings.wrong);
    errhandlers_replace(&errhandlers, mpi.null);
    job_is_served = begin_job(&settings) == 0;
    if (job_is_served) {
        register_finalize();
    } else {
        warn_not_served();
        lanes_close();
        free_messages();
    }
    errhandlers_restore(&errhandlers);
}
