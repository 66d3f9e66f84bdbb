/* Files of hosts: large files, endless files, and files that are not text. */
#include <arpa/inet.h>

#include "daemon/lib/cluster/hosts_file.h"
#include "tests/support/cmocka.h"

#define PAIR "[a]\nrank = 0\n+0 = e0\n-0 = e1\n[b]\nrank = 1\n+0 = e0\n-0 = e1\n"

static const char *path;

static FILE *begin(void)
{
    FILE *out = fopen(path = file_of("", 0), "wb");

    assert_non_null(out);
    return out;
}

static int read_hosts(const char *from, const char *dims, struct host *hosts, struct error *e)
{
    struct in_addr first = {htonl(0x0a800001)};
    struct ip_routes r;
    struct torus t;

    assert_int_equal(torus_parse(&t, dims, e), 0);
    assert_int_equal(ip_routes_init(&r, &t, NULL, e), 0);
    int rc = hosts_file_read(hosts, &r, from, first, e);
    ip_routes_free(&r);
    return rc;
}

/* Fails the test unless the file is refused with an error that contains both texts; `line` 0: no line number. */
static void refused(const char *from, int line, const char *part)
{
    struct host hosts[2];
    char place[64];
    struct error e;

    assert_int_equal(read_hosts(from, "2", hosts, &e), -1);
    (void)snprintf(place, sizeof place, "%s:%d: ", from, line);
    if (strncmp(e.text, place, strlen(place)) != 0 || strstr(e.text, part) == NULL)
        fail_msg("\"%s\" or \"%s\" is not in \"%s\"", place, part, e.text);
}

static void refused_text(const char *text, size_t length, int line, const char *part)
{
    FILE *out = begin();

    assert_int_equal(fwrite(text, 1, length, out), length);
    assert_int_equal(fclose(out), 0);
    refused(path, line, part);
}

TEST(lines_may_be_of_any_length)
{
    struct host hosts[2];
    char text[4096];
    struct error e;

    int length = snprintf(text, sizeof text, PAIR ";%0*d\n+1 = e2\n", 3000, 0);
    refused_text(text, (size_t)length, 10, "the torus has no port");
    FILE *out = begin();
    (void)fprintf(out, PAIR ";%0*d\n;%0*d", 3000, 0, 3000, 0);
    assert_int_equal(fclose(out), 0);
    if (read_hosts(path, "2", hosts, &e) != 0)
        fail_msg("%s", e.text);
    assert_string_equal(hosts[1].name, "b");
}

/* Without a line number, because the file is not parsed. */
static void refused_as_a_whole(const char *from, const char *part)
{
    struct host hosts[2];
    struct error e;

    assert_int_equal(read_hosts(from, "2", hosts, &e), -1);
    if (strncmp(e.text, from, strlen(from)) != 0 || strstr(e.text, part) == NULL)
        fail_msg("\"%s\" and \"%s\" are not in \"%s\"", from, part, e.text);
}

TEST(files_that_are_not_text_are_refused)
{
    static const char zero[] = PAIR "+0 = e\0\nrank = 3\n";
    FILE *out = begin();

    assert_int_equal(fwrite(zero, 1, sizeof zero - 1, out), sizeof zero - 1);
    assert_int_equal(fclose(out), 0);
    refused_as_a_whole(path, "line 9 has a NUL byte");
    refused_as_a_whole("/dev/zero", "line 1 has a NUL byte");
    refused_as_a_whole("/dev/full", "line 1 has a NUL byte");
}

TEST(a_file_has_so_many_bytes_at_most)
{
    FILE *out = begin();

    (void)fputs(PAIR, out);
    for (int i = 0; i < 8 << 20; i++)
        (void)fputs(";\n", out);
    assert_int_equal(fclose(out), 0);
    refused_as_a_whole(path, "longer than the 16 MiB that a file of hosts can have");
}

/* Nothing is read after the first mistake: the file may be endless. */
TEST(the_first_mistake_ends_the_reading)
{
    static const char text[] = PAIR "color = red\ncolor = blue\n";

    refused_text(text, sizeof text - 1, 9, "unknown setting \"color\"");
}

static void check_large(int length)
{
    struct host *hosts = calloc(4096, sizeof *hosts);
    char name[512];
    struct error e;

    assert_non_null(hosts);
    if (read_hosts(path, "64x64", hosts, &e) != 0)
        fail_msg("%s", e.text);
    for (unsigned i = 0; i < 4096; i++) {
        (void)snprintf(name, sizeof name, "h%0*u", length, i);
        assert_string_equal(hosts[i].name, name);
        /* 10.1.0.0 and 10.1.255.0 are addresses like others: no prefix is given. */
        assert_int_equal(ntohl(hosts[i].address.s_addr), 0x0a010000 + i);
    }
    free(hosts);
}

/* In an order of their own, with short names and with long ones that are nearly the same. */
TEST(many_sections_in_any_order)
{
    for (int length = 4; length <= 250; length += 246) {
        FILE *out = begin();
        (void)fputs("[*]\n+0 = eth0\n-0 = eth1\n+1 = eth2\n-1 = eth3\n", out);
        for (unsigned i = 0; i < 4096; i++) {
            unsigned rank = i * 5 % 4096;
            (void)fprintf(out, "[h%0*u]\nrank = %u\naddress = 10.1.%u.%u\n", length, rank, rank,
                          rank / 256, rank % 256);
        }
        assert_int_equal(fclose(out), 0);
        check_large(length);
    }
}
