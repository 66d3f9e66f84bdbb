/* Requests to the kernel by netlink: lists, refusals, and answers that come too late. */
#include <errno.h>
#include <sys/socket.h>

#include "daemon/lib/host/netlink.h"
#include "tests/support/cmocka.h"

#define HEAD sizeof(struct ifinfomsg)

struct seen {
    unsigned count;
    int index; /* of the last interface */
    bool loopback;
};

static int on_link(const struct nlmsghdr *message, void *context)
{
    const struct ifinfomsg *link = mnl_nlmsg_get_payload(message);
    const struct nlattr *name = netlink_attribute(message, HEAD, IFLA_IFNAME);
    struct seen *seen = context;

    assert_non_null(name);
    seen->count++;
    seen->index = link->ifi_index;
    seen->loopback |= strcmp(mnl_attr_get_str(name), "lo") == 0;
    return MNL_CB_OK;
}

static struct nlmsghdr *ask_for(char buffer[NETLINK_REQUEST_SIZE], const char *name)
{
    struct nlmsghdr *request = netlink_begin(buffer, RTM_GETLINK, 0);

    (void)mnl_nlmsg_put_extra_header(request, HEAD);
    mnl_attr_put_strz(request, IFLA_IFNAME, name);
    return request;
}

TEST(lists_interfaces)
{
    struct seen seen = {0};

    assert_int_equal(netlink_list(RTM_GETLINK, AF_UNSPEC, HEAD, on_link, &seen), 0);
    assert_true(seen.count > 0 && seen.loopback);
    assert_int_equal(netlink_list(RTM_GETLINK, AF_UNSPEC, 1u << 16, on_link, &seen), -1);
    assert_int_equal(errno, EPROTO); /* no message has such a head */
}

TEST(says_what_the_kernel_refuses)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct seen seen = {0};
    struct netlink nl;

    assert_int_equal(netlink_open(&nl, NETLINK_ROUTE), 0);
    assert_int_equal(netlink_ask(&nl, ask_for(buffer, "no-such-one"), HEAD, on_link, &seen), -1);
    assert_true(nl.refused);
    assert_int_equal(errno, ENODEV);
    assert_int_equal(netlink_ask(&nl, ask_for(buffer, "lo"), HEAD, on_link, &seen), 0);
    assert_false(nl.refused);
    assert_int_equal(seen.count, 1);
    netlink_close(&nl);
    assert_int_equal(netlink_open(&nl, -1), -1);
    netlink_close(&nl);
}

/* An answer to a request that nobody waits for any more is not taken for that of the next one. */
TEST(leaves_late_answers_out)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct seen seen = {0};
    struct netlink nl;
    struct nlmsghdr *given_up;

    assert_int_equal(netlink_open(&nl, NETLINK_ROUTE), 0);
    given_up = ask_for(buffer, "no-such-one");
    given_up->nlmsg_seq = UINT32_MAX;
    assert_true(mnl_socket_sendto(nl.socket, given_up, given_up->nlmsg_len) > 0);
    assert_int_equal(netlink_ask(&nl, ask_for(buffer, "lo"), HEAD, on_link, &seen), 0);
    assert_int_equal(seen.count, 1);
    assert_true(seen.loopback);
    netlink_close(&nl);
}
