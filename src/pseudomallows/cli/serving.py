"""The command that answers over HTTP."""

import argparse

from .arguments import MODEL, command, count, option


@command(
    "serve",
    "Answer over HTTP from a model, and keep new clicks. With a page to look at; until Ctrl-C. "
    "Whoever writes needs the token, if there is one; it is read from the file or from the "
    "variable PSEUDOMALLOWS_TOKEN.",
    "model.pm --port 8000 --store clicks.sqlite",
    MODEL,
    option("--port", "port to listen on (8000)", int, 8000, metavar="N"),
    option(
        "--host",
        "address to listen on; others than this machine need a token (127.0.0.1)",
        default="127.0.0.1",
    ),
    option(
        "--store",
        "where new clicks go, or postgresql://... (clicks.sqlite)",
        default="clicks.sqlite",
        metavar="FILE",
    ),
    option("--token-file", "the token that writers must give", metavar="FILE"),
    option("--refit-every", "refit with the new clicks this often", float, metavar="SECONDS"),
    option(
        "--rate",
        "requests per second from one client (any number on this machine, else 100)",
        float,
        metavar="N",
    ),
    option("--upload-rows", "rows of an upload (10,000,000)", count, 10_000_000),
    option("--upload-users", "users of an upload (1,000,000)", count, 1_000_000),
    option(
        "--upload-items",
        "items of an upload that the model does not know (10,000)",
        count,
        10_000,
    ),
    option(
        "--name",
        "behind a proxy: the name in the address of the pages; may be repeated",
        default=[],
        action="append",
        metavar="HOST",
    ),
    option(
        "--trusted-proxies",
        "proxies whose X-Forwarded-For is believed (none)",
        metavar="ADDRESS[,ADDRESS...]",
    ),
    option(
        "--max-connections-per-client",
        "connections from one address, unless it is a trusted proxy (100)",
        int,
        100,
        metavar="N",
    ),
)
def serve_model(options: argparse.Namespace) -> int:
    """Serve a model until interrupted."""
    try:
        from ..web.jobs.uploads import UploadLimits
        from ..web.run_service import find_token, serve
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"serve needs {error.name}: pip install 'pseudomallows[web]'", name=error.name
        ) from None
    serve(
        options.model,
        host=options.host,
        port=options.port,
        store=options.store,
        token=find_token(options.token_file),
        refit_every=options.refit_every,
        rate=options.rate,
        names=options.name,
        trusted_proxies=options.trusted_proxies,
        max_of_client=options.max_connections_per_client,
        uploads=UploadLimits(options.upload_rows, options.upload_users, options.upload_items),
        quiet=options.quiet,
    )
    return 0
