/* torusctl without main(), so that tests can link it. */
#pragma once

/* Runs torusctl with these arguments. Returns the exit code. */
int program_run(int argc, char **argv);
