#include "daemon/torusd/control/internal.h"

bool control_may(struct control_client *client, enum access needed)
{
    struct error e;

    if (access_check(client->server->set.access, client->access, needed, &e) == 0)
        return true;
    control_reply_error(client, &e, NULL);
    return false;
}
