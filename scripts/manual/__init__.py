"""The man pages, made from the tables that --help prints and from prose. The build runs
scripts/manual/__main__.py."""
