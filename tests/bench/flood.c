/* Measures the throughput of links that all carry traffic in both directions at the same time.
 *
 *   flood SECONDS WARMUP [CONGESTION_CONTROL]
 *
 * Standard input names the links, one a line: NAMESPACE ADDRESS NAMESPACE ADDRESS, where a
 * namespace is a path such as /proc/PID/ns/net. On every link one TCP connection between the two
 * addresses is filled in both directions, by two threads. After WARMUP seconds, it counts the bytes that arrive
 * within SECONDS. Prints a JSON object: Mbit/s of payload per direction: mean, least and most.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 2, PIECE = 64 * 1024 };

struct end {
    int fd;
    uint64_t received;
    uint64_t counted;
};

struct thread {
    pthread_t id;
    int epoll;
};

static struct end *ends;
static size_t end_count;
static double count_from, count_to;
static char piece[PIECE];

static void give_up(const char *what)
{
    fprintf(stderr, "flood: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void enter(const char *namespace)
{
    int fd = open(namespace, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || setns(fd, CLONE_NEWNET) != 0)
        give_up(namespace);
    close(fd);
}

static int new_socket(const char *congestion)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        give_up("socket");
    if (congestion &&
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion)) != 0)
        give_up(congestion);
    return fd;
}

static void add_end(int fd)
{
    ends = realloc(ends, (end_count + 1) * sizeof(*ends));
    if (!ends || fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        give_up("a connection");
    ends[end_count++] = (struct end){.fd = fd};
}

static void add_link(char **words, const char *congestion)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int listener, there, here;

    enter(words[2]);
    listener = new_socket(congestion);
    if (inet_pton(AF_INET, words[3], &address.sin_addr) != 1 ||
        bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        give_up(words[3]);
    enter(words[0]);
    here = new_socket(congestion);
    if (connect(here, (struct sockaddr *)&address, sizeof(address)) != 0)
        give_up(words[3]);
    there = accept(listener, NULL, NULL);
    if (there < 0)
        give_up("accept");
    close(listener);
    add_end(here);
    add_end(there);
}

static void serve(struct end *end, uint32_t events)
{
    ssize_t done;

    if (events & EPOLLIN) {
        /* MSG_TRUNC: counted and dropped without a copy */
        done = recv(end->fd, piece, 1 << 20, MSG_TRUNC);
        if (done > 0)
            end->received += (uint64_t)done;
        else if (done == 0 || errno != EAGAIN)
            give_up("a connection has ended");
    }
    if (events & EPOLLOUT) {
        done = send(end->fd, piece, sizeof(piece), MSG_NOSIGNAL);
        if (done < 0 && errno != EAGAIN)
            give_up("send");
    }
}

static void *run(void *context)
{
    struct thread *thread = context;
    struct epoll_event events[64];

    for (;;) {
        int count = epoll_wait(thread->epoll, events, 64, 10);
        double time = now();

        if (time >= count_to)
            return NULL;
        for (int i = 0; i < count; i++) {
            struct end *end = events[i].data.ptr;
            uint64_t before = end->received;

            serve(end, events[i].events);
            if (time >= count_from)
                end->counted += end->received - before;
        }
    }
}

int main(int argc, char **argv)
{
    struct thread threads[THREADS];
    const char *congestion = argc > 3 && argv[3][0] ? argv[3] : NULL;
    double seconds, total = 0, least = 0, most = 0;
    char line[512];

    if (argc < 3) {
        fprintf(stderr, "usage: flood SECONDS WARMUP [CONGESTION_CONTROL] <LINKS\n");
        return 2;
    }
    seconds = atof(argv[1]);
    while (fgets(line, sizeof(line), stdin)) {
        char *words[4], *rest = line;
        for (int i = 0; i < 4; i++)
            if (!(words[i] = strtok_r(rest, " \n", &rest)))
                give_up("four words a line are wanted");
        add_link(words, congestion);
    }
    if (end_count == 0)
        give_up("no links");
    count_from = now() + atof(argv[2]);
    count_to = count_from + seconds;
    for (int t = 0; t < THREADS; t++)
        if ((threads[t].epoll = epoll_create1(EPOLL_CLOEXEC)) < 0)
            give_up("epoll");
    for (size_t i = 0; i < end_count; i++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = &ends[i]};
        if (epoll_ctl(threads[i / 2 % THREADS].epoll, EPOLL_CTL_ADD, ends[i].fd, &event) != 0)
            give_up("epoll");
    }
    for (int t = 0; t < THREADS; t++)
        if ((errno = pthread_create(&threads[t].id, NULL, run, &threads[t])) != 0)
            give_up("a thread");
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t].id, NULL);
    for (size_t i = 0; i < end_count; i++) {
        double mbit = (double)ends[i].counted * 8e-6 / seconds;
        total += mbit;
        least = i == 0 || mbit < least ? mbit : least;
        most = mbit > most ? mbit : most;
    }
    printf("{\"directions\":%zu,\"mean\":%.4f,\"least\":%.4f,\"most\":%.4f}\n", end_count,
           total / (double)end_count, least, most);
    return 0;
}
