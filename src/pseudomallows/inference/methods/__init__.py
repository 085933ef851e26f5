"""The methods of fitting, one file each."""
