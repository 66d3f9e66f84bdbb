"""Machines as their owners get them: Debian with systemd and the packages of this project, and nothing configured.

image.py    the disk image
panel.py    the cables, which tests plug as they like
machine.py  one machine
"""
