"""Laws: how probable what one user told us is, one class for each kind of data and distance."""
