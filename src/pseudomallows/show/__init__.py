"""What people see: plots and the report."""
