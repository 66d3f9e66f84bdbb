/* Each program is one fuzz target, run by libFuzzer (TORUS_FUZZ) or by replay.c, which runs the inputs of a corpus
 * and mutations of them. A target aborts if something is wrong. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);    \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Reads an input from its front; after its end it reads zeros. */
struct input {
    const uint8_t *data;
    size_t size;
};

static inline uint8_t input_byte(struct input *in)
{
    if (in->size == 0)
        return 0;
    in->size--;
    return *in->data++;
}

static inline uint32_t input_word16(struct input *in)
{
    uint32_t high = input_byte(in);
    return high << 8 | input_byte(in);
}

static inline const uint8_t *input_bytes(struct input *in, size_t *length)
{
    const uint8_t *at = in->data;

    if (*length > in->size)
        *length = in->size;
    in->data += *length;
    in->size -= *length;
    return at;
}

/* The first bytes of the seeds of key pairs in fuzz_discovery, whose ids the inputs contain. */
#define FUZZ_OWN_SEED 9
#define FUZZ_NEIGHBOUR_SEED 7
