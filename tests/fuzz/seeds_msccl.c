#include <string.h>

#include "client/cli/schedule_files/msccl.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/seeds.h"

/* An algorithm's schedule as torusctl writes it and, without the torus, as other programs write it. */
static void algorithm_seeds(const char *folder, const char *dims, const char *algorithm)
{
    struct torus t;
    struct error e;
    char name[64], *xml;
    size_t length;

    REQUIRE(torus_parse(&t, dims, &e) == 0);
    FILE *memory = open_memstream(&xml, &length);
    REQUIRE(memory != NULL && msccl_print(memory, &t, algorithm_find(algorithm), &e) == 0);
    REQUIRE(fclose(memory) == 0);
    (void)snprintf(name, sizeof name, "%s-%s", dims, algorithm);
    (void)fwrite(xml, 1, length, open_seed(folder, "msccl", name, -1));
    close_seed();
    char *torus = strstr(xml, " torus=");
    REQUIRE(torus != NULL);
    (void)snprintf(name, sizeof name, "%s-%s-foreign", dims, algorithm);
    FILE *out = open_seed(folder, "msccl", name, -1);
    (void)fwrite(xml, 1, (size_t)(torus - xml), out);
    (void)fputs(strchr(torus, '>'), out);
    close_seed();
    free(xml);
}

/* Every kind of step, element and dependency: the block of GPU 0 for GPU 2 goes through GPU 1. */
static const char every_kind[] = "<?xml version='1.0'?>\n"
                                 "<!-- a comment -->\n"
                                 "<algo coll='alltoall' ngpus='3'>\n"
                                 "<gpu id='0' i_chunks='3' o_chunks='3' s_chunks='2'>\n"
                                 "<tb id='0' send='1' recv='1' chan='0'>\n"
                                 "<step s='0' type='s' srcbuf='i' srcoff='1'"
                                 " dstbuf='o' dstoff='0' cnt='1' depid='-1' deps='-1'/>\n"
                                 "<step s='1' type='cpy' srcbuf='i' srcoff='2'"
                                 " dstbuf='s' dstoff='1' cnt='1' depid='-1' deps='-1'/>\n"
                                 "<step s='2' type='s' srcbuf='s' srcoff='1'"
                                 " dstbuf='s' dstoff='0' cnt='1' depid='-1' deps='-1'/>\n"
                                 "<step s='3' type='r' srcbuf='i' srcoff='0'"
                                 " dstbuf='o' dstoff='1' cnt='1' depid='-1' deps='-1'/>\n"
                                 "</tb>\n"
                                 "<tb id='1' send='-1' recv='2' chan='0'>\n"
                                 "<step s='0' type='r' srcbuf='i' srcoff='0'"
                                 " dstbuf='o' dstoff='2' cnt='1' depid='-1' deps='-1'/>\n"
                                 "</tb>\n"
                                 "</gpu>\n"
                                 "<gpu id='1' i_chunks='3' o_chunks='3' s_chunks='2'>\n"
                                 "<copy i_off='1' o_off='1'/>\n"
                                 "<tb id='0' send='2' recv='0' chan='0'>\n"
                                 "<step s='0' type='r' srcbuf='i' srcoff='1'"
                                 " dstbuf='o' dstoff='0' cnt='1' depid='-1' deps='-1'/>\n"
                                 "<step s='1' type='rcs' srcbuf='i' srcoff='2'"
                                 " dstbuf='s' dstoff='0' cnt='1' depid='-1' deps='-1'/>\n"
                                 "<step s='2' type='s' srcbuf='i' srcoff='2'"
                                 " dstbuf='o' dstoff='1' cnt='1' depid='-1' deps='-1'/>\n"
                                 "</tb>\n"
                                 "<tb id='1' send='0' recv='2' chan='0'>\n"
                                 "<step s='0' type='nop' srcbuf='i' srcoff='0'"
                                 " dstbuf='o' dstoff='0' cnt='1' depid='0' deps='1'/>\n"
                                 "<step s='1' type='s' srcbuf='i' srcoff='0'"
                                 " dstbuf='o' dstoff='1' cnt='1' depid='0' deps='2'/>\n"
                                 "<step s='2' type='r' srcbuf='i' srcoff='1'"
                                 " dstbuf='o' dstoff='2' cnt='1' depid='-1' deps='-1'/>\n"
                                 "</tb>\n"
                                 "</gpu>\n"
                                 "<gpu id='2' i_chunks='3' o_chunks='3' s_chunks='2'>\n"
                                 "<copy/>\n"
                                 "<tb id='0' send='1' recv='1' chan='0'>\n"
                                 "<step s='0' type='r' srcbuf='i' srcoff='2'"
                                 " dstbuf='o' dstoff='0' cnt='1' depid='-1' deps='-1'/>\n"
                                 "<step s='1' type='r' srcbuf='i' srcoff='2'"
                                 " dstbuf='o' dstoff='1' cnt='1' depid='-1' deps='-1'/>\n"
                                 "<step s='2' type='s' srcbuf='i' srcoff='1'"
                                 " dstbuf='o' dstoff='2' cnt='1' depid='0' deps='1'/>\n"
                                 "</tb>\n"
                                 "<tb id='1' send='0' recv='-1' chan='0'>\n"
                                 "<step s='0' type='s' srcbuf='i' srcoff='0'"
                                 " dstbuf='o' dstoff='2' cnt='1' depid='-1' deps='-1'/>\n"
                                 "</tb>\n"
                                 "</gpu>\n"
                                 "</algo>\n";

static void text_seed(const char *folder, const char *name, const char *text)
{
    (void)fputs(text, open_seed(folder, "msccl", name, -1));
    close_seed();
}

static void utf16_seed(const char *folder, const char *name, const char *text)
{
    FILE *out = open_seed(folder, "msccl", name, -1);

    (void)fputs("\xff\xfe", out);
    for (; *text != '\0'; text++) {
        (void)fputc(*text, out);
        (void)fputc('\0', out);
    }
    close_seed();
}

void msccl_seeds(const char *folder)
{
    algorithm_seeds(folder, "2", "direct");
    algorithm_seeds(folder, "3", "direct");
    algorithm_seeds(folder, "3m", "direct");
    algorithm_seeds(folder, "2x2", "direct");
    algorithm_seeds(folder, "2x2", "stream");
    text_seed(folder, "every-kind", every_kind);
    utf16_seed(folder, "utf16", every_kind);
    text_seed(folder, "document-type", "<!DOCTYPE algo [<!ENTITY a 'b'>]><algo name='&a;'/>");
    text_seed(folder, "step-in-copy",
              "<algo coll='alltoall' ngpus='3'><gpu id='0' i_chunks='3' o_chunks='3' s_chunks='0'>"
              "<copy><step s='0' type='nop' depid='-1' deps='-1'/></copy></gpu></algo>");
}
