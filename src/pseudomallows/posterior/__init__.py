"""What a fit returns, and how far to trust it."""
