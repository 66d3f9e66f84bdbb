"""Results as tables.

table      one table
torus      those of one torus, with all systems
exchanges  those of other exchanges: without limits, on growing tori, of files, by schedules, around faults
model      those of the papers' model
calls      those of calls of programs
page       all of them: for the terminal, and a page of Markdown for each part
"""
