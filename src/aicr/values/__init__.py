"""Values: merging, paths, versions, quantities and durations on plain documents."""
