#include "client/torch/node_links.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <c10/util/Exception.h>

namespace torus_torch
{

size_t most_on_node(Kind kind, const Ranks &ranks)
{
    const size_t most = most_calls[size_t(kind)];

    /* All ranks take part in a collective call. */
    return kind == Kind::collective ? most : most / ranks.count(ranks.member);
}

/* ---- Connecting ------------------------------------------------------------------------------ */

static std::string key_of(const Place &place)
{
    return c10::str("torus/", place.name, "/", place.ranks.nodes[place.ranks.member]);
}

/* A socket that closes itself unless it is taken. */
class Socket
{
  public:
    explicit Socket(int fd) : fd_(fd)
    {
        TORCH_CHECK(fd >= 0, "torus: no socket: ", strerror(errno));
    }

    Socket(Socket &&other) noexcept : fd_(other.take())
    {
    }

    Socket &operator=(Socket &&other) noexcept
    {
        std::swap(fd_, other.fd_);
        return *this;
    }

    ~Socket()
    {
        if (fd_ >= 0)
            (void)close(fd_);
    }

    int fd() const
    {
        return fd_;
    }

    int take()
    {
        return std::exchange(fd_, -1);
    }

  private:
    int fd_;
};

/* The kernel chooses a name that is not a file's. Others learn it by the store. */
static void listen_on(const Socket &socket, const Place &place)
{
    sockaddr_un address = {};
    socklen_t length = sizeof address.sun_family;

    address.sun_family = AF_UNIX;
    bool done = bind(socket.fd(), reinterpret_cast<sockaddr *>(&address), length) == 0 &&
                listen(socket.fd(), SOMAXCONN) == 0;
    length = sizeof address;
    done = done && getsockname(socket.fd(), reinterpret_cast<sockaddr *>(&address), &length) == 0;
    TORCH_CHECK(done, "torus: no socket for the ranks of this node: ", strerror(errno));
    const auto *const name = reinterpret_cast<const uint8_t *>(&address);
    place.store->set(key_of(place), std::vector<uint8_t>(name, name + length));
}

static bool is_same_user(const Socket &socket)
{
    ucred who = {};
    socklen_t length = sizeof who;

    return getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 &&
           who.uid == geteuid();
}

/* What a guest says first. Only ranks of the group know its name, which they have from the store. */
struct Hello {
    uint32_t local; /* the number of the guest on its node */
    char group[64];

    Hello() = default;

    explicit Hello(const Place &place) : local(place.ranks.local_of(place.ranks.mine)), group()
    {
        place.name.copy(group, sizeof group - 1);
    }
};

/* Waits until one of these sockets can be read. Returns whether one can before `end`. */
static bool await(const std::vector<Socket> &sockets, std::vector<pollfd> *ready,
                  std::chrono::steady_clock::time_point end)
{
    using std::chrono::milliseconds;
    const auto left =
        std::chrono::duration_cast<milliseconds>(end - std::chrono::steady_clock::now());
    const auto wait = std::clamp(left, milliseconds(0), milliseconds(3600 * 1000));

    ready->clear();
    for (const Socket &socket : sockets)
        ready->push_back({socket.fd(), POLLIN, 0});
    return poll(ready->data(), ready->size(), int(wait.count())) > 0 ||
           std::chrono::steady_clock::now() < end;
}

/* The guests of a leader that have come so far. */
class Arrivals
{
  public:
    explicit Arrivals(const Place &place) : place_(place)
    {
        for (uint32_t i = 1; i < place.ranks.count(place.ranks.member); i++)
            guests_.emplace_back();
    }

    /* Returns the number of the first that is missing, or 0. */
    size_t missing() const
    {
        for (size_t i = 0; i < guests_.size(); i++)
            if (!guests_[i])
                return i + 1;
        return 0;
    }

    /* Takes a connection if it is that of a guest. */
    void take(Socket connection)
    {
        Hello hello;
        const bool known =
            recv(connection.fd(), &hello, sizeof hello, MSG_DONTWAIT) == ssize_t(sizeof hello) &&
            is_same_user(connection) && hello.local > 0 && hello.local <= guests_.size() &&
            !guests_[hello.local - 1] &&
            memcmp(hello.group, Hello(place_).group, sizeof hello.group) == 0;

        if (known)
            guests_[hello.local - 1] = std::move(connection);
    }

    std::vector<int> give()
    {
        std::vector<int> result;

        for (auto &guest : guests_)
            result.push_back(guest->take());
        return result;
    }

  private:
    const Place &place_;
    std::vector<std::optional<Socket>> guests_;
};

std::vector<int> accept_guests(const Place &place)
{
    const auto end = std::chrono::steady_clock::now() + place.timeout;
    Arrivals arrivals(place);
    std::vector<Socket> sockets; /* the first listens; the others have not said who they are */
    std::vector<pollfd> ready;

    if (arrivals.missing() == 0)
        return {};
    sockets.emplace_back(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    listen_on(sockets[0], place);
    while (arrivals.missing() > 0) {
        if (!await(sockets, &ready, end))
            fail(error_of(TORUS_ERROR_TIMEOUT,
                          c10::str("rank ", place.ranks.mine + arrivals.missing(),
                                   " on this node has not opened the group")));
        for (size_t i = ready.size() - 1; i > 0; i--)
            if (ready[i].revents != 0) {
                arrivals.take(std::move(sockets[i]));
                sockets.erase(sockets.begin() + ptrdiff_t(i));
            }
        if (ready[0].revents != 0)
            sockets.emplace_back(accept4(sockets[0].fd(), nullptr, nullptr, SOCK_CLOEXEC));
    }
    return arrivals.give();
}

int connect_leader(const Place &place)
{
    const Hello hello(place);
    Socket socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));

    place.store->wait({key_of(place)}, place.timeout);
    const std::vector<uint8_t> name = place.store->get(key_of(place));
    TORCH_CHECK(connect(socket.fd(), reinterpret_cast<const sockaddr *>(name.data()),
                        socklen_t(name.size())) == 0 &&
                    send(socket.fd(), &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello,
                "torus: rank ", place.ranks.first[place.ranks.member],
                " on this node cannot be reached: ", strerror(errno));
    return socket.take();
}

/* ---- Parcels --------------------------------------------------------------------------------- */

/* A message with a number and one descriptor. */
struct Packet {
    explicit Packet(uint64_t *number) : part{number, sizeof *number}
    {
        head.msg_iov = &part;
        head.msg_iovlen = 1;
        head.msg_control = control;
        head.msg_controllen = sizeof control;
    }

    iovec part;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr head = {};
};

bool send_parcel(int fd, uint64_t number, int parcel)
{
    Packet packet(&number);
    cmsghdr *const control = CMSG_FIRSTHDR(&packet.head);

    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof parcel);
    memcpy(CMSG_DATA(control), &parcel, sizeof parcel);
    return sendmsg(fd, &packet.head, MSG_NOSIGNAL) == sizeof number;
}

int receive_parcel(int fd, uint64_t *number, int *parcel)
{
    Packet packet(number);
    const ssize_t got = recvmsg(fd, &packet.head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const cmsghdr *const control = CMSG_FIRSTHDR(&packet.head);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got != sizeof *number || control == nullptr || control->cmsg_type != SCM_RIGHTS)
        return -1;
    memcpy(parcel, CMSG_DATA(control), sizeof *parcel);
    return 1;
}

} // namespace torus_torch
