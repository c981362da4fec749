"""Pages of the documentation, and the scripts that build their pictures and the site."""
