"""What users hand in, made into preferences: tables, lists, frames and dicts of every kind."""
