/* The commands of torusctl. */
#ifndef TORUSD_CLI_COMMAND_LIST_H
#define TORUSD_CLI_COMMAND_LIST_H

#include "client/cli/terminal/command.h"

/* In the order in which `help` lists them; ended by a group without a title. */
extern const struct command_group commands[];

#endif
