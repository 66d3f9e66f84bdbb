"""The version of this package: that of torusd, the first entry of scripts/packaging/CHANGELOG."""

__version__ = '0.2.0'
