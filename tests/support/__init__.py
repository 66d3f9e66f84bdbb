"""Code that the integration tests, the tests on virtual machines and the benchmarks share.

waiting     waiting for conditions
background  commands that run in the background of a test
expect      the expected report of an exchange, computed from the routes
memory      the daemons' memory over time
trees       folders for exchanges
attacks     data that tests of attacks send, and checks of the torus afterwards
errors      errors that torusctl --json prints
failures    checks of a torus after failures
wire        frames as a hostile peer or client would write them
shared_failures  reports a shared fixture that fails only once
launcher    launchers whose processes and files can be distinguished from others
reports     logs of running tori in the reports of failed tests
axes        axes of plots; needs matplotlib

The folder tests/ and topo/ must be in sys.path.
"""
