"""Checks of the deployment phase: is what the recipe installs there, and alive."""
