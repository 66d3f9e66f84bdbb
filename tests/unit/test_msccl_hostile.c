/* Malicious XML and XML of other kinds are refused with the line number. */
#include "tests/support/cmocka.h"
#include "tests/unit/msccl_fixture.h"

#define OPEN_BLOCK ALGO GPU("0", "0") TB("0", "1", "-1")
#define NOTHING STEP("0", "nop", "i", "0", "o", "0", NO)

/* A step outside of a thread block. */
TEST(a_step_inside_a_copy_is_refused)
{
    struct torus t = msccl_torus("3");

    msccl_refused(ALGO GPU("0", "0") "<copy>\n" NOTHING "</copy>", &t, "line 7",
                  "<copy> must be empty, but contains <step>");
    msccl_refused(ALGO GPU0 GPU("1", "0") "<copy>\n" NOTHING "</copy>", &t, "line",
                  "<copy> must be empty, but contains <step>");
    msccl_refused(ALGO GPU("0", "0") "<copy>" TB("0", "1", "-1") NOTHING "</tb></copy>", &t,
                  "line 6", "contains <tb>");
    msccl_refused(ALGO GPU("0", "0") "<copy><copy/></copy>", &t, "line 6", "contains <copy>");
}

TEST(elements_stay_where_they_belong)
{
    static const struct {
        const char *xml, *part, *other;
    } cases[] = {
        {"<schedule/>", "line 1", "<algo> is expected as the outermost element, not <schedule>"},
        {"<tb id='0'/>", "line 1", "not <tb>"},
        {ALGO "<algo/>", "line 4", "<gpu> is expected in <algo>, not <algo>"},
        {ALGO "\n<tb id='0'/>", "line 5", "<gpu> is expected in <algo>, not <tb>"},
        {ALGO "<step/>", "line 4", "not <step>"},
        {ALGO GPU("0", "0") "<gpu/>", "line 6", "<tb> or <copy> is expected in <gpu>, not <gpu>"},
        {ALGO GPU("0", "0") NOTHING, "line 6", "in <gpu>, not <step>"},
        {OPEN_BLOCK "<copy/>", "line 7", "<step> is expected in <tb>, not <copy>"},
        {OPEN_BLOCK TB("1", "-1", "1"), "line 7", "not <tb>"},
        {OPEN_BLOCK "<step s='0' type='nop' depid='-1' deps='-1'><step/></step>", "line 7",
         "<step> must be empty, but contains <step>"},
        {OPEN_BLOCK "</tb></gpu>\n<a-name-that-is-longer-than-errors-are/>", "line 8",
         "not <a-name-that-is-longe>"},
        /* Prefixes are part of a name: nothing of MSCCL's has one. */
        {"<m:algo xmlns:m='urn:msccl' coll='alltoall' ngpus='3'/>", "line 1", "not <m:algo>"},
        {OPEN_BLOCK "<m:step/>", "line 7", "not <m:step>"},
        {"<algo m:coll='alltoall' ngpus='3'/>", "line 1", "coll"},
        {ALGO "text", "line 4", "text in <algo>, where only elements are possible: \"text\""},
        {ALGO GPU("0", "0") " \t\n <![CDATA[more of it]]>", "line 7", "\"more of it\""},
        {OPEN_BLOCK "&lt;step/&gt;", "line 7", "text in <tb>"},
    };
    struct torus t = msccl_torus("3");

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        msccl_refused(cases[i].xml, &t, cases[i].part, cases[i].other);
}

TEST(document_types_are_refused)
{
    static const char *const types[] = {
        "<!DOCTYPE algo>",
        "<!DOCTYPE algo SYSTEM 'file:///etc/passwd'>",
        "<!DOCTYPE algo PUBLIC '-//W3C//DTD' 'http://localhost/'>",
        "<!DOCTYPE algo [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>",
        "<!DOCTYPE algo [<!ENTITY % a SYSTEM 'file:///etc/passwd'> %a;]>",
        "<!DOCTYPE algo [<!ATTLIST step cnt CDATA '1'>]>",
        "<!DOCTYPE algo [<!ENTITY a 'aaaaaaaaaa'> <!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;'>"
        "<!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;&b;'> <!ENTITY d '&c;&c;&c;&c;&c;&c;&c;&c;&c;'>"
        "<!ENTITY e '&d;&d;&d;&d;&d;&d;&d;&d;&d;'> <!ENTITY f '&e;&e;&e;&e;&e;&e;&e;&e;&e;'>]>",
    };
    struct torus t = msccl_torus("3");

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char xml[4096];
        (void)snprintf(xml, sizeof xml, "<?xml version='1.0'?>\n%s\n<algo name='%s' ngpus='3'/>",
                       types[i], i == 6 ? "&f;" : "a");
        msccl_refused(xml, &t, "line 2: <!DOCTYPE algo>", "remove this declaration");
    }
    msccl_refused("<algo name='&other;'/>", &t, "line 1: not XML", "undefined entity");
}

/* BY_HAND in UTF-16 with a mark of the byte order. */
static char *in_utf16(bool big_endian, size_t *length)
{
    static const char text[] = BY_HAND;
    char *wide = malloc(2 * sizeof text), *at = wide;

    assert_non_null(wide);
    *at++ = (char)(big_endian ? 0xfe : 0xff);
    *at++ = (char)(big_endian ? 0xff : 0xfe);
    for (const char *p = text; *p != '\0'; p++) {
        *at++ = big_endian ? '\0' : *p;
        *at++ = big_endian ? *p : '\0';
    }
    *length = (size_t)(at - wide);
    return wide;
}

TEST(encodings_are_detected)
{
    struct torus t = msccl_torus("3");
    struct schedule_report report;
    size_t length;

    for (int big_endian = 0; big_endian < 2; big_endian++) {
        char *xml = in_utf16(big_endian, &length);
        imported_free(msccl_read_back(xml, length, &t, &report));
        free(xml);
    }
    static const char marked[] = "\xef\xbb\xbf" BY_HAND;
    imported_free(msccl_read_back(marked, sizeof marked - 1, &t, &report));
    msccl_refused("<?xml version='1.0' encoding='x-unknown'?><algo/>", &t, "line 1: not XML",
                  "unknown encoding");
    msccl_refused("<?xml version='1.0' encoding='UTF-16'?><algo/>", &t, "line 1: not XML",
                  "encoding");
    msccl_refused("<algo name='\xff\xfe'/>", &t, "line 1: not XML", "invalid token");
    msccl_refused("<algo name='\x1b[2J'/>", &t, "line 1: not XML", "invalid token");
    /* Quoted text is made printable: a control character of Latin-1, and half a character. */
    msccl_refused("<algo coll='alltoall' ngpus='&#x9b;2J'/>", &t, "ngpus=\"??2J\"", "line 1");
    msccl_refused("<algo coll='alltoall' ngpus='&#10;3'/>", &t, "ngpus=\"?3\"", "line 1");
}

/* `count` times `part` between a beginning and an end, to be freed by the caller. */
static char *repeated(const char *begin, const char *part, size_t count, const char *end)
{
    size_t length = strlen(begin), once = strlen(part);
    char *text = malloc(length + count * once + strlen(end) + 1), *at = text + length;

    assert_non_null(text);
    memcpy(text, begin, length);
    for (size_t i = 0; i < count; i++, at += once)
        memcpy(at, part, once);
    memcpy(at, end, strlen(end) + 1);
    return text;
}

TEST(programs_that_take_too_much_memory_are_refused)
{
    struct torus t = msccl_torus("3");
    const size_t much = 3u << 20;
    char *xml;

    xml = repeated(ALGO, "<gpu>", much, "");
    msccl_refused(xml, &t, "line 4: ", "");
    free(xml);
    xml = repeated(ALGO GPU("0", "0") "<copy>", "<copy>", much, "");
    msccl_refused(xml, &t, "line 6: <copy> must be empty", "");
    free(xml);
    xml = repeated("<!--", "comment", much / 7, "-->\n" BY_HAND);
    msccl_refused(xml, &t, "line 1: ", "a comment, takes more than 1024 KiB");
    free(xml);
    xml = repeated("<algo name='", "a", much, "' coll='alltoall' ngpus='3'/>");
    msccl_refused(xml, &t, "line 1: ", "an element with its attributes");
    free(xml);
    xml = repeated("<", "a", much, "/>");
    msccl_refused(xml, &t, "line 1: ", "takes more than 1024 KiB");
    free(xml);
}

/* Attributes with names of their own take far more memory than text. */
TEST(many_attributes_are_refused)
{
    struct torus t = msccl_torus("3");
    char *xml, *at;

    xml = malloc(1 << 20);
    assert_non_null(xml);
    at = xml + sprintf(xml, "<algo");
    for (int i = 0; i < 50000; i++)
        at += sprintf(at, " a%d=''", i);
    memcpy(at, "/>", 3);
    msccl_refused(xml, &t, "line 1: ", "takes more than 1024 KiB");
    free(xml);
    /* A hundred are fine. */
    xml = malloc(sizeof BY_HAND + 4096);
    assert_non_null(xml);
    at = xml + sprintf(xml, "<algo");
    for (int i = 0; i < 100; i++)
        at += sprintf(at, " a%d='%d'", i, i);
    (void)strcpy(at, strstr(BY_HAND, "<algo") + 5);
    imported_free(msccl_read_back(xml, strlen(xml), &t, &(struct schedule_report){0}));
    free(xml);
}
