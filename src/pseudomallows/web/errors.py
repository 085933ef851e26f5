"""Errors that a client sees: a status and words."""

RETRY = {"Retry-After": "1"}


class ServiceError(Exception):
    """Words for the client, with the status of the answer."""

    def __init__(self, status: int, words: str, headers: dict[str, str] | None = None):
        super().__init__(words)
        self.status, self.words, self.headers = status, words, headers or {}


class StoreError(ServiceError):
    """The store failed: words for the client, the reason for /healthz, and a detail for the log.

    A problem that lasts does not go away by itself: the service must be started again.
    """

    def __init__(
        self, words: str, reason: str, status: int = 503, lasts: bool = False, detail: str = ""
    ):
        super().__init__(status, words, RETRY if status == 503 else None)
        self.reason, self.lasts, self.detail = reason, lasts, detail
