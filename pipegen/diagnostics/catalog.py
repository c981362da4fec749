"""The catalogue: all codes with name, severity and title in one ordered table, and the page of each.

A page is `rules/PGnnn.md`: a title line `# PG214 standardised-values`, a paragraph under `## What it finds` and one under
`## Why`, then `## Bad` and `## Good`, each with one whole spec in a fenced `yaml` block. The bad spec yields exactly that
code; the good one is the corrected spec, and yields no error and not that code. For other content of a page see
`tests/diagnostics/spec_pages.py`.
"""

from __future__ import annotations

import re
from functools import cache

from pipegen.diagnostics.diagnostic import Diagnostic, Fix, Label, Severity
from pipegen.frozen import dataclass
from pipegen.terminal import masked

_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding."""

    code: str  # `PG` and three digits
    name: str  # the problem in up to three words or so, joined by hyphens
    severity: Severity  # the default severity
    title: str  # the problem in one sentence without a full stop


_TABLE = (
    # The text of the file.
    Code("PG001", "not-text", _E, "The spec is not UTF-8 text"),
    Code("PG002", "yaml-syntax", _E, "The spec is not well-formed YAML"),
    Code("PG003", "too-large", _E, "The spec is larger or deeper than any real spec"),
    Code("PG004", "custom-tag", _E, "A YAML tag asks for something other than plain data"),
    Code("PG005", "spec-not-found", _E, "The spec does not exist or cannot be read"),
    Code("PG006", "not-a-mapping", _E, "The spec is not one mapping of keys to values"),
    Code("PG007", "duplicate-key", _E, "A key is given twice in one mapping"),
    Code("PG008", "yaml-trap", _E, "A text that YAML 1.2 does not read as the number or boolean it means"),
    Code("PG009", "merge-key", _E, "The merge key `<<` is not supported"),
    # Structure: keys, names, types of single values.
    Code("PG101", "missing-key", _E, "A required key is missing"),
    Code("PG102", "unknown-key", _E, "A key is not part of the language here"),
    Code("PG103", "unknown-op", _E, "A step or a source of this name does not exist"),
    Code("PG104", "wrong-type", _E, "A value has the wrong type"),
    Code("PG105", "invalid-value", _E, "A value is out of bounds or not among the choices"),
    Code("PG106", "undeclared-param", _E, "A `$name` is used and not declared under `params`"),
    Code("PG107", "unused-param", _W, "A param is declared and never used"),
    Code("PG108", "invalid-param", _E, "A param's declaration or its value is wrong"),
    Code("PG109", "extends-cycle", _E, "A chain of `extends` comes back to itself"),
    Code("PG110", "extends-not-found", _E, "The file that `extends` names does not exist or is not a spec"),
    Code("PG111", "unsupported-version", _E, "The spec is written for another version of the language"),
    Code("PG112", "malformed-choice", _E, "A choice is neither a word nor a mapping with one key"),
    Code("PG113", "package-not-found", _E, "The package or the file that `extends: pkg:…` names is not installed"),
    Code("PG114", "homeless-path", _E, "A shared base has a relative path of data"),
    Code("PG115", "malformed-address", _E, "The address of a base is not valid"),
    Code("PG116", "unlocked-base", _E, "A base from git was not resolved by `pipegen lock`"),
    Code("PG117", "changed-base", _E, "The text of a base from git differs from the locked one"),
    Code("PG120", "nothing-to-edit", _E, "`transforms` is a map of edits, but no base has steps"),
    Code("PG121", "unknown-step-id", _E, "A map of edits names a step that the base does not have"),
    Code("PG122", "contradicting-edits", _E, "A map of edits changes one step twice"),
    Code("PG123", "unreadable-classes", _E, "A file of class names cannot be read"),
    # Types of features, from step to step.
    Code("PG201", "unbatchable-shape", _E, "Images of different sizes cannot be stacked into a batch"),
    Code("PG203", "no-rule-for-kind", _E, "A step or the output has no rule for this kind of feature"),
    Code("PG204", "wrong-rank", _E, "A step gets a tensor with the wrong number of dimensions"),
    Code("PG205", "wrong-channels", _E, "A step gets an image with the wrong number of channels"),
    Code("PG206", "crop-exceeds-image", _E, "A crop is larger than the image it is cut from"),
    Code("PG207", "invalid-fill", _E, "A fill value does not fit the image's values"),
    Code("PG208", "wrong-dtype", _E, "A step cannot work on values of this dtype"),
    Code("PG210", "splits-differ", _E, "Two splits would give the model different shapes or dtypes"),
    Code("PG213", "double-scaling", _E, "Values that are already 0..1, or logarithms, are scaled once more"),
    Code("PG214", "standardised-values", _E, "A colour step or a logarithm gets values that were centred on 0"),
    Code("PG215", "misplaced-decode", _E, "`decode` is not the first step, or there are two"),
    Code("PG216", "colliding-step-ids", _E, "Two steps have the same id and would draw the same numbers"),
    Code("PG217", "unknown-feature", _E, "A feature of this name does not exist"),
    Code("PG218", "impossible-encoding", _E, "A label cannot be encoded this way"),
    Code("PG219", "output-dtype", _E, "The values do not fit the output's dtype"),
    Code("PG220", "unknown-split", _E, "A split of this name does not exist"),
    Code("PG221", "not-bytes", _E, "A table of 256 values gets other values than 0..255"),
    Code("PG223", "combining-class-indices", _E, "A step combines labels that are class indices"),
    Code("PG224", "late-element-step", _E, "A step that works on single images comes after one that combines them"),
    Code("PG226", "step-in-policy", _E, "A step that not every example gets changes the size, or does not belong in its policy"),
    Code("PG229", "decode-contradicts-feature", _E, "`decode` and the feature describe the same files differently"),
    Code("PG230", "nothing-to-fit-on", _E, "A step is fitted to the training split, which does not exist"),
    Code("PG231", "whitening-size", _E, "Images have no fixed size, or too many values, to be whitened"),
    # Python functions, which the caller has to allow.
    Code("PG240", "code-not-allowed", _E, "A step calls a Python function of a module that is not allowed"),
    Code("PG241", "unusable-function", _E, "A Python function does not exist, or cannot be called as the step does"),
    # Views of an example.
    Code("PG243", "common-step-in-view", _E, "A branch of `views` has a step that has to be common to all views"),
    Code("PG244", "view-name-taken", _E, "A view of a feature would have the name of another feature"),
    Code("PG245", "nothing-to-view", _E, "`views` need an image, and the source has none"),
    Code("PG246", "no-view-for-output", _E, "A split has none of the views that the model takes"),
    Code("PG247", "view-of-no-image", _E, "A branch of `views` is of a feature that is not an image, or does not exist"),
    Code("PG248", "view-beside-first", _E, "A branch of `views` is of an image that the first branch is not of"),
    # Boxes.
    Code("PG250", "malformed-boxes", _E, "Boxes do not fit their `format`"),
    Code("PG251", "image-without-boxes", _E, "An image has no boxes, which the spec does not allow"),
    # Events.
    Code("PG253", "malformed-events", _E, "Events do not fit their `format`"),
    Code("PG254", "sound-without-events", _E, "A sound has no events, which the spec does not allow"),
    # Turns and keypoints.
    Code("PG255", "sides-swap", _E, "A step swaps the sides of images that are not squares, or of unknown size"),
    Code("PG256", "malformed-keypoints", _E, "Keypoints do not have the form or number of their feature"),
    Code("PG258", "pad-below-image", _E, "The size to pad to is smaller than the image"),
    # Buckets: batches of a few sizes.
    Code("PG260", "unused-buckets", _E, "Buckets have sizes that no step uses, or a step uses buckets without sizes"),
    Code("PG261", "beside-buckets", _E, "A section cannot be used with buckets"),
    Code("PG262", "unknown-sides", _E, "The sizes of images, which choose their buckets, are unknown"),
    # Features of unknown length.
    Code("PG263", "unpadded-length", _E, "Examples differ in their length, so they cannot be stacked"),
    Code("PG264", "unfit-padding", _E, "`batch.pad` does not fit the features"),
    Code("PG265", "unlisted-lengths", _E, "Lengths are needed before any example is read, and are not known then"),
    # Splits.
    Code("PG301", "split-sizes", _E, "The sizes of the splits do not add up"),
    Code("PG302", "split-options-conflict", _E, "Two options of `splits` exclude each other"),
    Code("PG303", "fold-out-of-range", _E, "The chosen fold does not exist"),
    Code("PG304", "stratify-needs-labels", _E, "Stratification needs labels, and the source has none"),
    # Data: problems that only the files show.
    Code("PG401", "path-not-found", _E, "The data's path does not exist"),
    Code("PG402", "nothing-found", _E, "The data's path has no usable file"),
    Code("PG403", "empty-class", _W, "A class has no files"),
    Code("PG404", "empty-part", _E, "A split has no examples"),
    Code("PG405", "class-missing-from-part", _W, "A class has no example in one of the splits"),
    Code("PG406", "unreadable-record", _E, "A file cannot be decoded"),
    Code("PG407", "zero-steps", _E, "A split has fewer examples than one batch"),
    Code("PG408", "unknown-class", _E, "A class is not known to the training source"),
    Code("PG409", "split-exceeds-data", _E, "The splits ask for more examples than there are"),
    Code("PG410", "cache-exceeds-budget", _E, "The cache, or what has to be unpacked, does not fit the memory budget"),
    Code("PG411", "ignored-entries", _I, "Some files in the data's folder are not used"),
    Code("PG412", "shard-indivisible", _E, "The batch cannot be shared out evenly between the hosts"),
    Code("PG413", "exclude-file", _E, "The list of excluded files cannot be used"),
    Code("PG414", "unsupported-format", _E, "A file's format cannot be decoded here, or it holds too many records"),
    Code("PG415", "splits-as-classes", _W, "The class folders have the names of splits"),
    Code("PG416", "cache-exceeds-disk", _E, "The disk has no room for the cache"),
    Code("PG417", "cache-folder-unusable", _E, "The cache's folder cannot be used"),
    Code("PG418", "arrays-mismatch", _E, "The arrays and the features of the spec do not fit together"),
    Code("PG419", "unfit-array", _E, "An array of images has a dtype, size or range that cannot be used"),
    Code("PG420", "unfit-labels", _E, "An array or a column of labels holds values that are not classes"),
    Code("PG421", "table-mismatch", _E, "A table and the features of the spec do not fit together"),
    Code("PG422", "repeated-file", _W, "A file is in several rows of a table"),
    Code("PG423", "no-number", _E, "A cell of a table does not hold the expected number"),
    Code("PG424", "unpaired-files", _E, "The files of a record do not fit together by their names"),
    Code("PG425", "memory-exceeds-limit", _W, "The pipeline is expected to hold more memory than the budget or the machine has"),
    Code("PG430", "damaged-shard", _E, "A file of many records is damaged or cannot be read"),
    Code("PG431", "record-mismatch", _E, "The records and the features of the spec do not fit together"),
    Code("PG432", "labels-scanned", _I, "A label or another value was read for every record"),
    Code("PG440", "library-missing", _E, "The library that reads the files of a source is not installed"),
    Code("PG441", "no-random-access", _E, "The records of a file cannot be read one by one as the spec asks"),
    Code("PG442", "unmatched-keys", _E, "The keys of an LMDB environment do not fit the patterns of the features"),
    Code("PG443", "not-a-saved-dataset", _E, "A folder is not a dataset saved by Hugging Face's library, or lacks a split"),
    Code("PG445", "window-exceeds-budget", _W, "The windows of the order do not fit in memory, so that blocks are read many times"),
    Code("PG446", "mixed-image-cells", _E, "Some images of a row are in the table itself, and others in files"),
    Code("PG447", "unusable-dataset", _E, "A dataset of TensorFlow Datasets does not fit the spec, or cannot be read"),
    Code("PG448", "overlapping-splits", _E, "A record is named for two splits, or twice for one"),
    Code("PG449", "wrong-cell-shape", _E, "A cell of a table is not an array of the shape in the spec"),
    Code("PG450", "unjoined-row", _E, "A row of a table has no partner in the joined table, or several"),
    Code("PG451", "class-not-stored", _W, "A class that `map` or `ignore` names is in no row"),
    Code("PG452", "not-comparable", _E, "A cell of a table cannot be compared as `where` asks"),
    Code("PG453", "database-refuses", _E, "A database cannot be reached, or refuses the query"),
    Code("PG454", "unusable-snapshot", _E, "The stored rows of a query cannot be written or read"),
    Code("PG455", "rows-of-snapshot", _I, "The rows of a query are read from its snapshot"),
    Code("PG460", "epoch-beside-mix", _E, "`epoch` is set beside a mix, which has its own length of an epoch"),
    Code("PG461", "untrained-part", _E, "A part of a mix has a weight and no training split"),
    Code("PG462", "parts-differ", _E, "The parts of a mix do not end at one type"),
    Code("PG463", "missing-in-part", _E, "A part of a mix lacks a feature, or its fill value does not fit"),
    Code("PG464", "epoch-of-mix", _E, "An epoch of a mix would have no example, or too many"),
    Code("PG465", "combining-in-part", _E, "A step of one part of a mix combines the examples of a batch"),
    Code("PG466", "learning-in-part", _E, "A step of one part of a mix is fitted to the training split"),
    Code("PG467", "sampling-beside-mix", _E, "A section selects examples beside a mix, whose weights do so"),
    Code("PG468", "python-in-part", _E, "A step of one part of a mix calls a Python function"),
    # The examples of an epoch.
    Code("PG470", "sampling-needs-global-shuffle", _E, "Examples are selected from the whole split, but shuffled or read in parts"),
    Code("PG471", "two-choices-of-examples", _E, "Two sections select the examples of an epoch"),
    Code("PG472", "unusable-sampling-feature", _E, "A feature cannot be used to sample or sort examples"),
    Code("PG474", "no-split-to-sample", _E, "A section selects examples of the training split, which does not exist"),
    # Annotations: boxes and their classes, in files of their own.
    Code("PG475", "damaged-annotations", _E, "A file of annotations cannot be read, or has invalid values"),
    Code("PG476", "annotations-without-image", _E, "Annotations have no image"),
    Code("PG477", "unfit-boxes", _W, "Some boxes have no area, or are outside their image"),
    Code("PG478", "unfit-box-classes", _E, "The classes of boxes are not those in the spec"),
    Code("PG479", "annotated-size", _W, "The size of an image differs from that in its annotations"),
    # Buckets, padding and events, with data.
    Code("PG480", "thin-bucket", _W, "A bucket has fewer images than a batch, so they are dropped"),
    Code("PG481", "headers-read", _I, "The headers of files were read for the sizes of images, or for lengths"),
    Code("PG482", "too-long", _W, "Examples are longer than their padding allows"),
    Code("PG483", "late-events", _W, "Some events end after their sound"),
    Code("PG484", "early-events", _W, "All labels of frames are for the beginning of their sounds"),
    # Limits of workers of the tf.data service.
    Code("PG485", "service-python-step", _E, "A step calls a Python function, which workers of the tf.data service do not have"),
    Code("PG486", "service-python-rows", _E, "Records are read by Python, which workers of the tf.data service do not have"),
    Code("PG487", "service-large-arrays", _E, "Arrays are too large for the graph that workers of the tf.data service get"),
    Code("PG488", "service-without-training", _E, "Workers of the tf.data service need a training split, which does not exist"),
    # Time series.
    Code("PG490", "repeated-time", _E, "Two rows of a time series have the same time"),
    Code("PG491", "irregular-times", _W, "The time between the rows of a series varies"),
    Code("PG492", "missing-values", _E, "A time series lacks values"),
    Code("PG493", "short-series", _W, "A time series is shorter than a window"),
    Code("PG494", "overlapping-windows", _W, "Windows that share rows are in different splits"),
    Code("PG495", "unfilled-values", _W, "Missing values of a time series reach the output"),
    # Valid, but probably not meant.
    Code("PG501", "reduction-without-antialias", _W, "Images are made much smaller without antialiasing"),
    Code("PG502", "fill-changes-in-a-run", _W, "Another fill or interpolation breaks a run of geometric steps in two"),
    Code("PG503", "tiny-angle", _W, "An angle below one degree was probably meant in other units"),
    Code("PG504", "float-before-geometry", _W, "Geometric steps work on floats where they could work on bytes"),
    Code("PG505", "weak-shuffle", _W, "The order of the training data is hardly shuffled"),
    Code("PG506", "repeated-resize", _W, "Images are resized twice"),
    Code("PG507", "augmented-evaluation", _W, "A random step also changes evaluation data"),
    Code("PG508", "dropped-evaluation", _W, "Evaluation leaves out its last examples"),
    Code("PG509", "no-validation", _I, "There is no validation split"),
    Code("PG510", "extreme-magnitude", _W, "A magnitude reaches values that make no sense"),
    Code("PG511", "unused-ignore", _W, "An ignore comment silences nothing"),
    Code("PG512", "pad-with-plain-metrics", _I, "Padded batches change metrics that ignore weights"),
    Code("PG513", "groups-cut-in-two", _I, "Batches cut the groups of combined examples"),
    Code("PG514", "unused-feature", _W, "A feature is described and never used"),
    Code("PG515", "nothing-to-share", _W, "`draw: group` on a step that draws nothing"),
    Code("PG518", "cache-in-vain", _W, "The spec asks for a cache, but the training split cannot be cached"),
    Code("PG520", "runs-python", _I, "A step calls a Python function, which has to be allowed and works on one image at a time"),
    Code("PG523", "split-name", _W, "A split has an unusual name, which is not recognised as the usual one"),
    # Locks.
    Code("PG530", "not-locked", _E, "The spec is not in the lock"),
    Code("PG531", "differs-from-lock", _E, "The spec, or something it uses, differs from the lock"),
    Code("PG532", "damaged-lock", _E, "The lock cannot be read"),
    Code("PG533", "base-not-fetched", _E, "A base cannot be fetched from its repository"),
    Code("PG534", "lock-outdated", _W, "Something differs from the lock, but the spec means the same"),
    # Serving.
    Code("PG540", "random-in-serving", _E, "A step is random on evaluation data, but a request has nothing to draw by"),
    Code("PG541", "unserved-feature", _E, "The model takes a feature that a request cannot have"),
    Code("PG542", "served-python", _E, "A step calls Python, which a saved model cannot contain"),
    Code("PG543", "unconvertible", _E, "A converter does not support an operation of a step"),
    Code("PG544", "divided-steps", _E, "The batch steps of evaluation cannot be moved into a layer of the model"),
    Code("PG545", "served-buckets", _E, "Evaluation has batches of several sizes, but a model is served for one"),
    # Ejecting.
    Code("PG550", "eject-python-step", _E, "A step calls a Python function, which a graph cannot contain"),
    Code("PG551", "eject-python-format", _E, "Files have a format that only Python reads, which a graph cannot contain"),
    Code("PG552", "eject-python-rows", _E, "Records are read by Python, which a graph cannot contain"),
    Code("PG553", "eject-replaced-records", _E, "Damaged records are counted and replaced by Python, which a graph cannot contain"),
    Code("PG554", "eject-without-cache", _I, "Ejected datasets have no cache"),
    Code("PG555", "eject-given-data", _E, "The data exists only in this Python process, so it cannot be ejected"),
    # Stages of training.
    Code("PG560", "shared-setting-in-stage", _E, "A param of a stage changes a setting that all stages share"),
    Code("PG561", "stages-without-training", _E, "Stages need a training split, which does not exist"),
    Code("PG562", "last-stage-differs", _W, "Training ends with another type of batch than evaluation has"),
    # Data on other machines.
    Code("PG565", "no-remote-library", _E, "No installed library reads addresses of this kind"),
    Code("PG566", "not-fetched", _E, "Files of another machine cannot be listed or fetched"),
    Code("PG567", "remote-cache-too-small", _E, "The files of an address do not fit the cache of remote files"),
    # Prepared stores.
    Code("PG570", "store-damaged", _E, "A prepared store is damaged or incomplete"),
    Code("PG571", "store-other", _E, "A prepared store is not the one that the source describes"),
    Code("PG572", "nothing-to-prepare", _E, "No step of the spec can run once and be stored"),
    Code("PG573", "prepare-scaled", _E, "Files are decoded at a size that depends on steps after the stored ones"),
    Code("PG574", "prepare-room", _E, "The store does not fit on the disk"),
    Code("PG575", "prepare-library", _E, "A library for preparing data in this way is missing"),
    Code("PG576", "prepare-shrunk", _E, "Images are stored after the step that fixes their size, so they cannot be shrunk"),
    Code("PG577", "prepare-original", _E, "Files cannot be stored as they are, as steps before the cut change them"),
    # Splits that annotations name.
    Code("PG578", "unusable-split-list", _E, "A list of a split does not exist, is empty, or names images that do not exist"),
    # Boxes: valid, but probably not meant.
    Code("PG580", "fill-repeats-objects", _W, "A fill repeats objects, for which there are no boxes"),
    Code("PG590", "no-boxes-to-crop-by", _W, "A crop chooses its window by boxes, but the image has none"),
    Code("PG596", "paste-without-mask", _E, "A step pastes by a mask, but there is none, or several"),
    # Parts and features that may be misunderstood.
    Code("PG626", "counts-of-100", _W, "The parts are counts of examples that look like percentages"),
    Code("PG627", "parts-far-from-asked", _W, "The shares of the parts differ from those in the spec"),
    Code("PG628", "array-not-moved", _W, "An array has the shape of an image that a step moves, but does not move with it"),
    Code("PG629", "unknown-part-value", _W, "A part lists values that no record has"),
    # Orientation of images.
    Code("PG660", "annotations-rotated", _I, "Annotations are rotated with images, as their size shows the orientation"),
    Code("PG661", "unknown-orientation", _W, "Images are rotated by their EXIF, but the orientation of their annotations is unknown"),
    # Sets of shards, and classes and numbers that the data names.
    Code("PG663", "mixed-shard-sets", _E, "Shards belong to sets of different sizes"),
    Code("PG664", "numbers-as-names", _W, "The names of classes are numbers, but are sorted as text"),
    Code("PG665", "classes-alike", _W, "Two classes differ only in case, spaces or the form of a number"),
    Code("PG666", "rounded-number", _E, "An integer of a tensor is not exact in float32"),
    # Several hosts and devices.
    Code("PG667", "unequal-parts", _W, "Hosts or replicas get unequal parts of a batch, but count equally"),
    # Classes, and the safety of specs.
    Code("PG668", "index-without-record", _W, "Labels are class indices, and some classes below the largest have no record"),
    Code("PG670", "unsafe-address", _E, "An address in a spec could load code or read files"),
    Code("PG671", "write-outside", _E, "A spec writes a file outside of its folder and the working directory"),
    Code("PG672", "secret-param", _E, "A param reads an environment variable that holds a secret"),
    Code("PG673", "environment-sent", _E, "A value from the environment is sent to a server that the spec names"),
    Code("PG674", "foreign-file", _E, "A file or folder to write already exists and is not from pipegen"),
    # Tests of the data: invalid tests, then their findings.
    Code("PG700", "unfit-test", _E, "A test does not fit the data or the feature"),
    Code("PG701", "unknown-tested-class", _E, "A test names an unknown class"),
    Code("PG702", "untestable-data", _E, "A test cannot be run on this data"),
    Code("PG703", "repeated-test-id", _E, "Two tests have the same id"),
    Code("PG710", "count-out-of-bounds", _E, "A test finds too few or too many examples"),
    Code("PG711", "missing-class", _E, "A test finds no example of a class in a split"),
    Code("PG712", "imbalance", _E, "A test finds one class far more often than another"),
    Code("PG713", "value-out-of-range", _E, "A test finds values outside of a range"),
    Code("PG714", "repeated-value", _E, "A test finds a key more than once"),
    Code("PG715", "missing-value", _E, "A test finds examples without a key, or a key without examples"),
    Code("PG716", "value-not-accepted", _E, "A test finds keys that are not accepted"),
    Code("PG717", "shared-value", _E, "A test finds a key in two splits"),
    Code("PG718", "statistic-out-of-bounds", _E, "A test finds a mean or a spread outside of its bounds"),
    Code("PG719", "other-shape", _E, "A test finds a feature of another shape or dtype"),
    Code("PG720", "assertion-failed", _E, "An assertion in Python does not hold for some examples"),
    Code("PG721", "leaking-splits", _E, "A test finds images of one split in another"),
    Code("PG722", "unreadable-sample", _E, "An example that tests need cannot be read"),
    # The content of images, which `pipegen report` analyses.
    Code("PG730", "same-picture", _E, "Two splits have the same image, byte for byte"),
    Code("PG731", "copied-picture", _E, "Two splits have copies of one image"),
    Code("PG732", "alike-pictures", _I, "Images of two splits have similar hashes, but differ in their pixels"),
    Code("PG735", "odd-light", _I, "Images are dark, bright, or nearly of one value"),
    Code("PG736", "blurry-pictures", _I, "Images have no sharp edge"),
    Code("PG737", "odd-size", _I, "Images have an unusual size or aspect ratio"),
    Code("PG738", "nearly-empty-class", _I, "A class has far fewer examples than the others"),
    Code("PG739", "uneven-classes", _I, "Few classes have most of the examples"),
    Code("PG740", "several-classes", _I, "One image is stored under several classes"),
    Code("PG741", "repeated-picture", _I, "A split has the same image several times"),
    Code("PG742", "not-checked", _W, "Records could not be checked or compared"),
    Code("PG743", "unsupported-fetch", _E, "A source cannot read remote files in the way of `fetch`"),
    Code("PG744", "unsupported-scheme", _E, "TensorFlow does not read addresses of this kind itself"),
    Code("PG745", "fetched-again", _W, "The order reads back and forth in more data than the cache of remote files can keep"),
)

_LONGEST_WORD = 400
_LONG_WORD = re.compile(rf"(\S{{{_LONGEST_WORD}}})\S+")

CODES: dict[str, Code] = {c.code: c for c in _TABLE}  # every code, in order


def make(
    code: str,
    message: str,
    *labels: Label,
    help: str | tuple[str, ...] = (),
    fix: Fix | None = None,
    severity: Severity | None = None,
) -> Diagnostic:
    """Makes a finding with a code of the catalogue, whose severity it has by default; the first label is its primary place. Raises
    `KeyError` if the catalogue does not have the code."""
    lines = (help,) if isinstance(help, str) else tuple(help)
    return Diagnostic(code, severity or CODES[code].severity, _readable(message), tuple(labels), tuple(map(_readable, lines)), fix)


def _readable(text: str) -> str:
    """Masks passwords and cuts very long words, as a damaged spec may have."""
    hidden = masked(text)
    text = text if hidden == text else hidden  # keeps the type `Advice`
    return _LONG_WORD.sub(r"\1…", text) if len(text) > _LONGEST_WORD else text


_SECTION = re.compile(r"^## +(.+?) *$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """The page of a code: the name in its title, its sections by title, and the whole page as Markdown."""

    name: str
    sections: dict[str, str]
    text: str


@cache
def page(code: str) -> Page:
    """Reads the page of a code from the package. Raises `KeyError` if the catalogue does not have the code."""
    from importlib.resources import files

    text = (files("pipegen.diagnostics") / "rules" / f"{CODES[code].code}.md").read_text(encoding="utf-8")
    return Page(*page_sections(code, text, ("What it finds", "Why", "Bad", "Good")), text)


def page_sections(code: str, text: str, wanted: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """Splits a page into the name in its title and its sections. Raises `ValueError` if its title is not valid, or its sections are not
    `wanted`."""
    title, _, body = text.partition("\n")
    head = re.fullmatch(rf"# {code} ([a-z0-9-]+)", title.strip())
    if head is None:
        raise ValueError(f"the page of {code} must start with `# {code} NAME`, not {title!r}")
    parts = _SECTION.split(body)
    sections = dict(zip(parts[1::2], (p.strip("\n") for p in parts[2::2]), strict=True))
    if tuple(sections) != wanted:
        raise ValueError(f"the page of {code} has the sections {list(sections)}")
    return head[1], sections
