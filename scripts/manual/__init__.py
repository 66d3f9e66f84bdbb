"""The man pages: sections from the tables that --help prints, joined with prose. scripts/manual/__main__.py is run by
the build."""
