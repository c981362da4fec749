"""Makes the datasets that users hold, their iterators, and the variables that say where training stands.

`Engine` has an `Executor` for each split; each dataset is one `Run` of it, held as a `PipelineDataset`, which hands over an
`EpochIterator` at a time.
"""
