"""Files: read, and written whole or not at all."""
