#include "client/cli/discovering/discovery_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/cli/discovering/message_socket.h"
#include "proto/text.h"

#define LIST_SECONDS 20

Discovery__Reply *discovery_reply_read(int fd, struct error *e)
{
    ProtobufCMessage *message = message_read(fd, &discovery__reply__descriptor, e);
    Discovery__Reply *reply = (Discovery__Reply *)message;

    if (reply != NULL && reply->kind_case == DISCOVERY__REPLY__KIND_FAILURE) {
        discovery_failure_read(reply->failure, e);
        discovery__reply__free_unpacked(reply, NULL);
        reply = NULL;
    }
    return reply;
}

void discovery_failure_read(const Discovery__Failure *failure, struct error *e)
{
    char text[sizeof e->text];

    (void)error_set(e, (enum error_code)failure->code, "%s",
                    text_printable(text, sizeof text, failure->text));
}

/* --- hosts --- */

static void key_text(char text[KEY_ID_TEXT_SIZE], const ProtobufCBinaryData *id)
{
    text[0] = '\0';
    if (id->len == KEY_ID_SIZE)
        (void)key_id_text(id->data, text);
}

static int take_hosts(struct discovered *d, const Discovery__Hosts *hosts, struct error *e)
{
    d->host = calloc(hosts->n_hosts + 1, sizeof d->host[0]);
    if (d->host == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the hosts");
    for (size_t i = 0; i < hosts->n_hosts; i++) {
        const Discovery__Host *from = hosts->hosts[i];
        struct discovered_host *to = &d->host[d->hosts];
        to->report = report_read(from->report.data, from->report.len, e);
        if (to->report == NULL)
            return -1;
        d->hosts++;
        to->trust = from->trust == DISCOVERY__TRUST__PROVED      ? DISCOVERED_PROVED
                    : from->trust == DISCOVERY__TRUST__OTHER_KEY ? DISCOVERED_OTHER_KEY
                                                                 : DISCOVERED_OPEN;
        key_text(to->key, &from->key_id);
        to->self = from->self;
        to->reachable = from->reachable;
        to->distance = from->distance;
    }
    d->digest = hosts->digest;
    d->quiet_ms = hosts->quiet_ms;
    key_text(d->key, &hosts->key_id);
    (void)snprintf(d->setup_socket, sizeof d->setup_socket, "%s", hosts->setup_socket);
    return discovered_finish(d) == 0 ? 0 : error_set(e, ERROR_MEMORY, "out of memory");
}

int discover_hosts(const char *socket, struct discovered *d, struct error *e)
{
    Discovery__Request request = DISCOVERY__REQUEST__INIT;
    Discovery__List list = DISCOVERY__LIST__INIT;
    Discovery__Reply *reply = NULL;
    int fd = message_connect("torusd-discover", socket != NULL ? socket : DISCOVERY_DEFAULT_SOCKET,
                             LIST_SECONDS, e);
    int result = -1;

    *d = (struct discovered){0};
    if (fd < 0)
        return -1;
    request.kind_case = DISCOVERY__REQUEST__KIND_LIST;
    request.list = &list;
    if (message_send(fd, &request.base, e) == 0)
        reply = discovery_reply_read(fd, e);
    (void)close(fd);
    if (reply != NULL && reply->kind_case == DISCOVERY__REPLY__KIND_HOSTS)
        result = take_hosts(d, reply->hosts, e);
    else if (reply != NULL)
        (void)error_set(e, ERROR_PROTOCOL, "torusd-discover sent an unexpected answer");
    if (reply != NULL)
        discovery__reply__free_unpacked(reply, NULL);
    if (result != 0)
        discovered_free(d);
    errno = 0;
    return result;
}
