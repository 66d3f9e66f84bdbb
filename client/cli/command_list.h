/* The commands of torusctl. */
#ifndef TORUSD_CLI_COMMAND_LIST_H
#define TORUSD_CLI_COMMAND_LIST_H

struct command;

/* In the order of the list in `help`; NULL at the end. */
extern const struct command *const commands[];

#endif
