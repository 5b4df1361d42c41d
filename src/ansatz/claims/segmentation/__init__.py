"""Claims about the segmentation of images."""
