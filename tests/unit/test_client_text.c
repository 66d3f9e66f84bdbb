/* Texts from elsewhere. */
#include "proto/text.h"
#include "tests/support/cmocka.h"

static void check(const char *in, const char *out)
{
    char text[64];
    strcpy(text, in);
    text_clean(text);
    assert_string_equal(text, out);
}

TEST(test_kept)
{
    check("", "");
    check("node 3 is down", "node 3 is down");
    check("größer \xe2\x82\xac \xf0\x9f\x98\x80", "größer \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(test_replaced)
{
    check("a\nb\tc\033[0m\x7f", "a?b?c?[0m?");
    check("\xc2\x9b", "??"); /* a control character in two bytes */
    check("\xff\xfe", "??");
    check("\xc0\xaf", "??");           /* overlong */
    check("\xed\xa0\x80", "???");      /* surrogate */
    check("\xf4\x90\x80\x80", "????"); /* beyond the last character */
    check("ok \xe2\x82", "ok ??");     /* cut short */
    check("\xe2\x82x", "??x");
}

TEST(test_constant_untouched)
{
    static const char constant[] = "read only";

    text_clean((char *)(uintptr_t)constant);
}
