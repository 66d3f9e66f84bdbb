/* The commands of torusctl. */
#ifndef TORUSD_CLI_COMMAND_LIST_H
#define TORUSD_CLI_COMMAND_LIST_H

struct command;

/* In the order in which `help` lists them; NULL at the end. */
extern const struct command *const commands[];

#endif
