"""Latent rankings that a chain keeps: exchanges, leaps, and what users say of pairs."""
