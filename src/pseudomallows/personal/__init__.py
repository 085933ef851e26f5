"""What "personal" learns: scores of items for users, and corrections of probabilities."""
