"""From text to a checked `PipelineSpec`, with the place in the text that every value came from."""
