"""The service: a saved posterior that answers over HTTP, and learns new clicks."""
