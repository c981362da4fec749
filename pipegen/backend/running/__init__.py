"""Translation of plans into datasets."""
