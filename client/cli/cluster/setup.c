#include "client/cli/cluster/setup.h"

#include <jansson.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define KEY_TEXT_SIZE (2 * KEY_SIZE + 1)

char *setup_write(const struct cluster *c, uint32_t rank, const struct key *key,
                  const struct key *second_key, size_t *length)
{
    char first[KEY_TEXT_SIZE], second[KEY_TEXT_SIZE] = "";
    json_t *o;
    char *text;

    (void)sodium_bin2hex(first, sizeof first, key->bytes, KEY_SIZE);
    if (second_key != NULL)
        (void)sodium_bin2hex(second, sizeof second, second_key->bytes, KEY_SIZE);
    o = json_pack("{s:i, s:s, s:s%, s:s, s:s}", "version", SETUP_VERSION, "host",
                  c->hosts[rank].name, "cluster", c->text, c->length, "key", first, "second_key",
                  second);
    text = o != NULL ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    sodium_memzero(first, sizeof first);
    sodium_memzero(second, sizeof second);
    *length = text != NULL ? strlen(text) : 0;
    return text;
}

/* Reads a key of hexadecimal digits. Returns 1, 0 if it is "", or -1 with *e. */
static int read_key(const json_t *o, const char *name, struct key *key, struct error *e)
{
    const char *text = json_string_value(json_object_get(o, name));
    uint8_t bytes[KEY_SIZE];
    size_t size;

    if (text != NULL && text[0] == '\0')
        return 0;
    if (text == NULL ||
        sodium_hex2bin(bytes, sizeof bytes, text, strlen(text), NULL, &size, NULL) != 0 ||
        size != KEY_SIZE || strlen(text) != KEY_TEXT_SIZE - 1)
        return error_set(e, ERROR_REFUSED, "\"%s\" of the setup is not a cluster key", name);
    key_set(key, bytes);
    sodium_memzero(bytes, sizeof bytes);
    return 1;
}

static int read_keys(struct setup *s, const json_t *o, struct error *e)
{
    int first = read_key(o, "key", &s->key, e);
    int second = first < 0 ? -1 : read_key(o, "second_key", &s->second_key, e);

    s->has_second_key = second > 0;
    if (first == 0)
        return error_set(e, ERROR_REFUSED, "the setup has no cluster key");
    return second < 0 ? -1 : 0;
}

static int read_object(struct setup *s, const json_t *o, struct error *e)
{
    const char *text = json_string_value(json_object_get(o, "cluster"));
    const char *host = json_string_value(json_object_get(o, "host"));
    int64_t rank;

    if (json_integer_value(json_object_get(o, "version")) != SETUP_VERSION)
        return error_set(e, ERROR_REFUSED,
                         "the setup is of another version: install the same release on all hosts");
    if (text == NULL || host == NULL)
        return error_set(e, ERROR_REFUSED, "the setup has no cluster file, or no name of the host");
    if (read_keys(s, o, e) != 0)
        return -1;
    if (cluster_read_text(&s->cluster, "the cluster file", text, strlen(text), e) != 0)
        return -1;
    rank = cluster_find(&s->cluster, host);
    if (rank >= 0 && s->cluster.has_ports) {
        s->rank = (uint32_t)rank;
        return 0;
    }
    cluster_free(&s->cluster);
    if (rank < 0)
        return error_set(e, ERROR_REFUSED, "the cluster file of the setup has no host \"%.80s\"",
                         host);
    return error_set(e, ERROR_REFUSED, "the cluster file of the setup has no ports");
}

int setup_read(struct setup *s, const char *json, size_t length, struct error *e)
{
    json_error_t error;
    json_t *o =
        length <= SETUP_MOST ? json_loadb(json, length, JSON_REJECT_DUPLICATES, &error) : NULL;
    int rc;

    *s = (struct setup){0};
    if (length > SETUP_MOST)
        return error_set(e, ERROR_REFUSED, "the setup is larger than %u KiB", SETUP_MOST >> 10);
    if (o == NULL)
        return error_set(e, ERROR_REFUSED, "this is not a setup: it is not JSON (%.80s)",
                         error.text);
    rc = read_object(s, o, e);
    json_decref(o);
    if (rc != 0)
        sodium_memzero(s, sizeof *s);
    return rc;
}

void setup_free(struct setup *s)
{
    cluster_free(&s->cluster);
    sodium_memzero(s, sizeof *s);
}
