/* Texts from elsewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "proto/text.h"

static void check(const char *in, const char *out)
{
    char text[64];
    strcpy(text, in);
    text_clean(text);
    assert_string_equal(text, out);
}

static void test_kept(void **state)
{
    (void)state;
    check("", "");
    check("node 3 is down", "node 3 is down");
    check("größer \xe2\x82\xac \xf0\x9f\x98\x80", "größer \xe2\x82\xac \xf0\x9f\x98\x80");
}

static void test_replaced(void **state)
{
    (void)state;
    check("a\nb\tc\033[0m\x7f", "a?b?c?[0m?");
    check("\xc2\x9b", "??"); /* a control character in two bytes */
    check("\xff\xfe", "??");
    check("\xc0\xaf", "??");           /* overlong */
    check("\xed\xa0\x80", "???");      /* surrogate */
    check("\xf4\x90\x80\x80", "????"); /* beyond the last character */
    check("ok \xe2\x82", "ok ??");     /* cut short */
    check("\xe2\x82x", "??x");
}

static void test_constant_untouched(void **state)
{
    static const char constant[] = "read only";
    (void)state;
    text_clean((char *)(uintptr_t)constant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_constant_untouched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
