"""From criteria and a catalogue to a recipe: matching, merging, checks, order, values, queries."""
