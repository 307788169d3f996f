"""What proves that a written tree is whole: checksums today; signatures and packages build on
them."""
