"""Views of a pipeline for people: pictures, exports, explanations and summaries."""
