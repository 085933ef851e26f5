"""Errors that a client sees: a status and words."""


class ServiceError(Exception):
    """Words for the client, with the status of the answer."""

    def __init__(self, status: int, words: str, headers: dict[str, str] | None = None):
        super().__init__(words)
        self.status, self.words, self.headers = status, words, headers or {}
