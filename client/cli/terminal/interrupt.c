#include "client/cli/terminal/interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <torus/torus.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define SIGNALS (sizeof signals / sizeof signals[0])

/* Global, because a signal handler has no argument for it. Written only while the handlers are not set. */
static struct torus_client *volatile to_cancel;
static struct sigaction before[SIGNALS];
static volatile sig_atomic_t seen;

static void cancel(int number)
{
    (void)number;
    seen = 1;
    if (to_cancel != NULL)
        torus_client_cancel(to_cancel);
}

void interrupt_arm(struct torus_client *client)
{
    struct sigaction action = {.sa_handler = cancel,
                               .sa_flags = client != NULL ? (int)SA_RESETHAND : 0};

    (void)sigemptyset(&action.sa_mask);
    to_cancel = client;
    for (size_t i = 0; i < SIGNALS; i++) {
        (void)sigaction(signals[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) /* nohup */
            (void)sigaction(signals[i], &action, NULL);
    }
}

void interrupt_disarm(void)
{
    for (size_t i = 0; i < SIGNALS; i++)
        (void)sigaction(signals[i], &before[i], NULL);
    to_cancel = NULL;
}

bool interrupt_seen(void)
{
    return seen != 0;
}
