"""The reference of sections and steps, from which `pipegen help`, `pipegen ops` and the pages of the documentation are made.

A section's page is `sections/NAME.md`: the purpose of the section, an example that is a whole spec, and remarks. A line
`<!-- keys: MODEL -->` is replaced by the keys of a model, `<!-- sources -->` by the list of sources.
"""
