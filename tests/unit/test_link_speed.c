#include "daemon/lib/net/link_speed.h"
#include "folder_fixture.h"
#include "tests/support/cmocka.h"

/* Makes what the kernel says about an interface. `device`: it is a card. */
static void make_interface(void **state, const char *name, bool device, const char *speed)
{
    char path[FIXTURE_PATH];

    make_folder(at(state, name));
    (void)snprintf(path, sizeof path, "%s/device", name);
    if (device)
        make_folder(at(state, path));
    (void)snprintf(path, sizeof path, "%s/speed", name);
    if (speed != NULL)
        make_file(at(state, path), speed, strlen(speed));
}

static uint32_t speed_of(void **state, const char *name)
{
    char folder[FIXTURE_PATH];

    (void)snprintf(folder, sizeof folder, "%s", at(state, "."));
    return link_speed_mbit(folder, name);
}

FOLDER_TEST(only_cards_have_a_speed)
{
    make_interface(state, "eth0", true, "2500\n");
    make_interface(state, "eth1", true, "-1\n");
    make_interface(state, "eth2", true, "");
    make_interface(state, "eth3", true, NULL);
    make_interface(state, "eth4", true, "fast\n");
    make_interface(state, "eth5", true, "99999999999999\n");
    make_interface(state, "eth6", true, "65535\n");
    make_interface(state, "eth7", true, "4294968\n");
    make_interface(state, "veth0", false, "10000\n");
    assert_int_equal(speed_of(state, "eth0"), 2500);
    for (unsigned i = 1; i <= 7; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "eth%u", i);
        assert_int_equal(speed_of(state, name), 0);
    }
    assert_int_equal(speed_of(state, "veth0"), 0);
    assert_int_equal(speed_of(state, "none"), 0);
    assert_int_equal(speed_of(state, ""), 0);
    assert_int_equal(speed_of(state, "../eth0"), 0);
}
