#include "daemon/torusd/router/links/link.h"

#include <stdlib.h>

#include "daemon/torusd/router/links/stranger.h"
#include "daemon/torusd/router/ports/port.h"
#include "daemon/torusd/router/record/router_record.h"

void link_forget_stranger(struct link *link)
{
    if (link->stranger == NULL)
        return;
    handshake_forget(&link->stranger->handshake);
    free(link->stranger);
    link->stranger = NULL;
}

static void link_free(struct link *link)
{
    link_forget_stranger(link);
    decoder_free(&link->decoder);
    outgoing_clear(&link->router->outgoing, &link->handshake_frames);
    if (link->slab != NULL)
        slab_unref(link->slab);
    free(link);
}

static struct outgoing *new_refusal(struct router *r, const char *reason)
{
    const struct peer_message message = {.kind = PEER_REFUSAL, .refusal = {reason}};
    struct outgoing *frame = outgoing_new(&r->outgoing);

    if (frame != NULL && outgoing_set_message(frame, &message) != 0) {
        outgoing_free(&r->outgoing, frame);
        frame = NULL;
    }
    return frame;
}

void link_give_up(struct link *link, const struct error *why, bool tell_peer)
{
    struct router *r = link->router;
    struct outgoing *last = NULL;

    if (link->decoding) {
        if (!link->to_close) {
            link->to_close = true;
            link->close_reason = *why;
        }
        return;
    }
    if (tell_peer)
        last = new_refusal(r, why->text);
    if (last != NULL)
        last->plain = link->stranger != NULL;
    r->io.close(r->io.context, link->connection, last);
    port_link_gone(link, why->text);
    link_free(link);
}

void link_closed(struct link *link, const char *reason)
{
    port_link_gone(link, reason);
    link_free(link);
}
