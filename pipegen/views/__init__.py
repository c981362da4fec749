"""Shows a pipeline to people: pictures, exports, explanations and summaries."""
