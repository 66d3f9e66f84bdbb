/* The nominal rate of a link, as the user gives it: "1000", or "2/20" if its two directions differ. */
#pragma once

#include <stdbool.h>

/* In Mbit/s, seen from one end; 0: unknown. */
struct nominal_rate {
    double send, receive;
};

/* Reads "RATE" or "SEND/RECEIVE", numbers above 0. Returns false, and leaves *rate alone, if the text is neither. */
bool nominal_rate_parse(const char *text, struct nominal_rate *rate);

/* Returns the rate as the other end of the link sees it. */
struct nominal_rate nominal_rate_reversed(struct nominal_rate rate);

#define NOMINAL_RATE_TEXT_SIZE 64u

/* Writes the text that nominal_rate_parse() reads into `text`, and returns it. */
const char *nominal_rate_format(struct nominal_rate rate, char text[NOMINAL_RATE_TEXT_SIZE]);
