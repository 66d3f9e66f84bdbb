/* Runs a fuzz target without libFuzzer:
 *
 *     fuzz_TARGET FOLDER ITERATIONS   every input in FOLDER, then ITERATIONS mutations of them,
 *                                     the same in every run
 *     fuzz_TARGET FILE                one input, such as one that libFuzzer has found */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

#define INPUTS_MOST 1000u
#define LONGEST (1u << 20)

struct file {
    uint8_t *bytes;
    size_t length;
};

static struct file inputs[INPUTS_MOST];
static size_t input_count;
static uint64_t chance_state = 1;

static uint64_t chance(uint64_t below)
{
    uint64_t z = chance_state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (z ^ z >> 31) % below;
}

static void read_input(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct file *file = &inputs[input_count];

    if (f == NULL || input_count == INPUTS_MOST || (file->bytes = malloc(LONGEST)) == NULL) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    file->length = fread(file->bytes, 1, LONGEST, f);
    (void)fclose(f);
    file->bytes = realloc(file->bytes, file->length + 1);
    input_count++;
}

static void read_folder(const char *path)
{
    struct dirent **entry;
    int n = scandir(path, &entry, NULL, alphasort);
    char name[4096];

    for (int i = 0; i < n; i++) {
        (void)snprintf(name, sizeof name, "%s/%s", path, entry[i]->d_name);
        if (entry[i]->d_name[0] != '.')
            read_input(name);
        free(entry[i]);
    }
    free(entry);
}

/* An exact copy, so that a sanitizer sees every byte read beyond the end. */
static void run(const uint8_t *bytes, size_t length)
{
    uint8_t *copy = malloc(length > 0 ? length : 1);

    if (copy == NULL)
        exit(EXIT_FAILURE);
    if (length > 0)
        memcpy(copy, bytes, length);
    (void)LLVMFuzzerTestOneInput(copy, length);
    free(copy);
}

static void mutate_once(struct file *f, size_t capacity)
{
    static const uint8_t interesting[] = {0, 1, 0x7f, 0x80, 0xff, 8, 16, 64};
    const struct file *other = &inputs[chance(input_count)];
    size_t at = f->length > 0 ? chance(f->length) : 0;
    size_t n = 1 + chance(32);

    switch (chance(7)) {
    case 0: /* a flipped bit */
        if (f->length > 0)
            f->bytes[at] ^= (uint8_t)(1u << chance(8));
        break;
    case 1:
        if (f->length > 0)
            f->bytes[at] = interesting[chance(sizeof interesting)];
        break;
    case 2:
        if (f->length > 0)
            f->bytes[at] = (uint8_t)chance(256);
        break;
    case 3: /* a part is left out */
        n = n < f->length - at ? n : f->length - at;
        memmove(f->bytes + at, f->bytes + at + n, f->length - at - n);
        f->length -= n;
        break;
    case 4: /* a part comes twice */
        n = n < f->length - at ? n : f->length - at;
        if (f->length + n <= capacity) {
            memmove(f->bytes + at + n, f->bytes + at, f->length - at);
            f->length += n;
        }
        break;
    case 5: /* continues as another input */
        if (other->length > 0) {
            size_t from = chance(other->length);
            n = other->length - from < capacity - at ? other->length - from : capacity - at;
            memcpy(f->bytes + at, other->bytes + from, n);
            f->length = at + n;
        }
        break;
    default: /* ends early */
        f->length = at;
    }
}

static void mutate(unsigned long iterations)
{
    struct file f = {.bytes = malloc(2 * (size_t)LONGEST)};

    if (f.bytes == NULL)
        exit(EXIT_FAILURE);
    for (unsigned long i = 0; i < iterations; i++) {
        const struct file *seed = &inputs[chance(input_count)];
        memcpy(f.bytes, seed->bytes, seed->length);
        f.length = seed->length;
        for (uint64_t times = 1 + chance(6); times > 0; times--)
            mutate_once(&f, 2 * (size_t)LONGEST);
        run(f.bytes, f.length);
    }
    free(f.bytes);
}

int main(int argc, char **argv)
{
    struct stat st;

    if (argc < 2 || argc > 3 || stat(argv[1], &st) != 0) {
        (void)fprintf(stderr, "usage: %s FOLDER ITERATIONS | FILE\n", argv[0]);
        return 2;
    }
    if (S_ISDIR(st.st_mode))
        read_folder(argv[1]);
    else
        read_input(argv[1]);
    if (input_count == 0) {
        (void)fprintf(stderr, "%s: no inputs\n", argv[1]);
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < input_count; i++)
        run(inputs[i].bytes, inputs[i].length);
    if (argc == 3) /* scripts/test --full sets TORUS_FULL */
        mutate(strtoul(argv[2], NULL, 10) * (getenv("TORUS_FULL") != NULL ? 20 : 1));
    for (size_t i = 0; i < input_count; i++)
        free(inputs[i].bytes);
    return EXIT_SUCCESS;
}
