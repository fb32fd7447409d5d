"""The server that the tests of the web app share."""

import pytest
from app_client import LEFT, Server


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """The server of the command, which must end on Ctrl-C and print nothing on standard error."""
    server = Server.started(tmp_path_factory.mktemp("server"), "-m", "spinseg", "app", "--no-browser")
    yield server
    reported = "\n".join(server.end())
    for listener in LEFT:
        listener.close()
    assert reported == ""
