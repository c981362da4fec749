"""The sources: one file each. The folders beside them hold what sources share."""
