"""The catalogue: registry, overlays, mixins, values and manifests, loaded and checked.

It knows documents and files; it does not know criteria matching, merging or bundles.
"""
