"""What the integration tests, the tests on virtual machines and the benchmarks share.

waiting     waiting for conditions
background  commands that run in the background of a test
expect      what an exchange must report, computed from the routes
memory      the daemons' memory over time
trees       folders for exchanges
attacks     what tests of attacks send, and ask of a torus afterwards
errors      what torusctl --json says about errors
failures    what tests of failures ask of a torus afterwards
wire        frames as a hostile peer or client would write them
shared_failures  what becomes of tests that share a fixture which fails
launcher    launchers whose processes and files can be distinguished from others
reports     logs of running tori in the reports of failed tests
axes        axes of plots; needs matplotlib

The folder tests/ and topo/ must be in sys.path.
"""
