"""The tests' own encoder of frames."""

from support.wire import message


def test_message_encoding():
    """The examples of protobuf's documentation."""
    assert message({1: 150}) == b'\x08\x96\x01'
    assert message({2: 'testing'}) == b'\x12\x07testing'
    assert message({3: {1: 150}}) == b'\x1a\x03\x08\x96\x01'
