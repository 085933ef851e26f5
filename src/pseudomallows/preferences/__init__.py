"""What is known of the users."""
