"""The model that answers, and its versions on the disk."""
