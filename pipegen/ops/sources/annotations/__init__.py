"""Annotation files: boxes and their classes, in the formats of COCO, Pascal VOC, YOLO and LabelMe."""
