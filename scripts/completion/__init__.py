"""The completions of torusctl and torusd for bash and zsh, made from the tables that --help prints. The build runs
scripts/completion/__main__.py."""
