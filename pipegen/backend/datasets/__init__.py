"""The datasets that users hold, their iterators, and the variables of the training position.

`Engine` has an `Executor` for each split. Each dataset is one `Run` of it, a `PipelineDataset`, whose iterators are `EpochIterator`s.
"""
