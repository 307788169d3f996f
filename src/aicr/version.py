"""The version of the product, in one place (decision 40)."""

__version__ = "0.1.0"
