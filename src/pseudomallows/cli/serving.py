"""The command that answers over HTTP."""

import argparse
from typing import Any

from .arguments import (
    add_command,
    add_saved,
    count,
)


def add_serve(adders: Any) -> None:
    """The command `serve`."""
    parser = add_command(
        adders,
        "serve",
        serve_model,
        "Answer over HTTP from a model, and keep new clicks. With a page to look at; until Ctrl-C. "
        "Whoever writes needs the token, if there is one; it is read from the file or from the "
        "variable PSEUDOMALLOWS_TOKEN.",
        "pseudomallows serve model.pm --port 8000 --store clicks.sqlite",
    )
    add_saved(parser)
    parser.add_argument(
        "--port", type=int, default=8000, metavar="N", help="port to listen on (8000)"
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; others than this machine need a token (127.0.0.1)",
    )
    parser.add_argument(
        "--store",
        default="clicks.sqlite",
        metavar="FILE",
        help="where new clicks go, or postgresql://... (clicks.sqlite)",
    )
    parser.add_argument("--token-file", metavar="FILE", help="the token that writers must give")
    parser.add_argument(
        "--refit-every", type=float, metavar="SECONDS", help="refit with the new clicks this often"
    )
    parser.add_argument(
        "--rate",
        type=float,
        metavar="N",
        help="requests per second from one client (any number on this machine, else 100)",
    )
    parser.add_argument(
        "--upload-rows",
        type=count,
        default=10_000_000,
        metavar="N",
        help="rows of an upload (10,000,000)",
    )
    parser.add_argument(
        "--upload-users",
        type=count,
        default=1_000_000,
        metavar="N",
        help="users of an upload (1,000,000)",
    )
    parser.add_argument(
        "--upload-items",
        type=count,
        default=10_000,
        metavar="N",
        help="items of an upload that the model does not know (10,000)",
    )
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="HOST",
        help="behind a proxy: the name in the address of the pages; may be repeated",
    )
    parser.add_argument(
        "--trusted-proxies",
        metavar="ADDRESS[,ADDRESS...]",
        help="proxies whose X-Forwarded-For is believed (none)",
    )
    parser.add_argument(
        "--max-connections-per-client",
        type=int,
        default=100,
        metavar="N",
        help="connections from one address, unless it is a trusted proxy (100)",
    )


def serve_model(options: argparse.Namespace) -> int:
    """Serve a model until interrupted."""
    try:
        from ..web.run import ServeOptions, find_token, serve
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"serve needs {error.name}: pip install 'pseudomallows[web]'", name=error.name
        ) from None
    given = ServeOptions(
        options.host,
        options.port,
        options.store,
        find_token(options.token_file),
        options.refit_every,
        options.rate,
        options.name,
        options.quiet,
        trusted_proxies=options.trusted_proxies,
        max_of_client=options.max_connections_per_client,
        uploads=(options.upload_rows, options.upload_users, options.upload_items),
    )
    serve(options.model, given)
    return 0
