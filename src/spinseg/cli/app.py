"""`spinseg app`: the page in the browser."""

from typing import Annotated

import typer

from spinseg._errors import MissingExtra


def open_page(
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Port to listen at; any free one by default.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address only.")] = False,
) -> None:
    """Open a page in the browser, to try it on pictures.

    Drop a picture, move sliders, and watch the chains work.
    """
    try:
        from spinseg.app.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("starlette", "uvicorn", "anyio"):
            raise
        raise MissingExtra('the page needs Starlette and uvicorn: pip install "spinseg[web]"') from None
    serve(port, open_browser=not no_browser)
