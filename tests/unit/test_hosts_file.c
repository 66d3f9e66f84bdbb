/* Files of hosts: large ones, and those that have no end or are no text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "client/cli/hosts_file.h"

#define PAIR "[a]\nrank = 0\n+0 = e0\n-0 = e1\n[b]\nrank = 1\n+0 = e0\n-0 = e1\n"

static char path[] = "/tmp/torus-hosts-XXXXXX";

static int make_file(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static FILE *begin(void)
{
    FILE *out = fopen(path, "wb");

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

/* The file has to be refused with an error that has both texts; `line` 0: no line. */
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

/* inih would take what is behind the 199th character for the next line. */
static void lines_that_are_too_long_are_refused(void **state)
{
    struct host hosts[2];
    char text[1024];
    struct error e;

    (void)state;
    for (int letters = 190; letters < 600; letters += 409) {
        int length = snprintf(text, sizeof text, PAIR ";%0*d\n+1 = e2\n", letters, 0);
        refused_text(text, (size_t)length, letters < 199 ? 10 : 9,
                     letters < 199 ? "the torus has no port" : "more than 198 characters");
    }
    FILE *out = begin();
    (void)fprintf(out, PAIR ";%0*d\n;%0*d", 197, 0, 197, 0);
    assert_int_equal(fclose(out), 0);
    if (read_hosts(path, "2", hosts, &e) != 0)
        fail_msg("%s", e.text);
    assert_string_equal(hosts[1].name, "b");
}

static void what_is_not_text_is_refused(void **state)
{
    static const char zero[] = PAIR "+0 = e\0\nrank = 3\n";

    (void)state;
    refused_text(zero, sizeof zero - 1, 9, "or one that is not text");
    refused("/dev/zero", 1, "or one that is not text");
    refused("/dev/full", 1, "or one that is not text");
}

static void a_file_has_so_many_lines_at_most(void **state)
{
    FILE *out = begin();

    (void)state;
    (void)fputs(PAIR, out);
    for (int i = 0; i < 262145; i++)
        (void)fputs(";\n", out);
    assert_int_equal(fclose(out), 0);
    refused(path, 262145, "more than 262144 lines");
}

/* What comes after the first mistake is not read: it may have no end. */
static void the_first_mistake_ends_the_reading(void **state)
{
    static const char text[] = PAIR "color = red\ncolor = blue\n";

    (void)state;
    refused_text(text, sizeof text - 1, 9, "unknown setting \"color\"");
}

static void sections_may_come_in_any_order_and_in_parts(void **state)
{
    struct host *hosts = calloc(4096, sizeof *hosts);
    FILE *out = begin();
    struct error e;

    (void)state;
    assert_non_null(hosts);
    (void)fputs("[*]\n+0 = eth0\n-0 = eth1\n+1 = eth2\n-1 = eth3\n", out);
    for (unsigned i = 0; i < 4096; i++)
        (void)fprintf(out, "[host%u]\nrank = %u\n", 4095 - i, 4095 - i);
    for (unsigned i = 0; i < 4096; i++)
        (void)fprintf(out, "[host%u]\naddress = 10.1.%u.%u\n", i * 5 % 4096, i * 5 % 4096 / 256,
                      i * 5 % 256);
    assert_int_equal(fclose(out), 0);
    if (read_hosts(path, "64x64", hosts, &e) != 0)
        fail_msg("%s", e.text);
    for (unsigned i = 0; i < 4096; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "host%u", i);
        assert_string_equal(hosts[i].name, name);
        assert_int_equal(ntohl(hosts[i].address.s_addr), 0x0a010000 + i);
    }
    free(hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_that_are_too_long_are_refused),
        cmocka_unit_test(what_is_not_text_is_refused),
        cmocka_unit_test(a_file_has_so_many_lines_at_most),
        cmocka_unit_test(the_first_mistake_ends_the_reading),
        cmocka_unit_test(sections_may_come_in_any_order_and_in_parts),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
