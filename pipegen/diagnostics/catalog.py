"""The catalogue: every code with its name and severity in one ordered table, and the page that explains each.

A page is `rules/PGnnn.md`: a title line `# PG214 standardised-values`, a paragraph under `## What it finds` and one under
`## Why`, then `## Bad` and `## Good`, each with one whole spec in a fenced `yaml` block. The bad spec yields exactly that
code; the good one is the same spec mended, and yields no error and not that code. What else a page may hold,
`tests/diagnostics/spec_pages.py` says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from pipegen.diagnostics.diagnostic import Diagnostic, Fix, Label, Severity
from pipegen.terminal import masked

_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of finding.

    Attributes:
        code: `PG` and three digits.
        name: The problem in a word or three, joined by hyphens.
        severity: What it is unless a finding says otherwise.
        title: The problem in one sentence without a full stop.
    """

    code: str
    name: str
    severity: Severity
    title: str


_TABLE = (
    # The text of the file: nothing is known about the language yet.
    Code("PG001", "not-text", _E, "The spec is not UTF-8 text"),
    Code("PG002", "yaml-syntax", _E, "The spec is not well-formed YAML"),
    Code("PG003", "too-large", _E, "The spec is larger or deeper than any real spec"),
    Code("PG004", "custom-tag", _E, "A YAML tag asks for something other than plain data"),
    Code("PG005", "spec-not-found", _E, "There is no spec at this path"),
    Code("PG006", "not-a-mapping", _E, "The spec is not one mapping of keys to values"),
    Code("PG007", "duplicate-key", _E, "A key is given twice in one mapping"),
    Code("PG008", "yaml-trap", _E, "A word stands where YAML 1.2 needs a number or a boolean"),
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
    Code("PG110", "extends-not-found", _E, "The file that `extends` names is missing or no spec"),
    Code("PG111", "unsupported-version", _E, "The spec is written for another version of the language"),
    Code("PG112", "malformed-choice", _E, "A choice is neither a word nor a mapping with one key"),
    Code("PG113", "package-not-found", _E, "The package or the file that `extends: pkg:…` names is not installed"),
    Code("PG114", "homeless-path", _E, "A shared base has a relative path of data"),
    Code("PG115", "malformed-address", _E, "The address of a base is no address that pipegen takes"),
    Code("PG116", "unlocked-base", _E, "A base from git was not resolved by `pipegen lock`"),
    Code("PG117", "changed-base", _E, "The text of a base from git is not the one that was locked"),
    Code("PG120", "nothing-to-edit", _E, "`transforms` is a map of edits, and there is no base with steps"),
    Code("PG121", "unknown-step-id", _E, "A map of edits names a step that the base does not have"),
    Code("PG122", "contradicting-edits", _E, "A map of edits says two things about one step"),
    Code("PG190", "not-yet", _E, "The syntax is reserved and comes in a later version"),
    # Types: what flows from step to step.
    Code("PG201", "unbatchable-shape", _E, "Images of different sizes would meet in one batch"),
    Code("PG203", "no-rule-for-kind", _E, "A step or the output has no rule for this kind of feature"),
    Code("PG204", "wrong-rank", _E, "A step gets a tensor with the wrong number of dimensions"),
    Code("PG205", "wrong-channels", _E, "A step gets an image with the wrong number of channels"),
    Code("PG206", "crop-exceeds-image", _E, "A crop is larger than the image it is cut from"),
    Code("PG207", "invalid-fill", _E, "A fill value does not fit the image's values"),
    Code("PG208", "wrong-dtype", _E, "A step cannot work on values of this dtype"),
    Code("PG210", "splits-differ", _E, "Two splits would give the model different shapes or dtypes"),
    Code("PG213", "double-scaling", _E, "Values that are already 0..1 are scaled as if they were 0..255"),
    Code("PG214", "standardised-values", _E, "A colour step gets values that were centred on 0"),
    Code("PG215", "misplaced-decode", _E, "`decode` is not the first step, or stands twice"),
    Code("PG216", "colliding-step-ids", _E, "Two steps have the same id and would draw the same numbers"),
    Code("PG217", "unknown-feature", _E, "A feature of this name does not exist"),
    Code("PG218", "impossible-encoding", _E, "A label cannot be encoded this way"),
    Code("PG219", "output-dtype", _E, "The values do not fit the output's dtype"),
    Code("PG220", "unknown-split", _E, "A split of this name does not exist"),
    Code("PG221", "not-bytes", _E, "A table of 256 values gets other values than 0..255"),
    Code("PG223", "mixing-class-indices", _E, "A step mixes labels that are class indices"),
    Code("PG224", "late-element-step", _E, "A step that works on single images comes after one that mixes them"),
    Code("PG226", "step-in-policy", _E, "A policy holds a step that not every example could get or go without"),
    Code("PG229", "decode-contradicts-feature", _E, "`decode` and the feature say different things of the same files"),
    Code("PG230", "nothing-to-fit-on", _E, "A step takes its numbers from a training split, and there is none"),
    Code("PG231", "whitening-size", _E, "Images have no fixed size, or too many values, to be whitened"),
    # Code: what a spec names and a caller has to allow.
    Code("PG240", "code-not-allowed", _E, "A step calls a Python function of a module that nobody has allowed"),
    Code("PG241", "unusable-function", _E, "A Python function is not there, or cannot be called as the step does"),
    # Views of an example.
    Code("PG243", "common-step-in-view", _E, "A branch of `views` has a step that all views have to have"),
    Code("PG244", "view-name-taken", _E, "A view of a feature would have the name of another feature"),
    Code("PG245", "nothing-to-view", _E, "There are `views`, and no image of which they could be"),
    Code("PG246", "no-view-for-output", _E, "A split has none of the views that the model takes"),
    Code("PG247", "view-of-no-image", _E, "A branch of `views` is of a feature that is no image, or is not there"),
    Code("PG248", "view-beside-first", _E, "A branch of `views` is of an image that the first branch is not of"),
    # Boxes.
    Code("PG250", "malformed-boxes", _E, "Boxes are not what their `format` says"),
    Code("PG251", "image-without-boxes", _E, "An image has no boxes, and the spec refuses such images"),
    # Turns and keypoints.
    Code("PG255", "sides-swap", _E, "A step swaps the sides of images whose sizes are unknown, or of some that are no squares"),
    Code("PG256", "malformed-keypoints", _E, "Keypoints have another form or number than their feature says"),
    Code("PG258", "pad-below-image", _E, "An image is to be padded to a size that is smaller than its own"),
    # Buckets: batches of a few sizes.
    Code("PG260", "unused-buckets", _E, "Sizes of buckets are named and not used, or used and not named"),
    Code("PG261", "beside-buckets", _E, "A section cannot stand beside buckets"),
    Code("PG262", "unknown-sides", _E, "It is not known how large images are, so that they have no bucket"),
    # Splits.
    Code("PG301", "split-sizes", _E, "The sizes of the splits do not add up"),
    Code("PG302", "split-options-conflict", _E, "Two options of `splits` exclude each other"),
    Code("PG303", "fold-out-of-range", _E, "The chosen fold does not exist"),
    Code("PG304", "stratify-needs-labels", _E, "Stratification needs labels, and the source has none"),
    # Data: what is only known once the files have been seen.
    Code("PG401", "path-not-found", _E, "The data's path does not exist"),
    Code("PG402", "nothing-found", _E, "There is not one usable file at the data's path"),
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
    Code("PG419", "unfit-array", _E, "An array of images has another dtype, size or range than can be used"),
    Code("PG420", "unfit-labels", _E, "An array or a column of labels holds what is no class"),
    Code("PG421", "table-mismatch", _E, "A table and the features of the spec do not fit together"),
    Code("PG422", "repeated-file", _W, "A file stands in several rows of a table"),
    Code("PG423", "no-number", _E, "A cell of a table holds no number where one is due"),
    Code("PG424", "unpaired-files", _E, "The files of a record do not fit together by their names"),
    Code("PG425", "memory-exceeds-limit", _W, "The pipeline is expected to hold more memory than the budget or the machine has"),
    Code("PG430", "damaged-shard", _E, "A file of many records is damaged or cannot be read"),
    Code("PG431", "record-mismatch", _E, "The records and the features of the spec do not fit together"),
    Code("PG432", "labels-scanned", _I, "Every label was read to find the classes"),
    Code("PG440", "library-missing", _E, "The library that reads the files of a source is not installed"),
    Code("PG441", "not-by-record", _E, "The records of a file cannot be read one by one as the spec asks"),
    Code("PG442", "unmatched-keys", _E, "The keys of an LMDB environment do not fit the patterns of the features"),
    Code("PG443", "not-saved", _E, "A folder is no data set that Hugging Face's library saved, or lacks a split of it"),
    Code("PG445", "window-exceeds-budget", _W, "The windows of the order do not fit in memory, so that blocks are read many times"),
    Code("PG446", "pictures-apart", _E, "Some pictures of a row stand in the table itself, and others in files"),
    Code("PG447", "unusable-data-set", _E, "A data set of TensorFlow Datasets is not what the spec asks for, or cannot be read"),
    Code("PG448", "overlapping-splits", _E, "A record is named for two splits, or twice for one"),
    Code("PG449", "not-of-shape", _E, "A cell of a table is no array of the shape that the spec says"),
    Code("PG450", "unjoined-row", _E, "A row of a table has no partner in the joined table, or several"),
    Code("PG451", "class-not-stored", _W, "A class that `map` or `ignore` names is in no row"),
    Code("PG452", "not-comparable", _E, "A cell of a table cannot be compared as `where` asks"),
    Code("PG453", "database-refuses", _E, "A database cannot be reached, or refuses the query"),
    Code("PG454", "unusable-snapshot", _E, "The rows that a query gave cannot be kept or read again"),
    Code("PG455", "rows-of-snapshot", _I, "The rows of a query are those that were kept of it"),
    Code("PG460", "epoch-beside-mix", _E, "The length of an epoch stands beside a mix, which has one of its own"),
    Code("PG461", "untrained-part", _E, "A part of a mix has a weight and no training split"),
    Code("PG462", "parts-apart", _E, "The parts of a mix do not come to one type"),
    Code("PG463", "missing-in-part", _E, "A part of a mix lacks a feature, or what it is filled with does not fit"),
    Code("PG464", "epoch-of-mix", _E, "An epoch of a mix would have no example, or too many"),
    Code("PG465", "mixing-in-part", _E, "A part of a mix alone is to mix the examples of a batch"),
    Code("PG466", "learning-in-part", _E, "A step of one part of a mix is to learn from the training split"),
    Code("PG467", "sampling-beside-mix", _E, "A section that chooses examples stands beside a mix, whose weights do"),
    Code("PG468", "python-in-part", _E, "A step of one part of a mix calls a Python function"),
    # Which examples an epoch has.
    Code("PG470", "sampling-needs-global-shuffle", _E, "Examples are chosen from the whole split, and shuffled or read in parts"),
    Code("PG471", "two-choices-of-examples", _E, "Two sections say which examples an epoch has"),
    Code("PG472", "unusable-sampling-feature", _E, "A feature cannot say how often, or how early, an example is seen"),
    Code("PG474", "no-split-to-sample", _E, "A section chooses examples of the training split, and there is none"),
    # Annotations: boxes and their classes, in files of their own.
    Code("PG475", "damaged-annotations", _E, "A file of annotations cannot be read, or says what cannot be"),
    Code("PG476", "annotations-without-image", _E, "There are annotations, and no image that they are of"),
    Code("PG477", "unfit-boxes", _W, "Some boxes have no area, or do not lie on their image"),
    Code("PG478", "unfit-box-classes", _E, "The classes of boxes are not those that the spec asks for"),
    Code("PG479", "annotated-size", _W, "An image has another size than its annotations say"),
    # Buckets, once the data is there.
    Code("PG480", "thin-bucket", _W, "A bucket has fewer images than a batch, and what fills none is dropped"),
    Code("PG481", "headers-read", _I, "The headers of files were read to find out how large images are"),
    # What workers of the tf.data service cannot make.
    Code("PG485", "service-python-step", _E, "A step calls a Python function, which workers of the tf.data service do not have"),
    Code("PG486", "service-python-rows", _E, "Records are read by Python, which workers of the tf.data service do not have"),
    Code("PG487", "service-large-arrays", _E, "Arrays are too large for the graph that workers of the tf.data service get"),
    Code("PG488", "service-without-training", _E, "Workers of the tf.data service are named, and there is no training split"),
    # Legal, and probably not meant.
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
    Code("PG513", "groups-cut-in-two", _I, "Batches begin inside the groups that are mixed"),
    Code("PG514", "unused-feature", _W, "A feature is described and never used"),
    Code("PG518", "cache-in-vain", _W, "A cache is asked for, and the training split has nothing to keep"),
    Code("PG520", "runs-python", _I, "A step calls a Python function, which has to be allowed and works on one image at a time"),
    Code("PG523", "split-name", _W, "A split has a name that nothing takes for the usual one"),
    # Locks: what a spec was made of, and what has moved since.
    Code("PG530", "not-locked", _E, "The lock does not know the spec"),
    Code("PG531", "moved", _E, "What the lock holds of a spec has moved"),
    Code("PG532", "damaged-lock", _E, "The lock is no lock that pipegen can read"),
    Code("PG533", "base-not-fetched", _E, "A base cannot be fetched from its repository"),
    Code("PG534", "moved-alike", _W, "What the lock holds of a spec has moved, and the spec means the same"),
    # Serving: what keeps a pipeline's evaluation steps out of a served model.
    Code("PG540", "served-draws", _E, "A step draws on evaluation data, and a request has nothing to draw for"),
    Code("PG541", "unserved-feature", _E, "The model takes a feature that no request can bring"),
    Code("PG542", "served-python", _E, "A step calls Python, which the file of a served model cannot hold"),
    Code("PG543", "unconvertible", _E, "A converter has no form of an operation that a step computes"),
    Code("PG544", "divided-steps", _E, "A split cannot leave to a layer of the model what evaluation does on batches"),
    Code("PG545", "served-buckets", _E, "Evaluation has batches of several sizes, and a model is served for one"),
    # Ejecting: what cannot leave the process, and what stays behind.
    Code("PG550", "eject-python-step", _E, "A step calls a Python function, which no graph can take along"),
    Code("PG551", "eject-python-format", _E, "Files have a format that only Python reads, which no graph can take along"),
    Code("PG552", "eject-python-rows", _E, "Records are read by Python, which no graph can take along"),
    Code("PG553", "eject-replaced-records", _E, "Damaged records are counted and replaced by Python, which stays behind"),
    Code("PG554", "eject-without-cache", _I, "A cache stays behind where datasets are ejected"),
    Code("PG555", "eject-given-data", _E, "Code is ejected for data that only Python can hand over"),
    # Stages of training.
    Code("PG560", "beyond-a-stage", _E, "A param of a stage reaches what all stages share"),
    Code("PG561", "stages-without-training", _E, "There are stages, and no training split"),
    Code("PG562", "ends-otherwise", _W, "Training ends with another type of batch than evaluation has"),
    # Data on other machines.
    Code("PG565", "no-remote-library", _E, "Nothing that is installed reads addresses of this kind"),
    Code("PG566", "not-fetched", _E, "Files of another machine cannot be listed or fetched"),
    Code("PG567", "remote-cache-too-small", _E, "The files of an address do not fit the cache of remote files"),
    # Preparing: what cannot be stored, and stores that are not what a spec takes them for.
    Code("PG570", "store-damaged", _E, "A prepared store is not whole"),
    Code("PG571", "store-other", _E, "A prepared store is not the one that the source describes"),
    Code("PG572", "nothing-to-prepare", _E, "No step of a spec can be done once and stored"),
    Code("PG573", "prepare-scaled", _E, "Files are decoded at a size that depends on steps behind those that are stored"),
    Code("PG574", "prepare-room", _E, "A store does not fit the disk"),
    Code("PG575", "prepare-library", _E, "A library is missing that is needed for preparing data so"),
    Code("PG576", "prepare-shrunk", _E, "Images are stored behind the step that fixes their size, and are to be shrunk"),
    Code("PG577", "prepare-original", _E, "Files are to be stored as they are, and steps before the cut change them"),
    # Splits that annotations name.
    Code("PG578", "unusable-split-list", _E, "There is no such split beside the annotations, or it names images that are not there"),
    # Boxes that are legal and unwise.
    Code("PG580", "fill-repeats-objects", _W, "A fill shows objects a second time, of which the boxes know nothing"),
    Code("PG590", "no-boxes-to-crop-by", _W, "A crop chooses its window by boxes, and there are none"),
    Code("PG596", "paste-without-mask", _E, "A step pastes by a mask, and it is not clear by which"),
    # Parts and features that are other than they seem.
    Code("PG626", "counts-of-100", _W, "The parts are counts of examples that read as per cent"),
    Code("PG627", "parts-far-from-asked", _W, "The parts have other shares of the records than the spec asks for"),
    Code("PG628", "array-stays", _W, "An array has the form of an image that a step moves, and keeps its place"),
    # Which way images lie.
    Code("PG660", "annotations-turned", _I, "Annotations are turned with images, since their size says how they were drawn"),
    Code("PG661", "unknown-orientation", _W, "Images are turned by their EXIF, and no size tells how their annotations were drawn"),
    # Sets of shards, and classes and numbers that the data names.
    Code("PG663", "mixed-shard-sets", _E, "Shards that name their number belong to different sets"),
    Code("PG664", "numbers-as-names", _W, "The names of classes are numbers, and their order is that of text"),
    Code("PG665", "classes-alike", _W, "Two classes differ only in case, in blanks or in how a number is written"),
    Code("PG666", "rounded-number", _E, "A whole number of a tensor cannot be float32 without becoming another one"),
    # Several hosts and devices.
    Code("PG667", "unequal-parts", _W, "The parts of a batch that hosts or replicas take are not of one size, and count the same"),
    # What a spec may do.
    Code("PG668", "index-without-record", _W, "Labels are class indices, and some classes below the largest have no record"),
    Code("PG670", "unsafe-address", _E, "An address in a spec could load code or read files by what it says"),
    Code("PG671", "written-elsewhere", _E, "A spec names a file to write that is neither below its folder nor below the working directory"),
    Code("PG672", "secret-param", _E, "A param takes its value from a variable of the environment that holds a secret"),
    Code("PG673", "sent-away", _E, "A value from the environment is sent to a server that the spec names"),
    Code("PG674", "not-ours", _E, "What stands at a place that pipegen is to write to comes from something else"),
    # Tests of the data: what cannot work about them, then what they find.
    Code("PG700", "unfit-test", _E, "A test asks for what the data or the feature has not"),
    Code("PG701", "unknown-tested-class", _E, "A test names a class that the data has not"),
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
    Code("PG721", "leaking-splits", _E, "A test finds pictures of one split in another"),
    Code("PG722", "unreadable-sample", _E, "An example that tests look at cannot be read"),
    # The pictures themselves, which `pipegen report` looks at.
    Code("PG730", "same-picture", _E, "Two splits hold the same picture, byte by byte"),
    Code("PG731", "copied-picture", _E, "Two splits hold copies of one picture"),
    Code("PG732", "alike-pictures", _I, "Pictures of two splits hash alike, and differ in their pixels"),
    Code("PG735", "odd-light", _I, "Pictures are dark, bright, or nearly of one value"),
    Code("PG736", "blurry-pictures", _I, "Pictures have no sharp edge"),
    Code("PG737", "odd-size", _I, "Pictures have a size or an aspect far from that of the others"),
    Code("PG738", "nearly-empty-class", _I, "A class has far fewer examples than the others"),
    Code("PG739", "uneven-classes", _I, "Few classes have most of the examples"),
    Code("PG740", "several-classes", _I, "One picture is stored under several classes"),
    Code("PG741", "repeated-picture", _I, "A split holds the same picture several times"),
    Code("PG742", "not-looked-at", _W, "Records could not be looked at, or not be compared"),
    Code("PG743", "not-fetched-so", _E, "A source needs files of other machines in another way than `fetch` says"),
    Code("PG744", "not-in-the-graph", _E, "TensorFlow does not read addresses of this kind itself"),
    Code("PG745", "fetched-again", _W, "The order jumps about among more data than the cache of remote files may keep"),
)

_LONGEST_WORD = 400
_LONG_WORD = re.compile(rf"(\S{{{_LONGEST_WORD}}})\S+")

CODES: dict[str, Code] = {c.code: c for c in _TABLE}
"""Every code, in order."""


def make(
    code: str,
    message: str,
    *labels: Label,
    help: str | tuple[str, ...] = (),
    fix: Fix | None = None,
    severity: Severity | None = None,
) -> Diagnostic:
    """A finding of a code of the catalogue, the primary place first, with the severity that the table gives it unless another is given.

    `help` says what was expected and what to do, in one line or several; `fix` is an edit that mends it.

    Raises:
        KeyError: If the catalogue has no such code.
    """
    lines = (help,) if isinstance(help, str) else tuple(help)
    return Diagnostic(code, severity or CODES[code].severity, _readable(message), tuple(labels), tuple(map(_readable, lines)), fix)


def _readable(text: str) -> str:
    """Gives the text without passwords, and with words cut that nobody reads to their end: a damaged spec may hold endless ones."""
    hidden = masked(text)
    text = text if hidden == text else hidden  # advice that hides nothing stays advice
    return _LONG_WORD.sub(r"\1…", text) if len(text) > _LONGEST_WORD else text


_SECTION = re.compile(r"^## +(.+?) *$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """The explanation of one code: the name in its title line, what stands under each title, and the whole page as Markdown."""

    name: str
    sections: dict[str, str]
    text: str


@cache
def page(code: str) -> Page:
    """The page of a code, read from the package.

    Raises:
        KeyError: If the catalogue has no such code.
    """
    from importlib.resources import files

    text = (files("pipegen.diagnostics") / "rules" / f"{CODES[code].code}.md").read_text(encoding="utf-8")
    return Page(*page_sections(code, text, ("What it finds", "Why", "Bad", "Good")), text)


def page_sections(code: str, text: str, wanted: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """The name in the title of a page, and its sections.

    Raises:
        ValueError: For another title, or other sections than those that are wanted.
    """
    title, _, body = text.partition("\n")
    head = re.fullmatch(rf"# {code} ([a-z0-9-]+)", title.strip())
    if head is None:
        raise ValueError(f"the page of {code} must start with `# {code} NAME`, not {title!r}")
    parts = _SECTION.split(body)
    sections = dict(zip(parts[1::2], (p.strip("\n") for p in parts[2::2]), strict=True))
    if tuple(sections) != wanted:
        raise ValueError(f"the page of {code} has the sections {list(sections)}")
    return head[1], sections
