"""Results as tables.

table      one table
torus      tables of one torus, with all systems
exchanges  tables of other exchanges: unlimited links, growing tori, files, schedules, faults
model      tables of the papers' model
calls      tables of calls of programs
page       all tables, for the terminal and as a page of Markdown for each part
"""
