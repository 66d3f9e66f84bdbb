"""The papers' tables and figures, reproduced from the counts of torusctl, for scripts/reproduce.

Each paper has a module (all_port, banyan, broadcast, cccube, one_port, products) with a function
paper(torusctl) that returns a document.Paper. The other modules run torusctl, count independently of it, and
write papers as text and pages.
"""
