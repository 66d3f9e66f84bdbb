/* The commands of torusctl. */
#pragma once

#include "client/cli/terminal/command.h"

/* In the order in which `help` lists them; ended by a group without a title. */
extern const struct command_group commands[];
