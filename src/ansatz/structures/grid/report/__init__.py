"""The parts of a report that are about signals, images and volumes, and masks of these."""
