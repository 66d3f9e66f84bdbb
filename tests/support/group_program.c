/* A program of a group, for tests: group_program SOCKET NAME COMMAND...
 *
 *     all SEED ROUNDS   every operation with sizes drawn from SEED, checked, from all kinds of memory.
 *                       With ROUNDS 0, until one of the programs receives SIGTERM. Prints "open"
 *     loop BYTES COUNT  alltoall of blocks of BYTES bytes; COUNT 0: for ever. Prints "open" when the
 *                       group is open, and at the end the median time of a call in microseconds
 *     barrier COUNT     the same with barriers
 *     shrink SEED ROUNDS COUNT
 *                       calls barriers until the group fails because a node is down, and goes on in the
 *                       group that torus_group_shrink() makes; COUNT times, then continues as `all` with
 *                       ROUNDS. Prints "open", and each time "shrunk" and the nodes that are left
 *     survive SEED      as `all` with ROUNDS 0, but when a link or a node goes down, goes on in the
 *                       group that torus_group_shrink() makes. Prints "open", and each time "shrunk", the
 *                       nodes that are left, and "open" again
 *     open COUNT        opens COUNT groups, NAME and a number each, and never closes one
 *
 * Exits with 0, or with 1 and "code: text" of the error on standard output. */
#include "checked_group.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Every operation ------------------------------------------------------------------------- */

static volatile sig_atomic_t terminated;

static void on_sigterm(int signum)
{
    terminated = 1;
}

/* Whether one of the programs is to end: the same for all. */
static bool one_is_to_end(void)
{
    uint8_t here = (uint8_t)terminated, all = 0;

    OK(torus_allreduce(self.group, &here, &all, 1, TORUS_UINT8, TORUS_MAX, &self.error));
    return all != 0;
}

static struct torus_group *choice[3]; /* the whole, and its parts along the first two dimensions */
static unsigned choices = 1;
static bool has_shrunk; /* there are no parts then */

static void open_parts(void)
{
    choice[0] = self.group;
    if (has_shrunk || strchr(torus_group_dims(self.group), 'x') == NULL)
        return;
    for (choices = 1; choices < 3; choices++)
        if (torus_group_part(self.group, 1u << (choices - 1), &choice[choices], &self.error) != 0) {
            if (checked_survives) /* of a group that has lost nodes or links, all members are refused */
                return;
            checked_give_up();
        }
}

static void run_all(uint64_t seed, unsigned rounds)
{
    static uint8_t *plain[2]; /* allocated once: a program that survives runs this again */
    for (unsigned i = 0; i < 2; i++)
        plain[i] = plain[i] != NULL ? plain[i] : malloc(CHECKED_ROOM);
    uint8_t *shared[2] = {torus_memory_new(self.group, CHECKED_ROOM, &self.error),
                          torus_memory_new(self.group, CHECKED_ROOM, &self.error)};

    if (shared[0] == NULL || shared[1] == NULL || plain[0] == NULL || plain[1] == NULL)
        checked_give_up();
    checked_seed(seed);
    if (rounds == 0)
        (void)signal(SIGTERM, on_sigterm);
    open_parts();
    (void)puts("open");
    (void)fflush(stdout);
    for (unsigned round = 0; rounds == 0 || round < rounds; round++) {
        checked_choose(choice[0]);
        if (rounds == 0 && round % 8 == 7 && one_is_to_end())
            break;
        checked_choose(choice[checked_chance(2) == 0 ? checked_chance(choices) : 0]);
        checked_operation(plain, shared, round);
    }
    checked_choose(choice[0]);
}

/* ---- One operation --------------------------------------------------------------------------- */

static double now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void loop(bool barrier, size_t block, unsigned count)
{
    uint8_t *from = torus_memory_new(self.group, block * self.size + 1, &self.error);
    uint8_t *to = torus_memory_new(self.group, block * self.size + 1, &self.error);
    double *each = calloc(count + 1, sizeof *each);

    if (from == NULL || to == NULL)
        checked_give_up();
    (void)puts("open");
    (void)fflush(stdout);
    for (unsigned i = 0; count == 0 || i < count; i++) {
        double start = now_us();
        if (barrier) {
            OK(torus_barrier(self.group, &self.error));
        } else {
            for (uint32_t d = 0; d < self.size; d++)
                checked_write_block(from + d * block, self.rank, d, block, i);
            OK(torus_alltoall(self.group, from, to, block, &self.error));
            for (uint32_t s = 0; s < self.size; s++)
                checked_block("alltoall", to + s * block, s, self.rank, block, i);
        }
        if (count > 0)
            each[i] = now_us() - start;
    }
    qsort(each, count, sizeof *each, by_size);
    (void)printf("%.1f\n", each[count / 2]);
    free(each);
}

/* ---- Groups that fail -------------------------------------------------------------------------- */

/* Returns when the group has failed in such a way that shrinking helps. */
static void wait_for_failure(void)
{
    while (torus_barrier(self.group, &self.error) == 0)
        ;
    if (self.error.code != TORUS_ERROR_LINK)
        checked_give_up();
}

/* A group that has left out nodes refuses to be divided into parts. */
static void check_no_parts(void)
{
    struct torus_group *part;

    if (strchr(torus_group_dims(self.group), 'x') == NULL)
        return;
    if (torus_group_part(self.group, 1, &part, &self.error) == 0)
        checked_wrong("part", 0);
    if (self.error.code != TORUS_ERROR_REFUSED)
        checked_give_up();
}

static void say_members(void)
{
    (void)printf("shrunk");
    for (uint32_t member = 0; member < self.size; member++)
        (void)printf(" %u", (unsigned)torus_group_node(self.group, member));
    (void)puts("");
    (void)fflush(stdout);
}

static void shrink(unsigned count)
{
    (void)puts("open");
    (void)fflush(stdout);
    for (unsigned i = 0; i < count; i++) {
        uint8_t *old = torus_memory_new(self.group, 5000, &self.error);
        struct torus_group *failed = self.group;
        if (old == NULL)
            checked_give_up();
        checked_write_block(old, self.rank, self.rank, 5000, i);
        wait_for_failure();
        if (torus_group_shrink(failed, &self.group, &self.error) != 0)
            checked_give_up();
        if (torus_barrier(failed, &self.error) == 0)
            checked_wrong("barrier of a failed group", 0);
        checked_block("memory of a failed group", old, self.rank, self.rank, 5000, i);
        torus_group_close(failed);
        checked_choose(self.group);
        check_no_parts();
        say_members();
    }
    has_shrunk = true;
}

static void survive(uint64_t seed)
{
    if (setjmp(checked_gone_down) != 0) {
        struct torus_group *failed = choice[0];
        checked_survives = false;
        OK(torus_group_shrink(failed, &self.group, &self.error));
        torus_group_close(failed); /* with its parts */
        checked_choose(self.group);
        say_members();
    }
    checked_survives = true;
    choice[0] = self.group;
    run_all(seed, 0);
    checked_survives = false;
}

static void open_many(struct torus_group_options *options, unsigned count)
{
    char name[64];

    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "%.40s-%u", options->name, i);
        struct torus_group_options o = *options;
        o.name = name;
        OK(torus_group_open(&o, &self.group, &self.error));
    }
}

int main(int argc, char **argv)
{
    struct torus_group_options options;

    if (argc < 5)
        return 2;
    torus_group_options_init(&options);
    options.socket = argv[1];
    options.name = argv[2];
    if (strcmp(argv[3], "open") == 0) {
        options.timeout_ms = 1000;
        open_many(&options, (unsigned)atoi(argv[4]));
        return 0;
    }
    OK(torus_group_open(&options, &self.group, &self.error));
    checked_choose(self.group);
    if (strcmp(argv[3], "shrink") == 0 && argc > 6) {
        shrink((unsigned)atoi(argv[6]));
        run_all((uint64_t)atoll(argv[4]), (unsigned)atoi(argv[5]));
    } else if (strcmp(argv[3], "all") == 0 && argc > 5)
        run_all((uint64_t)atoll(argv[4]), (unsigned)atoi(argv[5]));
    else if (strcmp(argv[3], "survive") == 0)
        survive((uint64_t)atoll(argv[4]));
    else if (strcmp(argv[3], "barrier") == 0)
        loop(true, 0, (unsigned)atoi(argv[4]));
    else if (argc > 5)
        loop(false, (size_t)atoll(argv[4]), (unsigned)atoi(argv[5]));
    torus_group_close(self.group);
    return 0;
}
