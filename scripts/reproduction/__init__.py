"""What scripts/reproduce does: the papers' tables and figures again, from what torusctl counts.

One module a paper (all_port, one_port, broadcast, products), each with a function paper(torusctl)
that returns a document.Paper. The others run torusctl, and write what the papers consist of.
"""
