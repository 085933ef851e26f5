"""What runs beside the requests: refits and uploads, in processes of their own."""
