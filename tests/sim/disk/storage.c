/* The storage of a node: the daemon's own folders and journal (daemon/torusd/files) on a disk in memory, and the jobs
 * that use the disk, in virtual time.
 *
 * The disk of a dead node does not change: all operations of its daemon fail while it is freed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/disk/file_system.h"
#include "tests/sim/disk/inode.h"
#include "tests/sim/internal.h"

/* --- jobs --- */

struct disk_job {
    struct disk_job *next, *previous;
    struct node *node; /* NULL if it was done early, because its process ended */
    struct work *work;
    bool ran;
};

static uint64_t duration(struct node *node)
{
    struct disk *disk = &node->disk;
    uint64_t time = node->sim->set.chop ? chance_below(&disk->chance, 300 * MICROSECONDS) : 0;

    return time + (disk->slowness > 0 ? chance_below(&disk->chance, disk->slowness) : 0);
}

static void run_job(struct disk_job *job)
{
    if (job->ran)
        return;
    job->ran = true;
    job->work->run(job->work);
}

static void finish_job(struct disk_job *job)
{
    struct work *work = job->work;

    if (job->previous != NULL)
        job->previous->next = job->next;
    else
        job->node->jobs = job->next;
    if (job->next != NULL)
        job->next->previous = job->previous;
    job->node = NULL;
    work->done(work);
}

static void on_job_done(struct sim *sim, void *object, uint64_t number)
{
    struct disk_job *job = object;

    if (job->node != NULL)
        finish_job(job);
    free(job);
}

/* The work is done; the loop is told a little later. */
static void on_job_ran(struct sim *sim, void *object, uint64_t number)
{
    struct disk_job *job = object;

    if (job->node == NULL) {
        free(job);
        return;
    }
    run_job(job);
    sim_schedule_at_node(job->node, 0, "job", on_job_done, job);
}

static int submit(void *context, struct work *work)
{
    struct node *node = context;
    struct disk_job *job = sim_alloc(sizeof *job);

    *job = (struct disk_job){.next = node->jobs, .node = node, .work = work};
    if (job->next != NULL)
        job->next->previous = job;
    node->jobs = job;
    sim_schedule_at_node(node, duration(node), "work", on_job_ran, job);
    return 0;
}

/* --- the node's storage --- */

int storage_open(struct node *node, struct error *e)
{
    struct disk *disk = &node->disk;

    disk->dead = false;
    node->workers = (struct workers){node, submit};
    node->roots = (struct roots){0};
    if (roots_add(&node->roots, &disk->files, "/", e) != 0)
        return -1;
    made_folders_init(&node->made);
    node->folders = (struct folders){.files = &disk->files,
                                     .workers = &node->workers,
                                     .pool = &node->pool,
                                     .made = &node->made,
                                     .roots = &node->roots,
                                     .state_folder = "/state",
                                     .output_mode = 0700};
    if (folders_init(&node->folders, &node->storage, e) == 0)
        return 0;
    made_folders_free(&node->made);
    roots_free(&node->roots);
    return -1;
}

void storage_close(struct node *node)
{
    node->storage.close(node->storage.context);
    sim_enter(node);
    while (node->jobs != NULL) {
        run_job(node->jobs);
        finish_job(node->jobs);
    }
    made_folders_free(&node->made);
    sim_leave();
    roots_free(&node->roots);
    if (disk_process_ended(&node->disk) > 0)
        sim_violated(node->sim, "descriptors", "node %u ends with open files", node->rank);
    if (tree_disk_process_ended(&node->trees) > 0)
        sim_violated(node->sim, "descriptors", "node %u ends with open trees", node->rank);
    if (node->death != SIM_POWER)
        return;
    disk_power_failure(&node->disk);
    tree_disk_power_failure(&node->trees);
}

/* --- for tests --- */

uint64_t sim_block_size(const char *from, uint32_t source, uint32_t destination)
{
    unsigned long long most = strtoull(strrchr(from, '/') + 1, NULL, 10);
    struct chance c = {(uint64_t)source << 32 | destination};

    if (strncmp(from, "/random/", 8) != 0)
        return most;
    uint64_t kind = chance_below(&c, 4);
    return kind == 0 ? 0 : kind == 1 ? most : chance_below(&c, most + 1);
}

void sim_disk_slow(struct sim *sim, uint32_t rank, uint64_t most)
{
    sim->slowed = true;
    sim->node[rank].disk.slowness = most;
}

void sim_disk_full(struct sim *sim, uint32_t rank, bool full)
{
    sim_harmed(sim);
    sim->node[rank].disk.full = full;
}

void sim_disk_fail(struct sim *sim, uint32_t rank, enum sim_disk_fault fault)
{
    sim_harmed(sim);
    sim->node[rank].disk.fault[fault] = true;
}

bool sim_decided(struct sim *sim, uint32_t rank, const char *id)
{
    const struct disk *disk = &sim->node[rank].disk;

    for (size_t i = 0; i < disk->decisions; i++)
        if (strcmp(disk->decision[i].id, id) == 0)
            return true;
    return false;
}

/* All outputs of an exchange that shrinks lack the blocks of the same nodes, and these nodes have no output. */
static void check_missing(struct sim *sim, uint32_t rank, const struct disk_output *o)
{
    struct sim_request *r = o->request;
    uint64_t missing = 0;

    for (uint32_t origin = 0; origin < sim->torus.nodes; origin++)
        if (origin != rank && disk_output_size(o, origin) == -1)
            missing |= UINT64_C(1) << origin;
    if (r->missing_in[0] == '\0') {
        r->missing = missing;
        (void)snprintf(r->missing_in, sizeof r->missing_in, "%s", o->id);
    }
    if (strcmp(r->missing_in, o->id) != 0)
        sim_violated(sim, "missing nodes", "both %s and %s have been committed", r->missing_in,
                     o->id);
    if (missing != r->missing || (missing & UINT64_C(1) << rank) != 0 ||
        (r->missing & UINT64_C(1) << rank) != 0)
        sim_violated(sim, "missing nodes",
                     "of %s node %u lacks the blocks of %" PRIx64
                     ", another node those of %" PRIx64,
                     o->id, rank, missing, r->missing);
}

/* An output under its final name has every block for the node, whole, and no others. */
static void check_whole(struct sim *sim, uint32_t rank, const struct disk_output *o)
{
    const struct sim_request *r = o->request;

    if (r != NULL && r->shrink)
        check_missing(sim, rank, o);
    for (uint32_t origin = 0; r != NULL && origin < sim->torus.nodes; origin++) {
        bool expected = r->operation != OPERATION_BROADCAST || origin == r->sender;
        if (r->shrink && (r->missing & UINT64_C(1) << origin) != 0)
            continue;
        uint32_t intended = r->operation == OPERATION_EXCHANGE ? rank : origin;
        int64_t size = disk_output_size(o, origin);
        int64_t wanted = expected ? (int64_t)sim_block_size(r->from, origin, intended) : -1;
        if (size != wanted && (origin != rank || size != -1) && !sim->lied)
            sim_violated(sim, "whole outputs",
                         "node %u has %lld of %lld bytes from node %u under its final name", rank,
                         (long long)size, (long long)wanted, origin);
    }
}

enum sim_output sim_output(struct sim *sim, uint32_t rank, const char *id)
{
    struct disk_output o;

    for (size_t i = 0; disk_output(&sim->node[rank].disk, id, i, &o); i++) {
        if (o.name[0] == '\0')
            continue;
        if (o.temporary)
            return SIM_OUTPUT_TEMPORARY;
        check_whole(sim, rank, &o);
        return SIM_OUTPUT_FINAL;
    }
    return SIM_OUTPUT_NONE;
}

static void note_leftover(void *context, const char *name)
{
    if (strcmp(name, "calibration") != 0)
        (void)snprintf(context, DISK_NAME, "%s", name);
}

const char *sim_leftover(struct sim *sim, uint32_t rank)
{
    static char name[DISK_NAME];
    struct node *node = &sim->node[rank];
    struct disk_output o;

    name[0] = '\0';
    disk_each_name(&node->disk, "state", note_leftover, name);
    for (size_t i = 0; disk_output(&node->disk, NULL, i, &o); i++)
        if (o.name[0] != '\0' && o.temporary)
            note_leftover(name, o.name);
    return name[0] != '\0' ? name : NULL;
}

/* The name of a folder somewhere below another one, or "". */
static const char *name_of(const struct inode *in, const struct inode *folder)
{
    for (size_t i = 0; i < in->now.count; i++) {
        const struct entry *at = &in->now.entry[i];
        const char *below = at->inode == folder              ? at->name
                            : at->inode->kind == FILE_FOLDER ? name_of(at->inode, folder)
                                                             : "";
        if (below[0] != '\0')
            return below;
    }
    return "";
}

bool disk_output(const struct disk *disk, const char *id, size_t index, struct disk_output *out)
{
    for (const struct inode *inode = disk->all; inode != NULL; inode = inode->next) {
        if (inode->made_as[0] == '\0' || (id != NULL && strcmp(inode->made_for, id) != 0) ||
            index-- > 0)
            continue;
        *out = (struct disk_output){.id = inode->made_for,
                                    .name = name_of(disk->root, inode),
                                    .request = inode->request,
                                    .folder = inode};
        out->temporary = disk_is_output_name(out->name);
        return true;
    }
    return false;
}

int64_t disk_output_size(const struct disk_output *output, uint32_t origin)
{
    char name[16];
    uint64_t bytes = 0;

    (void)snprintf(name, sizeof name, "%u", origin);
    const struct entry *at = entries_find(&output->folder->now, name);
    if (at == NULL)
        return -1;
    const struct inode *f = at->inode;
    for (size_t i = 0; i < f->runs;) /* runs of several attempts may overlap */
        if (f->run[i].from <= bytes && f->run[i].to > bytes) {
            bytes = f->run[i].to;
            i = 0;
        } else {
            i++;
        }
    return bytes == f->size ? (int64_t)bytes : -2;
}

void disk_each_name(const struct disk *disk, const char *folder,
                    void (*each)(void *context, const char *name), void *context)
{
    const struct entry *at = folder[0] != '\0' ? entries_find(&disk->root->now, folder) : NULL;
    const struct entries *names = folder[0] == '\0' ? &disk->root->now
                                  : at != NULL      ? &at->inode->now
                                                    : NULL;

    for (size_t i = 0; names != NULL && i < names->count; i++)
        each(context, names->entry[i].name);
}
