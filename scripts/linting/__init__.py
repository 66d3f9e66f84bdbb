"""The rules of scripts/lint. A rule is a function of the checkout and the build that yields (where, text)."""
