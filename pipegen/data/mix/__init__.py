"""Lists a mix part by part, and counts how many examples of each an epoch has."""
